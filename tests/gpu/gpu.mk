# The tests that need a WebGPU adapter. Included by the Makefile.

GPU_TEST_SRC = $(sort $(wildcard tests/gpu/test_*.c))
GPU_TESTS = $(GPU_TEST_SRC:tests/%.c=$(B)/tests/%)

# Counts allocations by standing in for the allocator.
$(B)/tests/gpu/test_tokens: LIBS += -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc

# Those that also run under AddressSanitizer (B=build/asan), on few inputs.
GPU_ASAN_TESTS = $(foreach t,device kernels attend experts fuse faults ple diffusion stream encoder media,$(B)/tests/gpu/test_$(t))

.PHONY: gpu-programs gpu-asan-programs test-gpu
gpu-programs: $(GPU_TESTS)
gpu-asan-programs: $(GPU_ASAN_TESTS)

# On the software adapter, unless the environment names another (tools/gpu-env.sh).
test-gpu: | setup
	@$(MAKE) --no-print-directory -j$(JOBS) gpu-programs models
	@$(PYTHON) tests/run.py gpu-full

-include $(GPU_TEST_SRC:%.c=$(B)/%.d)
