#include "gpu/kernels/link.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/kernels/sources.h"
#include "gpu/lower/layout.h"

typedef struct quant_source {
    const char *helper, *file; /* helper: shared by two types, or NULL */
} quant_source;

static const quant_source quants[BZ_TYPE_END] = {
    [BZ_F32] = {NULL, "quant/f32.wgsl"},
    [BZ_F16] = {NULL, "quant/f16.wgsl"},
    [BZ_BF16] = {NULL, "quant/bf16.wgsl"},
    [BZ_Q8_0] = {NULL, "quant/q8_0.wgsl"},
    [BZ_Q4_0] = {NULL, "quant/q4_0.wgsl"},
    [BZ_Q4_1] = {NULL, "quant/q4_1.wgsl"},
    [BZ_Q5_0] = {NULL, "quant/q5_0.wgsl"},
    [BZ_Q5_1] = {NULL, "quant/q5_1.wgsl"},
    [BZ_Q2_K] = {NULL, "quant/q2_k.wgsl"},
    [BZ_Q3_K] = {NULL, "quant/q3_k.wgsl"},
    [BZ_Q4_K] = {"quant/k_scales.wgsl", "quant/q4_k.wgsl"},
    [BZ_Q5_K] = {"quant/k_scales.wgsl", "quant/q5_k.wgsl"},
    [BZ_Q6_K] = {NULL, "quant/q6_k.wgsl"},
    [BZ_IQ4_NL] = {"quant/iq4_table.wgsl", "quant/iq4_nl.wgsl"},
    [BZ_IQ4_XS] = {"quant/iq4_table.wgsl", "quant/iq4_xs.wgsl"},
    [BZ_MXFP4] = {NULL, "quant/mxfp4.wgsl"},
};

/* Files that unpack a type's weights for a kernel. */
typedef struct weight_source {
    const char *reads, *helper, *file; /* how the binding is seen; shared by types, or NULL */
} weight_source;

/* For the kernels with 8-bit activations; types that are not here have none. */
static const weight_source packed[BZ_TYPE_END] = {
    [BZ_Q8_0] = {"words.wgsl", NULL, "packed/q8_0.wgsl"},
    [BZ_Q4_0] = {"words.wgsl", NULL, "packed/q4_0.wgsl"},
    [BZ_Q4_1] = {"words.wgsl", NULL, "packed/q4_1.wgsl"},
    [BZ_Q5_0] = {"words.wgsl", NULL, "packed/q5_0.wgsl"},
    [BZ_Q5_1] = {"words.wgsl", NULL, "packed/q5_1.wgsl"},
    [BZ_Q4_K] = {"vectors.wgsl", "quant/k_scale_pair.wgsl", "packed/q4_k.wgsl"},
    [BZ_Q5_K] = {"vectors.wgsl", "quant/k_scale_pair.wgsl", "packed/q5_k.wgsl"},
    [BZ_Q6_K] = {"vectors.wgsl", "quant/scale_byte.wgsl", "packed/q6_k.wgsl"},
};

static const weight_source tiles8[BZ_TYPE_END] = {
    [BZ_Q8_0] = {"words.wgsl", NULL, "tile8/q8_0.wgsl"},
    [BZ_Q4_0] = {"words.wgsl", NULL, "tile8/q4_0.wgsl"},
    [BZ_Q4_1] = {"words.wgsl", NULL, "tile8/q4_1.wgsl"},
    [BZ_Q5_0] = {"words.wgsl", NULL, "tile8/q5_0.wgsl"},
    [BZ_Q5_1] = {"words.wgsl", NULL, "tile8/q5_1.wgsl"},
    [BZ_Q4_K] = {"vectors.wgsl", "tile8/k_group.wgsl", "tile8/q4_k.wgsl"},
    [BZ_Q5_K] = {"vectors.wgsl", "tile8/k_group.wgsl", "tile8/q5_k.wgsl"},
    [BZ_Q6_K] = {"vectors.wgsl", NULL, "tile8/q6_k.wgsl"},
};

