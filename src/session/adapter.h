/* Adapters in memory, and the sets of them that sessions and batches compute with. */
#ifndef BZ_SESSION_ADAPTER_H
#define BZ_SESSION_ADAPTER_H

#include "bezel_adapter.h"
#include "base/sha256.h"
#include "model/adapter.h"
#include "plan/backend.h"
#include "session/model.h"

/* An adapter, with its tensors as they are multiplied (adapter_tensors.c). */
struct bz_adapter {
    atomic_uint references;
    const bz_model *model;
    char *name;
    bz_pairs pairs; /* their file is not in memory any more; without those that change nothing */
    uint32_t idle;
    bz_weights table;
    uint8_t **bytes;    /* [table.n], owned */
    bz_low_rank *ranks; /* [weights of the model]; a and b are numbers in the table */
    uint64_t total_bytes;
    uint8_t hash[BZ_SHA256_BYTES]; /* of the file */
    bz_gpu_model *gpu;             /* the tensors on a device; NULL: not there */
};

bz_adapter *bz_adapter_hold(bz_adapter *a);

/* Tensors of zeros for ranks[i] of weight i + 1 of the model; 0: it is not adapted. */
bz_status bz_adapter_make_tensors(bz_adapter *a, const uint32_t *ranks, bz_error *err);
uint32_t bz_adapter_rank(uint32_t rank); /* in memory, of a pair of that rank */
/* The tensors of a pair, from the bytes of its file. */
bz_status bz_adapter_fill(bz_adapter *a, const bz_pair *p, const uint8_t *file, bz_error *err);
/* One that does what n do together with these scales. */
bz_status bz_adapter_combine(bz_adapter **out, const bz_model *model, const bz_adapter_use *uses,
                             uint32_t n, bz_error *err);

/* Adapters with their scales, and what plans and back ends need to compute with them. Immutable,
 * shared by a session and its forks. Several are combined, so that they cost no more products than
 * one. */
typedef struct bz_adapter_set {
    atomic_uint references;
    bz_adapter_use *uses; /* [n]; held */
    uint32_t n;
    bz_adapter *all;    /* the only one, or all in one; held */
    bz_text_model text; /* the model's, with the table below and these adapters; borrows the rest */
    bz_weights table;   /* tensors of the model, then those of `all`; names are borrowed */
    const uint8_t **bytes; /* [table.n] */
    bz_low_ranks ranks;
    uint8_t hash[BZ_SHA256_BYTES];
} bz_adapter_set;

/* *out NULL: no adapter with a scale other than 0. current: a set or none; where it has the same
 * adapters it is held instead. */
bz_status bz_adapter_set_new(bz_adapter_set **out, bz_adapter_set *current, const bz_model *model,
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
