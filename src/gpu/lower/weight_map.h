/* Where the weights of a model lie in GPU buffers: each tensor in one or several pieces. A tensor
 * larger than one binding is cut between rows. Filled by run/weights.c, read when lowering. */
#ifndef BZ_GPU_WEIGHT_MAP_H
#define BZ_GPU_WEIGHT_MAP_H

#include "gpu/device/gpu.h"
#include "gpu/kernels/layout.h"
#include "plan/weights.h"

typedef struct gpu_piece {
    gpu_binding at;
    uint32_t first_row, rows; /* of the tensor seen as rows of ne[0] values */
} gpu_piece;

typedef struct gpu_weight_map {
    const bz_weights *table;
    gpu_piece *pieces;
    uint32_t *first_piece; /* [table->n + 1] */
    bz_weight in_file;     /* the tensor that stays in the file and has no pieces; 0: none */
} gpu_weight_map;

typedef struct gpu_pieces {
    const gpu_piece *piece;
    uint32_t n;
} gpu_pieces;

static inline gpu_pieces gpu_pieces_of(const gpu_weight_map *map, bz_weight w)
{
    const uint32_t first = map->first_piece[w.id - 1];
    return (gpu_pieces){map->pieces + first, map->first_piece[w.id] - first};
}

#endif
