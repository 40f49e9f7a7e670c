#!/bin/sh
# The environment in which the GPU tests run on a machine without a GPU, as `setup.sh gpu` made it.
#
#   eval "$(sh tools/gpu-env.sh)"          into this shell
#   sh tools/gpu-env.sh build/bezel ...    for one command
#
# What is set already stays: that is how the same tests run on a real GPU.
set -eu
build=$(cd "$(dirname "$0")/.." && pwd)/build
: "${BEZEL_WEBGPU_LIB:=$build/webgpu/node_modules/bun-webgpu-linux-x64/libwebgpu_wrapper.so}"
# Two names of one thing: loaders before 1.3.207 know only the first, and the second wins where both are known.
: "${VK_ICD_FILENAMES:=${VK_DRIVER_FILES:-$build/lavapipe/lvp_icd.json}}"
: "${VK_DRIVER_FILES:=$VK_ICD_FILENAMES}"
# Mesa looks for a Wayland display there, and complains on stderr where the variable is missing.
: "${XDG_RUNTIME_DIR:=$build/lavapipe}"

# Mesa's software driver compiles for vectors of so many bits; for wider ones it takes three times as long, and compiling is
# most of what tests do.
: "${LP_NATIVE_VECTOR_WIDTH:=128}"

if [ $# -gt 0 ]; then
    export BEZEL_WEBGPU_LIB VK_ICD_FILENAMES VK_DRIVER_FILES XDG_RUNTIME_DIR LP_NATIVE_VECTOR_WIDTH
    exec "$@"
fi
for name in BEZEL_WEBGPU_LIB VK_ICD_FILENAMES VK_DRIVER_FILES XDG_RUNTIME_DIR LP_NATIVE_VECTOR_WIDTH; do
    eval "value=\$$name"
    printf "export %s='%s'\n" "$name" "$(printf %s "$value" | sed "s/'/'\\\\''/g")"
done
