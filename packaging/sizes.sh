#!/bin/sh
# Prints the table of docs/RELEASES.md: the size of each file of a release, packed and, for archives, unpacked.
#
#   sizes.sh build/dist
set -eu
megabytes() {
    awk -v n="$1" 'BEGIN { printf "%.1f", n / 1e6 }'
}
echo '| file | MB | unpacked, MB |'
echo '|---|---|---|'
for f in "$1"/*; do
    case $f in
    *.tar.gz | *.tgz) unpacked=$(gzip -dc "$f" | wc -c) ;;
    *.deb) unpacked=$(($(dpkg-deb -f "$f" Installed-Size) * 1024)) ;;
    *.zip | *.whl) unpacked=$(/usr/bin/python3 -c 'import sys, zipfile; print(sum(e.file_size for e in zipfile.ZipFile(sys.argv[1]).infolist()))' "$f") ;;
    *) continue ;;
    esac
    echo "| \`$(basename "$f")\` | $(megabytes "$(stat -c %s "$f")") | $(megabytes "$unpacked") |"
done
