#include "cli/batch/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BYTES = 4096 };

static bool grow(line_buffer *b, size_t max)
{
    const size_t cap = b->cap == 0 ? FIRST_BYTES : b->cap * 2;
    char *more = realloc(b->text, cap < max ? cap : max);
    if (more) {
        b->text = more;
        b->cap = cap < max ? cap : max;
    }
    return more != NULL;
}

bz_status line_read(line_buffer *b, FILE *f, size_t max, const char *path, uint64_t number,
                    bz_error *err)
{
    b->len = 0;
    for (;;) {
        errno = 0;
        const int c = getc(f);
        if (c == EOF) {
            return ferror(f) && errno != EINTR
                       ? bz_fail(err, BZ_BAD_FILE, "Cannot read %s: %s.", path, strerror(errno))
                       : BZ_OK;
        }
        if (b->len == max) {
            return bz_fail(err, BZ_BAD_FILE, "%s has a line of more than %zu bytes, line %llu.",
                           path, max, (unsigned long long)number);
        }
        if (b->len == b->cap && !grow(b, max)) {
            return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for line %llu of %s (over %zu bytes).",
                           (unsigned long long)number, path, b->len);
        }
        b->text[b->len++] = (char)c;
        if (c == '\n') {
            return BZ_OK;
        }
    }
}

void line_free(line_buffer *b)
{
    free(b->text);
    *b = (line_buffer){0};
}
