/* The operating system interface of the library. Only os_*.c make system calls; the Makefile
 * chooses them by their names: os_posix*.c on Linux and macOS with os_linux.c or os_macos.c,
 * os_windows*.c, os_wasm*.c in WebAssembly. Paths are UTF-8 on every system. */
#ifndef BZ_BASE_OS_H
#define BZ_BASE_OS_H

#include <stdatomic.h>

#include "base/error.h"

/* Monotonic time in nanoseconds. */
uint64_t bz_os_now(void);

/* A whole file mapped read-only; `data` stays valid until bz_os_unmap. An empty file has data
 * NULL and size 0. A pipe, a socket or a device is refused at once. */
typedef struct bz_os_map {
    const uint8_t *data;
    uint64_t size;
    uint32_t guard; /* 1 + its index among the guarded mappings; 0: none */
    int file;       /* 1 + its descriptor, which tells its size now; 0: none */
} bz_os_map;

bz_status bz_os_map_file(const char *path, bz_os_map *map, bz_error *err);
void bz_os_unmap(bz_os_map *map);

/* Reading a mapped file past its end, after another program has shortened it, raises SIGBUS. This
 * installs a handler for the whole process: such reads from files of bz_os_map_file then return
 * zeros, and bz_os_map_cut is true from then on. Other causes of SIGBUS are treated as before. For
 * programs, which call it once at their start; the library never does. */
void bz_os_guard_maps(void);
/* Whether such a read has happened, or the file is shorter than it was: what was cut off the page
 * that it now ends in reads as zeros without a signal. */
bool bz_os_map_cut(const bz_os_map *map);
bool bz_os_file_exists(const char *path);

typedef struct bz_os_info {
    bool folder;
    uint64_t size;
    int64_t modified; /* seconds since 1970 */
    bool special;     /* a pipe, socket or device */
} bz_os_info;

/* These three put only the reason into *err ("Permission denied"); the caller adds what the file
 * is for. not_found: no such file; bad_file: it cannot be read. */
bz_status bz_os_stat(const char *path, bz_os_info *info, bz_error *err);
/* Reads a whole regular file of at most `max` bytes and appends a NUL; the caller frees *text. */
bz_status bz_os_read_small(const char *path, size_t max, char **text, size_t *n, bz_error *err);
/* Calls `each` with the name of every entry, in any order, until it returns false. */
bz_status bz_os_list(const char *folder, bool (*each)(void *user, const char *name), void *user,
                     bz_error *err);

/* Writes a file beside `path` that only its owner can read, and puts it in the place of `path` when
 * it is whole. put: false after an error. close: keeps the file if `ok` and all was written, else
 * removes it and leaves what was there before. Errors name the file. */
typedef struct bz_os_writer bz_os_writer;
bz_status bz_os_writer_open(bz_os_writer **out, const char *path, bz_error *err);
bool bz_os_writer_put(bz_os_writer *w, const void *bytes, size_t n);
bz_status bz_os_writer_close(bz_os_writer *w, bool ok, bz_error *err);

/* An environment variable; NULL if it is not set. Valid until it is changed. */
const char *bz_os_env(const char *name);

unsigned bz_os_cpu_count(void);        /* processors this process may use, >= 1 */
uint64_t bz_os_memory_available(void); /* bytes a program can still use, 0 if unknown */
/* Whether the processor has a feature and the system saves its registers: "avx2", "fma", "f16c",
 * "avxvnni", "avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512vnni", "avx512bf16", "amxint8";
 * "neon", "fp16", "dotprod", "sve", "i8mm". */
bool bz_os_cpu_has(const char *feature);
#if defined(__linux__) && defined(__x86_64__)
#define BZ_OS_TILES 1 /* the system can give tile registers to a process */
/* Asks for those of "amxint8", which Linux saves only for processes that asked, for all threads of
 * this one; false: they cannot be used. From then on Linux refuses signal stacks that have no room
 * for them. */
bool bz_os_allow_tiles(void);
#endif

/* Memory at a multiple of `alignment`, a power of two that divides n; NULL: none. It is freed with
 * bz_os_aligned_free only. */
void *bz_os_aligned_alloc(size_t alignment, size_t n);
void bz_os_aligned_free(void *p);

void bz_os_sleep(uint64_t nanoseconds); /* at least that long, unless a signal arrives */

/* The path of this program, with / between its parts; false: unknown. Not in WebAssembly. */
bool bz_os_program_path(char *out, size_t room);
/* A folder of Bezel in the user's own, for what another run needs; it may not exist. false: the
 * user has none, or it does not fit. Not in WebAssembly. */
typedef enum bz_os_folder { BZ_OS_STATE, BZ_OS_DATA } bz_os_folder;
bool bz_os_user_folder(bz_os_folder kind, char *out, size_t room);

/* A shared library loaded at run time, by path or by name. *err holds only the reason. The
 * library's code stays in memory after it is closed: its own threads may still run in it. A
 * statically linked program cannot load libraries: opening fails with not_found. */
typedef struct bz_os_library bz_os_library;
typedef void (*bz_os_function)(void);                               /* cast it before calling */
bz_os_library *bz_os_library_open(const char *name, bz_error *err); /* NULL: failed */
/* NULL: no such symbol. */
bz_os_function bz_os_library_symbol(bz_os_library *library, const char *name);
void bz_os_library_close(bz_os_library *library);

/* Threads, and futex-like waiting: bz_os_wait returns when *word != expected, sometimes earlier.
 * Signals of the terminal go to the caller's threads. */
typedef struct bz_os_thread bz_os_thread;
bz_os_thread *bz_os_thread_start(void (*run)(void *), void *argument); /* NULL: failed */
void bz_os_thread_join(bz_os_thread *thread);
void bz_os_wait(atomic_uint *word, unsigned expected);
void bz_os_wake_all(atomic_uint *word);

#endif
