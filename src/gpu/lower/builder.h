/* Inside the scheduler: what turns steps into dispatches. */
#ifndef BZ_GPU_BUILDER_H
#define BZ_GPU_BUILDER_H

#include "gpu/lower/fuse.h"
#include "gpu/run/internal.h"

enum { GPU_MOST_SUMS = 8, GPU_MOST_EARLY = 4 };

typedef struct builder {
    gpu_backend *b;
    bz_schedule *s;
    const bz_step *step; /* first of the group at hand */
    uint32_t steps;      /* of the group */
    const bz_step *gate; /* geglu, where a group begins with it and `step` is the product behind */
    uint32_t rows;       /* bucket rows of its output */
    uint64_t scratch;    /* bytes that splits need behind the arena */
    uint64_t side_bytes; /* of the side buffer: tiles.c */
    uint32_t table;      /* vectors of its table of experts, which comes first */
    bz_tensor grouped;   /* the choice of experts it lists, */
    uint32_t grouped_rows; /* in tiles of that many */
    uint32_t eights;       /* vectors for rows in 8 bits behind it, */
    bz_tensor quantised;   /* of this tensor; */
    struct {
        bz_tensor tensor;
        uint32_t at;
    } early[GPU_MOST_EARLY]; /* [n_early] behind those, each until it has been read: tensors that
                                were made in 8 bits */
    uint32_t n_early;
    const gpu_group *group;   /* at hand, */
    const gpu_group *groups;  /* of all of them, in order, */
    const uint32_t *group_of; /* [steps of the plan] and which a step is in */
    struct {
        bz_tensor tensor;
        const gpu_group *reader;
        dispatch sum;      /* what would write it */
    } sums[GPU_MOST_SUMS]; /* [n_sums] that are not added up yet: sums.c */
    uint32_t n_sums;
    uint64_t open_bytes; /* behind the arena, that they take */
    bool *halved;        /* [tensors of the plan] which lie there as halves: matrix.c */
    bz_error *err;
    bool failed;
} builder;

static inline uint32_t divide_up(uint64_t a, uint64_t b)
{
    return (uint32_t)((a + b - 1) / b);
}

/* Where a tensor lies, in f32 values; 0 for none. */
uint32_t gpu_builder_place(const builder *x, bz_tensor t);
/* A dispatch's facts as one step tells them. */
step_facts gpu_builder_facts(const builder *x, const bz_step *step);
/* A small tensor, or a buffer of nothing. */
gpu_binding gpu_builder_vector(const builder *x, bz_weight w);
/* Appends a dispatch; x workgroups beyond the limit are folded into y where y is still 1. */
void gpu_builder_add(builder *x, gpu_kernel kernel, bz_type type, gpu_overrides overrides,
                     dispatch d);

/* products.c: a group of fusion PRODUCTS. */
void gpu_add_products(builder *x, const gpu_group *group);

/* norms.c: a group of fusion NORMS. */
void gpu_add_norms(builder *x, const gpu_group *group);

/* attention.c: kv_write, alone or with the norms and the rope before it (GPU_FUSE_KV); attend,
 * where `turn` is the query's norm, with its rope behind, if they are done there too. */
void gpu_add_kv_write(builder *x);
void gpu_add_kv_norm(builder *x);
void gpu_add_attend(builder *x, const bz_step *turn, const bz_step *attend);

/* canvas.c: judge and soft_embed. */
void gpu_add_judge(builder *x);
void gpu_add_soft_embed(builder *x);

/* tiles.c: a linear or expert_linear of more than 8 rows. Room for the largest table is reserved
 * before the first. */
void gpu_tiles_reserve(builder *x);
void gpu_add_tiles(builder *x);
/* Where a tensor that products alone read is wanted in 8 bits: integers and scales, in vectors of
 * the side buffer. False where there is no room; then they make them themselves. Forgotten when the
 * group at hand was the last to read it. */
bool gpu_tiles_early(builder *x, bz_tensor t, uint32_t *quants, uint32_t *scales);
void gpu_tiles_forget(builder *x);

/* sums.c: room behind the arena for the splits of a product, and what adds them up: a dispatch now,
 * or the tensor's reader. Who reads a tensor that may be such a sum asks for the number of its
 * splits (0: the tensor is there) and where they lie. Whoever else uses the memory behind the arena
 * settles them first. */
uint32_t gpu_sums_place(builder *x, uint64_t bytes);
void gpu_sums_add(builder *x, bz_tensor t, const dispatch *sum);
uint32_t gpu_sums_read(const builder *x, bz_tensor t, step_facts *facts, uint32_t *place,
                       uint32_t *stride);
void gpu_sums_settle(builder *x);
void gpu_sums_forget(builder *x); /* those that the group at hand has read */

#endif
