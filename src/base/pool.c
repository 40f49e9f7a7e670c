/* The thread pool. All threads take tasks from one atomic counter. */
#include "base/pool.h"

#include <stdlib.h>

#include "base/os.h"

/* Threads wait for each other: first they spin, since the steps of a plan follow each other within
 * microseconds, then they sleep. How long a pause takes depends on the processor, so the time is
 * measured. */
enum { SPIN_NS = 30000, SPINS_PER_LOOK = 32 };

struct bz_pool {
    unsigned threads;
    bz_os_thread **os_threads; /* [threads - 1] */
    struct worker *workers;

    /* one loop */
    bz_pool_task task;
    void *context;
    uint32_t count;
    uint64_t deadline;
    atomic_uint next;    /* first task not taken yet */
    atomic_uint running; /* workers still in this round */

    atomic_uint round;  /* number of the loop; a change means new work */
    atomic_uint asleep; /* workers inside bz_os_wait; 0: waking needs no system call */
    atomic_bool caller_asleep;
    atomic_bool quit;
};

struct worker {
    bz_pool *pool;
    unsigned number;
};

static void spin_hint(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Waits a short while for *value to become something else than `old`; returns it. */
static unsigned spin(const atomic_uint *value, unsigned old)
{
    unsigned now = atomic_load(value);
    const uint64_t end = now == old ? bz_os_now() + SPIN_NS : 0;
    while (now == old && bz_os_now() < end) {
        for (int i = 0; now == old && i < SPINS_PER_LOOK; i++) {
            spin_hint();
            now = atomic_load(value);
        }
    }
    return now;
}

static void take_tasks(bz_pool *p, unsigned worker)
{
    for (;;) {
        if (p->deadline && bz_os_now() >= p->deadline) {
            return;
        }
        uint32_t task = atomic_fetch_add(&p->next, 1);
        if (task >= p->count) {
            return;
        }
        p->task(p->context, task, worker);
    }
}

static void worker_main(void *argument)
{
    struct worker *w = argument;
    bz_pool *p = w->pool;
    unsigned seen = 0;
    for (;;) {
        unsigned round = spin(&p->round, seen);
        if (round == seen) {
            atomic_fetch_add(&p->asleep, 1); /* before the wait looks at `round` again */
            while ((round = atomic_load(&p->round)) == seen) {
                bz_os_wait(&p->round, seen);
            }
            atomic_fetch_sub(&p->asleep, 1);
        }
        seen = round;
        if (atomic_load(&p->quit)) {
            return;
        }
        take_tasks(p, w->number);
        if (atomic_fetch_sub(&p->running, 1) == 1 && atomic_load(&p->caller_asleep)) {
            bz_os_wake_all(&p->running);
        }
    }
}

bz_pool *bz_pool_new(unsigned threads)
{
    bz_pool *p = calloc(1, sizeof *p);
    if (!p) {
        return NULL;
    }
    threads = threads ? threads : 1;
    p->threads = 1;
    p->os_threads = calloc(threads, sizeof(bz_os_thread *));
    p->workers = calloc(threads, sizeof *p->workers);
    if (!p->os_threads || !p->workers) {
        bz_pool_free(p);
        return NULL;
    }
    for (unsigned i = 1; i < threads; i++) {
        p->workers[i] = (struct worker){p, i};
        p->os_threads[i - 1] = bz_os_thread_start(worker_main, &p->workers[i]);
        if (!p->os_threads[i - 1]) {
            break; /* run with fewer threads */
        }
        p->threads++;
    }
    return p;
}

void bz_pool_free(bz_pool *p)
{
    if (!p) {
        return;
    }
    atomic_store(&p->quit, true);
    atomic_fetch_add(&p->round, 1);
    bz_os_wake_all(&p->round);
    for (unsigned i = 1; i < p->threads; i++) {
        bz_os_thread_join(p->os_threads[i - 1]);
    }
    free(p->os_threads);
    free(p->workers);
    free(p);
}

unsigned bz_pool_threads(const bz_pool *p)
{
    return p->threads;
}

uint32_t bz_pool_run(bz_pool *p, bz_pool_task task, void *context, uint32_t first, uint32_t count,
                     uint64_t deadline)
{
    if (first >= count) {
        return count;
    }
    if (p->threads == 1 || count - first == 1) {
        uint32_t t = first;
        do {
            task(context, t++, 0);
        } while (t < count && !(deadline && bz_os_now() >= deadline));
        return t;
    }
    p->task = task;
    p->context = context;
    p->count = count;
    p->deadline = deadline;
    atomic_store(&p->next, first + 1); /* the caller runs task `first` itself */
    atomic_store(&p->running, p->threads - 1);
    atomic_fetch_add(&p->round, 1);
    if (atomic_load(&p->asleep)) {
        bz_os_wake_all(&p->round);
    }

    task(context, first, 0);
    take_tasks(p, 0);
    unsigned left = atomic_load(&p->running);
    for (unsigned before = 0; left && left != before;) { /* again whenever a worker finished */
        before = left;
        left = spin(&p->running, before);
    }
    if (left) {
        atomic_store(&p->caller_asleep, true);
        while ((left = atomic_load(&p->running)) != 0) {
            bz_os_wait(&p->running, left);
        }
        atomic_store(&p->caller_asleep, false);
    }
    uint32_t next = atomic_load(&p->next);
    return next < count ? next : count;
}
