/* Any journal, any challenge, any token: must not crash, and what is accepted must be possible and
 * safe to send.
 *
 * Input: the lines of a journal after the first one, a NUL, a WWW-Authenticate header, a NUL, and
 * the answer of a token server. The first line of the journal is the right one if the first byte is
 * '+', which is removed; otherwise the input has it too.
 */
#include "store/pull_auth.h"
#include "store/pull_journal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SIZE = 1000000 };
static const char DIGEST[BZ_DIGEST_TEXT] =
    "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_ranges(const bz_ranges *r)
{
    for (size_t i = 0; i < r->n; i++) {
        must(r->list[i].from < r->list[i].to && r->list[i].to <= SIZE);
        must(i == 0 || r->list[i - 1].to < r->list[i].from);
    }
    must(bz_ranges_bytes(r) <= SIZE);
}

/* What a journal lists, written as a journal, is read as the same. */
static void check_again(const bz_ranges *r)
{
    char *text = malloc((r->n + 1) * BZ_JOURNAL_LINE);
    bz_ranges again = {0};
    if (text) {
        size_t n = bz_journal_head(text, DIGEST, SIZE);
        for (size_t i = r->n; i-- > 0;) {
            n += bz_journal_range(text + n, r->list[i]);
        }
        must(bz_journal_parse(text, n, DIGEST, SIZE, &again) == n);
        must(again.n == r->n &&
             (r->n == 0 || memcmp(again.list, r->list, r->n * sizeof *r->list) == 0));
    }
    free(text);
    free(again.list);
}

static void check_journal(const char *lines, size_t n)
{
    const bool with_head = n && lines[0] == '+';
    char *text = malloc(n + BZ_JOURNAL_LINE);
    bz_ranges done = {0};
    if (text) {
        size_t at = with_head ? bz_journal_head(text, DIGEST, SIZE) : 0;
        memcpy(text + at, lines + with_head, n - with_head);
        at += n - with_head;
        char *exact = realloc(text, at ? at : 1); /* so that a read past its end is seen */
        text = exact ? exact : text;
        const size_t used = bz_journal_parse(text, at, DIGEST, SIZE, &done);
        must(used <= at && (used || done.n == 0) && (!with_head || used));
        check_ranges(&done);
        check_again(&done);
    }
    free(done.list);
    free(text);
}

static void check_printable(const char *text, size_t cap)
{
    must(memchr(text, 0, cap) && text[0]);
    for (; *text; text++) {
        must(*text > 0x20 && *text < 0x7F);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char url[BZ_AUTH_URL], token[BZ_AUTH_TOKEN];
    bz_str part[3] = {{0}};
    const char *p = (const char *)data, *end = p + size;
    for (int i = 0; i < 3; i++) {
        const char *cut = i < 2 && p < end ? memchr(p, 0, (size_t)(end - p)) : NULL;
        part[i] = (bz_str){p, (size_t)((cut ? cut : end) - p)};
        p = cut ? cut + 1 : end;
    }
    check_journal(part[0].data, part[0].len);
    if (bz_auth_token_url(part[1], url)) {
        check_printable(url, sizeof url);
    }
    if (bz_auth_token(part[2], token)) {
        check_printable(token, sizeof token);
    }
    return 0;
}
