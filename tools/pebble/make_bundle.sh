#!/bin/sh
# Copies what training needs into one folder: these scripts, the tokenizer, and espeak-ng from Debian's
# packages (English voices only).
#   make_bundle.sh FOLDER
set -e
here=$(cd "$(dirname "$0")" && pwd)
out=$1
mkdir -p "$out/speech" "$out/debs"
out=$(cd "$out" && pwd)
cp "$here"/*.py "$here"/../gemma4_vocab.py "$here"/../gguf_io.py "$out/"
if [ ! -e "$out/speech/espeak-ng-data" ]; then
    (cd "$out/debs" && apt-get download espeak-ng-data libespeak-ng1 libsonic0)
    for d in "$out"/debs/*.deb; do dpkg -x "$d" "$out/debs/x"; done
    lib=$out/debs/x/usr/lib/$(uname -m)-linux-gnu
    cp -L "$lib/libespeak-ng.so.1" "$lib/libsonic.so.0" "$out/speech/"
    mkdir -p "$out/speech/espeak-ng-data/lang"
    for f in en_dict intonations phondata phondata-manifest phonindex phontab voices; do
        cp -r "$lib/espeak-ng-data/$f" "$out/speech/espeak-ng-data/"
    done
    mkdir -p "$out/speech/espeak-ng-data/lang/gmw"
    cp "$lib"/espeak-ng-data/lang/gmw/en* "$out/speech/espeak-ng-data/lang/gmw/"
    cc -shared -fPIC -O2 -Wl,-soname,libpcaudio.so.0 -o "$out/speech/libpcaudio.so.0" "$here/pcaudio_none.c"
    rm -rf "$out/speech/espeak-ng-data/voices/mb"
fi
rm -rf "$out/debs"
test -e "$out/tokenizer.json" || "${PYTHON:-python3}" "$out/corpus_check.py" "$out/tokenizer.json"
du -sh "$out"
