/* A table that stays in the file: a token needs one row of it, so the rows used last are kept on
 * the GPU.
 *
 * The per-layer embeddings of a small model are half of its bytes. 4,096 of their rows lie in one
 * buffer, as the kernels read them; a pass says which rows it needs, and those missing come from
 * the file, in memory or by reads. All sessions of a model share them. Who fetches rows does so
 * alone; others whose rows are there are not held up.
 */
#ifndef BZ_GPU_TABLE_H
#define BZ_GPU_TABLE_H

#include "gpu/run/pipelines.h"
#include "gpu/lower/lower.h"
#include "plan/backend.h"
#include "plan/weights.h"

enum { GPU_TABLE_ROWS = 4096 };

typedef struct gpu_table gpu_table;

/* bytes: the table in memory, or NULL: rows are asked for as reads. The kernel that repacks its
 * type is compiled. */
bz_status gpu_table_new(gpu_table **out, gpu *g, gpu_pipelines *pipelines,
                        const bz_weight_info *info, const uint8_t *bytes, bz_error *err);
void gpu_table_free(gpu_table *t);

gpu_table_shape gpu_table_shape_of(const gpu_table *t);
uint64_t gpu_table_bytes(const gpu_limits *l,
                         const bz_weight_info *info); /* of GPU memory that one takes */

/* How often a row was there, or not. */
typedef struct gpu_table_use {
    uint64_t hits, misses;
} gpu_table_use;

/* Gets the rows of n <= 512 ids. DONE: slots[i] is where the row of ids[i] lies; submit what reads
 * it before anything else is asked of the table. BYTES: do gpu_table_reads, then call again. WAIT:
 * someone else is fetching rows. */
bz_pass_state gpu_table_fetch(gpu_table *t, const void *who, const int32_t *ids, uint32_t n,
                              uint32_t *slots, gpu_table_use *use, bz_error *err);
uint32_t gpu_table_reads(gpu_table *t, bz_read reads[BZ_MAX_READS]);
/* `who` does not come back for what was asked for. */
void gpu_table_give_up(gpu_table *t, const void *who);

/* Tests: only so many rows are kept, at least as many as a pass has. */
void gpu_table_limit(gpu_table *t, uint32_t rows);

#endif
