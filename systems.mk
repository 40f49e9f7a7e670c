# What differs between operating systems, and cross builds. Included by the Makefile.
#
#   make windows   build/windows: bezel.exe for Windows 10 or later, x86-64, by Debian's mingw-w64
#   make macos     build/macos-arm64 and build/macos-x86_64: bezel for macOS 11 or later, by the compiler of PyPI's ziglang

MACHINE := $(shell $(CC) -dumpmachine 2>/dev/null)
OS      := $(or $(if $(findstring mingw,$(MACHINE)),windows),$(if $(or $(findstring macos,$(MACHINE)),$(findstring darwin,$(MACHINE))),macos),linux)

# Sources named os_KIND.c or os_KIND_NAME.c belong to systems of that kind; `plain` is without a sandbox.
KINDS_linux   = posix linux
KINDS_macos   = posix macos plain
KINDS_windows = windows plain
KINDS_wasm    = wasm
ALL_KINDS     = posix linux macos windows wasm plain

LIBS_linux   = -lm -pthread
LIBS_macos   = -lm
LIBS_windows = -lws2_32 -lbcrypt -lsynchronization -lshell32 -ladvapi32

# The C library of mingw-w64 prints as C11 says, and its isnan() and isfinite() have branches for each type, of which one
# is taken. GCC assumes a stack aligned for AVX, which Windows does not promise.
FLAGS_windows = -D__USE_MINGW_ANSI_STDIO=1 -D_WIN32_WINNT=0x0A00 -Wno-float-conversion -Wa,-muse-unaligned-vector-move
LINK_windows  = -static
EXE_windows   = .exe
# Zig names processors only.
DOTPROD_linux = -march=armv8.2-a+dotprod
DOTPROD_macos = -mcpu=generic+dotprod
OS_FLAGS = $(FLAGS_$(OS))
OS_LINK  = $(LINK_$(OS))
EXE     := $(EXE_$(OS))

# $(call of_system,SYSTEM,FILES) without those of other systems.
of_system = $(filter-out $(foreach k,$(filter-out $(KINDS_$(1)),$(ALL_KINDS)),%/os_$(k).c $(addprefix %/,$(filter os_$(k)_%,$(notdir $(2))))),$(2))

# ---- cross builds -------------------------------------------------------------------

WINDOWS = B=build/windows CC=x86_64-w64-mingw32-gcc-win32 AR=x86_64-w64-mingw32-ar CFLAGS='-O3'
ZIG     = $(CURDIR)/build/zig/zig
macos   = B=build/macos-$(1) CC='$(ZIG) cc -target $(2)-macos.11.0' AR='$(ZIG) ar' CFLAGS='-O3'
MACOS_ARM64  = $(call macos,arm64,aarch64)
MACOS_X86_64 = $(call macos,x86_64,x86_64)
export ZIG_GLOBAL_CACHE_DIR ?= $(CURDIR)/build/zig/cache
export ZIG_LOCAL_CACHE_DIR ?= $(ZIG_GLOBAL_CACHE_DIR)

# For tests: faster to build. The programs, and on Windows $(1), unit programs.
TEST_WINDOWS = $(subst build/windows,build/test-windows,$(subst -O3,-O1,$(WINDOWS)))
test_macos   = $(subst build/macos,build/test-macos,$(subst -O3,-O1,$(call macos,$(1),$(2)))) build/test-macos-$(1)/bezel
build_systems = $(MAKE) --no-print-directory -j$(JOBS) $(TEST_WINDOWS) $$($(PYTHON) tests/run.py --build $(1) | tr ' ' '\n' | grep windows)
build_macos   = $(MAKE) --no-print-directory -j$(JOBS) $(call test_macos,$(1),$(2))

.PHONY: windows macos
windows:
	@sh tools/setup.sh windows
	@$(MAKE) --no-print-directory -j$(JOBS) $(WINDOWS) build/windows/bezel.exe

macos:
	@sh tools/setup.sh macos
	@$(MAKE) --no-print-directory -j$(JOBS) $(MACOS_ARM64) build/macos-arm64/bezel
	@$(MAKE) --no-print-directory -j$(JOBS) $(MACOS_X86_64) build/macos-x86_64/bezel
