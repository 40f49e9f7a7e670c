#include "gpu/kernels/catalog.h"

#include <stdio.h>
#include <string.h>

static const char *const type_files[BZ_TYPE_END] = {
    [BZ_F32] = "types/f32.wgsl",       [BZ_F16] = "types/f16.wgsl",
    [BZ_BF16] = "types/bf16.wgsl",     [BZ_Q8_0] = "types/q8_0.wgsl",
    [BZ_Q4_0] = "types/q4_0.wgsl",     [BZ_Q4_1] = "types/q4_1.wgsl",
    [BZ_Q5_0] = "types/q5_0.wgsl",     [BZ_Q5_1] = "types/q5_1.wgsl",
    [BZ_Q2_K] = "types/q2_k.wgsl",     [BZ_Q3_K] = "types/q3_k.wgsl",
    [BZ_Q4_K] = "types/q4_k.wgsl",     [BZ_Q5_K] = "types/q5_k.wgsl",
    [BZ_Q6_K] = "types/q6_k.wgsl",     [BZ_IQ4_NL] = "types/iq4_nl.wgsl",
    [BZ_IQ4_XS] = "types/iq4_xs.wgsl", [BZ_MXFP4] = "types/mxfp4.wgsl",
};

/* Sets of block types. */
#define T(type)  (1ull << (type))
#define ANY      UINT64_MAX /* all that have a file */
#define K_TYPES  (T(BZ_Q4_K) | T(BZ_Q5_K) | T(BZ_Q6_K))
#define FLOATS   (T(BZ_F32) | T(BZ_F16) | T(BZ_BF16))
#define TABLES   (T(BZ_IQ4_NL) | T(BZ_IQ4_XS) | T(BZ_MXFP4))
#define INT8     (T(BZ_Q8_0) | T(BZ_Q4_0) | T(BZ_Q4_1) | T(BZ_Q5_0) | T(BZ_Q5_1) | K_TYPES | TABLES)
#define LINEAR8  (INT8 | T(BZ_F32))
#define REPACKED T(BZ_Q6_K)

/* How kernels that come in two shapes fill their slots. Even: rows are whole vec4. */
#define EVEN_TILE "shape=product/even_shape eight=type.aligned|type.unpack"
#define ANY_TILE  "shape=product/any_shape eight=type.unpack"
#define EVEN_RUN  "run=type.run|product/run_unpacked"
#define ANY_RUN   "run=product/run_unpacked"
#define ROWS      "tile=product/tile_rows"
#define EXPERTS   "tile=product/tile_experts"

