/* What tests do to a GPU device, and nobody else. */
#ifndef BZ_GPU_TEST_H
#define BZ_GPU_TEST_H

#include "gpu/gpu.h"

/* Takes the device away, as a driver reset or a closed laptop does: gpu_state_of soon says LOST. */
void gpu_test_lose(gpu *g);

#endif
