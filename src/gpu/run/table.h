/* A table that stays in the file, with a cache of its rows on the GPU: a token needs one row.
 *
 * The per-layer embeddings of a small model are half of its bytes. 4,096 rows are cached in one
 * buffer, least recently used ones are replaced. A pass requests its rows, and missing ones are
 * copied from the mapped file or requested as reads. All sessions of a model share the cache. One
 * session fetches at a time; others go on if all their rows are cached. */
#ifndef BZ_GPU_TABLE_H
#define BZ_GPU_TABLE_H

#include "gpu/run/pipelines.h"
#include "gpu/lower/lower.h"
#include "plan/backend.h"
#include "plan/weights.h"

enum { GPU_TABLE_ROWS = 4096 };

typedef struct gpu_table gpu_table;

/* bytes: the table in memory, or NULL: rows are requested as reads. The pipeline that repacks its
 * type must be ready. */
bz_status gpu_table_new(gpu_table **out, gpu *g, gpu_pipelines *pipelines,
                        const bz_weight_info *info, const uint8_t *bytes, bz_error *err);
void gpu_table_free(gpu_table *t);

gpu_table_shape gpu_table_shape_of(const gpu_table *t);
uint64_t gpu_table_bytes(const gpu_limits *l,
                         const bz_weight_info *info); /* GPU memory of its cache */

/* How often a row was cached, or not. */
typedef struct gpu_table_use {
    uint64_t hits, misses;
} gpu_table_use;

/* Fetches the rows of n <= 512 ids. DONE: slots[i] is the row of the buffer that holds ids[i];
 * submit what reads it before the next call. BYTES: do gpu_table_reads, then call again. WAIT:
 * another session is fetching rows. */
bz_pass_state gpu_table_fetch(gpu_table *t, const void *session, const int32_t *ids, uint32_t n,
                              uint32_t *slots, gpu_table_use *use, bz_error *err);
uint32_t gpu_table_reads(gpu_table *t, bz_read reads[BZ_MAX_READS]);
/* The session gives up the rows that it requested. */
void gpu_table_give_up(gpu_table *t, const void *session);

/* For tests: caches only this many rows; at least as many as a pass has. */
void gpu_table_limit(gpu_table *t, uint32_t rows);

#endif
