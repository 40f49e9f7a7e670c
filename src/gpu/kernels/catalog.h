/* The list of GPU kernels: pure data, nothing here compiles one. link.h assembles a kernel's text,
 * gpu/run/pipelines.h compiles it. */
#ifndef BZ_GPU_CATALOG_H
#define BZ_GPU_CATALOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "file/quant.h"

typedef enum gpu_kernel {
    GPU_EMBED,
    GPU_EMBED_SLOTS, /* of a table that stays in the file */
    GPU_LINEAR8, /* up to 8 rows, 8-bit activations, with what comes before and behind; experts too
                  */
    GPU_LINEAR_WIDE, /* up to 8 rows, Q4_K, Q5_K and Q6_K */
    GPU_LINEAR_ROW,  /* up to 8 rows, even shapes */
    GPU_LINEAR_ANY,  /* up to 8 rows, any shape */
    GPU_LINEAR_TILE, /* more than 64, even shapes */
    GPU_LINEAR_TILE_ANY,
    GPU_LINEAR_SHORT, /* 9 to 64, even shapes */
    GPU_LINEAR_SHORT_ANY,
    GPU_EXPERT_SHORT, /* rows by expert, even shapes */
    GPU_EXPERT_SHORT_ANY,
    GPU_LINEAR_TILE8,  /* more, activations and weights as integers */
    GPU_EXPERT_TILE8,  /* ... by experts */
    GPU_QUANTIZE,      /* activations for it */
    GPU_LINEAR_MATRIX, /* more than 64, weights in f16, on subgroup matrices */
    GPU_HALVES,        /* activations for it, and for attention */
    GPU_SPLIT_SUM,     /* of the splits of a tile kernel */
    GPU_GROUP_PAIRS,   /* rows by expert, for the tile kernels */
    GPU_NORM,
    GPU_NORMS, /* of many rows, with what is added between */
    GPU_ELEMENTWISE,
    GPU_ROPE,
    GPU_KV_WRITE,
    GPU_KV_NORM,     /* norm, rope and kv_write */
    GPU_ATTEND,      /* any head size */
    GPU_ATTEND_TILE, /* more than 8 rows */
    GPU_ATTEND_FEW,  /* up to 8 rows, in splits */
    GPU_COMBINE,     /* of the splits */
    GPU_ROUTE,
    GPU_EXPERT_LINEAR,
    GPU_EXPERT_SUM,
    GPU_JUDGE_SCAN, /* a canvas: stretches of its logits */
    GPU_JUDGE_PICK,
    GPU_SOFT_WEIGH, /* the mean embedding: logits become exponentials */
    GPU_SOFT_CUT,
    GPU_SOFT_PLACE,
    GPU_SOFT_LIST,
    GPU_SOFT_GATHER, /* shares of it: of listed tokens, columns a multiple of 64 */
    GPU_SOFT_GATHER_ANY,
    GPU_SOFT_SUM,
    GPU_SOFT_EMBED, /* ... of the whole table, even shapes */
    GPU_SOFT_EMBED_ANY,
    GPU_TOWER_VALUES, /* towers: value by value */
    GPU_TOWER_LAYER_NORM,
    GPU_TOWER_ATTEND,
    GPU_TOWER_ATTEND_MATRIX, /* heads of 64, on subgroup matrices */
    GPU_TOWER_CONV,
    GPU_TOWER_LOCAL,
    GPU_TOWER_ROWS,  /* what stands between products */
    GPU_TOWER_HEADS, /* clamp, norm and rope of heads; even shapes */
    GPU_TOWER_GATE,
    GPU_TOWER_ROWS_HALVES, /* the same, for what is read by kernels on matrices alone */
    GPU_TOWER_HEADS_HALVES,
    GPU_TOWER_GATE_HALVES,
    GPU_TOWER_HEADS_ANY,
    GPU_TOWER_NEAR,  /* attention over the last rows */
    GPU_REPACK,      /* of weights, while loading */
    GPU_CHOOSE_SCAN, /* the end of a pass: keys, maxima, sums */
    GPU_CHOOSE_PICK, /* candidates and a token */
    GPU_N_KERNELS
} gpu_kernel;

enum { GPU_MAX_OVERRIDES = 6 };

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

/* Do linear8 and the tile8 kernels exist for this block type? */
bool gpu_kernels_packed(bz_type type);
bool gpu_kernels_tile8(bz_type type);

/* Index of the SUBGROUP override, GPU_MAX_OVERRIDES if the kernel has none. Value 0 selects the
 * form without subgroup operations. */
uint32_t gpu_kernel_subgroup_override(gpu_kernel kernel);

/* "linear_row Q4_K": for reports. */
void gpu_kernel_name(gpu_kernel kernel, bz_type type, char *out, size_t n);

#endif
