/* os.h in WebAssembly: there is a clock and memory, but no files. Model bytes arrive through the
 * reads of a job. */
#include "base/os.h"

#if defined(__wasm__)

#include <stdlib.h>
#include <string.h>

/* Imports of module "os". A new one is listed in web/package/src/wasm.ts as well. */
__attribute__((import_module("os"), import_name("now"))) extern double
os_now(void); /* milliseconds */

uint64_t bz_os_now(void)
{
    return (uint64_t)(os_now() * 1e6);
}

/* ---- files: none ---------------------------------------------------------------------- */

static const char no_files[] = "there are no files in WebAssembly";

bz_status bz_os_map_file(const char *path, bz_os_map *map, bz_error *err)
{
    *map = (bz_os_map){0};
    return bz_fail(err, BZ_NOT_FOUND, "%.200s: %s.", path, no_files);
}

void bz_os_unmap(bz_os_map *map)
{
    *map = (bz_os_map){0};
}

void bz_os_guard_maps(void)
{
}

bool bz_os_map_cut(const bz_os_map *map)
{
    (void)map;
    return false;
}

bool bz_os_file_exists(const char *path)
{
    (void)path;
    return false;
}

bz_status bz_os_stat(const char *path, bz_os_info *info, bz_error *err)
{
    (void)path;
    *info = (bz_os_info){0};
    return bz_fail(err, BZ_NOT_FOUND, "%s", no_files);
}

bz_status bz_os_read_small(const char *path, size_t max, char **text, size_t *n, bz_error *err)
{
    (void)path, (void)max, (void)text, (void)n;
    return bz_fail(err, BZ_NOT_FOUND, "%s", no_files);
}

bz_status bz_os_writer_open(bz_os_writer **out, const char *path, bz_error *err)
{
    (void)out, (void)path;
    return bz_fail(err, BZ_NOT_FOUND, "%s", no_files);
}

bool bz_os_writer_put(bz_os_writer *w, const void *bytes, size_t n)
{
    (void)w, (void)bytes, (void)n;
    return false;
}

bz_status bz_os_writer_close(bz_os_writer *w, bool ok, bz_error *err)
{
    (void)w, (void)ok;
    return bz_fail(err, BZ_NOT_FOUND, "%s", no_files);
}

bz_status bz_os_list(const char *folder, bool (*each)(void *user, const char *name), void *user,
                     bz_error *err)
{
    (void)folder, (void)each, (void)user;
    return bz_fail(err, BZ_NOT_FOUND, "%s", no_files);
}

const char *bz_os_env(const char *name)
{
    (void)name;
    return NULL;
}

/* ---- the machine (threads: os_wasm_threads.c) ------------------------------------------- */

/* How much the memory may still grow. The browser may refuse earlier. */
uint64_t bz_os_memory_available(void)
{
    return ((uint64_t)65536 - __builtin_wasm_memory_size(0)) * 65536;
}

void *bz_os_aligned_alloc(size_t alignment, size_t n)
{
    return aligned_alloc(alignment, n);
}

void bz_os_aligned_free(void *p)
{
    free(p);
}

void bz_os_sleep(uint64_t nanoseconds)
{
    (void)nanoseconds;
}

bz_os_library *bz_os_library_open(const char *name, bz_error *err)
{
    (void)name;
    bz_fail(err, BZ_NOT_FOUND, "WebAssembly cannot load libraries");
    return NULL;
}

bz_os_function bz_os_library_symbol(bz_os_library *library, const char *name)
{
    (void)library, (void)name;
    return NULL;
}

void bz_os_library_close(bz_os_library *library)
{
    (void)library;
}

/* ---- WASI ------------------------------------------------------------------------------ */

/* The C library's printf functions refer to these three calls for streams, which are unused here.
 * Defining them keeps the module free of WASI imports. */
enum { ENOSYS_OF_WASI = 52 };
int32_t __wasi_fd_close(int32_t fd);
int32_t __wasi_fd_seek(int32_t fd, int64_t offset, int32_t whence, int32_t result);
int32_t __wasi_fd_write(int32_t fd, int32_t vectors, int32_t n, int32_t result);

int32_t __wasi_fd_close(int32_t fd)
{
    (void)fd;
    return ENOSYS_OF_WASI;
}

int32_t __wasi_fd_seek(int32_t fd, int64_t offset, int32_t whence, int32_t result)
{
    (void)fd, (void)offset, (void)whence, (void)result;
    return ENOSYS_OF_WASI;
}

int32_t __wasi_fd_write(int32_t fd, int32_t vectors, int32_t n, int32_t result)
{
    (void)fd, (void)vectors, (void)n, (void)result;
    return ENOSYS_OF_WASI;
}

#endif
