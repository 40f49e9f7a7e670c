/* os_program.h on Linux and macOS. */
#include "base/os_program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/random.h>
#endif

_Static_assert(sizeof(off_t) == 8, "models are larger than 2 GB");

/* ---- open files -------------------------------------------------------------------------------
 */

int bz_os_open(const char *path, unsigned how)
{
    const int rights = (how & BZ_OS_READ) && (how & BZ_OS_WRITE) ? O_RDWR
                       : (how & BZ_OS_WRITE)                     ? O_WRONLY
                                                                 : O_RDONLY;
    const int make = how & BZ_OS_NEW      ? O_CREAT | O_EXCL | O_NOFOLLOW
                     : how & BZ_OS_CREATE ? O_CREAT
                                          : 0;
    return open(path,
                rights | make | O_CLOEXEC | (how & BZ_OS_EMPTY ? O_TRUNC : 0) |
                    (how & BZ_OS_APPEND ? O_APPEND : 0) | (how & BZ_OS_NO_LINK ? O_NOFOLLOW : 0),
                how & BZ_OS_PRIVATE ? 0600 : 0666);
}

bool bz_os_close(int file)
{
    return file < 0 || close(file) == 0;
}

FILE *bz_os_stream(const char *path, const char *mode)
{
    const unsigned how = mode[0] == 'r'   ? BZ_OS_READ
                         : mode[0] == 'w' ? BZ_OS_WRITE | BZ_OS_CREATE | BZ_OS_EMPTY
                                          : BZ_OS_WRITE | BZ_OS_CREATE | BZ_OS_APPEND;
    const int file = bz_os_open(path, how);
    FILE *stream = file < 0 ? NULL : fdopen(file, mode);
    if (file >= 0 && !stream) {
        close(file);
    }
    return stream;
}

FILE *bz_os_stream_of(int file, const char *mode)
{
    return fdopen(file, mode);
}

int bz_os_file_of(FILE *stream)
{
    return fileno(stream);
}

long bz_os_read(int file, void *bytes, size_t n)
{
    ssize_t k;
    while ((k = read(file, bytes, n)) < 0 && errno == EINTR) {
    }
    return (long)k;
}

long bz_os_read_at(int file, void *bytes, size_t n, uint64_t at)
{
    ssize_t k;
    while ((k = pread(file, bytes, n, (off_t)at)) < 0 && errno == EINTR) {
    }
    return (long)k;
}

/* at -1: at the file's own position */
static bool write_pieces(int file, const char *bytes, size_t n, off_t at)
{
    while (n) {
        const ssize_t k = at < 0 ? write(file, bytes, n) : pwrite(file, bytes, n, at);
        if (k < 0 && errno == EINTR) {
            continue;
        }
        if (k <= 0) {
            errno = k == 0 ? EIO : errno;
            return false;
        }
        bytes += k;
        n -= (size_t)k;
        at += at < 0 ? 0 : k;
    }
    return true;
}

bool bz_os_write_all(int file, const void *bytes, size_t n)
{
    return write_pieces(file, bytes, n, -1);
}

bool bz_os_write_at(int file, const void *bytes, size_t n, uint64_t at)
{
    return write_pieces(file, bytes, n, (off_t)at);
}

bool bz_os_cut(int file, uint64_t size)
{
    return ftruncate(file, (off_t)size) == 0 && lseek(file, (off_t)size, SEEK_SET) >= 0;
}

bool bz_os_reserve(int file, uint64_t size)
{
#if defined(__linux__)
    if (fallocate(file, 0, 0, (off_t)size) == 0) {
        return true;
    }
    if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINTR) {
        return false;
    }
#else
    fstore_t all = {F_ALLOCATEALL, F_PEOFPOSMODE, 0, (off_t)size, 0};
    if (fcntl(file, F_PREALLOCATE, &all) != 0 && errno == ENOSPC) {
        return false;
    }
#endif
    return ftruncate(file, (off_t)size) == 0;
}

bool bz_os_sync(int file)
{
#if defined(__linux__)
    return fdatasync(file) == 0;
#else
    /* fsync() leaves it in the drive's memory; some file systems know no better. */
    return fcntl(file, F_FULLFSYNC) == 0 || fsync(file) == 0;
#endif
}

bool bz_os_stat_file(int file, bz_os_info *info)
{
    struct stat st;
    if (fstat(file, &st) != 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) {
        return false;
    }
    *info = (bz_os_info){S_ISDIR(st.st_mode), (uint64_t)st.st_size, (int64_t)st.st_mtime, false};
    return true;
}

bool bz_os_same_file(int file, const char *path)
{
    struct stat opened, named;
    return fstat(file, &opened) == 0 && stat(path, &named) == 0 && opened.st_ino == named.st_ino &&
           opened.st_dev == named.st_dev;
}

bz_os_locking bz_os_lock(int file)
{
    return flock(file, LOCK_EX | LOCK_NB) == 0 ? BZ_OS_LOCKED
           : errno == EWOULDBLOCK              ? BZ_OS_BUSY
                                               : BZ_OS_NO_LOCK;
}

int bz_os_lock_folder(const char *folder)
{
    const int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (file >= 0 && flock(file, LOCK_EX) != 0) {
        if (errno != EINTR) {
            close(file);
            return -1;
        }
    }
    return file;
}

/* ---- paths ------------------------------------------------------------------------------------
 */

bool bz_os_remove(const char *file)
{
    return unlink(file) == 0;
}

bool bz_os_remove_folder(const char *folder)
{
    return rmdir(folder) == 0;
}

bool bz_os_replace(const char *from, const char *to)
{
    return rename(from, to) == 0;
}

bool bz_os_make_folder(const char *path, bool for_owner)
{
    return mkdir(path, for_owner ? 0700 : 0755) == 0;
}

bool bz_os_sync_folder(const char *folder)
{
    const int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Some file systems refuse to flush a folder. */
    const bool ok = file >= 0 && (fsync(file) == 0 || errno == EINVAL);
    const int why = errno;
    if (file >= 0) {
        close(file);
    }
    errno = why;
    return ok;
}

bool bz_os_may_write(const char *path)
{
    return access(path, W_OK) == 0;
}

bool bz_os_is_link(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

bool bz_os_real_path(const char *path, char *out, size_t room)
{
    char real[PATH_MAX];
    if (!realpath(path, real) || strlen(real) >= room) {
        return false;
    }
    memcpy(out, real, strlen(real) + 1);
    return true;
}

uint64_t bz_os_free_space(const char *path)
{
    struct statvfs s;
    return statvfs(path, &s) == 0 ? (uint64_t)s.f_bavail * s.f_frsize : UINT64_MAX;
}

uint64_t bz_os_allocated(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (uint64_t)st.st_blocks * 512u : 0;
}

bool bz_os_disk_is_full(void)
{
    return errno == ENOSPC || errno == EDQUOT;
}

const char *bz_os_home(void)
{
    return getenv("HOME");
}

/* ---- time, numbers ----------------------------------------------------------------------------
 */

bool bz_os_date(int64_t seconds, struct tm *date)
{
    const time_t t = (time_t)seconds;
    return gmtime_r(&t, date) != NULL;
}

int64_t bz_os_seconds(struct tm *date)
{
    return (int64_t)timegm(date);
}

bool bz_os_random(void *bytes, size_t n)
{
#if defined(__linux__)
    return getrandom(bytes, n, GRND_NONBLOCK) == (ssize_t)n;
#else
    arc4random_buf(bytes, n);
    return true;
#endif
}

long bz_os_process_id(void)
{
    return (long)getpid();
}

uint64_t bz_os_memory_total(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}
