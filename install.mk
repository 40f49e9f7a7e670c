# The installed library, installation, and ThreadSanitizer. Included by the Makefile.

# The version is defined in the header only.
VERSION := $(shell awk '$$2 ~ /^BZ_VERSION_(MAJOR|MINOR|PATCH)$$/ { printf "%s%s", dot, $$3; dot = "." }' include/bezel.h)
# Before 1.0 a new minor version may break programs, from then on a new major version (bezel.h).
empty   :=
SONAME_VERSION := $(subst $(empty) ,.,$(wordlist 1,$(if $(filter 0,$(firstword $(subst ., ,$(VERSION)))),2,1),$(subst ., ,$(VERSION))))
SONAME  := libbezel.so.$(SONAME_VERSION)
SHARED_linux   = $(B)/libbezel.so.$(VERSION)
SHARED_macos   = $(B)/libbezel.dylib
SHARED_windows = $(B)/bezel.dll
SHARED   = $(SHARED_$(OS))
ARCHIVE  = $(B)/installed/libbezel.a

# ---- the library ------------------------------------------------------------------

.PHONY: lib install uninstall tsan
lib: $(B)/libbezel.a $(SHARED) $(ARCHIVE)

LINK_SHARED_linux   = -Wl,-soname,$(SONAME) -Wl,-z,defs
LINK_SHARED_macos   = -Wl,-install_name,@rpath/libbezel.dylib
LINK_SHARED_windows = -static-libgcc $(B)/gen/bezel.def
$(SHARED): $(LIB_OBJ) $(if $(findstring windows,$(OS)),$(B)/gen/bezel.def)
	$(call say,LD $@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared $(LINK_SHARED_$(OS)) -o $@ $(filter %.o,$^) $(LIBS)

# Windows exports what a list names: the functions that the headers declare.
$(B)/gen/bezel.def: $(wildcard include/*.h)
	@mkdir -p $(@D)
	@{ echo EXPORTS; cat $^ | grep -v '^#' | tr '\n' ' ' | grep -o 'BZ_API [^;]*;' | sed 's/(.*//; s/.*[ *]//' | LC_ALL=C sort; } > $@

# The program with the shared library: linking fails if the program calls a function that is not
# exported. It links its own copy of src/base. tests/lib/test_border.py runs it.
BASE_OBJ = $(filter $(B)/src/base/%,$(LIB_OBJ))
$(B)/bezel-shared: $(CLI_OBJ) $(BASE_OBJ) $(SHARED)
	$(call say,LD $@)
	@ln -sf $(notdir $(SHARED)) $(B)/$(SONAME)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -Wl,-rpath,'$$ORIGIN' $(LIBS) $(EDIT_LINK) $(MEDIA_LINK) $(CURL_LINK)

# The installed archive. The objects are joined into one and only the API stays visible, so that internal
# names cannot clash with those of a program that is linked statically. Tests use $(B)/libbezel.a, where
# everything is visible.
OBJCOPY ?= $(shell $(CC) -print-prog-name=objcopy)
$(ARCHIVE): $(LIB_OBJ)
	@mkdir -p $(@D)
	$(call say,AR $@)
	$(Q)$(CC) -r -nostdlib -o $(B)/installed/bezel.o $^
	$(Q)$(OBJCOPY) --localize-hidden $(B)/installed/bezel.o
	@rm -f $@
	$(Q)$(AR) rcs $@ $(B)/installed/bezel.o

# ---- installing ---------------------------------------------------------------------

PREFIX     ?= /usr/local
DESTDIR    ?=
BINDIR     ?= $(PREFIX)/bin
LIBDIR     ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR     ?= $(PREFIX)/share/man
DOCDIR     ?= $(PREFIX)/share/doc/bezel
COMPLETIONDIR ?= $(PREFIX)/share/bash-completion/completions
UNITDIR ?= $(PREFIX)/lib/systemd/system

# What is installed where; `install` and `uninstall` use the same lists. Packages and archives (packaging/dist.mk) are made of
# the same two parts: the program, and the library for programs in C.
PARTS = $(PROGRAM_PARTS) $(LIBRARY_PARTS)
PROGRAM_PARTS = bin man1 doc clients models
LIBRARY_PARTS = lib include man3 examples
bin_TO = $(BINDIR)
bin_FILES = $(PROGRAM)
bin_MODE = 755
lib_TO = $(LIBDIR)
lib_FILES = $(ARCHIVE) $(SHARED)
include_TO = $(INCLUDEDIR)
include_FILES = $(wildcard include/*.h)
man1_TO = $(MANDIR)/man1
man1_FILES = $(wildcard docs/man/*.1)
man3_TO = $(MANDIR)/man3
man3_FILES = $(wildcard docs/man/*.3)
doc_TO = $(DOCDIR)
doc_FILES = LICENSE CHANGELOG.md $(wildcard README.md docs/*.md)
clients_TO = $(DOCDIR)/clients
clients_FILES = $(wildcard docs/clients/*.md)
examples_TO = $(DOCDIR)/examples
examples_FILES = $(wildcard examples/*.c examples/Makefile)
# Without the page only, which has the same files.
models_TO = $(PREFIX)/share/bezel/models
models_FILES = $(wildcard models/*.gguf)

COMPLETION = cli/bezel.bash

define put
	install -d '$(DESTDIR)$($(1)_TO)'
	install -m $(or $($(1)_MODE),644) $($(1)_FILES) '$(DESTDIR)$($(1)_TO)'

endef

define take
	rm -f $(foreach f,$(notdir $($(1)_FILES)),'$(DESTDIR)$($(1)_TO)/$f')

endef

# Empty in an archive, which can be unpacked anywhere: units name the program by its path.
define put_units
install -d '$(DESTDIR)$(UNITDIR)'
	install -m 644 cli/systemd/bezel.socket '$(DESTDIR)$(UNITDIR)'
	sed 's#@BINDIR@#$(BINDIR)#' cli/systemd/bezel.service > '$(DESTDIR)$(UNITDIR)/bezel.service'
endef

# Paths relative to ${prefix} where possible, so that a moved tree works with --define-prefix.
below_prefix = $(patsubst $(PREFIX)/%,$${prefix}/%,$(1))

define PC
prefix=$(PREFIX)
libdir=$(call below_prefix,$(LIBDIR))
includedir=$(call below_prefix,$(INCLUDEDIR))

Name: bezel
Description: Runs Gemma 4 from GGUF files
Version: $(VERSION)
Libs: -L$${libdir} -lbezel
Libs.private: $(LIBS)
Cflags: -I$${includedir}
endef
install-library: export PC_TEXT = $(PC)

# The page, which `make web` builds; bezel serve finds it beside the folder of the program.
WEB_TO = $(PREFIX)/share/bezel/web
PAGE = $(patsubst %/,%,$(dir $(wildcard build/web/app/ready)))

.PHONY: install-program install-library
install: install-program install-library
	@# A real installation, not a staged one: update the dynamic linker's cache.
	@test -n '$(DESTDIR)' || test "$$(id -u)" != 0 || ldconfig || true

install-program: all
	$(if $(PAGE),rm -rf '$(DESTDIR)$(WEB_TO)' && install -d '$(DESTDIR)$(WEB_TO)' && cp -R $(PAGE)/. '$(DESTDIR)$(WEB_TO)' && rm '$(DESTDIR)$(WEB_TO)/ready' && find '$(DESTDIR)$(WEB_TO)' -type f -exec chmod 644 {} +,@echo "without the chat page: run make web and make install again")
	$(foreach p,$(filter-out $(if $(PAGE),models),$(PROGRAM_PARTS)),$(if $($p_FILES),$(call put,$p)))
	install -d '$(DESTDIR)$(COMPLETIONDIR)'
	install -m 644 $(COMPLETION) '$(DESTDIR)$(COMPLETIONDIR)/bezel'
	$(if $(STRIP_PROGRAM),$(STRIP_PROGRAM) '$(DESTDIR)$(BINDIR)/$(notdir $(PROGRAM))')
	$(if $(UNITDIR),$(put_units))

install-library: lib
	$(foreach p,$(LIBRARY_PARTS),$(call put,$p))
	ln -sf libbezel.so.$(VERSION) '$(DESTDIR)$(LIBDIR)/$(SONAME)'
	ln -sf $(SONAME) '$(DESTDIR)$(LIBDIR)/libbezel.so'
	install -d '$(DESTDIR)$(LIBDIR)/pkgconfig'
	@printf '%s\n' "$$PC_TEXT" > '$(DESTDIR)$(LIBDIR)/pkgconfig/bezel.pc'

uninstall:
	$(foreach p,$(PARTS),$(if $($p_FILES),$(call take,$p)))
	rm -f '$(DESTDIR)$(LIBDIR)/$(SONAME)' '$(DESTDIR)$(LIBDIR)/libbezel.so' '$(DESTDIR)$(LIBDIR)/pkgconfig/bezel.pc'
	rm -f '$(DESTDIR)$(COMPLETIONDIR)/bezel' '$(DESTDIR)$(UNITDIR)/bezel.socket' '$(DESTDIR)$(UNITDIR)/bezel.service'
	rm -rf '$(DESTDIR)$(WEB_TO)'
	@rmdir '$(DESTDIR)$(DOCDIR)/examples' '$(DESTDIR)$(DOCDIR)/clients' '$(DESTDIR)$(DOCDIR)' '$(DESTDIR)$(models_TO)' '$(DESTDIR)$(PREFIX)/share/bezel' 2>/dev/null || true

# ---- ThreadSanitizer ------------------------------------------------------------------

TSAN = -O1 -g1 -fno-omit-frame-pointer -fsanitize=thread

tsan: | setup
	@$(MAKE) --no-print-directory models
	@$(call build_tsan,tsan-full)
	@$(PYTHON) tests/run.py tsan-full

-include $(PIC_OBJ:.o=.d)
