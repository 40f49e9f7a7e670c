# The tests that need a WebGPU adapter. To be included by the Makefile.

GPU_TEST_SRC = $(sort $(wildcard tests/gpu/test_*.c))
GPU_TESTS = $(GPU_TEST_SRC:tests/%.c=$(B)/tests/%)

.PHONY: gpu-programs gpu-setup test-gpu
gpu-programs: $(GPU_TESTS)

gpu-setup:
	@sh tools/setup.sh gpu

# Each on the software adapter, unless the environment names another (tools/gpu-env.sh).
test-gpu: | setup gpu-setup
	@$(MAKE) --no-print-directory -j$(JOBS) gpu-programs models
	@failed=; for t in $(GPU_TESTS); do sh tools/gpu-env.sh $$t || failed="$$failed $$t"; done; \
	    test -z "$$failed" || { echo "FAILED:$$failed"; exit 1; }

-include $(GPU_TEST_SRC:%.c=$(B)/%.d)
