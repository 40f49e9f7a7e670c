#!/bin/sh
# embed.sh FOLDER FILE...: prints C source with the bytes of the files, named by their path in FOLDER.
set -eu
folder=$1
shift
echo '#include "gpu/kernels/sources.h"'
n=0
table=""
for f in "$@"; do
    echo "static const unsigned char file_$n[] = {"
    od -An -v -tu1 "$f" | sed 's/  *\([0-9]\)/\1/; s/  */,/g; s/$/,/'
    echo "0};"
    table="$table    {\"${f#"$folder"/}\", (const char *)file_$n, sizeof file_$n - 1},
"
    n=$((n + 1))
done
printf 'const gpu_source gpu_sources[] = {\n%s};\nconst size_t gpu_n_sources = %d;\n' "$table" "$n"
