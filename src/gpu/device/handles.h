/* Handles: small integers for objects in a growing table. A handle holds the number of its slot and
 * a count of the slot's uses, so that a stale handle finds nothing instead of another object. Used
 * by the native device.
 *
 * Items move when the table grows: keep handles across calls, never pointers. */
#ifndef BZ_GPU_HANDLES_H
#define BZ_GPU_HANDLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gpu_slot { /* every item begins with one */
    uint32_t handle;      /* 0 while the slot is free */
    uint32_t uses;
    uint32_t next_free; /* slot + 1 */
} gpu_slot;

typedef struct gpu_handles {
    unsigned char *items;
    size_t item_size;
    uint32_t n, capacity;
    uint32_t first_free; /* slot + 1 */
} gpu_handles;

void *gpu_handles_add(gpu_handles *t); /* a zeroed item with its handle set; NULL: no memory */
void *gpu_handles_at(const gpu_handles *t, uint32_t handle); /* NULL: no such object */
void gpu_handles_drop(gpu_handles *t, uint32_t handle);
/* For `for (x = next(t, NULL); x; x = next(t, x))`, in any order. */
void *gpu_handles_next(const gpu_handles *t, const void *item);
void gpu_handles_free(gpu_handles *t);

#endif
