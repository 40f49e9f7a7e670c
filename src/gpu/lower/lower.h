/* Plan -> list of dispatches. Pure functions: nothing here compiles a pipeline or calls a device,
 * so the same input gives the same list on every machine. run/schedule.c lowers plans and makes the
 * list ready to run; tests/test_lower.c checks lists without an adapter. */
#ifndef BZ_GPU_LOWER_H
#define BZ_GPU_LOWER_H

#include "gpu/lower/dispatch.h"
#include "gpu/lower/weight_map.h"
#include "plan/plan.h"

/* Rows of a table that stays in the file, as cached on the GPU. */
typedef struct gpu_table_shape {
    gpu_binding at;
    uint32_t rows, row_bytes; /* in the buffer */
} gpu_table_shape;

typedef struct gpu_lower_input {
    const bz_plan *plan;
    const gpu_weight_map *weights;
    const uint8_t *const *host_weights; /* [weights] bytes in host memory or NULL: frequency factors
                                           of rope tables are read from it */
    const gpu_limits *limits;
    gpu_table_shape table; /* cached rows of weights->in_file */
    bool fuse;             /* false: every step is a kernel of its own */
    bool packed;           /* products with int8 activations, where a kernel has the type */
    bool matrices;         /* f16 activations on subgroup matrices; text: with `packed` only */
    bz_cache_type cache;   /* how keys and values are stored */
} gpu_lower_input;

/* A table of angles that the host computes and writes before a pass. */
typedef struct gpu_rope_table {
    const bz_step *step;
    float *frequency; /* [width / 2] */
} gpu_rope_table;

enum { GPU_MAX_ROPE_TABLES = 4 };

typedef struct gpu_lowered {
    const bz_plan *plan;
    gpu_dispatch *dispatches; /* [n] with every cache in one piece: gpu_split_caches */
    uint32_t n, capacity;
    size_t *offset; /* [plan's tensors] bytes into the arena. Not the plan's own offsets: steps that
                       run together must not share memory */
    size_t arena_bytes;
    uint64_t scratch_bytes; /* after the arena: partial sums */
    uint64_t side_bytes;    /* of the side buffer: side.c */
    gpu_rope_table ropes[GPU_MAX_ROPE_TABLES];
    uint32_t n_ropes;
} gpu_lowered;

/* Fills *out; the plan must outlive it. On failure *out is empty. */
bz_status gpu_lower(const gpu_lower_input *in, gpu_lowered *out, bz_error *err);
void gpu_lowered_free(gpu_lowered *l);

/* Where a tensor lies in the arena, in bytes; 0 for none. */
uint64_t gpu_lowered_offset(const gpu_lowered *l, bz_tensor t);

/* ---- caches in pieces: cache_pieces.c ---------------------------------------------------- */

/* Bytes of one key or value of n numbers. Q8 and Q4: first the integers, four or eight in a word
 * (of eight, the first four are in the low halves of its bytes), up to a whole vector of eight;
 * then the f16 scales, two in a word, up to a whole vector of Q8. */
uint32_t gpu_cache_head_bytes(bz_cache_type type, uint32_t n);

/* How the rows of one cache, those of all sequences, lie in GPU memory. A cache larger than one
 * binding is cut between rows, or between rings. */
typedef struct gpu_cache_shape {
    uint32_t positions;  /* capacity of the longest sequence; rows of a ring */
    uint32_t piece_rows; /* rows of every piece but the last */
    uint32_t n_pieces;
    bool ring; /* position p of a sequence lies in row p % positions of its ring */
} gpu_cache_shape;

/* The list for these caches: a dispatch that binds a cache becomes one per piece, and combining
 * dispatches with a single partial result are dropped. caches: [plan's caches], or NULL: each one
 * piece of unknown size. The caller frees *out, an array of *n. *scratch_bytes: after the arena. */
bz_status gpu_split_caches(const gpu_lowered *l, const gpu_cache_shape *caches,
                           uint64_t max_binding, gpu_dispatch **out, uint32_t *n,
                           uint64_t *scratch_bytes, bz_error *err);

#endif
