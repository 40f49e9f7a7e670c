# The Python wheel. Included by the Makefile.

STRIP ?= $(shell $(CC) -print-prog-name=strip)
WHEEL_MODEL = models/pebble.gguf

.PHONY: wheel wheel-arm64
wheel: $(SHARED)
	$(Q)$(PYTHON) python/build_wheel.py --library $(SHARED) --strip '$(STRIP)' --model $(WHEEL_MODEL) --out $(B)/wheel

wheel-arm64:
	@$(MAKE) --no-print-directory B=build/arm64 CC=aarch64-linux-gnu-gcc wheel
