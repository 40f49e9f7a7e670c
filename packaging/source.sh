#!/bin/sh
# Packs the sources: what git lists, as it is in the working tree, or all of an unpacked source archive but build/.
#
#   source.sh FILE.tar.gz     SOURCE_DATE_EPOCH and VERSION are set
set -eu
: "${VERSION:?source.sh: VERSION has to be set}"
box=$(mktemp -d)
trap 'rm -rf "$box"' EXIT
folder=$box/bezel-$VERSION
mkdir "$folder"
if [ -e .git ]; then
    git ls-files -z
else
    find . -path ./build -prune -o -type f -print0
fi | tar --create --null --files-from=- | tar --extract --directory="$folder"
sh packaging/archive.sh "$folder" "$1"
