/* The files of an unfinished blob. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os_program.h"
#include "store/ollama_internal.h"
#include "store/pull_journal.h"
#include "store/write.h"

enum { MAX_JOURNAL = 64 << 20 }; /* a longer one is not continued */

static bz_status fail_file(const char *path, const char *what, bz_error *err)
{
    return bz_fail(err, bz_os_disk_is_full() ? BZ_QUOTA : BZ_BAD_FILE, "%s %.*s: %s.", what,
                   BZ_SHOWN_PATH, path, strerror(errno));
}

static bz_status fail_write(const char *path, bz_error *err)
{
    return fail_file(path, "Cannot write", err);
}

/* Opens the journal and locks it. The file that was locked must still be the one at the path: the
 * process that had the lock removes it when its blob is complete. */
static bz_status lock_journal(bz_partial *p, bz_error *err)
{
    for (;;) {
        p->journal =
            bz_os_open(p->journal_path, BZ_OS_READ | BZ_OS_WRITE | BZ_OS_CREATE | BZ_OS_APPEND);
        if (p->journal < 0) {
            return fail_write(p->journal_path, err);
        }
        const bz_os_locking locking = bz_os_lock(p->journal);
        if (locking != BZ_OS_LOCKED) {
            return locking == BZ_OS_BUSY ? BZ_ABORTED : fail_write(p->journal_path, err);
        }
        if (bz_os_same_file(p->journal, p->journal_path)) {
            return BZ_OK;
        }
        bz_os_close(p->journal);
    }
}

/* Reads what the journal lists and removes a cut last line. False: nothing to continue. */
static bool read_journal(bz_partial *p, const char *digest)
{
    bz_os_info info;
    if (!bz_os_stat_file(p->journal, &info) || info.size == 0 || info.size > MAX_JOURNAL) {
        return false;
    }
    char *text = malloc((size_t)info.size);
    size_t n = 0;
    while (text && n < (size_t)info.size) {
        const long k = bz_os_read_at(p->journal, text + n, (size_t)info.size - n, n);
        if (k <= 0) {
            break;
        }
        n += (size_t)k;
    }
    const size_t valid = text ? bz_journal_parse(text, n, digest, p->size, &p->done) : 0;
    free(text);
    return valid && bz_os_cut(p->journal, valid);
}

static bool open_part(bz_partial *p)
{
    bz_os_info info;
    p->part = bz_os_open(p->part_path, BZ_OS_READ | BZ_OS_WRITE | BZ_OS_NO_LINK);
    return p->part >= 0 && bz_os_stat_file(p->part, &info) && !info.folder && info.size == p->size;
}

bz_status bz_partial_restart(bz_partial *p, const char digest[BZ_DIGEST_TEXT], bz_error *err)
{
    char line[BZ_JOURNAL_LINE];
    p->done.n = 0;
    p->resumed = false;
    bz_os_close(p->part);
    /* A new file: the old one may belong to a process whose journal was removed. */
    if (!bz_os_remove(p->part_path) && errno != ENOENT) {
        return fail_write(p->part_path, err);
    }
    p->part = bz_os_open(p->part_path, BZ_OS_READ | BZ_OS_WRITE | BZ_OS_NEW);
    if (p->part < 0) {
        return fail_write(p->part_path, err);
    }
    if (p->size && !bz_os_reserve(p->part, p->size)) { /* all its bytes, now */
        const bz_status status = fail_write(p->part_path, err);
        bz_os_remove(p->part_path);
        return status;
    }
    const size_t n = bz_journal_head(line, digest, p->size);
    if (!bz_os_cut(p->journal, 0) || !bz_os_write_all(p->journal, line, n) ||
        !bz_os_sync(p->journal)) {
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
    return bz_os_write_at(p->part, bytes, n, at) ? BZ_OK : fail_write(p->part_path, err);
}

bz_status bz_partial_flush(bz_partial *p, bz_error *err)
{
    return bz_os_sync(p->part) ? BZ_OK : fail_write(p->part_path, err);
}

bz_status bz_partial_log(bz_partial *p, bz_range range, bz_error *err)
{
    char line[BZ_JOURNAL_LINE];
    if (!bz_ranges_add(&p->done, range.from, range.to)) {
        return bz_store_no_memory(err);
    }
    const size_t n = bz_journal_range(line, range);
    return bz_os_write_all(p->journal, line, n) ? BZ_OK : fail_write(p->journal_path, err);
}

bz_status bz_partial_finish(bz_partial *p, bz_error *err)
{
    if (!bz_os_sync(p->part)) {
        return fail_write(p->part_path, err);
    }
    if (!bz_os_replace(p->part_path, p->blob_path)) {
        return fail_write(p->blob_path, err);
    }
    const bz_status status = bz_store_sync_parent(p->blob_path, err);
    bz_os_remove(p->journal_path);
    return status;
}

void bz_partial_discard(bz_partial *p)
{
    bz_os_remove(p->part_path);
    bz_os_remove(p->journal_path);
}

void bz_partial_close(bz_partial *p)
{
    bz_os_close(p->part);
    bz_os_close(p->journal); /* releases the lock */
    free(p->part_path);
    free(p->journal_path);
    free(p->blob_path);
    free(p->done.list);
    *p = (bz_partial){.part = -1, .journal = -1};
}

uint64_t bz_partial_allocated(const char *blob_path)
{
    char *path = bz_store_text("%s.bezel-part", blob_path);
    const uint64_t bytes = path ? bz_os_allocated(path) : 0;
    free(path);
    return bytes;
}
