#!/bin/sh
# Copies screenshots of tests/browser/test_pictures.ts to docs/pictures, with 64 colors each. `make pictures` calls it.
set -eu
cd "$(dirname "$0")/.."
mkdir -p docs/pictures
for name in first-visit-desktop-light image-desktop-light tool-desktop-dark models-desktop-dark \
    first-visit-phone-dark image-phone-light tool-phone-dark models-phone-light; do
    ffmpeg -loglevel error -y -i "build/screenshots/picture-$name.png" -flags +bitexact -map_metadata -1 \
        -filter_complex "split[a][b];[a]palettegen=max_colors=64[p];[b][p]paletteuse=dither=none" "docs/pictures/$name.png"
done
