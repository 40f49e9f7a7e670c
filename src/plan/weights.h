/* Weights as handles: a table of the model's tensors, each named by file, offset and size. Back
 * ends map or load them. */
#ifndef BZ_PLAN_WEIGHTS_H
#define BZ_PLAN_WEIGHTS_H

#include <stdbool.h>

#include "file/quant.h"

typedef struct bz_weight {
    uint32_t id; /* 0: none; else 1 + index into bz_weights.info */
} bz_weight;

#define BZ_NO_WEIGHT ((bz_weight){0})

typedef struct bz_weight_info {
    const char *name; /* as in the file, NUL-terminated; owned by the table */
    bz_type type;
    uint64_t ne[3]; /* ne[0] contiguous; [K, O] for a matrix, [K, O, experts] for experts */
    uint32_t file;
    uint64_t offset;
    uint64_t size;
    uint32_t layer; /* 1 + the layer it belongs to; 0: none */
} bz_weight_info;

typedef struct bz_weights {
    bz_weight_info *info;
    uint32_t n, cap;
    const bool *wanted; /* [n] which of them to load onto the device; NULL: all */
} bz_weights;

static inline const bz_weight_info *bz_weight_of(const bz_weights *ws, bz_weight w)
{
    return &ws->info[w.id - 1];
}

#endif
