#!/bin/sh
# Builds the container image of an archive with buildah, which needs no daemon and, as there is no base image, no network.
#
#   container.sh ARCHIVE.tar.gz CERTIFICATES OUT
#
# ARCHIVE is bezel-VERSION-linux-ARCH-static.tar.gz. OUT/image.tar is for `podman load` and `docker load`, OUT/storage is what
# buildah keeps. SOURCE_DATE_EPOCH is the time of the image.
set -eu
: "${SOURCE_DATE_EPOCH:?container.sh: SOURCE_DATE_EPOCH has to be set}"
name=$(basename "$1" -static.tar.gz)
case $name in
bezel-*-linux-*) ;;
*) echo "container.sh: $1 is not a static archive for Linux" >&2; exit 2 ;;
esac
version=${name#bezel-} arch=${name##*-linux-}
version=${version%-linux-*}
case $arch in x86_64) platform=amd64 ;; *) platform=$arch ;; esac
rm -rf "$3"
mkdir -p "$3/context"
cp "$1" "$3/context/"
cp "$2" "$3/context/ca-certificates.crt"
to=$3
set -- --root "$to/storage" --runroot "$to/run" --storage-driver vfs
buildah "$@" build --quiet --isolation chroot --format docker --arch "$platform" --timestamp "$SOURCE_DATE_EPOCH" \
    --build-arg VERSION="$version" --build-arg ARCH="$arch" --tag "bezel:$version" \
    --file packaging/Containerfile "$to/context" >/dev/null
buildah "$@" push --quiet "bezel:$version" "docker-archive:$to/image.tar:bezel:$version"
rm -rf "$to/context"
