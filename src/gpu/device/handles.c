#include "gpu/device/handles.h"

#include <stdlib.h>
#include <string.h>

/* Bits 0 to 19: slot + 1; bits 20 to 31: uses. */
enum { SLOT_BITS = 20, SLOT_MASK = (1 << SLOT_BITS) - 1 };

static gpu_slot *slot_at(const gpu_handles *t, uint32_t index)
{
    return (gpu_slot *)(void *)(t->items + (size_t)index * t->item_size);
}

void *gpu_handles_add(gpu_handles *t)
{
    if (!t->first_free) {
        if (t->n == SLOT_MASK - 1) {
            return NULL;
        }
        if (t->n == t->capacity) {
            uint32_t capacity = t->capacity ? t->capacity * 2 : 16;
            void *items = realloc(t->items, capacity * t->item_size);
            if (!items) {
                return NULL;
            }
            t->items = items;
            t->capacity = capacity;
        }
        memset(slot_at(t, t->n), 0, t->item_size);
        t->first_free = ++t->n;
    }
    uint32_t index = t->first_free - 1;
    gpu_slot *slot = slot_at(t, index);
    uint32_t uses = slot->uses + 1;
    t->first_free = slot->next_free;
    memset(slot, 0, t->item_size);
    slot->uses = uses;
    slot->handle = (index + 1) | uses << SLOT_BITS;
    return slot;
}

void *gpu_handles_at(const gpu_handles *t, uint32_t handle)
{
    uint32_t index = (handle & SLOT_MASK) - 1;
    if (index >= t->n) {
        return NULL;
    }
    gpu_slot *slot = slot_at(t, index);
    return slot->handle == handle ? slot : NULL;
}

void gpu_handles_drop(gpu_handles *t, uint32_t handle)
{
    gpu_slot *slot = gpu_handles_at(t, handle);
    if (slot) {
        slot->handle = 0;
        slot->next_free = t->first_free;
        t->first_free = handle & SLOT_MASK;
    }
}

void *gpu_handles_next(const gpu_handles *t, const void *item)
{
    size_t index = item ? (size_t)((const unsigned char *)item - t->items) / t->item_size + 1 : 0;
    for (; index < t->n; index++) {
        gpu_slot *slot = slot_at(t, (uint32_t)index);
        if (slot->handle) {
            return slot;
        }
    }
    return NULL;
}

void gpu_handles_free(gpu_handles *t)
{
    free(t->items);
    t->items = NULL;
    t->n = t->capacity = t->first_free = 0;
}
