#!/bin/sh
# Makes the archives (lib*.a) that the programs of a release are linked with.
#
#   static_libraries.sh ARCH OUT     ARCH: amd64, arm64, windows or macos
#
# OUT/usr has headers and archives, OUT/ca-certificates.crt the certificates that Debian trusts, OUT/packages a line "PACKAGE VERSION" for each Debian package they
# come from, OUT/copyright the licence of each, OUT/complete marks a complete folder.
#
# Most are Debian's own, unpacked from the packages of the architecture without installing them. Debian has no
# archives of libsndfile, libmpg123 and libmp3lame, and one of libcurl that needs Kerberos, LDAP and others that have
# none; these four are compiled from Debian's source packages (with Debian's patches), libcurl with HTTP and HTTPS only.
#
# For Windows there is libcurl only, with the system's own TLS (Schannel) and certificates. macOS has a libcurl: OUT/usr has its
# headers only, and the program is linked with a list of the functions that it calls (packaging/macos/libcurl.tbd).
set -eu

# The variables of a make that runs this are those of Bezel's build.
unset MAKEFLAGS MFLAGS MAKEOVERRIDES CC CFLAGS CPPFLAGS LDFLAGS

arch=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)
rm -f "$out/complete"
work=$out/work
case $arch in
amd64) triplet=x86_64-linux-gnu ;;
arm64) triplet=aarch64-linux-gnu ;;
windows) triplet=x86_64-w64-mingw32 ;;
macos) triplet="" ;;
*) echo "static_libraries.sh: there is no architecture $arch; amd64, arm64, windows and macos are known" >&2; exit 2 ;;
esac
compiler=$triplet-gcc debian=$arch

# libjpeg, libpng, libwebp, giflib, libedit with what they need; what libsndfile and libcurl need;
# the headers of libav, which is loaded when the first video is read. libtinfo6 has the licence of libncurses-dev.

packages="libjpeg62-turbo-dev libpng-dev zlib1g-dev libwebp-dev libgif-dev
    libedit-dev libncurses-dev libtinfo6 libbsd-dev libmd-dev
    libflac-dev libogg-dev libvorbis-dev libopus-dev libssl-dev
    libavformat-dev libavcodec-dev libavutil-dev libswscale-dev libswresample-dev
    ca-certificates"
sources="libsndfile mpg123 lame curl"

# Reproducible, and without the paths of this build.
flags="-O2 -fPIC -fstack-protector-strong -D_FORTIFY_SOURCE=2 -ffile-prefix-map=$work=."
case $arch in
windows | macos)
    compiler=$triplet-gcc-win32 debian=amd64 packages="" sources=curl
    flags="-O2 -ffile-prefix-map=$work=."
    ;;
esac

# ---- what Debian has ----------------------------------------------------------

# apt with lists and a cache of its own: the machine's sources, with source packages and this architecture.
mkdir -p "$work/parts" "$work/lists/partial" "$work/cache/archives/partial" "$work/debs" "$work/sources"
for f in /etc/apt/sources.list.d/*.sources; do
    [ ! -e "$f" ] || sed 's/^Types:.*/Types: deb deb-src/' "$f" > "$work/parts/${f##*/}"
done
for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ ! -e "$f" ] || sed -n 's/^deb[ \t].*/&\n&/p' "$f" | sed 'n;s/^deb/deb-src/' > "$work/parts/own-${f##*/}"
done
apt() {
    command=$1
    shift
    "$command" -qq -o APT::Architecture="$debian" -o APT::Architectures::="$debian" -o Dir::Etc::sourcelist=/dev/null \
        -o Dir::Etc::sourceparts="$work/parts" -o Dir::State::lists="$work/lists" -o Dir::State::status=/dev/null \
        -o Dir::Cache="$work/cache" -o APT::Sandbox::User="$(id -un)" -o Debug::NoLocking=1 "$@"
}
apt apt-get update
rm -rf "$out/usr" "$out/copyright" "$out/packages"
mkdir -p "$out/usr/include" "$out/usr/lib/pkgconfig" "$out/copyright"
if [ -n "$packages" ]; then
    # shellcheck disable=SC2086
    (cd "$work/debs" && apt apt-get download $packages)
    for deb in "$work"/debs/*.deb; do
        dpkg-deb -x "$deb" "$work/unpacked"
        dpkg-deb -f "$deb" Package Version | awk '{ printf "%s%s", $2, NR % 2 ? " " : "\n" }' >> "$out/packages"
    done
    cp -R "$work/unpacked/usr/include/." "$out/usr/include/"
    cp "$work/unpacked/usr/lib/$triplet"/*.a "$out/usr/lib/"
    cp -R "$out/usr/include/$triplet/." "$out/usr/include/"
    for f in "$work/unpacked/usr/lib/$triplet/pkgconfig"/*.pc; do
        sed "s#=/usr#=$out/usr#; s#/lib/$triplet#/lib#" "$f" > "$out/usr/lib/pkgconfig/${f##*/}"
    done
fi

# ---- what it has as source only -------------------------------------------------

