/* The files of an unfinished blob. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/ollama_internal.h"
#include "store/pull_journal.h"
#include "store/write.h"

enum { MAX_JOURNAL = 64 << 20 }; /* a longer one is not continued */

static bz_status fail_file(const char *path, const char *what, bz_error *err)
{
    const bool full = errno == ENOSPC || errno == EDQUOT;
    return bz_fail(err, full ? BZ_QUOTA : BZ_BAD_FILE, "%s %.*s: %s.", what, BZ_SHOWN_PATH, path,
                   strerror(errno));
}

static bz_status fail_write(const char *path, bz_error *err)
{
    return fail_file(path, "Cannot write", err);
}

/* Retries short writes and interruptions. at -1: appends. */
static bool write_all(int fd, const char *bytes, size_t n, off_t at)
{
    while (n) {
        const ssize_t k = at < 0 ? write(fd, bytes, n) : pwrite(fd, bytes, n, at);
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

/* Opens the journal and locks it. The file that was locked must still be the one at the path: the
 * process that had the lock removes it when its blob is complete. */
static bz_status lock_journal(bz_partial *p, bz_error *err)
{
    for (;;) {
        struct stat opened, named;
        p->journal = open(p->journal_path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        if (p->journal < 0) {
            return fail_write(p->journal_path, err);
        }
        if (flock(p->journal, LOCK_EX | LOCK_NB) != 0) {
            return errno == EWOULDBLOCK ? BZ_ABORTED : fail_write(p->journal_path, err);
        }
        if (fstat(p->journal, &opened) == 0 && stat(p->journal_path, &named) == 0 &&
            opened.st_ino == named.st_ino && opened.st_dev == named.st_dev) {
            return BZ_OK;
        }
        close(p->journal);
    }
}

/* Reads what the journal lists and removes a cut last line. False: nothing to continue. */
static bool read_journal(bz_partial *p, const char *digest)
{
    struct stat st;
    if (fstat(p->journal, &st) != 0 || st.st_size == 0 || st.st_size > MAX_JOURNAL) {
        return false;
    }
    char *text = malloc((size_t)st.st_size);
    size_t n = 0;
    while (text && n < (size_t)st.st_size) {
        const ssize_t k = pread(p->journal, text + n, (size_t)st.st_size - n, (off_t)n);
        if (k <= 0 && !(k < 0 && errno == EINTR)) {
            break;
        }
        n += k > 0 ? (size_t)k : 0;
    }
    const size_t valid = text ? bz_journal_parse(text, n, digest, p->size, &p->done) : 0;
    free(text);
    return valid && ftruncate(p->journal, (off_t)valid) == 0;
}

static bool open_part(bz_partial *p)
{
    struct stat st;
    p->part = open(p->part_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    return p->part >= 0 && fstat(p->part, &st) == 0 && S_ISREG(st.st_mode) &&
           (uint64_t)st.st_size == p->size;
}

/* All bytes are reserved now, where the file system can do that. */
static bz_status reserve(const bz_partial *p, bz_error *err)
{
    if (fallocate(p->part, 0, 0, (off_t)p->size) != 0 &&
        ((errno != EOPNOTSUPP && errno != ENOSYS && errno != EINTR) ||
         ftruncate(p->part, (off_t)p->size) != 0)) {
        return fail_write(p->part_path, err);
    }
    return BZ_OK;
}

bz_status bz_partial_restart(bz_partial *p, const char digest[BZ_DIGEST_TEXT], bz_error *err)
{
    char line[BZ_JOURNAL_LINE];
    p->done.n = 0;
    p->resumed = false;
    if (p->part >= 0) {
        close(p->part);
    }
    /* A new file: the old one may belong to a process whose journal was removed. */
    if (unlink(p->part_path) != 0 && errno != ENOENT) {
        return fail_write(p->part_path, err);
    }
    p->part = open(p->part_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (p->part < 0) {
        return fail_write(p->part_path, err);
    }
    bz_status status = p->size ? reserve(p, err) : BZ_OK;
    if (status != BZ_OK) {
        unlink(p->part_path);
        return status;
    }
    const size_t n = bz_journal_head(line, digest, p->size);
    if (ftruncate(p->journal, 0) != 0 || !write_all(p->journal, line, n, -1) ||
        fdatasync(p->journal) != 0) {
        return fail_write(p->journal_path, err);
    }
    return bz_store_sync_parent(p->part_path, err);
}

bz_status bz_partial_open(bz_partial *p, const char *blob_path, const char digest[BZ_DIGEST_TEXT],
                          uint64_t size, bz_error *err)
{
    *p = (bz_partial){.part = -1, .journal = -1, .size = size};
    p->blob_path = bz_store_text("%s", blob_path);
    p->part_path = bz_store_text("%s.bezel-part", blob_path);
    p->journal_path = bz_store_text("%s.bezel-journal", blob_path);
    if (!p->blob_path || !p->part_path || !p->journal_path) {
        return bz_store_no_memory(err);
    }
    const bz_status status = lock_journal(p, err);
    if (status != BZ_OK) {
        return status;
    }
    if (open_part(p) && read_journal(p, digest)) {
        p->resumed = p->done.n > 0;
        return BZ_OK;
    }
    return bz_partial_restart(p, digest, err);
}

bz_status bz_partial_write(bz_partial *p, uint64_t at, const char *bytes, size_t n, bz_error *err)
{
    return write_all(p->part, bytes, n, (off_t)at) ? BZ_OK : fail_write(p->part_path, err);
}

bz_status bz_partial_flush(bz_partial *p, bz_error *err)
{
    return fdatasync(p->part) == 0 ? BZ_OK : fail_write(p->part_path, err);
}

bz_status bz_partial_log(bz_partial *p, bz_range range, bz_error *err)
{
    char line[BZ_JOURNAL_LINE];
    if (!bz_ranges_add(&p->done, range.from, range.to)) {
        return bz_store_no_memory(err);
    }
    const size_t n = bz_journal_range(line, range);
    return write_all(p->journal, line, n, -1) ? BZ_OK : fail_write(p->journal_path, err);
}

bz_status bz_partial_finish(bz_partial *p, bz_error *err)
{
    if (fsync(p->part) != 0) {
        return fail_write(p->part_path, err);
    }
    if (rename(p->part_path, p->blob_path) != 0) {
        return fail_write(p->blob_path, err);
    }
    const bz_status status = bz_store_sync_parent(p->blob_path, err);
    unlink(p->journal_path);
    return status;
}

void bz_partial_discard(bz_partial *p)
{
    unlink(p->part_path);
    unlink(p->journal_path);
}

void bz_partial_close(bz_partial *p)
{
    if (p->part >= 0) {
        close(p->part);
    }
    if (p->journal >= 0) {
        close(p->journal); /* releases the lock */
    }
    free(p->part_path);
    free(p->journal_path);
    free(p->blob_path);
    free(p->done.list);
    *p = (bz_partial){.part = -1, .journal = -1};
}

uint64_t bz_partial_allocated(const char *blob_path)
{
    struct stat st;
    char *path = bz_store_text("%s.bezel-part", blob_path);
    const uint64_t bytes = path && stat(path, &st) == 0 ? (uint64_t)st.st_blocks * 512u : 0;
    free(path);
    return bytes;
}
