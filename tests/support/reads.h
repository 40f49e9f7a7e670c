/* Serves the reads that a job requests, as a page would: those without a memory destination go into
 * their GPU buffer. */
#ifndef BZ_TEST_READS_H
#define BZ_TEST_READS_H

#include "bezel.h"
#include "gpu/device/gpu.h"

void do_reads(const void *file, gpu *g, const bz_need *need);

#endif
