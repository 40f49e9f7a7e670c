/* An arena: many small allocations that are freed together. */
#ifndef BZ_BASE_ARENA_H
#define BZ_BASE_ARENA_H

#include <stddef.h>

/* Zero-initialize. */
typedef struct bz_arena {
    struct bz_arena_block *block; /* private: the newest block */
} bz_arena;

void *bz_arena_alloc(bz_arena *a, size_t size); /* aligned for any type; NULL: out of memory */
void *bz_arena_array(bz_arena *a, size_t count, size_t size);
void bz_arena_free(bz_arena *a); /* frees everything; the arena can be used again */

#endif
