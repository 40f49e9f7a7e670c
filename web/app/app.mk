# The chat page and the tests in a browser. Included by the Makefile.
#
#   build/web/app/   the page, ready to be served from any folder of any server

.PHONY: test-browser dist-web pictures
web-programs: build/web/app/ready build/dist-web/README.md

# The built-in models. Without models/pebble.gguf, a model with random weights takes its place.
BUILTIN = $(or $(wildcard models/pebble.gguf),$(CHAT_MODEL))
BUILTIN_MORE = $(wildcard models/pebble-diffusion.gguf)
BUILTIN_LIST = web/app/$(if $(wildcard models/pebble.gguf),models.json,models-synthetic.json)

APP_FILES = web/app/index.html $(wildcard web/app/fixed/* web/app/style/*.css)
BUILTIN_FILES = $(BUILTIN) $(BUILTIN_MORE) $(wildcard web/app/samples/*)
build/web/app/ready: build/web/compiled build/web/bezel.wasm build/web/bezel-mt.wasm $(APP_FILES) $(BUILTIN_LIST) $(BUILTIN_FILES)
	$(call say,APP build/web/app)
	$(Q)$(NODE) build/web/js/web/app/bundle.js build/web/app $(BUILTIN_LIST) $(BUILTIN_FILES)
	@sh packaging/third_party.sh $(WEB_LIBRARIES) > build/web/app/third-party.txt
	@touch $@

# The page for other servers, with their settings.
dist-web:
	@sh tools/setup.sh run
	@sh tools/setup.sh web
	@$(MAKE) --no-print-directory -j$(JOBS) build/dist-web/README.md

build/dist-web/README.md: build/web/app/ready $(wildcard web/app/deploy/*)
	$(call say,DIST build/dist-web)
	@rm -rf build/dist-web && mkdir -p build/dist-web
	@cp -Rp build/web/app build/dist-web/site && rm build/dist-web/site/ready
	@cp web/app/deploy/_headers build/dist-web/site/
	@cp web/app/deploy/nginx.conf web/app/deploy/Caddyfile build/dist-web/
	@cp web/app/deploy/README.md $@

# docs/pictures: what a test has seen, in few colors.
pictures: | setup
	@$(MAKE) --no-print-directory -j$(JOBS) web-programs
	@$(NODE) build/web/js/tests/browser/test_pictures.js
	@sh tools/pictures.sh

# In Chromium, on the software adapter.
test-browser: | setup
	@sh tools/setup.sh frameworks
	@$(MAKE) --no-print-directory -j$(JOBS) web-programs models $(B)/bezel
	@$(PYTHON) tests/run.py browser-full
