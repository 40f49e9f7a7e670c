/* How much of a sequence can be kept when another prompt comes. Used by sessions and batches.
 *
 * Caches of full layers hold every position, so that they can be cut anywhere. Sliding layers have
 * rings of a limited number of rows, of which later passes overwrite the oldest. Continuing from a
 * position needs the window - 1 rows before it: they are still in the rings, or in a snapshot. */
#ifndef BZ_SESSION_PREFIX_H
#define BZ_SESSION_PREFIX_H

#include "plan/backend.h"

enum { BZ_MAX_SNAPSHOTS = 16 };

typedef struct ring_snapshot {
    bz_snapshot *rows; /* allocated on first use */
    uint32_t pos;      /* tokens before it; 0: unused */
    uint64_t used;     /* time of last use, for replacing the least recently used */
} ring_snapshot;

/* The rings of one sequence. */
typedef struct bz_rings {
    uint32_t window; /* of sliding layers, own position included */
    uint32_t from;   /* lowest position whose rows are still there */
    ring_snapshot snapshots[BZ_MAX_SNAPSHOTS];
    uint32_t n_snapshots; /* at most */
    uint64_t clock;
} bz_rings;

/* Tokens that two sequences have in common at their beginning. */
uint32_t bz_common_prefix(const int32_t *a, uint32_t n_a, const int32_t *b, uint32_t n_b);

/* The longest prefix of at most `same` tokens from which a sequence of n tokens can be continued.
 * *snapshot is the one to restore for that, or NULL. */
uint32_t bz_rings_reusable(bz_rings *r, uint32_t n, uint32_t same, ring_snapshot **snapshot);
/* Makes the rings those of a sequence that ends at `pos`, as bz_rings_reusable returned it. */
void bz_rings_rewind(bz_rings *r, const bz_backend *b, bz_kv *kv, uint32_t pos,
                     ring_snapshot *snapshot);

/* The window's rows before `pos` were copied from another sequence. */
void bz_rings_copied(bz_rings *r, uint32_t pos);

/* A pass writes rows up to `end`: those it overwrites are lost, even if it is cancelled. */
void bz_rings_overwrite(bz_rings *r, const bz_backend *b, const bz_kv *kv, uint32_t end);

/* Keeps a snapshot of a sequence of n tokens, so that it can return there. Without memory, or where
 * nothing is ever overwritten, it does nothing. */
void bz_rings_keep(bz_rings *r, const bz_backend *b, const bz_kv *kv, uint32_t n);

/* The caches are empty, or what they hold is unknown. Snapshots stay allocated. */
void bz_rings_reset(bz_rings *r);
void bz_rings_free(bz_rings *r, const bz_backend *b);

#endif
