# Bezel. `make help` lists the targets.

.DEFAULT_GOAL = all
CC      ?= cc
CFLAGS  ?= -O3 -g
PYTHON   = /usr/bin/python3
# `make V=1` shows the commands.
Q       := $(if $(V),,@)
say      = $(if $(V),,@echo "  $(1)")
B       ?= build
MODELS   = build/models
JOBS     = $(shell nproc)

STD      = -std=c11 -D_GNU_SOURCE -ffp-contract=off -fvisibility=hidden -fno-math-errno
# Help texts are longer than the 4,095 characters that every compiler must take.
WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-overlength-strings
# -fPIC: the same objects make the program and the shared library.
ALL_CFLAGS = $(STD) $(WARNINGS) $(OS_FLAGS) -fPIC -Iinclude -Isrc -I. -Itests -MMD -MP $(CFLAGS) $(FILE_FLAGS)
include systems.mk
LIBS     = $(LIBS_$(OS))
# The library that programs are linked with; tests/lib/test_build.py sets it to one that is built already.
LIBBEZEL = $(B)/libbezel.a

ALL_LIB_SRC = $(sort $(wildcard src/*/*.c src/*/*/*.c))
LIB_SRC  = $(call of_system,$(OS),$(ALL_LIB_SRC))
# Optional libraries of the program: images, sound, line editing, downloads. $(B)/libraries.mk is rewritten when
# one appears or goes; what depends on it is then built again.
find_libraries = CC='$(CC)' CFLAGS='$(CFLAGS)' LDFLAGS='$(LDFLAGS)' sh tools/libraries.sh $(B)/libraries.mk
ifneq ($(filter-out clean format help setup,$(or $(MAKECMDGOALS),all)),)
$(shell $(find_libraries))
include $(B)/libraries.mk
endif
CLI_SRC  = $(filter-out cli/media/% cli/chat/$(if $(EDIT_LINK),line_none,os_posix_edit).c,$(call of_system,$(OS),$(sort $(wildcard cli/*.c cli/*/*.c))))
# Where the system has decoders, with what they need.
OS_MEDIA_SRC = $(call of_system,$(OS),$(sort $(wildcard cli/media/os_*.c)))
SYSTEM_MEDIA_SRC = $(sort $(wildcard cli/media/plain*.c)) cli/media/system.c
MEDIA_SRC = $(patsubst %,cli/media/%.c,decode exif missing samples $(filter-out edit curl,$(LIBRARIES_FOUND))) \
            $(if $(OS_MEDIA_SRC),$(OS_MEDIA_SRC) $(SYSTEM_MEDIA_SRC))
