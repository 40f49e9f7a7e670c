#!/bin/sh
# Packs a folder, under its name, the same bytes whenever its files are the same: sorted, owned by root, of one time.
#
#   archive.sh FOLDER FILE.tar.gz     SOURCE_DATE_EPOCH is the time
set -eu
: "${SOURCE_DATE_EPOCH:?archive.sh: SOURCE_DATE_EPOCH has to be set}"
tar --create --directory="$(dirname "$1")" --sort=name --format=ustar --owner=0 --group=0 --numeric-owner \
    --mtime="@$SOURCE_DATE_EPOCH" --mode=u+rw,go+r,go-w,a+X "$(basename "$1")" | gzip -9n > "$2.tmp"
mv "$2.tmp" "$2"
