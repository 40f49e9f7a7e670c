#!/bin/sh
# embed.sh [--bare] FOLDER FILE...: prints C source with the bytes of the files, named by their path in FOLDER.
# --bare: without comments and indentation, except the lines that the linker of kernels reads; a page downloads them.
set -eu
text=cat
if [ "$1" = --bare ]; then
    text=without_comments
    shift
fi
without_comments() {
    sed -E '/^\/\/ (uses: |section )/b; s/^[ \t]+//; s/[ \t]*\/\/.*$//; /^$/d' "$1"
}
folder=$1
shift
echo '#include "gpu/kernels/sources.h"'
n=0
table=""
for f in "$@"; do
    echo "static const unsigned char file_$n[] = {"
    "$text" "$f" | od -An -v -tu1 | sed 's/  *\([0-9]\)/\1/; s/  */,/g; s/$/,/'
    echo "0};"
    table="$table    {\"${f#"$folder"/}\", (const char *)file_$n, sizeof file_$n - 1},
"
    n=$((n + 1))
done
printf 'const gpu_source gpu_sources[] = {\n%s};\nconst size_t gpu_n_sources = %d;\n' "$table" "$n"
