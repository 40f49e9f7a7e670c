#include "gpu/kernels/catalog.h"

#include <stdio.h>
#include <string.h>

static const gpu_kernel_info infos[GPU_N_KERNELS] = {
    [GPU_EMBED] = {"embed", "embed.wgsl", {NULL}, true, false},
    [GPU_EMBED_SLOTS] = {"embed_slots", "embed.wgsl", {NULL}, true, false},
    [GPU_LINEAR8] = {"linear8",
                     "linear8.wgsl",
                     {"LANES", "OUTS", "MAX_N", "CHUNK", "FORM", "SUBGROUP"},
                     true,
                     true},
    [GPU_LINEAR_WIDE] = {"linear_wide", "linear_wide.wgsl", {"LANES", "MAX_N"}, true, true},
    [GPU_LINEAR_ROW] = {"linear_row", "linear_row.wgsl", {"LANES", "MAX_N"}, true, true},
    [GPU_LINEAR_ANY] = {"linear_any", "linear_any.wgsl", {"LANES", "MAX_N"}, true, false},
    [GPU_LINEAR_TILE] = {"linear_tile", "linear_tile.wgsl", {NULL}, true, true},
    [GPU_LINEAR_TILE_ANY] = {"linear_tile_any", "linear_tile.wgsl", {NULL}, true, false},
    [GPU_LINEAR_SHORT] = {"linear_short", "linear_short.wgsl", {NULL}, true, true},
    [GPU_LINEAR_SHORT_ANY] = {"linear_short_any", "linear_short.wgsl", {NULL}, true, false},
    [GPU_EXPERT_SHORT] = {"expert_short", "linear_short.wgsl", {NULL}, true, true},
    [GPU_EXPERT_SHORT_ANY] = {"expert_short_any", "linear_short.wgsl", {NULL}, true, false},
    [GPU_LINEAR_TILE8] = {"linear_tile8", "linear_tile8.wgsl", {NULL}, true, false},
    [GPU_EXPERT_TILE8] = {"expert_tile8", "linear_tile8.wgsl", {NULL}, true, false},
    [GPU_QUANTIZE] = {"quantize", "quantize.wgsl", {"GATE", "SUMS0", "SUMS1"}, false, false},
    [GPU_LINEAR_MATRIX] = {"linear_matrix", "linear_matrix.wgsl", {NULL}, false, false},
    [GPU_HALVES] = {"halves", "halves.wgsl", {NULL}, false, true},
    [GPU_SPLIT_SUM] = {"split_sum", "split_sum.wgsl", {NULL}, false, false},
    [GPU_GROUP_PAIRS] =
        {"group_pairs", "group_pairs.wgsl", {"TILE", "EXPERTS", "WORDS"}, false, false},
    [GPU_NORM] = {"norm", "norm.wgsl", {"THEN", "EACH", "SUMS", "HELD"}, false, false},
    [GPU_NORMS] =
        {"norms", "norms.wgsl", {"ADDS", "OUTS", "FORM", "EACH", "SUMS", "WIDTH"}, false, false},
    [GPU_ELEMENTWISE] =
        {"elementwise", "elementwise.wgsl", {"OP", "EACH", "SUMS0", "SUMS1"}, false, false},
    [GPU_ROPE] = {"rope", "rope.wgsl", {NULL}, false, false},
    [GPU_KV_WRITE] = {"kv_write", "kv_write.wgsl", {"F16"}, false, false},
    [GPU_KV_NORM] =
        {"kv_norm", "kv_norm.wgsl", {"F16", "KEY_SUMS", "VALUE_SUMS", "QUERY_SUMS"}, false, false},
    [GPU_ATTEND] = {"attend", "attend.wgsl", {"F16"}, false, false},
    [GPU_ATTEND_TILE] =
        {"attend_tile", "attend_tile.wgsl", {"PER", "HEAD", "THREADS"}, false, true},
    [GPU_ATTEND_FEW] = {"attend_few",
                        "attend_few.wgsl",
                        {"PER", "SPLITS", "HEAD", "TURNS", "SHARES"},
                        false,
                        false},
    [GPU_COMBINE] = {"combine", "combine.wgsl", {"BATCH"}, false, false},
    [GPU_ROUTE] = {"route", "route.wgsl", {"SUMS", "FOURS"}, false, false},
    [GPU_EXPERT_LINEAR] = {"expert_linear", "expert_linear.wgsl", {NULL}, true, false},
    [GPU_EXPERT_SUM] = {"expert_sum", "expert_sum.wgsl", {NULL}, false, false},
    [GPU_JUDGE_SCAN] = {"judge_scan", "canvas/judge_scan.wgsl", {NULL}, false, false},
    [GPU_JUDGE_PICK] = {"judge_pick", "canvas/judge_pick.wgsl", {NULL}, false, false},
    [GPU_SOFT_WEIGH] = {"soft_weigh", "canvas/soft_weigh.wgsl", {NULL}, false, false},
    [GPU_SOFT_CUT] = {"soft_cut", "canvas/soft_cut.wgsl", {NULL}, false, false},
    [GPU_SOFT_PLACE] = {"soft_place", "canvas/soft_place.wgsl", {NULL}, false, false},
    [GPU_SOFT_LIST] = {"soft_list", "canvas/soft_list.wgsl", {NULL}, false, false},
    [GPU_SOFT_GATHER] = {"soft_gather", "canvas/soft_gather.wgsl", {"THREADS"}, true, false},
    [GPU_SOFT_GATHER_ANY] =
        {"soft_gather_any", "canvas/soft_gather.wgsl", {"THREADS"}, true, false},
    [GPU_SOFT_SUM] = {"soft_sum", "canvas/soft_sum.wgsl", {NULL}, false, false},
    [GPU_SOFT_EMBED] = {"soft_embed", "canvas/soft_embed.wgsl", {NULL}, true, true},
    [GPU_SOFT_EMBED_ANY] = {"soft_embed_any", "canvas/soft_embed.wgsl", {NULL}, true, false},
    [GPU_TOWER_VALUES] = {"tower_values", "tower/values.wgsl", {"OP", "KIND"}, false, false},
    [GPU_TOWER_LAYER_NORM] =
        {"tower_layer_norm", "tower/layer_norm.wgsl", {"KIND", "RELU"}, false, false},
    [GPU_TOWER_ATTEND] =
        {"tower_attend", "tower/attend_all.wgsl", {"HEAD", "DOWN", "SLICE"}, false, true},
    [GPU_TOWER_ATTEND_MATRIX] =
        {"tower_attend_matrix", "tower/attend_matrix.wgsl", {NULL}, false, true},
    [GPU_TOWER_CONV] = {"tower_conv", "tower/conv.wgsl", {"KIND"}, false, false},
    [GPU_TOWER_LOCAL] = {"tower_local", "tower/local.wgsl", {"SUM"}, false, false},
    [GPU_TOWER_ROWS] = {"tower_rows", "tower/rows.wgsl", {"FORM", "OUTS", "VECTORS"}, false, true},
    [GPU_TOWER_HEADS] =
        {"tower_heads", "tower/heads4.wgsl", {"HEAD", "AXIS", "TURNS", "WEIGHED"}, false, true},
    [GPU_TOWER_GATE] = {"tower_gate", "tower/gate.wgsl", {"OP"}, false, true},
    [GPU_TOWER_ROWS_HALVES] =
        {"tower_rows_halves", "tower/rows.wgsl", {"FORM", "OUTS", "VECTORS"}, false, true},
    [GPU_TOWER_HEADS_HALVES] = {"tower_heads_halves",
                                "tower/heads4.wgsl",
                                {"HEAD", "AXIS", "TURNS", "WEIGHED"},
                                false,
                                true},
    [GPU_TOWER_HEADS_ANY] =
        {"tower_heads_any", "tower/heads.wgsl", {"HEAD", "AXIS", "TURNS", "WEIGHED"}, false, false},
    [GPU_TOWER_GATE_HALVES] = {"tower_gate_halves", "tower/gate.wgsl", {"OP"}, false, true},
    [GPU_TOWER_NEAR] = {"tower_near", "tower/near.wgsl", {"HEAD", "FAR"}, false, true},
    [GPU_REPACK] = {"repack", "repack.wgsl", {NULL}, true, false}, /* and a file of repack/ */
    [GPU_CHOOSE_SCAN] = {"choose_scan", "choose/scan.wgsl", {NULL}, false, false},
    [GPU_CHOOSE_PICK] = {"choose_pick", "choose/pick.wgsl", {NULL}, false, false},
};

