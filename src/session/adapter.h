/* Adapters in memory, and the sets of them that sessions and batches compute with. */
#ifndef BZ_SESSION_ADAPTER_H
#define BZ_SESSION_ADAPTER_H

#include "bezel_adapter.h"
#include "base/sha256.h"
#include "model/adapter.h"
#include "plan/backend.h"
#include "session/model.h"

/* An adapter's tensors as they are multiplied: pair i has a in tensor 2i of the table, b, as
 * panels, in tensor 2i + 1; all F32. */
struct bz_adapter {
    atomic_uint references;
    const bz_model *model;
    char *name;
    bz_pairs pairs; /* their file is not in memory any more; without those that change nothing */
    uint32_t idle;
    bz_weights table;
    uint8_t **bytes; /* [table.n], owned */
    uint64_t total_bytes;
    uint8_t hash[BZ_SHA256_BYTES]; /* of the file */
    bz_gpu_model *gpu;             /* the tensors on a device; NULL: not there */
};

bz_adapter *bz_adapter_hold(bz_adapter *a);

/* Adapters with their scales, and what plans and back ends need to compute with them. Immutable,
 * shared by a session and its forks. */
typedef struct bz_adapter_set {
    atomic_uint references;
    bz_adapter_use *uses; /* [n]; held */
    uint32_t n;
    bz_text_model text; /* the model's, with the table below and these adapters; borrows the rest */
    bz_weights table;   /* tensors of the model, then of each adapter; names are borrowed */
    const uint8_t **bytes; /* [table.n] */
    bz_low_ranks ranks;
    uint8_t hash[BZ_SHA256_BYTES];
} bz_adapter_set;

/* *out NULL: no adapter with a scale other than 0. */
bz_status bz_adapter_set_new(bz_adapter_set **out, const bz_model *model,
                             const bz_adapter_use *uses, size_t n, bz_error *err);
bz_adapter_set *bz_adapter_set_hold(bz_adapter_set *set);
void bz_adapter_set_free(bz_adapter_set *set); /* NULL is fine */
bool bz_adapter_sets_equal(const bz_adapter_set *a, const bz_adapter_set *b);

/* On a GPU: a short step of uploading all of them beside the loaded model. */
bz_progress bz_adapter_set_load(const bz_adapter_set *set, bz_need *need);
/* A back end of the loaded model for sessions with these adapters; set NULL: with none. */
typedef struct bz_backend_options {
    unsigned threads;
    const char *kernels;
    bool exact, no_fuse;
    bz_cache_type cache; /* of its sequences */
} bz_backend_options;
bz_status bz_adapter_set_backend(bz_backend **out, const bz_model *model, const bz_adapter_set *set,
                                 const bz_backend_options *options, bz_error *err);
/* What plans are recorded from. */
const bz_text_model *bz_adapted_text(const bz_model *model, const bz_adapter_set *set);

#endif