/* For linear_short.wgsl; other types, and shapes that are not even, by eights. */
static const weight_source runs[BZ_TYPE_END] = {
    [BZ_Q8_0] = {"words.wgsl", NULL, "run/q8_0.wgsl"},
    [BZ_Q4_0] = {"words.wgsl", NULL, "run/q4_0.wgsl"},
    [BZ_Q5_0] = {"words.wgsl", NULL, "run/q5_0.wgsl"},
    [BZ_Q4_K] = {"vectors.wgsl", "quant/k_scale_pair.wgsl", "run/q4_k.wgsl"},
    [BZ_Q5_K] = {"vectors.wgsl", "quant/k_scale_pair.wgsl", "run/q5_k.wgsl"},
    [BZ_Q6_K] = {"vectors.wgsl", NULL, "run/q6_k.wgsl"},
};

static const gpu_source *source(const char *name)
{
    for (size_t i = 0; i < gpu_n_sources; i++) {
        if (strcmp(gpu_sources[i].name, name) == 0) {
            return &gpu_sources[i];
        }
    }
    return NULL;
}

enum { MAX_PARTS = 20 };

static uint32_t weight_parts(const weight_source *s, const char **parts)
{
    uint32_t n = 0;
    parts[n++] = s->reads;
    if (s->helper) {
        parts[n++] = s->helper;
    }
    parts[n++] = s->file;
    return n;
}

static uint32_t integer_parts(const weight_source *s, const char **parts)
{
    parts[0] = "bytes.wgsl";
    return 1 + weight_parts(s, parts + 1);
}

static uint32_t quant_parts(bz_type type, const char **parts)
{
    uint32_t n = 0;
    parts[n++] = "quant/common.wgsl";
    if (quants[type].helper) {
        parts[n++] = quants[type].helper;
    }
    parts[n++] = quants[type].file;
    return n;
}

static bool is_float_tile(gpu_kernel kernel)
{
    return kernel >= GPU_LINEAR_TILE && kernel <= GPU_EXPERT_SHORT_ANY;
}

/* Rows of an even shape are whole vectors where values are not in blocks. */
static uint32_t eight_parts(bz_type type, bool even, const char **parts)
{
    if (!even || bz_type_of((uint32_t)type)->block_values > 1) {
        return quant_parts(type, parts);
    }
    parts[0] = "vectors.wgsl";
    parts[1] = "tile/values.wgsl";
    parts[2] = type == BZ_F16    ? "tile/f16.wgsl"
               : type == BZ_BF16 ? "tile/bf16.wgsl"
                                 : "tile/f32.wgsl";
    return 3;
}

/* Weights of a float tile. */
static uint32_t float_tile_parts(gpu_kernel kernel, bz_type type, const char **parts)
{
    const bool even = gpu_kernel_info_of(kernel)->vec4_arena, some = kernel >= GPU_LINEAR_SHORT;
    uint32_t n = 0;
    if (some) {
        parts[n++] = kernel >= GPU_EXPERT_SHORT ? "tile/experts.wgsl" : "tile/rows.wgsl";
    }
    if (some && even && runs[type].file) {
        parts[n++] = "tile/values.wgsl";
        parts[n++] = "run/common.wgsl";
        n += weight_parts(&runs[type], parts + n);
    } else {
        n += eight_parts(type, even, parts + n);
        if (some) {
            parts[n++] = "run/eights.wgsl";
        }
    }
    parts[n++] = "tile/square.wgsl";
    parts[n++] = "tile/common.wgsl";
    parts[n++] = even ? "tile/even.wgsl" : "tile/any.wgsl";
    return n;
}

/* Weights of soft_gather: Q6_K, which tables mostly are, in its own way. */
static uint32_t gather_parts(gpu_kernel kernel, bz_type type, const char **parts)
{
    const bool even = kernel == GPU_SOFT_GATHER;
    uint32_t n = 0;
    parts[n++] = "canvas/gather_sums.wgsl";
    if (even && type == BZ_Q6_K) {
        parts[n++] = "vectors.wgsl";
        parts[n++] = "canvas/six_bits.wgsl";
        parts[n++] = "canvas/gather_q6_k.wgsl";
        return n;
    }
    if (even && runs[type].file) {
        parts[n++] = "tile/values.wgsl";
        parts[n++] = "run/common.wgsl";
        n += weight_parts(&runs[type], parts + n);
    } else {
        n += quant_parts(type, parts + n);
        parts[n++] = "run/eights.wgsl";
    }
    parts[n++] = "canvas/gather_runs.wgsl";
    return n;
}

