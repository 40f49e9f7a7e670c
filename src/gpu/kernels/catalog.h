/* The list of GPU kernels: pure data, nothing here compiles one. link.h assembles a kernel's text,
 * gpu/run/pipelines.h compiles it. */
#ifndef BZ_GPU_CATALOG_H
#define BZ_GPU_CATALOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "file/quant.h"

typedef enum gpu_kernel {
    /* product/: "few rows" are up to 8, "even" shapes allow vec4 access */
    GPU_EMBED,
    GPU_EMBED_SLOTS,    /* rows of a table that stays in the file */
    GPU_EMBED_BEST,     /* of tokens that best chose */
    GPU_LINEAR8,        /* few rows, int8 activations, fused with what is around; experts too */
    GPU_LINEAR8_STORED, /* the same with an input that is stored as int8 */
    GPU_LINEAR_WIDE,    /* few rows, K-quantized weights */
    GPU_LINEAR_FLOAT,   /* few rows, F32, F16 and BF16 weights, even shapes */
    GPU_LINEAR_EACH,    /* any rows, outputs of a thread alone; rows of whole runs of 64 */
    GPU_LINEAR_EACH_32, /* the same, a row may end with half a run */
    GPU_LINEAR_ROW,     /* few rows, even shapes */
    GPU_LINEAR_ANY,     /* few rows, any shape */
    GPU_LINEAR_LISTED,  /* outputs of a list */
    GPU_LINEAR_TILE,    /* more than 64 rows, even shapes */
    GPU_LINEAR_TILE_ANY,
    GPU_LINEAR_SHORT, /* 9 to 64 rows, even shapes */
    GPU_LINEAR_SHORT_ANY,
    GPU_EXPERT_SHORT, /* rows grouped by expert, even shapes */
    GPU_EXPERT_SHORT_ANY,
    GPU_LINEAR_TILE8,  /* more than 8 rows, int8 */
    GPU_EXPERT_TILE8,  /* rows grouped by expert, int8 */
    GPU_QUANTIZE,      /* int8 activations for the tile8 kernels */
    GPU_LINEAR_MATRIX, /* more than 64 rows, f16 weights, on subgroup matrices */
    GPU_TO_F16,        /* f16 activations for kernels on subgroup matrices */
    GPU_LINEAR_TILE16, /* more than 64 rows, any type, on subgroup matrices */
    GPU_TO_TILE16,     /* activations for it */
    GPU_SPLIT_SUM,     /* adds the partial sums of a tile kernel */
    GPU_GROUP_PAIRS,   /* lists rows by expert */
    /* norm/ */
    GPU_NORM,
    GPU_NORMS, /* everything between two products of many rows */
    GPU_ELEMENTWISE,
    /* attention/ */
    GPU_ROPE,
    GPU_KV_WRITE,
    GPU_KV_NORM,      /* norm, rope and kv_write */
    GPU_ATTEND,       /* any head size */
    GPU_ATTEND_TILE,  /* more than 8 rows */
    GPU_ATTEND_SPLIT, /* few rows, partial results */
    GPU_COMBINE,      /* the partial results of attention */
    /* the same five for caches in blocks */
    GPU_KV_WRITE_BLOCKS,
    GPU_KV_NORM_BLOCKS,
    GPU_ATTEND_BLOCKS,
    GPU_ATTEND_TILE_Q8,
    GPU_ATTEND_TILE_Q4,
    GPU_ATTEND_SPLIT_Q8,
    GPU_ATTEND_SPLIT_Q4,
    GPU_ROTATE, /* queries and results of attention over a cache in Q4 */
    /* product/: experts */
    GPU_ROUTE,
    GPU_EXPERT_LINEAR,
    GPU_EXPERT_SUM,
    GPU_ADD_LOW_RANK,
    /* canvas/ */
    GPU_LOGIT_STATS_SCAN, /* ranges of the logits */
    GPU_LOGIT_STATS_PICK,
    GPU_SOFT_WEIGH, /* mean embedding: logits become exponentials */
    GPU_SOFT_CUT,
    GPU_SOFT_OFFSETS,
    GPU_SOFT_LIST,
    GPU_SOFT_GATHER, /* listed tokens; columns a multiple of 64 */
    GPU_SOFT_GATHER_ANY,
    GPU_SOFT_SUM,
    GPU_SOFT_EMBED, /* the whole table, even shapes */
    GPU_SOFT_EMBED_ANY,
    /* tower/: vision and audio encoders */
    GPU_TOWER_VALUES, /* value by value */
    GPU_TOWER_LAYER_NORM,
    GPU_TOWER_ATTEND,
    GPU_TOWER_ATTEND_MATRIX, /* heads of 64, on subgroup matrices */
    GPU_TOWER_CONV,
    GPU_TOWER_LOCAL, /* attention over the last rows, unfused */
    GPU_TOWER_ROWS,  /* everything between two products */
    GPU_TOWER_HEADS, /* clamp, norm and rope of heads; even shapes */
    GPU_TOWER_GATE,
    GPU_TOWER_ROWS_F16, /* the same three for kernels on subgroup matrices */
    GPU_TOWER_HEADS_F16,
    GPU_TOWER_GATE_F16,
    GPU_TOWER_HEADS_ANY,
    GPU_TOWER_ATTEND_LOCAL, /* attention over the last rows with what is around */
    /* types/, choose/ */
    GPU_REPACK,      /* weights, while loading */
    GPU_CHOOSE_SCAN, /* end of a pass: keys, maxima, sums */
    GPU_CHOOSE_PICK, /* candidates and a token */
    GPU_BEST,        /* the token of the greatest logit */
    GPU_TOP,         /* numbers of the greatest values */
    GPU_LIST_ROWS,   /* rows of a table of ids */
    GPU_N_KERNELS
} gpu_kernel;

