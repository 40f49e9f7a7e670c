#!/bin/sh
# Packs Bezel with Dawn and the Vulkan loader, for a machine that has an NVIDIA driver but none of these and no
# network.
#
#   bench/gpu-bundle.sh [FILE...]    -> build/gpu-bundle.tar.xz; FILEs (test programs, models) are included
#
# On that machine: tar xf gpu-bundle.tar.xz && sh gpu-bundle/run.sh bezel bench ...
# Environment: B, the folder with the program (build); BEZEL_WEBGPU_LIB, another Dawn.
set -eu
cd "$(dirname "$0")/.."
limit=28000000 # bytes of the packed file
program=${B:-build}/bezel
dawn=${BEZEL_WEBGPU_LIB:-build/webgpu/node_modules/bun-webgpu-linux-x64/libwebgpu_wrapper.so}
loader=$(ls /usr/lib/*/libvulkan.so.1 2>/dev/null | head -n 1)
[ -x "$program" ] || { echo "There is no $program: run make first" >&2; exit 1; }
if [ ! -e "$dawn" ] || [ -z "$loader" ]; then
    echo "Dawn or the Vulkan loader is missing: run sh tools/setup.sh gpu first" >&2
    exit 1
fi

to=build/gpu-bundle
rm -rf "$to" "$to.tar.xz"
mkdir -p "$to/lib"
strip -o "$to/bezel" "$program"
strip -o "$to/lib/libwebgpu_wrapper.so" "$dawn"
strip -o "$to/lib/libvulkan.so.1" "$loader"
# The program's optional libraries; the C library is there already.
ldd "$program" | awk '$3 ~ /^\// && $1 !~ /^(libc|libm|libdl|libpthread|librt)\.so/ { print $1, $3 }' | while read -r name path; do
    strip -o "$to/lib/$name" "$path"
done
for f in "$@"; do
    cp "$f" "$to/"
done

# The driver library that works without an X server; by name, so that the loader searches for it.
cat > "$to/nvidia_icd.json" <<'ICD'
{"file_format_version": "1.0.1", "ICD": {"library_path": "libEGL_nvidia.so.0", "api_version": "1.4.312"}}
ICD

cat > "$to/run.sh" <<'RUN'
#!/bin/sh
# run.sh PROGRAM [ARGUMENT...]: runs a program of this folder on the NVIDIA GPU
here=$(cd "$(dirname "$0")" && pwd)
program=$1
shift
# The second folder is where NVIDIA's container tools put the driver.
export LD_LIBRARY_PATH="$here/lib:/usr/local/nvidia/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export BEZEL_WEBGPU_LIB="${BEZEL_WEBGPU_LIB:-$here/lib/libwebgpu_wrapper.so}"
export VK_ICD_FILENAMES="${VK_ICD_FILENAMES:-$here/nvidia_icd.json}"
export VK_DRIVER_FILES="${VK_DRIVER_FILES:-$VK_ICD_FILENAMES}"
export BEZEL_GPU_NAME="${BEZEL_GPU_NAME:-NVIDIA}" # tests expect it in the adapter's name
exec "$here/$program" "$@"
RUN

tar -C build -cf - --owner=0 --group=0 gpu-bundle | xz -T0 -6 > "$to.tar.xz"
size=$(wc -c < "$to.tar.xz")
echo "$to.tar.xz: $size bytes, unpacked $(du -sb "$to" | cut -f1)"
if [ "$size" -gt $limit ]; then
    echo "The packed file is larger than $limit bytes" >&2
    exit 1
fi
