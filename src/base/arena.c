/* A linked list of blocks; allocation bumps a pointer in the newest one. */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>

enum { FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20, ALIGN = _Alignof(max_align_t) };

typedef struct bz_arena_block {
    struct bz_arena_block *previous;
    size_t used, size;
    _Alignas(max_align_t) char bytes[];
} block;

/* Block sizes double: a small document needs little memory, a large one few calls of malloc. */
static block *add_block(bz_arena *a, size_t size)
{
    size_t capacity = a->block ? 2 * a->block->size : FIRST_BLOCK;
    if (capacity > LARGEST_BLOCK) {
        capacity = LARGEST_BLOCK;
    }
    if (capacity < size) {
        capacity = size;
    }
    block *b = capacity < SIZE_MAX - sizeof *b ? malloc(sizeof *b + capacity) : NULL;
    if (b) {
        *b = (block){.previous = a->block, .size = capacity};
        a->block = b;
    }
    return b;
}

void *bz_arena_alloc(bz_arena *a, size_t size)
{
    if (size > SIZE_MAX / 2) {
        return NULL;
    }
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    block *b = a->block;
    if ((!b || size > b->size - b->used) && !(b = add_block(a, size))) {
        return NULL;
    }
    void *p = b->bytes + b->used;
    b->used += size;
    return p;
}

void *bz_arena_array(bz_arena *a, size_t count, size_t size)
{
    return count <= SIZE_MAX / 2 / size ? bz_arena_alloc(a, count * size) : NULL;
}

void bz_arena_free(bz_arena *a)
{
    for (block *b = a->block; b;) {
        block *previous = b->previous;
        free(b);
        b = previous;
    }
    a->block = NULL;
}
