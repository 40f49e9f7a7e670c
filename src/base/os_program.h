/* Files, folders, time and random numbers for programs; os.h has what the library itself uses.
 * Paths are UTF-8 on every system. What fails sets errno, unless it says otherwise. Not in
 * WebAssembly. */
#ifndef BZ_BASE_OS_PROGRAM_H
#define BZ_BASE_OS_PROGRAM_H

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/os.h"

/* Whether \ separates the parts of a path; elsewhere it protects characters typed in a shell. */
#if defined(_WIN32)
enum { BZ_OS_BACKSLASH_SEPARATES = 1 };
#else
enum { BZ_OS_BACKSLASH_SEPARATES = 0 };
#endif

/* The last character that separates the parts of a path; NULL: there is none. */
static inline const char *bz_os_last_slash(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *other = BZ_OS_BACKSLASH_SEPARATES ? strrchr(path, '\\') : NULL;
    return !slash || (other && other > slash) ? other : slash;
}

/* Writes / between all parts of a path. */
static inline void bz_os_use_slashes(char *path)
{
    for (char *p = path; BZ_OS_BACKSLASH_SEPARATES && p && *p; p++) {
        *p = *p == '\\' ? '/' : *p;
    }
}

/* ---- open files: bytes as they are, closed in programs that are started ---------------------- */

enum {
    BZ_OS_READ = 1,
    BZ_OS_WRITE = 2,
    BZ_OS_CREATE = 4,   /* if it is missing */
    BZ_OS_NEW = 8,      /* creates it; it must not exist, not even as a link */
    BZ_OS_EMPTY = 16,   /* removes its content */
    BZ_OS_APPEND = 32,  /* writes go to the end */
    BZ_OS_PRIVATE = 64, /* a new file is its owner's only */
    BZ_OS_NO_LINK = 128 /* fails for a symbolic link */
};

int bz_os_open(const char *path, unsigned how); /* -1: failed */
bool bz_os_close(int file);
FILE *bz_os_stream(const char *path, const char *mode); /* "rb", "wb" or "ab"; NULL: failed */
FILE *bz_os_stream_of(int file, const char *mode);      /* closes the file with the stream */
int bz_os_file_of(FILE *stream);

long bz_os_read(int file, void *bytes, size_t n); /* up to n; 0: the end; -1: failed */
long bz_os_read_at(int file, void *bytes, size_t n, uint64_t at);
bool bz_os_write_all(int file, const void *bytes, size_t n);
bool bz_os_write_at(int file, const void *bytes, size_t n, uint64_t at);
bool bz_os_cut(int file, uint64_t size);          /* to that size; what follows is written there */
bool bz_os_reserve(int file, uint64_t size);      /* all bytes, where the file system can do that */
bool bz_os_sync(int file);                        /* to the disk */
bool bz_os_stat_file(int file, bz_os_info *info); /* false also if it is neither file nor folder */
bool bz_os_same_file(int file, const char *path); /* the path still names the open file */

typedef enum bz_os_locking { BZ_OS_LOCKED, BZ_OS_BUSY, BZ_OS_NO_LOCK } bz_os_locking;

/* A lock among programs that ask for it, until the file is closed. Does not wait. */
bz_os_locking bz_os_lock(int file);
/* A lock of a folder: waits for it. bz_os_close() gives it back; -1: there is none. */
int bz_os_lock_folder(const char *folder);

/* ---- paths ------------------------------------------------------------------------------------
 */

bool bz_os_remove(const char *file);
bool bz_os_remove_folder(const char *folder);             /* an empty one */
bool bz_os_replace(const char *from, const char *to);     /* renames, also over an existing file */
bool bz_os_make_folder(const char *path, bool for_owner); /* errno EEXIST: it is there */
bool bz_os_sync_folder(const char *folder); /* its entries to the disk, where that is possible */
bool bz_os_may_write(const char *path);
bool bz_os_is_link(const char *path);
/* Absolute, without links; the path exists. false: it does not, or does not fit. */
bool bz_os_real_path(const char *path, char *out, size_t room);
uint64_t bz_os_free_space(const char *path); /* UINT64_MAX: unknown */
uint64_t bz_os_allocated(const char *path);  /* bytes of the disk that a file has; 0: unknown */
bool bz_os_disk_is_full(void);               /* whether that is what errno says */
const char *bz_os_home(void);                /* the user's folder; NULL: unknown */

/* ---- time, numbers ----------------------------------------------------------------------------
 */

/* Seconds since 1970 as a date of UTC, and the reverse. */
bool bz_os_date(int64_t seconds, struct tm *date);
int64_t bz_os_seconds(struct tm *date);

bool bz_os_random(void *bytes, size_t n); /* false: none now */
long bz_os_process_id(void);
uint64_t bz_os_memory_total(void); /* of the machine, in bytes; 0: unknown */

/* bz_os_wait() for at most that long. */
void bz_os_wait_for(atomic_uint *word, unsigned expected, uint64_t nanoseconds);

#endif