MEDIA_OBJ = $(MEDIA_SRC:%.c=$(B)/%.o)
# The server and the model store belong to the program, not to the library.
HTTP_SRC = $(call of_system,$(OS),$(sort $(wildcard server/*.c)))
SERVER_SRC = $(HTTP_SRC) $(sort $(wildcard server/*/*.c))
PULL_SRC = $(patsubst %,store/%.c,pull pull_blob pull_get pull_http pull_url)
STORE_SRC = $(filter-out $(if $(CURL_LINK),store/pull_none.c,$(PULL_SRC)),$(sort $(wildcard store/*.c)))
# Every tests/test_*.c is a program of its own; tests/support/*.c is shared by them.
TEST_SRC = $(sort $(wildcard tests/test_*.c))
TEST_LIB_SRC = $(sort $(wildcard tests/support/*.c))
FUZZ_SRC = $(sort $(wildcard tests/fuzz/fuzz_*.c))
BENCH_SRC = $(sort $(wildcard bench/bench_*.c))

LIB_OBJ  = $(LIB_SRC:%.c=$(B)/%.o) $(B)/gen/wgsl.o
CLI_OBJ  = $(CLI_SRC:%.c=$(B)/%.o) $(MEDIA_OBJ) $(SERVER_OBJ) $(STORE_OBJ)
SERVER_OBJ = $(SERVER_SRC:%.c=$(B)/%.o)
HTTP_OBJ = $(HTTP_SRC:%.c=$(B)/%.o)
STORE_OBJ = $(STORE_SRC:%.c=$(B)/%.o)
TEST_LIB_OBJ = $(TEST_LIB_SRC:%.c=$(B)/%.o)
TESTS    = $(TEST_SRC:tests/%.c=$(B)/tests/%)
REPLAYS  = $(FUZZ_SRC:tests/fuzz/fuzz_%.c=$(B)/tests/fuzz/replay_%)
FUZZERS  = $(FUZZ_SRC:tests/fuzz/%.c=$(B)/fuzz/%)
BENCHES  = $(BENCH_SRC:bench/%.c=$(B)/bench/%)

.PHONY: all run test check test-all asan arm64 fuzz bench benches setup models help format clean programs FORCE
# What `make` builds and `make install` installs.
PROGRAM ?= $(B)/bezel$(EXE)
all: $(PROGRAM)
	@$(if $(MISSING_NAMES),echo "without $(MISSING_NAMES): install $(strip $(MISSING_PACKAGES)) and run make again")

help:
	@sed -n 's/^#? \{0,1\}//p' $(firstword $(MAKEFILE_LIST))

# The text of `make help`.
#? Build
#?   make               the program, build/bezel; says which optional libraries are missing
#?   make lib           the static and the shared library
#?   make web           the engine as WebAssembly, the npm package and the page, in build/web
#?   make setup         install what is missing for all targets (Debian packages, npm)
#?   make windows       the program for Windows, in build/windows; make macos: for macOS, in build/macos-*
#?   make clean         remove build/
#? Run
#?   make run           build everything and serve the chat page; MODEL=file.gguf offers it there
#? Test
#?   make test          set up, build, and run every suite, long ones in a short form (also: make check)
#?   make test-all      every suite in full
#?   make test-gpu      the GPU suite in full, on a software adapter unless the environment names one
#?   make test-web      the WebAssembly suite in full, in Node and Deno
#?   make test-browser  the page's suite in full, in Chromium and Firefox
#?   make asan          the tests under AddressSanitizer and UBSan, in full
#?   make tsan          the tests of threads under ThreadSanitizer
#?   make arm64         the tests cross-built for arm64, under qemu
#?   make fuzz          every fuzz target for FUZZ_SECONDS=60, FUZZ_RUNS=N executions at most; fails on a finding
#?   make format        clang-format all C sources
#? Measure
#?   make bench         kernels, tokenizer and a model; MODEL=file.gguf; PEER=, llama.cpp's programs
#?                      (a folder: speed) or peer_logits (logits), to compare with
#? Package
#?   make install       program, libraries, headers, manual pages; PREFIX=/usr/local DESTDIR=
#?   make dist          the files of a release, in build/dist (docs/RELEASES.md)
#?   make container     a container image of the server, build/container/image.tar
#?   make wheel         the Python package, in build/wheel; make wheel-arm64: cross-built for arm64
#?   make dist-web      the page for any static server, in build/dist-web
#?   make api-docs      the reference of the npm package, in build/web/api
#?   make pictures      docs/pictures, from what a test sees of the page
#?   make uninstall     remove them again, with the same PREFIX and DESTDIR
#?
#? V=1 shows the commands, B=folder builds elsewhere, CC and CFLAGS are honored.

# ---- the library and the program ---------------------------------------------

$(B)/libbezel.a: $(LIB_OBJ)
	$(call say,AR $@)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

$(B)/bezel$(EXE): $(CLI_OBJ) $(LIBBEZEL) $(B)/libraries.mk
	$(call say,LD $@)
	$(Q)$(CC) $(CFLAGS) $(OS_LINK) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) $(LIBS) $(EDIT_LINK) $(MEDIA_LINK) $(CURL_LINK)

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC $@)
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<

# Kernels for one instruction set, selected at run time.
ON_X86    = $(if $(findstring x86_64,$(MACHINE)),$(1))
ON_ARM    = $(if $(findstring aarch64,$(MACHINE)),$(1))
AVX2      = -mavx2 -mfma -mf16c
$(B)/src/cpu/kernels_avx2.o $(B)/src/cpu/products_avx2.o: private FILE_FLAGS = $(call ON_X86,$(AVX2))
$(B)/src/cpu/products_avxvnni.o: private FILE_FLAGS = $(call ON_X86,$(AVX2) -mavxvnni)
AVX512    = $(AVX2) -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni
$(patsubst %,$(B)/src/cpu/%_avx512.o,products heads dot_tile): private FILE_FLAGS = $(call ON_X86,$(AVX512))
$(B)/src/cpu/products_amx.o: private FILE_FLAGS = $(call ON_X86,$(AVX512) -mamx-tile -mamx-int8)
$(B)/src/cpu/dot_bf16_avx512.o: private FILE_FLAGS = $(call ON_X86,$(AVX512) -mavx512bf16)
$(B)/src/cpu/products_128.o: private FILE_FLAGS = $(call ON_ARM,$(DOTPROD_$(OS)))
$(B)/src/cpu/products_i8mm.o: private FILE_FLAGS = $(call ON_ARM,$(DOTPROD_$(OS))+i8mm)

# The WGSL sources are embedded in the library.
WGSL     = $(sort $(wildcard src/gpu/kernels/*.wgsl src/gpu/kernels/*/*.wgsl))
$(B)/gen/wgsl.c: tools/embed.sh $(WGSL)
	@mkdir -p $(@D)
	@sh tools/embed.sh src/gpu/kernels $(WGSL) > $@.tmp && mv $@.tmp $@

$(B)/gen/wgsl.o: $(B)/gen/wgsl.c
	$(call say,CC $@)
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<

# After `make clean` in the same call.
$(B)/libraries.mk:
	@$(find_libraries)

# Rewritten when the compiler or its flags change, so that objects of two builds never mix.
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(ALL_CFLAGS)' | cmp -s - $@ || echo '$(CC) $(ALL_CFLAGS)' > $@

# ---- tests ----------------------------------------------------------------------

$(B)/tests/%$(EXE): $(B)/tests/%.o $(TEST_LIB_OBJ) $(LIBBEZEL)
	$(call say,LD $@)
	$(Q)$(CC) $(CFLAGS) $(OS_LINK) $(LDFLAGS) -o $@ $(filter-out %.a,$^) $(filter %.a,$^) $(LIBS)

# Counts allocations by replacing the allocator.
$(B)/tests/test_alloc: LIBS += -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc

# Takes the products for AMX from a copy whose tiles are emulated, and says that the processor has them.
AMX_TEST_OBJ = $(patsubst %,$(B)/tests/amx/%.o,products tiles)
$(B)/tests/amx/products.o: private FILE_FLAGS = $(call ON_X86,$(AVX512))
$(B)/tests/test_amx$(EXE): $(AMX_TEST_OBJ)
$(B)/tests/test_amx$(EXE): LIBS += -Wl,--wrap=bz_os_cpu_has,--wrap=bz_os_allow_tiles

$(B)/tests/fuzz/replay_%: $(B)/tests/fuzz/fuzz_%.o $(B)/tests/fuzz/replay.o $(TEST_LIB_OBJ) $(B)/libbezel.a
	$(call say,LD $@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter-out %.a,$^) $(filter %.a,$^) $(LIBS)

# Parts of the program that the library does not contain.
$(B)/tests/fuzz/replay_prompts $(B)/fuzz/fuzz_prompts: $(B)/cli/batch/prompts.o $(B)/cli/settings.o
$(B)/tests/fuzz/replay_saved $(B)/fuzz/fuzz_saved: $(patsubst %,$(B)/cli/%.o,batch/journal batch/lines chat/conversation settings)
$(B)/tests/fuzz/replay_saved $(B)/fuzz/fuzz_saved: LIBS += $(B)/libbezel.a
$(B)/tests/fuzz/replay_search $(B)/fuzz/fuzz_search: $(B)/cli/search/index.o $(B)/cli/search/passages.o
$(B)/tests/fuzz/replay_search $(B)/fuzz/fuzz_search: LIBS += $(B)/libbezel.a
$(B)/tests/fuzz/replay_data $(B)/fuzz/fuzz_data: $(B)/cli/chat/source.o $(B)/cli/chat/typed_path.o $(B)/cli/chat/named_file.o
$(B)/tests/fuzz/replay_data $(B)/fuzz/fuzz_data: LIBS += $(B)/libbezel.a
$(B)/tests/fuzz/replay_server $(B)/fuzz/fuzz_server $(B)/tests/fuzz/replay_http $(B)/fuzz/fuzz_http $(B)/tests/test_http$(EXE) $(B)/tests/test_static$(EXE) $(B)/tests/test_server$(EXE): $(HTTP_OBJ)
USES_STORE = $(B)/tests/fuzz/replay_manifest $(B)/fuzz/fuzz_manifest $(B)/tests/fuzz/replay_pull $(B)/fuzz/fuzz_pull \
             $(patsubst %,$(B)/tests/test_%$(EXE),ollama ollama_text pull server_engine) $(B)/tests/fuzz/replay_api $(B)/fuzz/fuzz_api
$(USES_STORE): $(STORE_OBJ)
$(USES_STORE): LIBS += $(LIBBEZEL) $(CURL_LINK) -lm
# The endpoints, without HTTP and the engine.
USES_API = $(B)/tests/fuzz/replay_api $(B)/fuzz/fuzz_api
API_OBJ = $(filter $(B)/server/api/%,$(SERVER_OBJ)) $(patsubst %,$(B)/server/%.o,engine/adapters engine/models engine/request http http_body http_text) $(filter $(B)/server/os_%,$(HTTP_OBJ))
$(USES_API): $(API_OBJ)
# The engine and the endpoints.
$(B)/tests/test_server_engine$(EXE): $(SERVER_OBJ)

# All of the program but its main(). It needs the library, which is before it on the command line.
USES_SYSTEM_MEDIA = $(B)/tests/systems/decode_files$(EXE) $(B)/tests/fuzz/replay_plain $(B)/fuzz/fuzz_plain
USES_PROGRAM = $(B)/tests/test_program$(EXE) $(B)/tests/test_decode$(EXE) $(B)/tests/fuzz/replay_decode $(B)/fuzz/fuzz_decode $(USES_SYSTEM_MEDIA)
$(USES_PROGRAM): $(filter-out $(B)/cli/main.o,$(CLI_OBJ))
$(USES_PROGRAM): LIBS += $(LIBBEZEL) $(EDIT_LINK) $(MEDIA_LINK) $(CURL_LINK) -lm
# On Linux, where the program does without it.
$(USES_SYSTEM_MEDIA): $(filter-out $(MEDIA_OBJ),$(SYSTEM_MEDIA_SRC:%.c=$(B)/%.o))
$(B)/tests/systems/write_pictures: LIBS += $(MEDIA_LINK)
# The stubs, and the tests of what was found.
$(B)/cli/media/missing.o $(B)/store/pull_none.o $(B)/tests/test_decode.o: $(B)/libraries.mk
$(B)/cli/media/missing.o $(B)/store/pull_none.o $(B)/tests/test_decode.o: private FILE_FLAGS = $(MISSING_DEFINES)

benches: $(BENCHES)
programs: $(B)/bezel $(TESTS) $(REPLAYS) benches

setup:
	@sh tools/setup.sh test
	@sh tools/setup.sh gpu
	@sh tools/setup.sh web
	@sh tools/setup.sh browser
	@sh tools/setup.sh clients
	@sh tools/setup.sh windows
	@sh tools/setup.sh macos
	@sh tools/setup.sh python
	@sh tools/setup.sh dist

models: | setup
	@$(PYTHON) tools/unpack_golden.py tests/golden build/golden
	@$(PYTHON) tools/make_test_models.py $(MODELS)

# Builds what suites of tests/run.py run: $(call build_suites,SUITES) and what else make needs to know.
build_suites = $(MAKE) --no-print-directory -j$(JOBS) $(2) $$($(PYTHON) tests/run.py --build $(1))
build_asan = $(call build_suites,$(1),B=build/asan CFLAGS='$(ASAN)')
build_tsan = $(call build_suites,$(1),B=build/tsan CFLAGS='$(TSAN)')
# With the program, so that it compiles there as well.
build_arm64 = $(call build_suites,$(1),B=build/arm64 CC=aarch64-linux-gnu-gcc LDFLAGS=-static build/arm64/bezel)

# The first finding of a sanitizer ends the test.
ASAN = -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all

test check: | setup
	@$(call build_suites,native gpu web browser,models lib benches web-programs $(MODELS)/large-vocab.gguf dist-quick)
	@$(call build_asan,asan)
	@$(call build_tsan,tsan)
	@$(call build_arm64,arm64)
	@$(call build_systems,systems)
	@$(call build_macos,arm64,aarch64)
	@$(PYTHON) tests/run.py gpu browser web asan native tsan arm64 systems

test-all: | setup
	@sh tools/setup.sh ray
	@sh tools/setup.sh frameworks
	@$(call build_suites,native-full gpu-full web-full browser-full,models lib benches web-programs $(MODELS)/large-vocab.gguf)
	@$(MAKE) --no-print-directory dist
	@$(call build_asan,asan-full gpu-asan)
	@$(call build_tsan,tsan-full)
	@$(call build_arm64,arm64-full)
	@$(call build_systems,systems-full)
	@$(call build_macos,arm64,aarch64)
	@$(call build_macos,x86_64,x86_64)
	@$(PYTHON) tests/run.py gpu-full gpu-asan browser-full web-full asan-full native-full tsan-full arm64-full systems-full

asan: | setup
	@$(MAKE) --no-print-directory models
	@$(call build_asan,asan-full gpu-asan)
	@$(PYTHON) tests/run.py asan-full gpu-asan

arm64: | setup
	@$(MAKE) --no-print-directory models
	@$(call build_arm64,arm64-full)
	@$(PYTHON) tests/run.py arm64-full

# ---- fuzzing ----------------------------------------------------------------------

# For each target. FUZZ_RUNS ends it earlier unless 0; FUZZ_JOBS processes work at it.
FUZZ_SECONDS ?= 60
FUZZ_RUNS ?= 0
FUZZ_JOBS ?= 1
FUZZ_TARGETS ?= $(FUZZ_SRC:tests/fuzz/fuzz_%.c=%) node
FUZZ_FLAGS = -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all

$(B)/fuzz/%: $(B)/tests/fuzz/%.o $(TEST_LIB_OBJ) $(B)/libbezel.a
	@mkdir -p $(@D)
	$(call say,LD $@)
	$(Q)$(CC) $(CFLAGS) -fsanitize=fuzzer,address,undefined $(LDFLAGS) -o $@ $(filter-out %.a,$^) $(filter %.a,$^) $(LIBS)

fuzz: | setup
	@$(MAKE) --no-print-directory -j$(JOBS) B=build/fuzz CC=clang CFLAGS='$(FUZZ_FLAGS)' fuzzers
	@$(MAKE) --no-print-directory -j$(JOBS) web-programs models
	@$(PYTHON) tests/fuzz/run.py $(FUZZ_SECONDS) $(FUZZ_RUNS) $(FUZZ_JOBS) $(FUZZ_TARGETS)

.PHONY: fuzzers
fuzzers: $(FUZZERS)

# ---- running and measuring ----------------------------------------------------------

CHAT_MODEL = $(MODELS)/chat.gguf

# A small model with random weights, for a checkout without models/pebble.gguf.
$(CHAT_MODEL): tools/gemma4_synth.py
	@mkdir -p $(@D)
	@$(PYTHON) tools/gemma4_synth.py tiny-e $@ --type q4_k_m --ctx 4096 --quiet

# MODEL=file.gguf or an Ollama name: the page offers it too.
run:
	@sh tools/setup.sh run
	@sh tools/setup.sh web
	@$(MAKE) --no-print-directory -j$(JOBS) $(B)/bezel build/web/app/ready
	@$(B)/bezel serve $(if $(MODEL),--model '$(MODEL)')

$(B)/bench/%: $(B)/bench/%.o $(B)/libbezel.a
	$(call say,LD $@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter-out %.a,$^) $(filter %.a,$^) $(LIBS)

bench: | setup
	@$(MAKE) --no-print-directory -j$(JOBS) programs $(if $(MODEL),,models)
	@sh bench/bench.sh '$(MODEL)' '$(PEER)'

include install.mk
include python/python.mk
include packaging/dist.mk
include tests/gpu/gpu.mk
include web/web.mk
include web/app/app.mk

format:
	clang-format-14 -i $$(git ls-files '*.c' '*.h')

clean:
	rm -rf build

-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(TEST_LIB_OBJ:.o=.d) $(TEST_SRC:%.c=$(B)/%.d) \
         $(SYSTEM_MEDIA_SRC:%.c=$(B)/%.d) $(wildcard $(B)/tests/systems/*.d $(B)/tests/amx/*.d) $(FUZZ_SRC:%.c=$(B)/%.d) $(BENCH_SRC:%.c=$(B)/%.d) $(B)/tests/fuzz/replay.d
# Keep the objects of test programs. Not .SECONDARY, which would also leave missing objects unbuilt.
.PRECIOUS: $(B)/%.o