static const gpu_kernel_info infos[GPU_N_KERNELS] = {
    /* clang-format off */
    [GPU_EMBED] = {"embed", "product/embed.wgsl", {NULL}, ANY, "lookup=product/table_by_token"},
    [GPU_EMBED_SLOTS] = {"embed_slots", "product/embed.wgsl", {NULL}, ANY, "lookup=product/table_by_slot"},
    [GPU_EMBED_BEST] = {"embed_best", "product/embed.wgsl", {NULL}, ANY, "lookup=product/table_by_best"},
    [GPU_LINEAR8] = {"linear8", "product/linear8.wgsl", {"LANES", "OUTS", "MAX_N", "K", "CHUNK", "FLAGS", "SUBGROUP"}, LINEAR8, "side=product/side_write"},
    [GPU_LINEAR8_STORED] = {"linear8_stored", "product/linear8.wgsl", {"LANES", "OUTS", "MAX_N", "K", "CHUNK", "FLAGS", "SUBGROUP"}, LINEAR8, "side=product/side_read"},
    [GPU_LINEAR_WIDE] = {"linear_wide", "product/linear_wide.wgsl", {"LANES", "MAX_N"}, K_TYPES, NULL},
    [GPU_LINEAR_FLOAT] = {"linear_float", "product/linear_float.wgsl", {"LANES", "MAX_N", "K", "SUBGROUP"}, FLOATS, NULL},
    [GPU_LINEAR_EACH] = {"linear_each", "product/linear_each.wgsl", {"ROWS", "K"}, ANY, "eight=type.aligned|type.unpack " EVEN_RUN},
    [GPU_LINEAR_EACH_32] = {"linear_each_32", "product/linear_each.wgsl", {"ROWS", "K"}, ANY, "eight=type.aligned|type.unpack run=product/run_halves"},
    [GPU_LINEAR_ROW] = {"linear_row", "product/linear_row.wgsl", {"LANES", "MAX_N"}, ANY, NULL},
    [GPU_LINEAR_ANY] = {"linear_any", "product/linear_any.wgsl", {"LANES", "MAX_N"}, ANY, NULL},
    [GPU_LINEAR_LISTED] = {"linear_listed", "product/linear_listed.wgsl", {NULL}, ANY, NULL},
    [GPU_LINEAR_TILE] = {"linear_tile", "product/linear_tile.wgsl", {NULL}, ANY, EVEN_TILE},
    [GPU_LINEAR_TILE_ANY] = {"linear_tile_any", "product/linear_tile.wgsl", {NULL}, ANY, ANY_TILE},
    [GPU_LINEAR_SHORT] = {"linear_short", "product/linear_short.wgsl", {NULL}, ANY, EVEN_TILE " " EVEN_RUN " " ROWS},
    [GPU_LINEAR_SHORT_ANY] = {"linear_short_any", "product/linear_short.wgsl", {NULL}, ANY, ANY_TILE " " ANY_RUN " " ROWS},
    [GPU_EXPERT_SHORT] = {"expert_short", "product/linear_short.wgsl", {NULL}, ANY, EVEN_TILE " " EVEN_RUN " " EXPERTS},
    [GPU_EXPERT_SHORT_ANY] = {"expert_short_any", "product/linear_short.wgsl", {NULL}, ANY, ANY_TILE " " ANY_RUN " " EXPERTS},
    [GPU_LINEAR_TILE8] = {"linear_tile8", "product/linear_tile8.wgsl", {"PARTIAL"}, INT8, "tile=product/tile8_rows"},
    [GPU_EXPERT_TILE8] = {"expert_tile8", "product/linear_tile8.wgsl", {NULL}, INT8, "tile=product/tile8_experts"},
    [GPU_QUANTIZE] = {"quantize", "product/quantize.wgsl", {"GATE", "SUMS0", "SUMS1"}, 0, NULL},
    [GPU_LINEAR_MATRIX] = {"linear_matrix", "product/linear_matrix.wgsl", {NULL}, 0, NULL},
    [GPU_TO_F16] = {"to_f16", "product/to_f16.wgsl", {NULL}, 0, NULL},
    [GPU_LINEAR_TILE16] = {"linear_tile16", "product/linear_tile16.wgsl", {NULL}, ANY, "eight=type.aligned|type.unpack " EVEN_RUN},
    [GPU_TO_TILE16] = {"to_tile16", "product/to_tile16.wgsl", {"GATE", "SUMS0", "SUMS1", "THREADS", "EACH"}, 0, NULL},
    [GPU_SPLIT_SUM] = {"split_sum", "product/split_sum.wgsl", {NULL}, 0, NULL},
    [GPU_GROUP_PAIRS] = {"group_pairs", "product/group_pairs.wgsl", {"TILE", "EXPERTS", "WORDS"}, 0, NULL},
    [GPU_NORM] = {"norm", "norm/norm.wgsl", {"AFTER", "PER_THREAD", "SUMS", "CACHED", "THREADS"}, 0, NULL},
    [GPU_NORMS] = {"norms", "norm/norms.wgsl", {"ADDS", "OUTS", "FLAGS", "PER_THREAD", "SUMS", "WIDTH", "THREADS"}, 0, NULL},
    [GPU_ELEMENTWISE] = {"elementwise", "norm/elementwise.wgsl", {"OP", "PER_THREAD", "SUMS0", "SUMS1"}, 0, NULL},
    [GPU_ROPE] = {"rope", "attention/rope.wgsl", {NULL}, 0, NULL},
    [GPU_KV_WRITE] = {"kv_write", "attention/kv_write.wgsl", {"F16"}, 0, NULL},
    [GPU_KV_NORM] = {"kv_norm", "attention/kv_norm.wgsl", {"F16", "KEY_SUMS", "VALUE_SUMS", "QUERY_SUMS", "THREADS"}, 0, "store=attention/store_float"},
    [GPU_ATTEND] = {"attend", "attention/attend.wgsl", {"F16"}, 0, "head=attention/head_float"},
    [GPU_ATTEND_TILE] = {"attend_tile", "attention/attend_tile.wgsl", {"CACHE_PER_VEC4", "HEAD", "THREADS"}, 0, "vectors=attention/vectors_float"},
    [GPU_ATTEND_SPLIT] = {"attend_split", "attention/attend_split.wgsl", {"CACHE_PER_VEC4", "HEAD", "ROTATE", "PARTS", "SUBGROUP", "THREADS"}, 0, "vectors=attention/vectors_float"},
    [GPU_COMBINE] = {"combine", "attention/combine.wgsl", {"BATCH", "ROTATED", "THREADS"}, 0, NULL},
    [GPU_KV_WRITE_BLOCKS] = {"kv_write_blocks", "attention/kv_write_blocks.wgsl", {"BITS"}, 0, NULL},
    [GPU_KV_NORM_BLOCKS] = {"kv_norm_blocks", "attention/kv_norm.wgsl", {"BITS", "KEY_SUMS", "VALUE_SUMS", "QUERY_SUMS"}, 0, "store=attention/store_blocks"},
    [GPU_ATTEND_BLOCKS] = {"attend_blocks", "attention/attend.wgsl", {"BITS"}, 0, "head=attention/head_blocks"},
    [GPU_ATTEND_TILE_Q8] = {"attend_tile_q8", "attention/attend_tile.wgsl", {"HEAD", "THREADS"}, 0, "vectors=attention/vectors_q8"},
    [GPU_ATTEND_TILE_Q4] = {"attend_tile_q4", "attention/attend_tile.wgsl", {"HEAD", "THREADS"}, 0, "vectors=attention/vectors_q4"},
    [GPU_ATTEND_SPLIT_Q8] = {"attend_split_q8", "attention/attend_split.wgsl", {"HEAD", "ROTATE", "PARTS", "SUBGROUP", "THREADS"}, 0, "vectors=attention/vectors_q8"},
    [GPU_ATTEND_SPLIT_Q4] = {"attend_split_q4", "attention/attend_split.wgsl", {"HEAD", "ROTATE", "PARTS", "SUBGROUP", "THREADS"}, 0, "vectors=attention/vectors_q4"},
    [GPU_ROTATE] = {"rotate", "attention/rotate.wgsl", {NULL}, 0, NULL},
    [GPU_ROUTE] = {"route", "product/route.wgsl", {"SUMS", "VECTORS"}, 0, NULL},
    [GPU_EXPERT_LINEAR] = {"expert_linear", "product/expert_linear.wgsl", {NULL}, ANY, NULL},
    [GPU_EXPERT_SUM] = {"expert_sum", "product/expert_sum.wgsl", {"SLOTS"}, 0, NULL},
    [GPU_ADD_LOW_RANK] = {"add_low_rank", "product/add_low_rank.wgsl", {"SLOTS", "EXPERTS", "ROWS", "SUMS0", "SUMS1", "SUMS2", "LOW_SUMS"}, 0, NULL},
    [GPU_LOGIT_STATS_SCAN] = {"logit_stats_scan", "canvas/logit_stats_scan.wgsl", {NULL}, 0, NULL},
    [GPU_LOGIT_STATS_PICK] = {"logit_stats_pick", "canvas/logit_stats_pick.wgsl", {NULL}, 0, NULL},
    [GPU_SOFT_WEIGH] = {"soft_weigh", "canvas/soft_weigh.wgsl", {NULL}, 0, NULL},
    [GPU_SOFT_CUT] = {"soft_cut", "canvas/soft_cut.wgsl", {NULL}, 0, NULL},
    [GPU_SOFT_OFFSETS] = {"soft_offsets", "canvas/soft_offsets.wgsl", {NULL}, 0, NULL},
    [GPU_SOFT_LIST] = {"soft_list", "canvas/soft_list.wgsl", {NULL}, 0, NULL},
    [GPU_SOFT_GATHER] = {"soft_gather", "canvas/soft_gather.wgsl", {"THREADS"}, ANY, "gather=type.gather|canvas/gather_runs eight=type.unpack " EVEN_RUN},
    [GPU_SOFT_GATHER_ANY] = {"soft_gather_any", "canvas/soft_gather.wgsl", {"THREADS"}, ANY, "gather=canvas/gather_runs eight=type.unpack " ANY_RUN},
    [GPU_SOFT_SUM] = {"soft_sum", "canvas/soft_sum.wgsl", {NULL}, 0, NULL},
    [GPU_SOFT_EMBED] = {"soft_embed", "canvas/soft_embed.wgsl", {NULL}, ANY, "shape=canvas/even_shape sixteen=type.sixteen|canvas/sixteen eight=type.aligned|type.unpack"},
    [GPU_SOFT_EMBED_ANY] = {"soft_embed_any", "canvas/soft_embed.wgsl", {NULL}, ANY, "shape=canvas/any_shape sixteen=canvas/sixteen eight=type.unpack"},
    [GPU_TOWER_VALUES] = {"tower_values", "tower/values.wgsl", {"OP", "KIND"}, 0, NULL},
    [GPU_TOWER_LAYER_NORM] = {"tower_layer_norm", "tower/layer_norm.wgsl", {"KIND", "RELU"}, 0, NULL},
    [GPU_TOWER_ATTEND] = {"tower_attend", "tower/attend.wgsl", {"HEAD", "ROW_THREADS", "SLICE"}, 0, NULL},
    [GPU_TOWER_ATTEND_MATRIX] = {"tower_attend_matrix", "tower/attend_matrix.wgsl", {NULL}, 0, NULL},
    [GPU_TOWER_CONV] = {"tower_conv", "tower/conv.wgsl", {"KIND"}, 0, NULL},
    [GPU_TOWER_LOCAL] = {"tower_local", "tower/local.wgsl", {"SUM"}, 0, NULL},
    [GPU_TOWER_ROWS] = {"tower_rows", "tower/rows.wgsl", {"FLAGS", "OUTS", "VECTORS"}, 0, "output=tower/to_f32"},
    [GPU_TOWER_HEADS] = {"tower_heads", "tower/heads.wgsl", {"HEAD", "AXIS", "ROTATE", "HAS_WEIGHT"}, 0, "output=tower/to_f32"},
    [GPU_TOWER_GATE] = {"tower_gate", "tower/gate.wgsl", {"OP"}, 0, "output=tower/to_f32"},
    [GPU_TOWER_ROWS_F16] = {"tower_rows_f16", "tower/rows.wgsl", {"FLAGS", "OUTS", "VECTORS"}, 0, "output=tower/to_f16"},
    [GPU_TOWER_HEADS_F16] = {"tower_heads_f16", "tower/heads.wgsl", {"HEAD", "AXIS", "ROTATE", "HAS_WEIGHT"}, 0, "output=tower/to_f16"},
    [GPU_TOWER_GATE_F16] = {"tower_gate_f16", "tower/gate.wgsl", {"OP"}, 0, "output=tower/to_f16"},
    [GPU_TOWER_HEADS_ANY] = {"tower_heads_any", "tower/heads_any.wgsl", {"HEAD", "AXIS", "ROTATE", "HAS_WEIGHT"}, 0, NULL},
    [GPU_TOWER_ATTEND_LOCAL] = {"tower_attend_local", "tower/attend_local.wgsl", {"HEAD", "WINDOW"}, 0, NULL},
    [GPU_REPACK] = {"repack", "types/repack.wgsl", {NULL}, REPACKED, NULL},
    [GPU_CHOOSE_SCAN] = {"choose_scan", "choose/scan.wgsl", {NULL}, 0, NULL},
    [GPU_CHOOSE_PICK] = {"choose_pick", "choose/pick.wgsl", {"ROLLED"}, 0, NULL},
    [GPU_BEST] = {"best", "choose/best.wgsl", {"LISTED"}, 0, NULL},
    [GPU_TOP] = {"top", "choose/top.wgsl", {NULL}, 0, NULL},
    [GPU_LIST_ROWS] = {"list_rows", "choose/list_rows.wgsl", {NULL}, 0, NULL},
    /* clang-format on */
};

