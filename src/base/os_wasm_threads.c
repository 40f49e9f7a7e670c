/* Threads in WebAssembly. JavaScript creates the workers, and a worker only starts while its
 * creator is idle. So workers wait in thread_main before C starts a thread; if none is waiting,
 * bz_os_thread_start returns NULL and the caller continues with fewer threads.
 *
 * Without atomics (bezel.wasm) there are no threads. Only the first thread may allocate: the C
 * library is built without threads. */
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
    (void)word, (void)expected; /* no other thread could change it */
}

void bz_os_wake_all(atomic_uint *word)
{
    (void)word;
}

#else

#include <stdlib.h>

#define EXPORT(name) __attribute__((export_name(#name)))

enum { STACK_BYTES = 256 << 10, MAX_THREADS = 256 };
enum { IDLE, RUNNING };                                  /* bz_os_thread.state */
static const int64_t check_interval = 500 * 1000 * 1000; /* nanoseconds */

struct bz_os_thread {
    atomic_uint state;
    bool taken; /* from start to join; used by the first thread only */
    void (*run)(void *);
    void *argument;
    char *stack, *tls;
};

/* The workers that JavaScript has created. */
static struct {
    bz_os_thread *list[MAX_THREADS];
    unsigned n;
    unsigned processors;
    atomic_bool broken; /* a thread trapped: its work will never be finished */
} threads = {.processors = 1};

/* ---- exports for JavaScript -------------------------------------------------------------- */

/* Memory for a thread, called on the first thread; 0: out of memory. */
EXPORT(thread_new) bz_os_thread *wasm_thread_new(void)
{
    bz_os_thread *t = calloc(1, sizeof *t);
    if (t) {
        t->stack = aligned_alloc(16, STACK_BYTES);
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

/* The top of its stack, which grows downwards. */
EXPORT(thread_stack) char *wasm_thread_stack(const bz_os_thread *t)
{
    return t->stack + STACK_BYTES;
}

EXPORT(thread_tls) char *wasm_thread_tls(const bz_os_thread *t)
{
    return t->tls;
}

/* Called when the worker is about to call thread_main. */
EXPORT(thread_ready) void wasm_thread_ready(bz_os_thread *t)
{
    if (threads.n < MAX_THREADS) {
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

/* Sets the default number of threads of a pool. */
EXPORT(threads_use) void wasm_threads_use(unsigned n)
{
    threads.processors = n ? n : 1;
}

/* The main loop of a worker; never returns. */
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

/* Called by a thread after a trap: the others must not wait for it for ever. */
EXPORT(thread_broke) void wasm_thread_broke(void)
{
    atomic_store(&threads.broken, true);
}

/* ---- os.h -------------------------------------------------------------------------------- */

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
            atomic_store(&t->state, RUNNING);
            bz_os_wake_all(&t->state);
            return t;
        }
    }
    return NULL;
}

void bz_os_thread_join(bz_os_thread *t)
{
    while (atomic_load(&t->state) == RUNNING) {
        bz_os_wait(&t->state, RUNNING);
    }
    t->taken = false;
}

void bz_os_wait(atomic_uint *word, unsigned expected)
{
    __builtin_wasm_memory_atomic_wait32((int *)word, (int)expected, check_interval);
    if (atomic_load(&threads.broken)) {
        __builtin_trap(); /* reported to JavaScript as a crash */
    }
}

void bz_os_wake_all(atomic_uint *word)
{
    __builtin_wasm_memory_atomic_notify((int *)word, UINT32_MAX);
}

#endif
#endif
