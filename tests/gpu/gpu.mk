# The tests that need a WebGPU adapter. Included by the Makefile.

GPU_TEST_SRC = $(sort $(wildcard tests/gpu/test_*.c))
GPU_TESTS = $(GPU_TEST_SRC:tests/%.c=$(B)/tests/%)

# Counts allocations by standing in for the allocator.
$(B)/tests/gpu/test_tokens: LIBS += -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc

# Preloaded into a program, it takes GPU devices away.
$(B)/tests/gpu/lose_device.so: tests/gpu/lose_device.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,LD $@)
	$(Q)$(CC) $(STD) $(WARNINGS) -O1 -fPIC -shared -o $@ $< -ldl

.PHONY: gpu-programs test-gpu
gpu-programs: $(GPU_TESTS)

# On the software adapter, unless the environment names another (tools/gpu-env.sh).
test-gpu: | setup
	@$(call build_suites,gpu-full,models)
	@$(PYTHON) tests/run.py gpu-full

-include $(GPU_TEST_SRC:%.c=$(B)/%.d)
