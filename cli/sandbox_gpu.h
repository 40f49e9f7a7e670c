/* What drivers of GPUs need inside the sandbox. */
#ifndef BZ_CLI_SANDBOX_GPU_H
#define BZ_CLI_SANDBOX_GPU_H

#include <stdbool.h>

/* Calls `allow` with every file and folder that a driver writes: its devices, and the caches of
 * compiled shaders, which are created. */
void sandbox_gpu_paths(void (*allow)(void *user, const char *path, bool folder), void *user);

/* Whether a GPU can be opened inside: a child confines itself with `confine` and tries. */
bool sandbox_gpu_works(bool (*confine)(void *user), void *user);

#endif
