/* Internals of lowering: the state while the groups of one plan become dispatches, and one function
 * per kind of group. Included by the files of this folder only. */
#ifndef BZ_GPU_BUILDER_H
#define BZ_GPU_BUILDER_H

#include "gpu/lower/forms.h"
#include "gpu/lower/fuse.h"

enum { GPU_MAX_PENDING_SUMS = 8, GPU_MAX_STORED = 4 };

/* What activations are rounded to for a product. */
typedef enum gpu_form { GPU_F32, GPU_INT8, GPU_F16 } gpu_form;

typedef struct builder {
    const gpu_lower_input *in;
    const bz_plan *plan;
    const gpu_fused *fused;
    gpu_lowered *out;
    bz_error *err;
    bool failed;

    /* the current group */
    const gpu_group *group;
    const bz_step *step;  /* its first step, or the product after `geglu` */
    const bz_step *geglu; /* of a geglu-product group; else NULL */
    uint32_t rows;        /* bucket rows of its output */

    /* side.c: the side buffer, in vec4s. First the table of experts, */
    uint32_t table_vec4s;
    bz_tensor table_ids;      /* the expert ids that it lists, */
    uint32_t table_tile_rows; /* rows of its tiles; */
    /* then int8 or f16 rows of one tensor, converted by a dispatch of their own; */
    uint32_t converted_vec4s;
    bz_tensor converted;
    gpu_form converted_form;
    /* then tensors that other kernels write rounded, each until its last reader. */
    struct {
        bz_tensor tensor;
        gpu_form form;
        uint32_t at;
    } stored[GPU_MAX_STORED];
    uint32_t n_stored;

    /* partial_sums.c: products whose partial sums are not added up yet */
    struct {
        bz_tensor tensor;
        const gpu_group *reader;
        gpu_dispatch sum; /* would add them up */
    } pending[GPU_MAX_PENDING_SUMS];
    uint32_t n_pending;
    uint64_t pending_bytes; /* after the arena */

    /* attention.c: the last attend_split and the tensor that it computes, whose parts a product may
     * combine */
    gpu_dispatch partial;
    bz_tensor partial_tensor;

    bool *stored_f16; /* [tensors] which lie in the side buffer as f16: matrix.c */
} builder;

/* SUBGROUP of kernels that add up by subgroup operations; 0: without them. */
static inline uint32_t subgroup_of(const gpu_limits *limits)
{
    return limits->subgroups && limits->subgroup_min >= 4 ? limits->subgroup_min : 0;
}

static inline uint32_t divide_up(uint64_t a, uint64_t b)
{
    return (uint32_t)((a + b - 1) / b);
}

/* ---- lower.c ------------------------------------------------------------------------------ */

/* Offset of a tensor in the arena, in f32 values; 0 for none. */
uint32_t gpu_offset_of(const builder *x, bz_tensor t);
uint32_t gpu_stride_of(const builder *x, bz_tensor t);
/* The common parameters of a step; the rest of the family is 0. */
gpu_params gpu_params_of(const builder *x, const bz_step *step);
/* A weight of one piece, such as a norm's; or GPU_BOUND_EMPTY. */
gpu_dispatch_binding gpu_bind_weight(const builder *x, bz_weight w);
gpu_dispatch_binding gpu_bind_piece(const gpu_piece *piece);
/* Appends a dispatch. */
void gpu_emit(builder *x, gpu_kernel kernel, bz_type type, gpu_overrides overrides, gpu_dispatch d);
/* Fails with this error; what is emitted afterwards is dropped. */
void gpu_lower_fail(builder *x, bz_status code, const char *format, ...) BZ_PRINTF(3, 4);
/* Bytes of one binding that are left after the arena. */
uint64_t gpu_scratch_left(const builder *x);
void gpu_reserve_scratch(builder *x, uint64_t bytes);
void gpu_reserve_side(builder *x, uint64_t bytes);

/* ---- one function per kind of group ---------------------------------------------------------- */

