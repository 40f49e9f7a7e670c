/* Threads of a WebAssembly module. JavaScript makes them, and only while nothing waits for them: a
 * worker starts when the one that made it is idle. So each worker stands ready in thread_main,
 * asleep, before C asks for a thread; where none stands ready, bz_os_thread_start returns NULL, and
 * the caller does with fewer.
 *
 * Compiled without atomics (bezel.wasm) there are none at all. Only the first thread may allocate:
 * the C library knows of no others. */
#include "base/os.h"

#if defined(__wasm__)

#if !defined(__wasm_atomics__)

unsigned bz_os_cpu_count(void)
{
    return 1;
}

bz_os_thread *bz_os_thread_start(void (*run)(void *), void *argument)
{
    (void)run, (void)argument;
    return NULL;
}

void bz_os_thread_join(bz_os_thread *thread)
{
    (void)thread;
}

void bz_os_wait(atomic_uint *word, unsigned expected)
{
    (void)word, (void)expected; /* nobody else could change it */
}

void bz_os_wake_all(atomic_uint *word)
{
    (void)word;
}

#else

#include <stdlib.h>

#define EXPORT(name) __attribute__((export_name(#name)))

enum { STACK = 256 << 10, MOST = 256 };
enum { IDLE, AT_WORK };                               /* of a thread's `state` */
static const int64_t look_around = 500 * 1000 * 1000; /* nanoseconds */

struct bz_os_thread {
    atomic_uint state;
    bool taken; /* from start to join; only the first thread looks at it */
    void (*run)(void *);
    void *argument;
    char *stack, *tls;
};

/* The system's own state, as a kernel has it: the threads that JavaScript has brought. */
static struct {
    bz_os_thread *list[MOST];
    unsigned n;
    unsigned processors;
    atomic_bool broken; /* a thread crashed, and what it was to do will never be done */
} threads = {.processors = 1};

/* ---- JavaScript's side ------------------------------------------------------------------------
 */

/* Memory for a thread, on the first one; 0: there is none. */
EXPORT(thread_new) bz_os_thread *wasm_thread_new(void)
{
    bz_os_thread *t = calloc(1, sizeof *t);
    if (t) {
        t->stack = aligned_alloc(16, STACK);
        t->tls = aligned_alloc(16, (__builtin_wasm_tls_size() + (size_t)16) & ~(size_t)15);
    }
    if (!t || !t->stack || !t->tls) {
        if (t) {
            free(t->stack);
            free(t->tls);
        }
        free(t);
        return NULL;
    }
    return t;
}

/* Where its stack begins: they grow downwards. */
EXPORT(thread_stack) char *wasm_thread_stack(const bz_os_thread *t)
{
    return t->stack + STACK;
}

EXPORT(thread_tls) char *wasm_thread_tls(const bz_os_thread *t)
{
    return t->tls;
}

/* Its worker is about to call thread_main. */
EXPORT(thread_ready) void wasm_thread_ready(bz_os_thread *t)
{
    if (threads.n < MOST) {
        threads.list[threads.n++] = t;
    }
}

EXPORT(threads_free) unsigned wasm_threads_free(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < threads.n; i++) {
        n += !threads.list[i]->taken;
    }
    return n;
}

/* How many threads a loop is shared by, unless its caller says otherwise. */
EXPORT(threads_use) void wasm_threads_use(unsigned n)
{
    threads.processors = n ? n : 1;
}

/* The life of a worker; it never returns. */
EXPORT(thread_main) void wasm_thread_main(bz_os_thread *t)
{
    for (;;) {
        while (atomic_load(&t->state) == IDLE) {
            __builtin_wasm_memory_atomic_wait32((int *)&t->state, IDLE, -1);
        }
        t->run(t->argument);
        atomic_store(&t->state, IDLE);
        bz_os_wake_all(&t->state);
    }
}

/* After a trap in one thread, called by it: the others must not wait for it for ever. */
EXPORT(thread_broke) void wasm_thread_broke(void)
{
    atomic_store(&threads.broken, true);
}

/* ---- C's side -----------------------------------------------------------------------------------
 */

unsigned bz_os_cpu_count(void)
{
    return threads.processors;
}

bz_os_thread *bz_os_thread_start(void (*run)(void *), void *argument)
{
    for (unsigned i = 0; i < threads.n; i++) {
        bz_os_thread *t = threads.list[i];
        if (!t->taken) {
            t->taken = true;
            t->run = run;
            t->argument = argument;
            atomic_store(&t->state, AT_WORK);
            bz_os_wake_all(&t->state);
            return t;
        }
    }
    return NULL;
}

void bz_os_thread_join(bz_os_thread *t)
{
    while (atomic_load(&t->state) == AT_WORK) {
        bz_os_wait(&t->state, AT_WORK);
    }
    t->taken = false;
}

void bz_os_wait(atomic_uint *word, unsigned expected)
{
    __builtin_wasm_memory_atomic_wait32((int *)word, (int)expected, look_around);
    if (atomic_load(&threads.broken)) {
        __builtin_trap(); /* JavaScript sees a crash, which it is */
    }
}

void bz_os_wake_all(atomic_uint *word)
{
    __builtin_wasm_memory_atomic_notify((int *)word, UINT32_MAX);
}

#endif
#endif
