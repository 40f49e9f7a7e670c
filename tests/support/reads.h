/* Doing what a job asks to be read, as a page would: what has no place in memory goes into its GPU
 * buffer. */
#ifndef BZ_TEST_READS_H
#define BZ_TEST_READS_H

#include "bezel.h"
#include "gpu/device/gpu.h"

void do_reads(const void *file, gpu *g, const bz_need *need);

#endif