const gpu_kernel_info *gpu_kernel_info_of(gpu_kernel kernel)
{
    return &infos[kernel];
}

bool gpu_kernels_packed(bz_type type)
{
    switch (type) {
    case BZ_Q8_0:
    case BZ_Q4_0:
    case BZ_Q4_1:
    case BZ_Q5_0:
    case BZ_Q5_1:
    case BZ_Q4_K:
    case BZ_Q5_K:
    case BZ_Q6_K: return true;
    default: return false;
    }
}

bool gpu_kernels_tile8(bz_type type)
{
    return gpu_kernels_packed(type);
}

bool gpu_kernel_has_type(gpu_kernel kernel, bz_type type)
{
    switch (kernel) {
    case GPU_LINEAR8:
    case GPU_LINEAR_TILE8:
    case GPU_EXPERT_TILE8: return gpu_kernels_packed(type);
    case GPU_LINEAR_WIDE: return type == BZ_Q4_K || type == BZ_Q5_K || type == BZ_Q6_K;
    case GPU_REPACK: return type == BZ_Q6_K;
    default: return true;
    }
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
    const char *file = infos[kernel].file;
    const char *kind = infos[kernel].reads_blocks ? bz_type_of((uint32_t)type)->name : "";
    snprintf(out, n, "%.*s%s%s", (int)(strlen(file) - 5), file, kind[0] ? " " : "", kind);
}
