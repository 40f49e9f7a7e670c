/* Any bytes as the index of a search: read, or refused with a reason; what was read is written back
 * as the same bytes. And any text cut into passages: all of it, in order, none too long. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os.h"
#include "base/utf8.h"
#include "cli/search/index.h"
#include "cli/search/passages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { DIMENSIONS = 2 };

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* The checksum is made right, so that what it protects is reached too. */
static void read_index(const uint8_t *data, size_t size, bool sealed)
{
    search_index x = {.dimensions = DIMENSIONS};
    bz_error err = {0};
    uint8_t *bytes = malloc(size + BZ_SHA256_BYTES);
    must(bytes != NULL);
    memcpy(bytes, data, size);
    if (sealed) {
        bz_sha256 s;
        bz_sha256_begin(&s);
        bz_sha256_add(&s, bytes, size);
        bz_sha256_end(&s, bytes + size);
        size += BZ_SHA256_BYTES;
    }
    const bz_status status = search_index_read(&x, bytes, size, &err);
    must(status == BZ_OK || (x.n == 0 && x.entries == NULL && err.text[0]));
    if (status == BZ_OK) {
        char path[64], *again;
        size_t n;
        for (size_t i = 0; i < x.n; i++) {
            must(search_index_find(&x, x.entries[i].key) == &x.entries[i]);
            x.entries[i].used = true;
        }
        snprintf(path, sizeof path, "/tmp/bezel-fuzz-search-%d", (int)getpid());
        must(search_index_write(&x, path, &err) == BZ_OK);
        must(bz_os_read_small(path, size, &again, &n, &err) == BZ_OK);
        must(n == size && memcmp(again, bytes, n) == 0);
        free(again);
        unlink(path);
    }
    search_index_free(&x);
    free(bytes);
}

static bool blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void cut(const char *text, size_t len, bool markdown, size_t max)
{
    passages p = {0};
    size_t at = 0, line_at = 0;
    uint32_t line = 1;
    must(passages_cut(&p, text, len, markdown, max));
    for (size_t i = 0; i <= p.n; i++) {
        const size_t next = i < p.n ? p.list[i].at : len;
        must(next >= at && next <= len);
        for (; at < next; at++) {
            must(blank(text[at]));
        }
        if (i < p.n) {
            const passage *one = &p.list[i];
            must(one->len && one->len <= max && one->len <= len - at);
            must(!blank(text[at]) && !blank(text[at + one->len - 1]));
            must(bz_utf8_valid(text + at, one->len));
            for (; line_at < at; line_at++) {
                line += text[line_at] == '\n';
            }
            must(one->line == line);
            at += one->len;
        }
    }
    const bz_str title = passages_title(text, len);
    must(title.len == 0 || (title.data >= text && title.data + title.len <= text + len));
    free(p.list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    char *text = malloc(size); /* of exactly that size, so that sanitizers see a read past it */
    must(text != NULL);
    memcpy(text, data + 1, size - 1);
    if ((data[0] & 3) < 2) {
        read_index(data + 1, size - 1, data[0] & 1);
    } else if (bz_utf8_valid(text, size - 1)) {
        cut(text, size - 1, data[0] & 1, 8 + (size_t)(data[0] >> 2));
    }
    free(text);
    return 0;
}