enum { GPU_MAX_OVERRIDES = 7 };

/* Values of a kernel's WGSL overrides in the order of gpu_kernel_info; 0 where it has fewer. */
typedef struct gpu_overrides {
    uint32_t value[GPU_MAX_OVERRIDES];
} gpu_overrides;

typedef struct gpu_kernel_info {
    const char *name;                         /* unique, "linear_row" */
    const char *file;                         /* under src/gpu/kernels */
    const char *overrides[GPU_MAX_OVERRIDES]; /* names; NULL after the last */
    uint64_t types;    /* bit t: has a text for weights of block type t; 0: reads no blocks */
    const char *slots; /* parts that fill the slots of its file (link.h), or NULL */
} gpu_kernel_info;

const gpu_kernel_info *gpu_kernel_info_of(gpu_kernel kernel);

/* The kernel of that name; false if there is none. */
bool gpu_kernel_find(const char *name, gpu_kernel *kernel);

/* Does the kernel exist for weights of this block type? Yes for all types if it reads no blocks. */
bool gpu_kernel_has_type(gpu_kernel kernel, bz_type type);

/* The file of a block type, "types/q4_k.wgsl"; NULL: the GPU does not know the type. */
const char *gpu_type_file(bz_type type);

/* Do linear8 and the tile8 kernels multiply weights of this block type? (linear8 with F32 is for
 * the first halves of adapters only.) */
bool gpu_kernels_packed(bz_type type);
bool gpu_kernels_tile8(bz_type type);
/* May linear_tile16 compute with this block type? Rounding F32 or BF16 to f16 would lose accuracy
 * or range. */
bool gpu_kernels_tile16(bz_type type);

/* Index of the SUBGROUP override, GPU_MAX_OVERRIDES if the kernel has none. Value 0 selects the
 * form without subgroup operations. */
uint32_t gpu_kernel_subgroup_override(gpu_kernel kernel);

/* "linear_row Q4_K": for reports. */
void gpu_kernel_name(gpu_kernel kernel, bz_type type, char *out, size_t n);

#endif
