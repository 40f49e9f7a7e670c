/* The same plan on the CPU, where nothing is rounded, and on the GPU.
 *
 *   memory_weights w = {0};
 *   bz_weight table = weights_random(&w, BZ_F32, 64, 10, 1);     every weight first, then
 *   parity p;
 *   parity_open(&p, &w, &(parity_options){0});                   both back ends,
 *   bz_plan *plan = parity_plan(&p, 8);                          then plans.
 *   parity_run r = parity_prepare(&p, plan, bz_embed(plan, table, 1, "x"));
 *   parity_check(&p, &r, &(parity_pass){.n = 3}, (bound){.of_rms = 1e-5});
 *
 * What is compared is the plan's output tensor, row by row. Where a bound is passed, the case that
 * is running fails and says by how much.
 */
#ifndef BZ_TEST_PARITY_H
#define BZ_TEST_PARITY_H

#include "gpu/device/gpu.h"
#include "plan/backend.h"

/* ---- weights in memory ---------------------------------------------------------------- */

typedef struct memory_weights {
    bz_weights table;
    uint8_t **bytes; /* [table.n] */
} memory_weights;

/* k values a row, `outputs` rows, `experts` of such matrices (1 for the others). */
bz_weight weights_random(memory_weights *w, bz_type type, uint64_t k, uint64_t outputs,
                         uint64_t experts);
/* The same with any finite scales, the smallest and the largest too. */
bz_weight weights_wild(memory_weights *w, bz_type type, uint64_t k, uint64_t outputs);
/* F32 values that a kernel with 8-bit activations sees exactly: in each group of 32 whole multiples
 * of a power of two, and the largest of each 16 is 127 times it. Such kernels then are as exact as
 * the others. k: times 32. */
bz_weight weights_exact8(memory_weights *w, uint64_t k, uint64_t rows);
bz_weight weights_values(memory_weights *w, const float *values, uint64_t k, uint64_t outputs);
/* A table [groups][each] of integers of that type, in which every number less than groups * each
 * occurs once. */
bz_weight weights_ids(memory_weights *w, bz_type type, uint64_t each, uint64_t groups);
void weights_free(memory_weights *w);

/* ---- two back ends ----------------------------------------------------------------------- */

typedef struct parity_options {
    gpu_options device;
    const gpu_limits *limits; /* override the device's limits; NULL: its own */
    bool f32_cache;           /* and activations stay f32: nothing is rounded */
    bz_cache_type cache;      /* 0, f16: f32 if f32_cache is set */
    bool no_fuse;
    const bz_cache_info *caches;
    uint32_t n_caches, slack;
} parity_options;

typedef struct parity {
    const memory_weights *weights;
    parity_options options;
    struct bz_gpu_model *model;
    gpu *device;
    bz_backend *backend[2]; /* the CPU's, the GPU's */
    bz_kv *kv[2];
    bool failed;
} parity;

/* Opens a device of its own, loads the weights and makes the back ends; false after a failed check.
 */
bool parity_open(parity *p, const memory_weights *w, const parity_options *options);
/* Frees all, and checks that only the weights were left on the device. */
void parity_close(parity *p);
/* Replaces the caches by empty ones. */
bool parity_forget(parity *p);

typedef struct parity_run {
    bz_plan *plan;
    bz_schedule *schedule[2];
    uint32_t cols;
} parity_run;

bz_plan *parity_plan(parity *p, uint32_t rows);
/* Owns the plan afterwards. An output of all rows is followed by take_rows, so that any can be
 * requested. */
parity_run parity_prepare(parity *p, bz_plan *plan, bz_tensor output);
void parity_release(parity *p, parity_run *r);

typedef struct parity_pass {
    uint32_t n;
    uint32_t position;   /* of the first row */
    const int32_t *ids;  /* [n]; NULL: 0, 1, 2 ... */
    uint32_t n_out;      /* 0: all rows, last first */
    const uint32_t *out; /* [n_out] */
    /* a canvas: as in bz_rows */
    bool reset_kept;
    const float *kept_input, *uniform;
    float temperature;
} parity_pass;

/* |gpu - cpu| <= of_rms * (root mean square of the CPU's output) + of_value * |cpu| + absolute */
typedef struct bound {
    double of_rms, of_value, absolute;
} bound;

/* One pass on both and the comparison; `what` describes it in a failure. */
bool parity_check(parity *p, parity_run *r, const parity_pass *pass, bound limit, const char *what,
                  ...) BZ_PRINTF(5, 6);

/* The limits of the device here; ends the program when there is none. */
gpu_limits parity_limits(void);

/* One pass on the GPU alone; [n_out][cols], the caller frees it. NULL after a failed check. */
float *parity_output(bz_backend *backend, bz_schedule *schedule, bz_kv *kv, const parity_pass *pass,
                     uint32_t cols);

/* Fails the case where the two differ by more than the bound. */
bool within(const float *got, const float *want, size_t rows, size_t cols, bound limit,
            const char *what);

/* The largest fraction of a bound that was used since the last call. */
double parity_worst(void);

#endif