const gpu_kernel_info *gpu_kernel_info_of(gpu_kernel kernel)
{
    return &infos[kernel];
}

bool gpu_kernel_find(const char *name, gpu_kernel *kernel)
{
    for (uint32_t i = 0; i < GPU_N_KERNELS; i++) {
        if (strcmp(infos[i].name, name) == 0) {
            *kernel = (gpu_kernel)i;
            return true;
        }
    }
    return false;
}

const char *gpu_type_file(bz_type type)
{
    return type_files[type];
}

bool gpu_kernel_has_type(gpu_kernel kernel, bz_type type)
{
    const uint64_t types = infos[kernel].types;
    return !types || (type_files[type] && (types & T(type)) != 0);
}

bool gpu_kernels_packed(bz_type type)
{
    return (INT8 & T(type)) != 0;
}

bool gpu_kernels_tile8(bz_type type)
{
    return gpu_kernel_has_type(GPU_LINEAR_TILE8, type);
}

bool gpu_kernels_tile16(bz_type type)
{
    return gpu_kernel_has_type(GPU_LINEAR_TILE16, type) && type != BZ_F32 && type != BZ_BF16;
}

uint32_t gpu_kernel_subgroup_override(gpu_kernel kernel)
{
    const gpu_kernel_info *info = &infos[kernel];
    uint32_t i = 0;
    while (i < GPU_MAX_OVERRIDES &&
           !(info->overrides[i] && strcmp(info->overrides[i], "SUBGROUP") == 0)) {
        i++;
    }
    return i;
}

void gpu_kernel_name(gpu_kernel kernel, bz_type type, char *out, size_t n)
{
    const char *kind = infos[kernel].types ? bz_type_of((uint32_t)type)->name : "";
    snprintf(out, n, "%s%s%s", infos[kernel].name, kind[0] ? " " : "", kind);
}
