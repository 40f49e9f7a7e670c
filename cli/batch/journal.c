#include "cli/batch/journal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/os_program.h"
#include "cli/batch/lines.h"
#include "cli/os.h"

static const char BEGINNING[] = "{\"line\":";
enum { BEGINNING_LEN = sizeof BEGINNING - 1 };
static const uint64_t SYNC_NS = 200000000u; /* lines appended within this time share one fsync */

struct journal {
    char *path; /* NULL: stdout */
    int fd;
    FILE *old; /* results being compared; NULL once lines are appended */
    line_buffer line;
    uint64_t lines;  /* read from old */
    uint64_t good;   /* bytes of complete lines that match */
    uint64_t failed; /* results that are errors */
    bool cut;        /* an incomplete last line was removed */
    uint64_t synced;
    bool dirty;
};

static bz_status fail_path(const journal *j, const char *what, bz_error *err)
{
    return bz_fail(err, BZ_BAD_FILE, "%s cannot be %s: %s.", j->path ? j->path : "stdout", what,
                   strerror(errno));
}

bz_status journal_open(journal **out, const char *path, bz_error *err)
{
    journal *j = calloc(1, sizeof *j);
    if (!j || (path && !(j->path = strdup(path)))) {
        free(j);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the results.");
    }
    j->fd = CLI_STDOUT;
    bz_status status = BZ_OK;
    bz_os_info info;
    if (path) {
        j->fd = bz_os_open(path, BZ_OS_READ | BZ_OS_WRITE | BZ_OS_CREATE);
        if (j->fd < 0) {
            status = fail_path(j, "opened", err);
        } else if (!bz_os_stat_file(j->fd, &info)) { /* what was written there cannot be read */
            status = bz_fail(err, BZ_BAD_REQUEST,
                             "%s is not a regular file; choose another '--out', or none to print "
                             "the results.",
                             path);
        } else if (bz_os_lock(j->fd) != BZ_OS_LOCKED) {
            status =
                bz_fail(err, BZ_BAD_REQUEST,
                        "Another run is writing %s; wait for it or choose another '--out'.", path);
        } else if (!(j->old = bz_os_stream(path, "rb"))) {
            status = fail_path(j, "read", err);
        }
    }
    if (status != BZ_OK) {
        journal_close(j, NULL);
        return status;
    }
    *out = j;
    return BZ_OK;
}

static bz_status sync_now(journal *j, bz_error *err)
{
    if (j->path && j->dirty && !bz_os_sync(j->fd)) {
        return fail_path(j, "written", err);
    }
    j->dirty = false;
    j->synced = bz_os_now();
    return BZ_OK;
}

bz_status journal_close(journal *j, bz_error *err)
{
    if (!j) {
        return BZ_OK;
    }
    bz_status status = j->fd >= 0 ? sync_now(j, err) : BZ_OK;
    if (j->old) {
        fclose(j->old);
    }
    if (j->path && j->fd >= 0 && !bz_os_close(j->fd) && status == BZ_OK) {
        status = fail_path(j, "written", err);
    }
    line_free(&j->line);
    free(j->path);
    free(j);
    return status;
}

/* ---- old results ------------------------------------------------------------------------ */

typedef enum record { INCOMPLETE, DAMAGED, OTHERS, OURS, OURS_FAILED } record;

static record look_at(const char *text, size_t n, uint64_t line, const char *key)
{
    bz_arena arena = {0};
    const bz_json_node *root;
    record found = INCOMPLETE;
    if (n && text[n - 1] == '\n') {
        int64_t number;
        found =
            bz_json_read(&root, text, n, &arena, NULL) != BZ_OK ||
                    !bz_json_to_int(bz_json_get(root, "line"), &number)
                ? DAMAGED
            : number != (int64_t)line || !bz_str_is(bz_json_string(bz_json_get(root, "key")), key)
                ? OTHERS
            : bz_json_get(root, "error") ? OURS_FAILED
                                         : OURS;
    }
    bz_arena_free(&arena);
    return found;
}

/* Starts appending. What follows the complete lines is at most an incomplete one: it is cut off. */
static bz_status begin_appending(journal *j, bz_error *err)
{
    fclose(j->old);
    j->old = NULL;
    return bz_os_cut(j->fd, j->good) ? BZ_OK : fail_path(j, "written", err);
}

bz_status journal_has(journal *j, uint64_t line, const char *key, bool *has, bz_error *err)
{
    *has = false;
    if (!j->old) {
        return BZ_OK;
    }
    const bz_status status =
        line_read(&j->line, j->old, LINE_MAX_BYTES, j->path, j->lines + 1, err);
    const size_t n = j->line.len;
    if (status != BZ_OK || n == 0) {
        return status != BZ_OK ? status : begin_appending(j, err);
    }
    j->lines++;
    const size_t known = n < BEGINNING_LEN ? n : BEGINNING_LEN;
    record found = look_at(j->line.text, n, line, key);
    if (found <= DAMAGED && j->good == 0 && memcmp(j->line.text, BEGINNING, known) != 0) {
        found = OTHERS; /* not a result, not even an incomplete one */
    }
    if (found == DAMAGED) {
        return bz_fail(err, BZ_BAD_FILE,
                       "%s is damaged: line %llu is not a result. Nothing was changed; repair the "
                       "line, or remove it and all that follow to answer them again.",
                       j->path, (unsigned long long)j->lines);
    }
    if (found == OTHERS) {
        return bz_fail(
            err, BZ_BAD_REQUEST,
            "%s has results of other prompts or other options (prompt %llu differs); choose "
            "another '--out' or remove the file.",
            j->path, (unsigned long long)line);
    }
    if (found == INCOMPLETE) {
        j->cut = true;
        return begin_appending(j, err);
    }
    j->failed += found == OURS_FAILED;
    j->good += n;
    *has = true;
    return BZ_OK;
}

bz_status journal_check_end(journal *j, bz_error *err)
{
    if (!j->old) {
        return BZ_OK;
    }
    const bz_status status =
        line_read(&j->line, j->old, LINE_MAX_BYTES, j->path, j->lines + 1, err);
    if (status == BZ_OK && j->line.len) {
        return bz_fail(
            err, BZ_BAD_REQUEST,
            "%s has more lines than there are prompts; choose another '--out' or remove the file.",
            j->path);
    }
    return status;
}

uint64_t journal_failed(const journal *j)
{
    return j->failed;
}

bool journal_was_cut(const journal *j)
{
    return j->cut;
}

bz_status journal_append(journal *j, const char *text, size_t len, bz_error *err)
{
    bz_status status = j->old ? begin_appending(j, err) : BZ_OK;
    if (status == BZ_OK && !bz_os_write_all(j->fd, text, len)) {
        status = fail_path(j, "written", err);
    }
    j->dirty = true;
    if (status == BZ_OK && bz_os_now() - j->synced >= SYNC_NS) {
        status = sync_now(j, err);
    }
    return status;
}
