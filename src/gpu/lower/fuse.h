/* Steps that one kernel can do together. The only place where the GPU's list departs from the
 * plan's; with fusing off, every step is a kernel of its own, and both give the same numbers.
 *
 * Workgroups of one dispatch run in any order, so nothing a group writes may lie where it reads:
 * the schedule places tensors anew, with whole groups as the unit of time. */
#ifndef BZ_GPU_FUSE_H
#define BZ_GPU_FUSE_H

#include "gpu/run/weights.h"
#include "plan/plan.h"

typedef enum gpu_fusion {
    GPU_FUSE_NONE,
    GPU_FUSE_NORM_ADD,       /* rms_norm, add:          in1 + norm(in0) */
    GPU_FUSE_NORM_ADD_SCALE, /* rms_norm, add, scale:  (in1 + norm(in0)) * w */
    GPU_FUSE_NORM_ROPE,      /* rms_norm, rope:         per head */
    GPU_FUSE_NORM_MUL,       /* rms_norm, mul_vector:   a norm without weight of its own */
    GPU_FUSE_NORMS, /* [rms_norm, add [rms_norm, add] [scale]] and up to three norms of the result
                       for products, wherever in the plan they stand, in 8 bits where products take
                       those: of many rows */
    GPU_FUSE_KV, /* rms_norm, rope, rms_norm, kv_write: keys and values into the cache; of many rows
                    [rms_norm, rope] of queries too */
    GPU_FUSE_ATTEND,   /* rms_norm, rope, attend: of few rows */
    GPU_FUSE_GATED,    /* geglu, linear or expert_linear of many rows, 8-bit activations */
    GPU_FUSE_PRODUCTS, /* [rms_norm, add, [scale]] [rms_norm] linear ... [geglu or softcap], 8-bit
                          activations; [rms_norm] expert_linear ... [geglu] */
    /* of towers; clamps wherever there are any */
    GPU_FUSE_ROWS,       /* [[rms_norm] add] [rms_norm [silu]]: up to three clamped copies */
    GPU_FUSE_HEADS,      /* rms_norm of heads, [rope] */
    GPU_FUSE_GATE,       /* geglu, silu or glu */
    GPU_FUSE_ATTEND_ALL, /* attend_all, clamp */
    GPU_FUSE_NEAR,       /* two mul_vectors, local_scores, local_sum */
    GPU_FUSE_LAYER_NORM  /* layer_norm, relu */
} gpu_fusion;

/* A stretch of the plan, and steps further on that are done early. */
typedef struct gpu_group {
    gpu_fusion fusion;
    uint32_t count; /* steps; 1 for none */
    size_t first;   /* of them in the plan */
    /* PRODUCTS: places of steps within the group, 0 for none (the norm before `add` is at 0). */
    struct {
        uint8_t add, scale, first, n; /* n products, from `first` on */
        bool norms;                   /* the step before `first` is a norm of their input */
        bool keeps_sum, keeps_norm;   /* the sum and the normed row are read behind the group too */
        uint8_t then;                 /* geglu or softcap */
    } products;
    /* NORMS */
    struct {
        uint8_t adds;   /* steps 1 and 3 */
        bool scales;    /* the last step of the stretch is a scale */
        bool keeps;     /* others read the result too */
        uint8_t n;      /* norms of it */
        bool eights[3]; /* read by products in 8 bits alone, so that nobody needs its values */
        size_t norm[3]; /* steps of the plan, each with a mul_vector behind it where it has no
                           weight; those behind the stretch belong to this group alone */
    } norms;
    /* Of towers: places of steps within the group, from 1; 0 for none. NEAR: norm and then are
     * scores and sum; GATE and NEAR: outs are the clamps of the inputs, GATE's last that of the
     * output. */
    struct {
        uint8_t clamp, norm, add, then, silu;
        uint8_t n_outs, outs[3];
    } tower;
} gpu_group;

typedef struct gpu_fuse_rules {
    bool fuse;   /* else every step alone */
    bool few;    /* rows: attention is done in splits */
    bool packed; /* products of few rows take 8-bit activations, where linear8 has the type */
    const gpu_weights *weights;
    uint64_t max_binding;
} gpu_fuse_rules;

/* What begins at step `first`. */
gpu_group gpu_fuse(const gpu_fuse_rules *rules, const bz_plan *plan, size_t first);
gpu_group gpu_fuse_tower(const gpu_fuse_rules *rules, const bz_plan *plan,
                         size_t first); /* fuse_tower.c */

/* Steps of one of the norms that such a group ends with: 2 with a mul_vector. */
static inline uint32_t gpu_fuse_norm_steps(const bz_plan *plan, size_t norm)
{
    return plan->steps[norm].w[0].id ? 1 : 2;
}

/* Does the group's kernel add up the splits of the product t, which no other group reads? (sums.c)
 */
bool gpu_fuse_adds(const bz_plan *plan, const gpu_group *group, bz_tensor t);

/* Of several matrices in one buffer: the stretch that holds them all; size 0 where there is none.
 */
gpu_binding gpu_fuse_span(const gpu_fuse_rules *rules, const bz_step *products, uint32_t n);

#endif
