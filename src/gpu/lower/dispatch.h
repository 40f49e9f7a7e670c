/* One dispatch of a lowered plan: the kernel, its parameters and what it binds, as plain data. */
#ifndef BZ_GPU_DISPATCH_H
#define BZ_GPU_DISPATCH_H

#include "file/quant.h"
#include "gpu/device/gpu.h"
#include "gpu/kernels/catalog.h"
#include "gpu/kernels/params.h"

/* What a binding holds. Buffers of weights have handles when a plan is lowered; buffers of the
 * back end are named and resolved when the list is recorded. */
typedef enum gpu_bound {
    GPU_BOUND_NONE,   /* the kernel has no such binding */
    GPU_BOUND_WEIGHT, /* `at` */
    GPU_BOUND_EMPTY,  /* the kernel has the binding, the step has no weight for it */
    GPU_BOUND_SLOTS   /* u32 [rows]: row of the cached table for each row of the pass */
} gpu_bound;

typedef struct gpu_dispatch_binding {
    gpu_bound kind;
    gpu_binding at;
} gpu_dispatch_binding;

enum { GPU_MAX_EXTRA_BINDINGS = 3, GPU_MAX_LATER_STEPS = 4 };

/* Attention in parts: the positions of each piece of a cache are split, and the partial results lie
 * after the arena until they are combined. The same in the dispatches that write them and in those
 * that combine them. */
typedef struct gpu_split {
    uint32_t splits; /* of each piece; 0: it follows the rows of the cache */
    uint32_t rows;   /* of the pass, if `splits` may be lowered so that the results fit; else 0 */
    uint32_t heads, width, window;
    bool reader_combines; /* the product that reads the result can combine a few parts itself */
} gpu_split;

/* Bindings in order: parameters, rows of the pass, arena; then `weights`, or keys and values of
 * `cache`; then `extra`; then the side buffer if `side` is set. */
typedef struct gpu_dispatch {
    gpu_kernel kernel;
    bz_type type; /* block type of the weights, for kernels that read blocks */
    gpu_overrides overrides;
    gpu_params params;
    gpu_dispatch_binding weights;
    gpu_dispatch_binding extra[GPU_MAX_EXTRA_BINDINGS];
    uint32_t cache;       /* bz_cache id: binds its keys and values; 0: none */
    uint32_t cache_piece; /* which piece of the cache, set by gpu_split_caches */
    uint32_t combines;    /* bz_cache id: combines the partial results of attention over it */
    gpu_split split;
    bool side;        /* binds the side buffer */
    uint32_t x, y, z; /* workgroups; z 0 means 1 */

    /* For reports: the steps of the plan that this dispatch computes or takes part in. */
    uint32_t first_step, steps;
    uint32_t n_later, later[GPU_MAX_LATER_STEPS]; /* steps after that range: up to three norms, one
                                                     of them of two steps */
    const char *rule;                             /* name of the fusion rule; NULL: a step alone */
} gpu_dispatch;

#endif