# apt checks the .dsc files, and these list the others. Not every mirror has the upstream signatures (*.asc), which
# nothing here reads; without them apt fails, and dpkg-source must be told not to look for them.
for name in $sources; do
    (
        cd "$work/sources"
        apt apt-get source --only-source --download-only "$name" >"$work/source.log" 2>&1 || true
        dsc=$(ls "$name"_*.dsc)
        sed -n '/^Checksums-Sha256:/,/^[^ ]/s/^ \([0-9a-f]*\) [0-9]* \(.*\)/\1  \2/p' "$dsc" | grep -v '\.asc$' | sha256sum -c --quiet
        dpkg-source --no-check -x "$dsc" >/dev/null 2>&1
    ) || {
        tail "$work/source.log" >&2
        echo "static_libraries.sh: the source package $name cannot be fetched" >&2
        exit 1
    }
done

build() { # NAME ENVIRONMENT... -- OPTIONS...: configures, compiles and installs one of them
    name=$1
    shift
    folder=$(ls -d "$work/sources/$name"-*/)
    (
        cd "$folder"
        while [ "$1" != -- ]; do
            export "${1?}"
            shift
        done
        shift
        export CC="$compiler" CFLAGS="$flags -I$out/usr/include" CPPFLAGS="-I$out/usr/include" \
            LDFLAGS="-L$out/usr/lib" "PKG_CONFIG=${PKG_CONFIG:-/bin/false}"
        [ -x configure ] || autoreconf -fi
        ./configure --host="$triplet" --prefix="$out/usr" --libdir="$out/usr/lib" --disable-shared --enable-static \
            --disable-dependency-tracking "$@"
        # shellcheck disable=SC2086
        make -j"$(nproc)" ${BUILD_TARGETS:-all}
        # shellcheck disable=SC2086
        make ${INSTALL_TARGETS:-install}
    ) > "$work/$name.log" 2>&1 || {
        tail -n 30 "$work/$name.log" >&2
        echo "static_libraries.sh: $name does not compile; all of it is in $work/$name.log" >&2
        exit 1
    }
    note "$name"
}

note() { # NAME: its version and licence
    folder=$(ls -d "$work/sources/$1"-*/)
    version=$(dpkg-parsechangelog -l "$folder/debian/changelog" -S Version)
    echo "$1 $version (compiled from source)" >> "$out/packages"
    cp "$folder/debian/copyright" "$out/copyright/$1"
}

curl() { # ENVIRONMENT... -- OPTIONS...: with HTTP and HTTPS only
    build curl "$@" \
        --disable-ldap --disable-ldaps --disable-rtsp --disable-dict --disable-telnet --disable-tftp --disable-pop3 \
        --disable-imap --disable-smb --disable-smtp --disable-gopher --disable-mqtt --disable-ftp --disable-file \
        --disable-manual --disable-ntlm --disable-unix-sockets --without-brotli --without-zstd --without-libpsl \
        --without-libidn2 --without-nghttp2 --without-librtmp --without-libssh2 --without-gssapi
}

finish() {
    LC_ALL=C sort -o "$out/packages" "$out/packages"
    rm -rf "$work" "$out/usr/bin" "$out/usr/share"
    cksum < "$0" > "$out/complete"
    exit
}

case $arch in
windows)
    curl BUILD_TARGETS="-C lib" INSTALL_TARGETS="-C lib install" -- --with-schannel --disable-pthreads --without-zlib
    mkdir "$out/usr/include/curl"
    cp "$work"/sources/curl-*/include/curl/*.h "$out/usr/include/curl/"
    finish
    ;;
macos)
    mkdir "$out/usr/include/curl"
    cp "$work"/sources/curl-*/include/curl/*.h "$out/usr/include/curl/"
    : > "$out/packages"
    finish
    ;;
esac
build lame -- --disable-frontend --disable-decoder --disable-gtktest
build mpg123 -- --enable-components=libmpg123 --disable-modules
# Not its tests, which need another program to be generated.
build libsndfile BUILD_TARGETS=src/libsndfile.la "INSTALL_TARGETS=install-libLTLIBRARIES install-includeHEADERS" \
    PKG_CONFIG=pkg-config "PKG_CONFIG_LIBDIR=$out/usr/lib/pkgconfig" \
    -- --disable-full-suite --disable-alsa --disable-sqlite --disable-octave --enable-external-libs --enable-mpeg
for codec in FLAC__stream_decoder_new vorbis_synthesis opus_multistream_decode mpg123_open_handle; do
    "$triplet-nm" "$out/usr/lib/libsndfile.a" 2>/dev/null | grep -q " U $codec" || {
        echo "static_libraries.sh: libsndfile was built without $codec" >&2
        exit 1
    }
done
curl "LIBS=-lssl -lcrypto -lz" -- --with-openssl --with-zlib --with-ca-bundle=/etc/ssl/certs/ca-certificates.crt

# ---- their licences ----------------------------------------------------------------

# Of the packages whose archives are linked; a -dev package may have its copyright in another one's folder.
for p in $packages; do
    case $p in libav* | libsw*) continue ;; esac
    cp -L "$work/unpacked/usr/share/doc/$p/copyright" "$out/copyright/$p"
done
# For a container, which has no others.
cat "$work"/unpacked/usr/share/ca-certificates/mozilla/*.crt > "$out/ca-certificates.crt"
finish
