/* Which bytes of an unfinished blob are on the disk.
 *
 * Two files beside the blob: <blob>.bezel-part has the blob's full size from the beginning,
 * <blob>.bezel-journal lists the ranges in it that are complete:
 *
 *     bezel-pull 1 sha256:<64 digits> <size> <sum>
 *     <from> <to> <sum>
 *     ...
 *
 * A line is appended after the bytes it lists were flushed (fdatasync), so a journal never lists
 * bytes that a power failure can lose. `sum` covers the rest of the line; reading ends at the first
 * line that is cut or wrong. What is lost with it is fetched again. The journal is also the lock:
 * who pulls the blob holds flock on it.
 *
 * Names differ from Ollama's own partial files, so that neither program continues the other's. */
#ifndef BZ_STORE_PULL_JOURNAL_H
#define BZ_STORE_PULL_JOURNAL_H

#include "base/error.h"
#include "store/ollama_manifest.h"

/* ---- ranges of bytes ---------------------------------------------------------------- */

typedef struct bz_range {
    uint64_t from, to; /* from < to; `to` is not part of it */
} bz_range;

/* Sorted, apart from each other. Zero-initialize; free(list). */
typedef struct bz_ranges {
    bz_range *list; /* [n] */
    size_t n, cap;
} bz_ranges;

bool bz_ranges_add(bz_ranges *r, uint64_t from, uint64_t to); /* false: no memory */
uint64_t bz_ranges_bytes(const bz_ranges *r);
/* The first range at or after `at`, below `size`, that is not in r; false: none. */
bool bz_ranges_gap(const bz_ranges *r, uint64_t at, uint64_t size, bz_range *gap);

/* ---- the text ----------------------------------------------------------------------- */

enum { BZ_JOURNAL_LINE = 160 };

/* Lines with their '\n'; return their length. */
size_t bz_journal_head(char line[BZ_JOURNAL_LINE], const char digest[BZ_DIGEST_TEXT],
                       uint64_t size);
size_t bz_journal_range(char line[BZ_JOURNAL_LINE], bz_range range);

/* Adds the listed ranges to *done. Returns the bytes of valid lines; 0: not the journal of this
 * blob, or no memory. */
size_t bz_journal_parse(const char *text, size_t n, const char digest[BZ_DIGEST_TEXT],
                        uint64_t size, bz_ranges *done);

/* ---- the files ---------------------------------------------------------------------- */

typedef struct bz_partial {
    char *part_path, *journal_path, *blob_path; /* owned */
    int part, journal;                          /* descriptors; -1: closed */
    uint64_t size;
    bz_ranges done;
    bool resumed; /* it began with bytes of an earlier pull */
} bz_partial;

/* Opens or creates both files and takes the lock. aborted: another process has the lock, try again
 * later; *err is then not set. quota: no space. Close it in any case. */
bz_status bz_partial_open(bz_partial *p, const char *blob_path, const char digest[BZ_DIGEST_TEXT],
                          uint64_t size, bz_error *err);
bz_status bz_partial_write(bz_partial *p, uint64_t at, const char *bytes, size_t n, bz_error *err);
/* Flushes the part file; afterwards bz_partial_log may list what was written before. */
bz_status bz_partial_flush(bz_partial *p, bz_error *err);
bz_status bz_partial_log(bz_partial *p, bz_range range, bz_error *err);
/* Forgets all bytes. */
bz_status bz_partial_restart(bz_partial *p, const char digest[BZ_DIGEST_TEXT], bz_error *err);
/* Makes the part file the blob and removes the journal. */
bz_status bz_partial_finish(bz_partial *p, bz_error *err);
/* Removes both files: the blob exists already. */
void bz_partial_discard(bz_partial *p);
void bz_partial_close(bz_partial *p);

/* Bytes of disk space that the part file of a blob holds already. */
uint64_t bz_partial_allocated(const char *blob_path);

#endif
