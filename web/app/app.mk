# The chat page and the tests in a browser. Included by the Makefile.
#
#   build/web/app/   the page, ready to be served from any folder of any server

.PHONY: test-browser
web-programs: build/web/app/ready

# The built-in models. Without models/pebble.gguf, a model with random weights takes its place.
BUILTIN = $(or $(wildcard models/pebble.gguf),$(CHAT_MODEL))
BUILTIN_NAME = $(if $(wildcard models/pebble.gguf),pebble.gguf,synthetic.gguf)
BUILTIN_MORE = $(wildcard models/pebble-diffusion.gguf)
BUILTIN_LIST = web/app/$(if $(wildcard models/pebble.gguf),models.json,models-synthetic.json)

# tsc's output keeps its relative folders, so that its imports stay valid.
APP_FILES = $(addprefix web/app/,index.html icon.svg)
APP_STYLE = $(wildcard web/app/style/*.css)
build/web/app/ready: build/web/compiled build/web/bezel.wasm build/web/bezel-mt.wasm $(APP_FILES) $(APP_STYLE) $(BUILTIN_LIST) $(BUILTIN) $(BUILTIN_MORE)
	$(call say,APP build/web/app)
	@rm -rf build/web/app && mkdir -p build/web/app/app build/web/app/style build/web/app/package build/web/app/builtin
	@cp $(APP_FILES) build/web/app/
	@cp $(APP_STYLE) build/web/app/style/
	@cp -R build/web/js/web/app/src build/web/app/app/
	@cp -R build/web/js/web/package/src build/web/app/package/
	@find build/web/app -name '*.d.ts' -delete
	@cp build/web/bezel.wasm build/web/bezel-mt.wasm build/web/app/package/src/
	@cp $(BUILTIN_LIST) build/web/app/models.json
	@cp $(BUILTIN) build/web/app/builtin/$(BUILTIN_NAME)
	@$(if $(BUILTIN_MORE),cp $(BUILTIN_MORE) build/web/app/builtin/)
	@touch $@

# In Chromium, on the software adapter.
test-browser: | setup
	@$(MAKE) --no-print-directory -j$(JOBS) web-programs models $(B)/bezel
	@$(PYTHON) tests/run.py browser-full
