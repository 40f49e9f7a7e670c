#!/bin/sh
# Finds the optional libraries of the program with the compiler of the build.
#
#   libraries.sh packages   prints the Debian packages of those that are missing
#   libraries.sh FILE       writes FILE, make variables that say what was found; FILE is left alone
#                           (and keeps its time stamp) if its content would not change
#
# Environment: CC, CFLAGS and LDFLAGS, as the build uses them.
set -eu

# Key, Debian packages (comma-separated), headers (comma-separated), linker flags, and what is missing without it.
# A key other than `edit` and `curl` is also the name of a source file in cli/media.
table() {
    cat <<'TABLE'
jpeg  libjpeg62-turbo-dev  stdio.h,jpeglib.h  -ljpeg              JPEG
png   libpng-dev           png.h              -lpng               PNG
webp  libwebp-dev          webp/demux.h       -lwebp,-lwebpdemux  WebP
gif   libgif-dev           gif_lib.h          -lgif               GIF
sound libsndfile1-dev      sndfile.h          -lsndfile           sound other than WAV
video libavformat-dev,libswscale-dev libavformat/avformat.h,libswscale/swscale.h -lavformat,-lavcodec,-lswscale,-lavutil video
edit  libedit-dev          histedit.h         -ledit              line editing
curl  libcurl4-openssl-dev curl/curl.h        -lcurl              pulling models
TABLE
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

split() { # A,B,C -> A B C
    echo "$*" | tr , ' '
}

links() { # NAME HEADERS FLAGS: does a program with these headers and libraries link?
    source=$scratch/$1.c
    for header in $(split "$2"); do
        echo "#include <$header>"
    done > "$source"
    echo "int main(void) { return 0; }" >> "$source"
    # shellcheck disable=SC2086,SC2046
    ${CC:-cc} ${CFLAGS:-} ${LDFLAGS:-} -o "$scratch/$1" "$source" $(split "$3") 2>/dev/null
}

# Usually all are there, and one compilation shows it. Otherwise each one by itself.
headers=$(table | awk '{ printf "%s%s", comma, $3; comma = "," }')
flags=$(table | awk '{ printf "%s%s", comma, $4; comma = "," }')
if links all "$headers" "$flags"; then
    table | cut -d' ' -f1 > "$scratch/found"
else
    table | while read -r key _ headers flags _; do
        if links "$key" "$headers" "$flags"; then echo "$key"; fi
    done > "$scratch/found"
fi

found="" packages="" without="" defines="" media="" edit="" curl=""
while read -r key package _ flags name; do
    if grep -qx "$key" "$scratch/found"; then
        found="$found $key"
        case $key in
        edit) edit=$flags ;;
        curl) curl=$flags ;;
        video) ;; # loaded when a video is read
        *) media="$media $(split "$flags")" ;;
        esac
    else
        package=$(split "$package")
        packages="$packages $package"
        without="$without${without:+, }$name"
        defines="$defines -DMISSING_$(echo "$key" | tr a-z A-Z)='\"$package\"'"
    fi
done <<TABLE
$(table)
TABLE

if [ "$1" = packages ]; then
    echo "${packages# }"
    exit
fi
cat > "$scratch/new" <<NEW
# Written by tools/libraries.sh.
LIBRARIES_FOUND =$found
MEDIA_LINK =$media
EDIT_LINK = $edit
CURL_LINK = $curl
MISSING_NAMES = $without
MISSING_PACKAGES =$packages
MISSING_DEFINES =$defines
NEW
if ! cmp -s "$scratch/new" "$1"; then
    mkdir -p "$(dirname "$1")"
    cp "$scratch/new" "$1.$$"
    mv "$1.$$" "$1"
fi
