# Releases: docs/RELEASES.md. Included by the Makefile.
#
#   build/dist/             what `make dist` makes, with SHA256SUMS; the same bytes from the same commit
#   build/release/ARCH/     the objects of a release
#   build/static/ARCH/      archives of the decoders (packaging/static_libraries.sh)

DIST = build/dist
# The time of the last commit is the time of everything in a release. An unpacked source archive has it as the time of its files.
EPOCH = $(or $(SOURCE_DATE_EPOCH),$(if $(wildcard .git),$(shell git log -1 --format=%ct)),$(shell stat -c %Y CHANGELOG.md))
with_epoch = SOURCE_DATE_EPOCH='$(EPOCH)' VERSION='$(VERSION)'

RELEASE_CFLAGS = -O3 -fstack-protector-strong -D_FORTIFY_SOURCE=2 -ffile-prefix-map=$(CURDIR)=.
RELEASE_LDFLAGS = -Wl,-z,relro,-z,now
# make's variables for one architecture, as Debian names it.
release_amd64 = B=build/release/amd64 CC=gcc CFLAGS='$(RELEASE_CFLAGS)' LDFLAGS='$(RELEASE_LDFLAGS)' ARCH=amd64
release_arm64 = B=build/release/arm64 CC=aarch64-linux-gnu-gcc CFLAGS='$(RELEASE_CFLAGS) -Ibuild/static/arm64/usr/include' \
                LDFLAGS='$(RELEASE_LDFLAGS) -Lbuild/static/arm64/usr/lib' ARCH=arm64
ARCH ?= amd64
ARCH_NAME = $(patsubst amd64,x86_64,$(ARCH))

# ---- programs that need no library --------------------------------------------------

STATIC = build/static/$(ARCH)
ARCHIVES = $(patsubst %,$(STATIC)/usr/lib/lib%.a,jpeg png16 webpdemux webp gif sndfile mpg123 mp3lame FLAC vorbisenc vorbis ogg \
           opus edit tinfo bsd md curl ssl crypto z)

# Made again when the script changes, whatever its time. `make dist` makes them before the make that looks which of them are there.
build/static/%/complete: FORCE
	@cksum < packaging/static_libraries.sh | cmp -s - $@ || \
	    { echo "  STATIC LIBRARIES $(@D)" && sh packaging/static_libraries.sh $* $(@D); }

# Needs glibc only, and so can load a GPU's library.
$(B)/portable/bezel: $(CLI_OBJ) $(LIBBEZEL) $(STATIC)/complete
	@mkdir -p $(@D)
	$(call say,LD $@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) -Wl,--start-group $(ARCHIVES) -Wl,--end-group $(LIBS)

