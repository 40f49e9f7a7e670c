#!/bin/sh
# The environment of GPU tests on a machine without a GPU: what `setup.sh gpu` installed.
#
#   eval "$(sh tools/gpu-env.sh)"          into this shell
#   sh tools/gpu-env.sh build/bezel ...    for one command
#
# Variables that are set already are kept, so that the same tests can run on a real GPU.
set -eu
build=$(cd "$(dirname "$0")/.." && pwd)/build
: "${BEZEL_WEBGPU_LIB:=$build/webgpu/node_modules/bun-webgpu-linux-x64/libwebgpu_wrapper.so}"
# Two names for the same setting: Vulkan loaders before 1.3.207 read only the first, newer ones prefer the second.
: "${VK_ICD_FILENAMES:=${VK_DRIVER_FILES:-$build/lavapipe/lvp_icd.json}}"
: "${VK_DRIVER_FILES:=$VK_ICD_FILENAMES}"
# Mesa looks for a Wayland display there, and prints a warning if the variable is missing.
: "${XDG_RUNTIME_DIR:=$build/lavapipe}"

# Vector width of Mesa's software driver. Wider vectors take three times as long to compile, which is most of the tests' time.
: "${LP_NATIVE_VECTOR_WIDTH:=128}"

# Mesa's cache of compiled shaders, which are most of the tests' time: the user's, so that another clone finds them too.
: "${MESA_SHADER_CACHE_DIR:=${XDG_CACHE_HOME:-${HOME:-$build}/.cache}/bezel-tests}"
mkdir -p "$MESA_SHADER_CACHE_DIR"

if [ $# -gt 0 ]; then
    export BEZEL_WEBGPU_LIB VK_ICD_FILENAMES VK_DRIVER_FILES XDG_RUNTIME_DIR LP_NATIVE_VECTOR_WIDTH MESA_SHADER_CACHE_DIR
    exec "$@"
fi
for name in BEZEL_WEBGPU_LIB VK_ICD_FILENAMES VK_DRIVER_FILES XDG_RUNTIME_DIR LP_NATIVE_VECTOR_WIDTH MESA_SHADER_CACHE_DIR; do
    eval "value=\$$name"
    printf "export %s='%s'\n" "$name" "$(printf %s "$value" | sed "s/'/'\\\\''/g")"
done
