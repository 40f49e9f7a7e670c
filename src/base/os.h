/* All that Bezel asks of an operating system. os_posix.c is the only file of the
 * library that makes system calls; a WebAssembly build has its own. */
#ifndef BZ_BASE_OS_H
#define BZ_BASE_OS_H

#include <stdatomic.h>

#include "base/error.h"

/* Monotonic time in nanoseconds. */
uint64_t bz_os_now(void);

/* A whole file mapped read-only; `data` stays valid until bz_os_unmap. An empty file
 * gives data NULL and size 0. */
typedef struct bz_os_map {
    const uint8_t *data;
    uint64_t size;
} bz_os_map;

bz_status bz_os_map_file(const char *path, bz_os_map *map, bz_error *err);
void bz_os_unmap(bz_os_map *map);
bool bz_os_file_exists(const char *path);

typedef struct bz_os_info {
    bool folder;
    uint64_t size;
    int64_t modified; /* seconds since 1970 */
} bz_os_info;

/* Of these three *err tells the reason alone ("Permission denied"): the caller knows what the
 * file is to its user. not_found: there is nothing; bad_file: we may not look at it. */
bz_status bz_os_look(const char *path, bz_os_info *info, bz_error *err);
/* A whole regular file of at most `most` bytes, with a NUL behind them; the caller frees *text. */
bz_status bz_os_read_small(const char *path, size_t most, char **text, size_t *n, bz_error *err);
/* Calls `each` with the name of every entry, in any order, until it returns false. */
bz_status bz_os_list(const char *folder, bool (*each)(void *user, const char *name), void *user,
                     bz_error *err);

/* A variable of the environment; NULL when it is not set. Valid until it is changed. */
const char *bz_os_env(const char *name);

unsigned bz_os_cpu_count(void);        /* processors this process may use, >= 1 */
uint64_t bz_os_memory_available(void); /* bytes a program can still use, 0 if unknown */

void bz_os_sleep(uint64_t nanoseconds); /* at least that long, unless a signal comes */

/* A shared library found while the program runs, by path or by name. *err tells the reason alone.
 * A library's code stays in memory after it is closed: threads of its own may still be in it.
 * A program linked statically has none: opening fails with not_found. */
typedef struct bz_os_library bz_os_library;
typedef void (*bz_os_function)(void);                               /* to be cast to what it is */
bz_os_library *bz_os_library_open(const char *name, bz_error *err); /* NULL: could not */
bz_os_function bz_os_library_symbol(bz_os_library *library,
                                    const char *name); /* NULL: there is none */
void bz_os_library_close(bz_os_library *library);

/* Threads, and waiting on a word of memory: returns when *word != expected (or, rarely,
 * early). The same two calls exist in WebAssembly with threads. */
typedef struct bz_os_thread bz_os_thread;
bz_os_thread *bz_os_thread_start(void (*run)(void *), void *argument); /* NULL: could not */
void bz_os_thread_join(bz_os_thread *thread);
void bz_os_wait(atomic_uint *word, unsigned expected);
void bz_os_wake_all(atomic_uint *word);

#endif