void gpu_lower_step(builder *x);                         /* steps.c: a step alone */
void gpu_lower_norm(builder *x, const bz_step *last);    /* steps.c: norm, and steps up to last */
void gpu_lower_products(builder *x, const gpu_group *g); /* products.c */
void gpu_lower_tiles(builder *x);                        /* tiles.c: a product of many rows */
void gpu_lower_norms(builder *x, const gpu_group *g);    /* norms.c */
void gpu_lower_low_ranks(builder *x, uint32_t n);        /* low_ranks.c: n add_low_rank steps */
void gpu_lower_kv_write(builder *x);                     /* attention.c */
void gpu_lower_kv(builder *x, const gpu_group *g);       /* attention.c */
/* attention.c: query_norm is the norm of the queries, followed by their rope, if the kernel
 * computes them too; else NULL. */
void gpu_lower_attend(builder *x, const bz_step *query_norm, const bz_step *attend);
void gpu_lower_logit_stats(builder *x);                     /* canvas.c */
void gpu_lower_soft_embed(builder *x);                      /* canvas.c */
void gpu_lower_tower_step(builder *x);                      /* tower.c */
void gpu_lower_tower_group(builder *x, const gpu_group *g); /* tower.c */

/* ---- matrix.c ----------------------------------------------------------------------------- */

/* A linear, or an attend_all whose other dispatch would be `plain`, on subgroup matrices. False: it
 * cannot run there, nothing was emitted. */
bool gpu_lower_matrix_product(builder *x);
bool gpu_lower_matrix_attention(builder *x, const gpu_dispatch *plain);
/* Do only kernels on matrices read these n tensors, which a kernel is about to write? Then it
 * writes f16: *offsets[i] becomes the offset of tensors[i] in the side buffer. */
bool gpu_store_f16(builder *x, const bz_tensor *tensors, uint32_t *const *offsets, uint32_t n);

/* ---- side.c: the side buffer ----------------------------------------------------------------- */

/* Sizes of the table of experts and of the int8 rows, before the first group. */
void gpu_side_reserve(builder *x);
/* The largest number of tiles of that height that the expert table may list for this step. */
uint32_t gpu_max_expert_tiles(const builder *x, const bz_step *step, uint32_t tile_rows);
/* Fills the table with the experts that the current step's rows chose, unless it is there. */
void gpu_group_by_expert(builder *x, uint32_t tile_rows);
/* Does the product run on subgroup matrices, in linear_tile16? */
bool gpu_is_tile16(const builder *x, const bz_step *s);
/* Converts the input of the current step, `inputs` vectors of k values per row, to f16 for
 * linear_tile16, else to int8, unless that was done. With x->geglu the result of geglu is
 * converted. */
void gpu_convert_input(builder *x, uint32_t k, uint32_t inputs);
/* Where its values and the scales lie, in vec4s. */
void gpu_converted_input(const builder *x, uint32_t k, uint32_t inputs, uint32_t *values,
                         uint32_t *scales);
/* Was t written in that form by another kernel? Then where its values and scales lie, in vec4s. */
bool gpu_is_stored(const builder *x, bz_tensor t, gpu_form form, uint32_t *values,
                   uint32_t *scales);
/* Space for a tensor that a kernel writes in the form that the products that read it want; GPU_F32:
 * there is none, or they differ. Freed by gpu_release_stored after the last group that reads the
 * tensor. */
gpu_form gpu_store_rounded(builder *x, bz_tensor t, uint32_t *values, uint32_t *scales);
void gpu_release_stored(builder *x);

/* ---- partial_sums.c: split-K --------------------------------------------------------------------
 */

/* Space for the partial sums of a product; their offset in f32 values. */
uint32_t gpu_place_partial_sums(builder *x, uint64_t bytes);
/* Emits `sum`, which adds up the partial sums of t, or leaves that to the reader of t. */
void gpu_add_partial_sums(builder *x, bz_tensor t, const gpu_dispatch *sum);
/* The number of partial sums of t that the current group has to add up, where they lie and how many
 * rows each has; 0: t is an ordinary tensor, and the rest stays as it is. */
uint32_t gpu_read_partial_sums(const builder *x, bz_tensor t, uint32_t *offset, uint32_t *stride,
                               uint32_t *split_rows);
/* Adds up all that are pending: before a dispatch that writes after the arena itself. */
void gpu_flush_partial_sums(builder *x);
void gpu_release_partial_sums(builder *x); /* those that the current group has read */

#endif
