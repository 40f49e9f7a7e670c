/* Hooks of a GPU device for tests only. */
#ifndef BZ_GPU_TEST_H
#define BZ_GPU_TEST_H

#include "gpu/device/gpu.h"

/* One of the functions below was called. */
bool gpu_test_changed(const gpu *g);

/* Loses the device, as a driver reset does: gpu_state_of soon returns LOST. */
void gpu_test_lose(gpu *g);

/* Limits the bytes of all buffers: more fail with out_of_memory from the device itself. False if
 * the WebGPU library cannot simulate that (only Dawn can). */
bool gpu_test_limit_memory(gpu *g, uint64_t bytes);

/* Pipelines are compiled from this text instead of their own; NULL ends it. */
void gpu_test_wgsl(gpu *g, const char *wgsl);

/* The test reads ranges of files into buffers itself, as a web page does. */
void gpu_test_direct_reads(gpu *g, bool on);

/* From now on the device reports and enforces these limits: so that small tensors take several
 * bindings. Pass the original gpu_limits_of to end it. */
void gpu_test_limits(gpu *g, const gpu_limits *limits);

#endif
