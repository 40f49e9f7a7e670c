# The chat page and the tests in a browser. Included by the Makefile.
#
#   build/web/app/   the page, ready to be served from any folder of any server

.PHONY: test-browser
web-programs: build/web/app/ready

# What tsc made lies in the same folders beside each other, so that imports stay as they are.
APP_FILES = $(addprefix web/app/,index.html app.css icon.svg models.json)
build/web/app/ready: build/web/compiled build/web/bezel.wasm build/web/bezel-mt.wasm $(APP_FILES) $(CHAT_MODEL)
	$(call say,APP build/web/app)
	@rm -rf build/web/app && mkdir -p build/web/app/app build/web/app/package build/web/app/builtin
	@cp $(APP_FILES) build/web/app/
	@cp -R build/web/js/web/app/src build/web/app/app/
	@cp -R build/web/js/web/package/src build/web/app/package/
	@find build/web/app -name '*.d.ts' -delete
	@cp build/web/bezel.wasm build/web/bezel-mt.wasm build/web/app/package/src/
	@cp $(CHAT_MODEL) build/web/app/builtin/synthetic.gguf
	@touch $@

# In Chromium, on the software adapter.
test-browser: | setup
	@$(MAKE) --no-print-directory -j$(JOBS) web-programs models $(B)/bezel
	@$(PYTHON) tests/run.py browser
