/* The CPU back end: runs a plan's steps on a pool of threads. */
#ifndef BZ_CPU_CPU_H
#define BZ_CPU_CPU_H

#include "plan/backend.h"

typedef struct bz_cpu_options {
    unsigned threads;    /* 0: one per processor */
    const char *kernels; /* instruction set by name; NULL: the best */
    bool exact;          /* f32 activations; else int8 where weights are quantized */
} bz_cpu_options;

/* weight_bytes[i]: the data of weights->info[i]; must outlive the back end. */
bz_status bz_cpu_new(bz_backend **out, const bz_weights *weights,
                     const uint8_t *const *weight_bytes, const bz_cpu_options *options,
                     bz_error *err);

#endif