/* Weights of soft_embed, likewise. */
static uint32_t soft_parts(gpu_kernel kernel, bz_type type, const char **parts)
{
    const bool even = kernel == GPU_SOFT_EMBED;
    uint32_t n = 0;
    if (even && type == BZ_Q6_K) {
        parts[n++] = "vectors.wgsl";
        parts[n++] = "canvas/six_bits.wgsl";
        parts[n++] = "canvas/sixteen_q6_k.wgsl";
    } else {
        n += eight_parts(type, even, parts + n);
        parts[n++] = "canvas/sixteen.wgsl";
    }
    parts[n++] = "tile/square.wgsl";
    parts[n++] = even ? "canvas/even.wgsl" : "canvas/any.wgsl";
    return n;
}

/* The files a kernel's text is made of. */
static uint32_t parts_of(gpu_kernel kernel, bz_type type, bool subgroups,
                         const char *parts[MAX_PARTS])
{
    const gpu_kernel_info *info = gpu_kernel_info_of(kernel);
    if (kernel == GPU_REPACK) { /* weights come before there is an arena */
        parts[0] = info->file;
        parts[1] = gpu_layout_of(type).repack;
        return 2;
    }
    if (kernel == GPU_CHOOSE_SCAN ||
        kernel == GPU_CHOOSE_PICK) { /* no step: bindings of their own */
        parts[0] = "rows.wgsl";
        parts[1] = "choose/common.wgsl";
        parts[2] = info->file;
        return 3;
    }
    uint32_t n_parts = 0;
    if (subgroups) { /* enabling comes first in a module */
        parts[n_parts++] = "subgroups.wgsl";
    } else if (kernel == GPU_LINEAR_MATRIX || kernel == GPU_TOWER_ATTEND_MATRIX) {
        parts[n_parts++] = "matrices.wgsl";
    }
    parts[n_parts++] = "rows.wgsl";
    parts[n_parts++] = "common.wgsl";
    parts[n_parts++] = info->vec4_arena ? "arena4.wgsl" : "arena.wgsl";
    if (info->reads_blocks) {
        parts[n_parts++] = "half.wgsl";
    }
    if (kernel == GPU_LINEAR8) {
        const bool vectors = bz_type_of((uint32_t)type)->block_values == 256;
        parts[n_parts++] = "packed/common.wgsl";
        parts[n_parts++] = vectors ? "packed/rows_of_vectors.wgsl" : "packed/rows_of_bytes.wgsl";
        n_parts += integer_parts(&packed[type], parts + n_parts);
        parts[n_parts++] = subgroups ? "sum_subgroup.wgsl" : "sum_plain.wgsl";
    } else if (kernel == GPU_LINEAR_WIDE) {
        parts[n_parts++] = "vectors.wgsl";
        parts[n_parts++] = "wide/common.wgsl";
        parts[n_parts++] = type == BZ_Q6_K ? "quant/scale_byte.wgsl" : "quant/k_scale_pair.wgsl";
        parts[n_parts++] = type == BZ_Q4_K   ? "wide/q4_k.wgsl"
                           : type == BZ_Q5_K ? "wide/q5_k.wgsl"
                                             : "wide/q6_k.wgsl";
    } else if (kernel == GPU_LINEAR_TILE8 || kernel == GPU_EXPERT_TILE8) {
        parts[n_parts++] = kernel == GPU_LINEAR_TILE8 ? "tile8/rows.wgsl" : "tile8/experts.wgsl";
        parts[n_parts++] = "tile8/common.wgsl";
        n_parts += integer_parts(&tiles8[type], parts + n_parts);
    } else if (is_float_tile(kernel)) {
        n_parts += float_tile_parts(kernel, type, parts + n_parts);
    } else if (kernel == GPU_SOFT_GATHER || kernel == GPU_SOFT_GATHER_ANY) {
        n_parts += gather_parts(kernel, type, parts + n_parts);
    } else if (kernel == GPU_SOFT_EMBED || kernel == GPU_SOFT_EMBED_ANY) {
        n_parts += soft_parts(kernel, type, parts + n_parts);
    } else if (info->reads_blocks) {
        n_parts += quant_parts(type, parts + n_parts);
        if (!info->vec4_arena) {
            parts[n_parts++] = "products.wgsl";
        }
    }
    if (kernel == GPU_NORM || kernel == GPU_NORMS || kernel == GPU_ELEMENTWISE ||
        kernel == GPU_KV_NORM || kernel == GPU_ROUTE || kernel == GPU_QUANTIZE) {
        parts[n_parts++] = "sums.wgsl";
    }
    if (kernel == GPU_ELEMENTWISE || kernel == GPU_QUANTIZE) {
        parts[n_parts++] = "gelu.wgsl";
    }
    if (kernel == GPU_NORMS || kernel == GPU_QUANTIZE) {
        parts[n_parts++] = "eights.wgsl";
    }
    if (kernel >= GPU_KV_WRITE && kernel <= GPU_ATTEND_FEW) {
        parts[n_parts++] = "cache.wgsl";
    }
    if (kernel == GPU_ATTEND_TILE || kernel == GPU_ATTEND_FEW) {
        parts[n_parts++] = "cache_vectors.wgsl";
    }
    if (kernel == GPU_ATTEND_TILE) {
        parts[n_parts++] = "tile/square.wgsl";
    }
    if (kernel == GPU_EMBED || kernel == GPU_EMBED_SLOTS) {
        parts[n_parts++] = kernel == GPU_EMBED ? "table/by_id.wgsl" : "table/by_slot.wgsl";
    }
    if (kernel >= GPU_JUDGE_SCAN && kernel <= GPU_SOFT_SUM) {
        parts[n_parts++] = "canvas/common.wgsl";
    }
    if (kernel >= GPU_SOFT_WEIGH && kernel <= GPU_SOFT_SUM) {
        parts[n_parts++] = "canvas/soft.wgsl";
    }
    if ((kernel >= GPU_TOWER_VALUES && kernel <= GPU_TOWER_NEAR) || kernel == GPU_HALVES) {
        parts[n_parts++] = "tower/between.wgsl";
    }
    if (kernel == GPU_TOWER_VALUES || kernel == GPU_TOWER_LAYER_NORM || kernel == GPU_TOWER_CONV) {
        parts[n_parts++] = "tower/weights.wgsl";
    }
    if (kernel == GPU_ELEMENTWISE || kernel == GPU_TOWER_NEAR || kernel == GPU_TOWER_LOCAL) {
        parts[n_parts++] = "tanh.wgsl";
    }
    if (kernel == GPU_HALVES ||
        (kernel >= GPU_TOWER_ROWS_HALVES && kernel <= GPU_TOWER_GATE_HALVES)) {
        parts[n_parts++] = "tower/half.wgsl";
    }
    if (kernel >= GPU_TOWER_ROWS && kernel <= GPU_TOWER_GATE_HALVES) {
        parts[n_parts++] =
            kernel <= GPU_TOWER_GATE ? "tower/to_values.wgsl" : "tower/to_halves.wgsl";
    }
    parts[n_parts++] = info->file;
    return n_parts;
}

char *gpu_link(gpu_kernel kernel, bz_type type, bool subgroups, size_t *n, bz_error *err)
{
    const char *parts[MAX_PARTS];
    const uint32_t n_parts = parts_of(kernel, type, subgroups, parts);
    *n = 0;
    for (uint32_t i = 0; i < n_parts; i++) {
        *n += source(parts[i])->n;
    }
    char *text = malloc(*n + 1);
    if (!text) {
        bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to assemble the kernel %s.",
                gpu_kernel_info_of(kernel)->name);
        return NULL;
    }
    size_t used = 0;
    for (uint32_t i = 0; i < n_parts; i++) {
        const gpu_source *s = source(parts[i]);
        memcpy(text + used, s->text, s->n);
        used += s->n;
    }
    text[used] = 0;
    return text;
}
