/* Fusion: which steps of a plan one kernel computes together.
 *
 * A table of named rules (fuse.c, fuse_tower.c for towers) is tried at each step in order; the
 * first rule that matches makes a group. With fusing off every step is a group of its own, and the
 * results are the same up to rounding inside a kernel.
 *
 * Where the list departs from the plan:
 * - groups, and steps that a group computes ahead of their place in the plan (gpu_group.norms);
 * - partial sums of a split-K product that the only reader of the product adds up, and partial
 *   results of attention that the next product combines (gpu_fused.sum_reader; partial_sums.c
 *   keeps the sums until then, cache_pieces.c decides about attention);
 * - the number format of a tensor that only products read: int8 where a group's `int8` says so
 *   and the side buffer has space (side.c), f16 where only kernels on subgroup matrices read it,
 *   which depends on offsets and is decided after placement (matrix.c).
 * Everything else expands a step: pieces of large weights, quantizing the input of a product,
 * splits and what adds them up.
 *
 * Workgroups of one dispatch run in any order, so nothing a group writes may lie where it reads:
 * tensors are placed anew with whole groups as the unit of time (bz_plan_place). */
#ifndef BZ_GPU_FUSE_H
#define BZ_GPU_FUSE_H

#include "gpu/lower/lower.h"

/* Up to this many rows, products read the matrix row by row, and attention splits the visible
 * positions; more rows share tiles. */
enum { GPU_MAX_VECTOR_ROWS = 8 };

/* What lowers a group. The patterns are in the rule tables. */
typedef enum gpu_fusion {
    GPU_FUSE_NONE,
    GPU_FUSE_NORM_ADD,
    GPU_FUSE_NORM_ADD_SCALE,
    GPU_FUSE_NORM_ROPE,
    GPU_FUSE_NORM_MUL,
    GPU_FUSE_NORMS,
    GPU_FUSE_KV,
    GPU_FUSE_ATTEND,
    GPU_FUSE_GEGLU_PRODUCT,
    GPU_FUSE_GEGLU_KEPT,
    GPU_FUSE_PRODUCTS,
    GPU_FUSE_LOW_RANKS,
    /* towers */
    GPU_FUSE_ROWS,
    GPU_FUSE_HEADS,
    GPU_FUSE_GATE,
    GPU_FUSE_ATTEND_ALL,
    GPU_FUSE_LOCAL_ATTEND,
    GPU_FUSE_LAYER_NORM
} gpu_fusion;

enum { GPU_MAX_NORMS = 3, GPU_MAX_ROWS_OUTS = 3, GPU_MAX_PRODUCTS = 3 };

/* A range of steps, and for NORMS and PRODUCTS also steps after it. Members of `products` are
 * numbers of steps within the range, from 0, where 0 means none. Those of towers count from 1; 0
 * means none. */
typedef struct gpu_group {
    gpu_fusion fusion;
    const char *rule; /* its name; NULL: a step alone */
    size_t first;     /* step of the plan */
    uint32_t count;   /* steps of the range */
    struct {
        uint8_t add, scale;         /* the residual before the products; step 0 is its norm */
        bool has_norm;              /* step first_product - 1 is a norm of their input */
        uint8_t first_product, n;   /* n products of one input */
        bool keeps_sum, keeps_norm; /* the residual and the normed row are read after the group */
        uint8_t epilogue;           /* geglu or softcap */
        bool low;         /* step 0 is the adapters' product of the same input, computed here */
        bool keeps_input; /* attention, if its parts are combined here, is read after the group */
        /* steps of the plan, in the range or after it: the add_low_rank of each product; 0: none */
        size_t adds[GPU_MAX_PRODUCTS];
        bool int8; /* only int8 products read the result: stored as int8 */
    } products;
    struct {
        uint8_t adds;               /* residuals: steps 0 and 1, steps 2 and 3 */
        bool has_scale;             /* the last step of the range is a scale */
        bool keeps_sum;             /* the sum is read by others than the norms below */
        uint8_t n;                  /* norms of the sum */
        size_t norm[GPU_MAX_NORMS]; /* steps of the plan; a mul_vector follows one without weight */
        bool int8[GPU_MAX_NORMS];   /* products read it as int8, or f16, and no others as f32, */
        bool f32[GPU_MAX_NORMS];    /* except for adapters': it is written as both */
    } norms;
    struct {
        uint8_t clamp, norm, add;                /* [clamp] [norm] add: the residual */
        uint8_t out_norm, silu;                  /* [norm [silu]] of the sum */
        uint8_t n_outs, outs[GPU_MAX_ROWS_OUTS]; /* steps whose results are written: clamps, norm */
    } rows;
    struct {
        uint8_t clamp, norm, rope;
    } heads;
    struct {
        uint8_t clamp[2], op, clamp_out; /* clamps of the inputs; geglu, silu or glu */
    } gate;
    struct {
        uint8_t clamp[3], scores, sum, clamp_out; /* clamps of queries, keys, values */
    } local;
} gpu_group;

/* All groups of a plan, in order. */
typedef struct gpu_fused {
    gpu_group *groups; /* [n] */
    uint32_t n;
    uint32_t *group_of;   /* [steps] index into groups */
    uint32_t *sum_reader; /* [tensors] 1 + the group that alone reads this product, or is the first
                             to read this attention, and can add up its partial sums; 0: none */
} gpu_fused;

bz_status gpu_fuse(const gpu_lower_input *in, gpu_fused *out, bz_error *err);
void gpu_fused_free(gpu_fused *f);

/* A rule: fills *g, which is zeroed, if its pattern begins at step `first`. */
typedef struct gpu_fusion_rule {
    const char *name;
    const char *pattern; /* steps; [] optional, ... repeated */
    bool (*match)(const gpu_lower_input *in, size_t first, gpu_group *g);
} gpu_fusion_rule;

typedef struct gpu_fusion_rules {
    const gpu_fusion_rule *rule;
    size_t n;
} gpu_fusion_rules;

/* In order of priority. */
gpu_fusion_rules gpu_text_rules(void);
gpu_fusion_rules gpu_tower_rules(void); /* fuse_tower.c */

/* Is step `at` the first half of adapters, a product whose result is only multiplied by B? */
bool gpu_is_low_rank(const bz_plan *plan, size_t at);

/* Steps of one of the norms that a NORMS group computes: 2 with a mul_vector. */
static inline uint32_t gpu_norm_steps(const bz_plan *plan, size_t norm)
{
    return plan->steps[norm].w[0].id ? 1 : 2;
}

/* The range that holds all of n weights in one buffer; size 0 if there is none. */
gpu_binding gpu_span_of(const gpu_lower_input *in, const bz_weight *weights, uint32_t n);
/* The same for the matrices of n products, and for those that adapters add to the products of a
 * group. */
gpu_binding gpu_span_of_products(const gpu_lower_input *in, const bz_step *products, uint32_t n);
gpu_binding gpu_span_of_adapters(const gpu_lower_input *in, const gpu_group *g);
/* What product i of a PRODUCTS group results in, with what adapters add. */
bz_tensor gpu_product_result(const bz_plan *plan, const gpu_group *g, uint32_t i);

#endif
