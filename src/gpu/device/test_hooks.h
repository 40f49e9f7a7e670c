/* What tests do to a GPU device, and nobody else. */
#ifndef BZ_GPU_TEST_H
#define BZ_GPU_TEST_H

#include "gpu/device/gpu.h"

/* Takes the device away, as a driver reset or a closed laptop does: gpu_state_of soon says LOST. */
void gpu_test_lose(gpu *g);

/* A GPU with only so many bytes for buffers: those beyond get out_of_memory from the device itself.
 * False where the WebGPU library cannot pretend (only Dawn can). */
bool gpu_test_limit_memory(gpu *g, uint64_t bytes);

/* Kernels are compiled from this text instead of their own. */
void gpu_test_wgsl(gpu *g, const char *wgsl);

/* The test reads stretches of files into buffers itself, as a web page does. */
void gpu_test_direct_reads(gpu *g, bool on);

/* From now on the device has these limits: what is built on it sees them, and it refuses what is
 * beyond. For trying tensors of many bindings with small ones; give what gpu_limits_of said to end
 * it. */
void gpu_test_limits(gpu *g, const gpu_limits *limits);

#endif
