/* How fast a GPU reads its memory, and what it costs to go on from one dispatch to the next: the
 * two roofs over generating on it. */
#ifndef BZ_CLI_GPU_SPEED_H
#define BZ_CLI_GPU_SPEED_H

#include "gpu/device/gpu.h"

typedef struct gpu_speed {
    double bytes_per_s;  /* a kernel that only reads, from a buffer that no cache holds */
    double dispatch_s;   /* each of a chain of dispatches that wait for one another */
    double round_trip_s; /* one dispatch, submitted and waited for */
} gpu_speed;

/* Takes about half a second. False, and *err says why, where it could not be measured. */
bool gpu_speed_measure(gpu *g, gpu_speed *speed, bz_error *err);

#endif