# Needs nothing. The linker's warnings are about functions of glibc that load libraries; names.c keeps them from it.
$(B)/static/bezel: $(CLI_OBJ) $(B)/packaging/names.o $(LIBBEZEL) $(STATIC)/complete
	@mkdir -p $(@D)
	$(call say,LD $@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -static-pie -Wl,--no-warnings -o $@ $(filter %.o %.a,$^) -Wl,--start-group $(ARCHIVES) -Wl,--end-group $(LIBS)

# $(call stage,NAME,PROGRAM,LICENCES): a folder with the program, its page, models and documents, and the licences that
# packaging/third_party.sh prints with these arguments.
define stage
	$(call say,DIST $(DIST)/$(1))
	@rm -rf $(B)/stage/$(1) && mkdir -p $(DIST)
	+@$(MAKE) -s --no-print-directory install-program PROGRAM=$(2) STRIP_PROGRAM='$(STRIP_WITH)' DESTDIR=$(B)/stage/$(1) PREFIX= UNITDIR=
	@sh packaging/third_party.sh $(3) > $(B)/stage/$(1)/share/doc/bezel/THIRD-PARTY.txt
endef
define pack
	@$(with_epoch) sh packaging/archive.sh $(B)/stage/$(1) $(DIST)/$(1).tar.gz
	@rm -rf $(B)/stage/$(1)
endef
# macOS: the linker strips, as no tool here reads Mach-O.
STRIP_WITH = $(if $(findstring macos,$(OS)),,$(STRIP))
LINUX_NAME = bezel-$(VERSION)-linux-$(ARCH_NAME)
LINUX_LICENCES = -s $(STATIC) libc6 gcc-$(firstword $(subst ., ,$(shell $(CC) -dumpversion)))-base

.PHONY: dist dist-linux dist-portable dist-static dist-windows dist-macos dist-deb dist-wheel dist-npm dist-source dist-sums
dist-linux: dist-portable dist-static
dist-portable: $(B)/portable/bezel
	$(call stage,$(LINUX_NAME),$(B)/portable/bezel,$(LINUX_LICENCES))
	$(call pack,$(LINUX_NAME))
dist-static: $(B)/static/bezel
	$(call stage,$(LINUX_NAME)-static,$(B)/static/bezel,$(LINUX_LICENCES))
	$(call pack,$(LINUX_NAME)-static)

# ---- other systems (systems.mk) --------------------------------------------------------

# With libcurl, for `pull` and `setup-gpu`: its archive, or on macOS the system's, of which there is a list of functions.
RELEASE_WINDOWS = $(subst build/windows,build/release/windows,$(WINDOWS)) CFLAGS='-O3 -DCURL_STATICLIB -Ibuild/static/windows/usr/include' \
                  LDFLAGS='-Wl,--no-insert-timestamp -Lbuild/static/windows/usr/lib' CURL_LINK='-lcurl -lcrypt32 -lbcrypt -lws2_32 -ladvapi32' ARCH=windows
WINDOWS_NAME = bezel-$(VERSION)-windows-x86_64
dist-windows: $(B)/bezel.exe
	$(call stage,$(WINDOWS_NAME),$(B)/bezel.exe,-s $(STATIC) mingw-w64-x86-64-dev gcc-mingw-w64-base)
	@$(with_epoch) $(PYTHON) packaging/zip.py $(B)/stage/$(WINDOWS_NAME) $(DIST)/$(WINDOWS_NAME).zip
	@rm -rf $(B)/stage/$(WINDOWS_NAME)

release_macos = $(subst build/macos,build/release/macos,$(1)) CFLAGS='-O3 -Ibuild/static/macos/usr/include' LDFLAGS='-s -Lpackaging/macos' ARCH=$(2)
MACOS_NAME = bezel-$(VERSION)-macos-$(ARCH)
dist-macos: $(B)/bezel
	$(call stage,$(MACOS_NAME),$(B)/bezel,-f Zig=$(wildcard build/zig/python/lib/python3.*/site-packages/ziglang/LICENSE))
	$(call pack,$(MACOS_NAME))

# ---- the Debian packages ---------------------------------------------------------------

# Made in a folder of their own, so that nothing is written beside the sources.
dist-deb: $(B)/bezel lib
	$(call say,DIST $(DIST)/*.deb)
	@rm -rf $(B)/deb && mkdir -p $(B)/deb $(DIST)
	@rm -f $(DIST)/*.deb
	@cp -R debian $(B)/deb/
	+@cd $(B)/deb && $(with_epoch) BEZEL='$(CURDIR)' DEB_OUT='$(abspath $(DIST))' DH_QUIET=1 DEB_BUILD_OPTIONS=noautodbgsym \
	    DEB_COMPRESSION="$(DEB_COMPRESSION)" BEZEL_MAKE="B='$(B)' CC='$(CC)' CFLAGS='$(CFLAGS)' LDFLAGS='$(LDFLAGS)'" debian/rules binary
	@rm -rf $(B)/deb

# ---- the others -------------------------------------------------------------------------

# The library first, by this make: the other one would compile the same files beside it.
dist-wheel: $(SHARED)
	+@$(with_epoch) $(MAKE) --no-print-directory wheel STRIP='$(STRIP_WITH)'
	@mkdir -p $(DIST) && cp $(B)/wheel/*.whl $(DIST)/

dist-npm: build/web/packed
	$(call say,DIST $(DIST)/bezel-$(VERSION)-npm.tgz)
	@mkdir -p $(DIST)
	@cp build/web/bezel-$(VERSION).tgz $(DIST)/bezel-$(VERSION)-npm.tgz

dist-source:
	$(call say,DIST $(DIST)/bezel-$(VERSION)-source.tar.gz)
	@mkdir -p $(DIST)
	@$(with_epoch) sh packaging/source.sh $(DIST)/bezel-$(VERSION)-source.tar.gz

dist-sums:
	@cd $(DIST) && rm -f SHA256SUMS && LC_ALL=C sha256sum * > ../sums && mv ../sums SHA256SUMS

# SYSTEMS: which of them; `make dist SYSTEMS=amd64` is enough for this machine.
SYSTEMS ?= amd64 arm64 windows macos
release_web:
	@$(MAKE) --no-print-directory -j$(JOBS) build/web/app/ready build/web/packed
	@$(MAKE) --no-print-directory dist-npm dist-source
release_on_amd64:
	@$(MAKE) --no-print-directory -j$(JOBS) $(release_amd64) dist-deb
	@$(MAKE) --no-print-directory -j$(JOBS) $(release_amd64) dist-linux dist-wheel
release_on_arm64:
	@$(MAKE) --no-print-directory -j$(JOBS) $(release_arm64) dist-linux dist-wheel
release_on_windows:
	@$(MAKE) --no-print-directory -j$(JOBS) $(RELEASE_WINDOWS) dist-windows dist-wheel
release_on_macos:
	@$(MAKE) --no-print-directory -j$(JOBS) $(call release_macos,$(MACOS_ARM64),arm64) dist-macos dist-wheel
	@$(MAKE) --no-print-directory -j$(JOBS) $(call release_macos,$(MACOS_X86_64),x86_64) dist-macos dist-wheel

.PHONY: release_web $(addprefix release_on_,amd64 arm64 windows macos)
dist:
	@for group in run web dist $(filter windows macos,$(SYSTEMS)); do sh tools/setup.sh $$group || exit; done
	@rm -rf $(DIST)
	@for arch in $(SYSTEMS); do $(MAKE) --no-print-directory build/static/$$arch/complete || exit; done
	@set -e; export SOURCE_DATE_EPOCH='$(EPOCH)'; for part in release_web $(addprefix release_on_,$(SYSTEMS)) dist-sums; do $(MAKE) --no-print-directory $$part; done
	@cat $(DIST)/SHA256SUMS

# The container image, from the static archive for this machine.
.PHONY: container
container: $(DIST)/bezel-$(VERSION)-linux-x86_64-static.tar.gz
	$(call say,CONTAINER build/container/image.tar)
	@$(with_epoch) sh packaging/container.sh $< build/static/amd64/ca-certificates.crt build/container

$(DIST)/bezel-$(VERSION)-linux-x86_64-static.tar.gz:
	@$(MAKE) --no-print-directory dist SYSTEMS=amd64

# What `make test` installs: the Debian packages and the static program, of the objects that it has built anyway.
.PHONY: dist-quick
dist-quick: $(B)/bezel lib build/web/app/ready
	+@$(MAKE) --no-print-directory DIST=build/dist-quick DEB_COMPRESSION='-Zgzip -z1' dist-deb
	+@$(MAKE) --no-print-directory DIST=build/dist-quick dist-static
