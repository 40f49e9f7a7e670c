/* A pool of threads that run the tasks of one loop.
 *
 * Tasks are taken one by one, so a thread that is preempted delays one task and not the loop.
 * Which thread runs a task, and how many threads there are, must never change a result: tasks
 * write disjoint memory.
 */
#ifndef BZ_BASE_POOL_H
#define BZ_BASE_POOL_H

#include <stdatomic.h>

#include "base/error.h"

typedef struct bz_pool bz_pool;

/* worker: 0 .. bz_pool_threads - 1, for per-thread scratch memory. */
typedef void (*bz_pool_task)(void *context, uint32_t task, unsigned worker);

/* threads >= 1 includes the caller; fewer are started if the system refuses. */
/* More would only wait for each other. */
enum { BZ_THREADS_PER_PROCESSOR = 4 };

bz_pool *bz_pool_new(unsigned threads);
void bz_pool_free(bz_pool *pool);
unsigned bz_pool_threads(const bz_pool *pool);

/* Runs tasks [first, count) and returns the first that was not started: `count`, or
 * less if the time `deadline` (bz_os_now; 0 = none) passed. Every started task has
 * finished on return, and at least one was started. */
uint32_t bz_pool_run(bz_pool *pool, bz_pool_task task, void *context, uint32_t first,
                     uint32_t count, uint64_t deadline);

#endif
