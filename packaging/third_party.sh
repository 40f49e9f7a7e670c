#!/bin/sh
# Prints the licences of what is linked into a program or module, as Debian records them.
#
#   third_party.sh [-s FOLDER] [-f NAME=FILE] PACKAGE...
#
# FOLDER is one that static_libraries.sh made, FILE the licence of something that is no Debian package.
set -eu
folder="" file=""
while getopts s:f: option; do
    case $option in
    s) folder=$OPTARG ;;
    f) file=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
files=""
echo "This file contains the licences of code by others that is part of what it comes with. Bezel's own licence is MIT (LICENSE)."
echo "The sources are in Debian's archive, under these names and versions."
one() { # NAME VERSION FILE
    printf '\n================ %s %s ================\n\n' "$1" "$2"
    cat "$3"
    files="$files $3"
}
for package in "$@"; do
    one "$package" "$(dpkg-query -W -f '${Version}' "$package")" "/usr/share/doc/${package%%:*}/copyright"
done
if [ -n "$file" ]; then
    one "${file%%=*}" "" "${file#*=}"
fi
if [ -n "$folder" ]; then
    for file in "$folder"/copyright/*; do
        name=${file##*/}
        one "$name" "$(sed -n "s/^$name //p" "$folder/packages" | head -n 1)" "$file"
    done
fi
# The texts that these files refer to, which only Debian has in that place.
# shellcheck disable=SC2086
for license in $(cat $files | grep -o '/usr/share/common-licenses/[A-Za-z][A-Za-z0-9.-]*[A-Za-z0-9]' | LC_ALL=C sort -u); do
    [ -f "$license" ] || continue
    printf '\n================ %s ================\n\n' "$license"
    cat "$license"
done
