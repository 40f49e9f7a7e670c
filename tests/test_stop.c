/* Stop strings in a stream of text, against one that sees the whole text at once. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "sample/random.h"
#include "sample/stop.h"
#include "support/check.h"
#include "support/golden.h"

enum { MOST = 4096 };

static bz_stop *make(const char *const *strings, size_t n)
{
    bz_stop *m = NULL;
    bz_error err = {0};
    CHECKF(bz_stop_new(&m, strings, n, &err) == BZ_OK, "%s", err.text);
    return m;
}

/* ---- one text in pieces ------------------------------------------------------------------ */

/* Pushes pieces ("ab|c|d") and checks what each shows ("|ab|cd"); the last field is the flush. */
static void check_pieces(const char *const *strings, size_t n, const char *pieces,
                         const char *shown, bool matched)
{
    bz_stop *m = make(strings, n);
    char out[MOST], all[MOST];
    size_t len = 0;
    for (const char *p = pieces;;) {
        size_t size = strcspn(p, "|");
        size_t got = bz_stop_push(m, p, size, out);
        memcpy(all + len, out, got);
        len += got;
        all[len++] = '|';
        if (!p[size]) {
            break;
        }
        p += size + 1;
    }
    len += bz_stop_flush(m, all + len);
    all[len] = 0;
    CHECKF(strcmp(all, shown) == 0, "%s gave %s", pieces, all);
    CHECK(bz_stop_matched(m) == matched);
    bz_stop_free(m);
}

static void test_pieces(void)
{
    begin("without stop strings all text passes");
    check_pieces(NULL, 0, "ab|c", "ab|c|", false);

    begin("a stop string across token borders");
    const char *const end[] = {"END"};
    check_pieces(end, 1, "some text EN|D and more", "some text ||", true);
    check_pieces(end, 1, "E|N|D", "|||", true);
    check_pieces(end, 1, "a|END", "a||", true);
    check_pieces(end, 1, "xENDy|z", "x||", true);

    begin("a partial match that fails is shown later, or at the end");
    check_pieces(end, 1, "E|N|X|.", "||ENX|.|", false);
    check_pieces(end, 1, "aE|N", "a||EN", false);
    check_pieces(end, 1, "EE|EEND", "E|EE|", true);

    begin("a partial match inside another");
    const char *const knot[] = {"aabaaa"};
    check_pieces(knot, 1, "aabaa|b|aaa", "|aab||", true);
    check_pieces(knot, 1, "aaaabaaa", "aa|", true);

    begin(
        "several strings: the first to be complete ends the text, the longest of those is removed");
    const char *const nested[] = {"abcd", "bc"};
    check_pieces(nested, 2, "abcd", "a|", true);
    check_pieces(nested, 2, "ab|d", "|abd|", false);
    const char *const tails[] = {"c", "bc", "abc"};
    check_pieces(tails, 3, "xa|b|c", "x|||", true);
    check_pieces(tails, 3, "ab|b|c", "|ab||", true);
    const char *const starts[] = {"ab", "abc"};
    check_pieces(starts, 2, "a|bc", "||", true);

    begin("two strings hold text back, the longer partial match counts");
    const char *const two[] = {"\n\nUser:", "\nStop"};
    check_pieces(two, 2, "hi\n|\nU|se fire", "hi||\n\nUse fire|", false);
    check_pieces(two, 2, "hi\n\nS|top", "hi\n||", true);
    check_pieces(two, 2, "hi\n\nUse\nSto|p", "hi\n\nUse||", true);

    begin("characters of several bytes stay whole");
    const char *const accents[] = {"\xC3\xA9!", "\xE2\x82\xAC"};
    check_pieces(accents, 2, "caf\xC3\xA9|?", "caf|\xC3\xA9?|", false);
    check_pieces(accents, 2, "caf\xC3\xA8", "caf\xC3\xA8|", false);
    check_pieces(accents, 2, "caf\xC3\xA9|!", "caf||", true);
    check_pieces(accents, 2, "10 \xE2\x82\xAD 5 \xE2\x82\xAC", "10 \xE2\x82\xAD 5 |", true);
}

/* ---- against a look at the whole text ------------------------------------------------------ */

static uint64_t draws;

static uint32_t below(uint32_t n)
{
    return (uint32_t)(bz_random_unit(5, draws++) * n);
}

/* Characters that share their first bytes. */
static size_t random_text(char *out, uint32_t characters)
{
    static const char *const set[] = {
        "a", "b", "a", "\xC3\xA9", "\xC3\xA8", "\xE2\x82\xAC", "\xE2\x82\xAD"};
    size_t n = 0;
    for (uint32_t i = 0; i < characters; i++) {
        const char *c = set[below(7)];
        memcpy(out + n, c, strlen(c));
        n += strlen(c);
    }
    out[n] = 0;
    return n;
}

static size_t naive(const char *text, size_t len, const char *const *strings, size_t n,
                    bool *matched)
{
    for (size_t end = 1; end <= len; end++) {
        size_t longest = 0;
        for (size_t i = 0; i < n; i++) {
            size_t size = strlen(strings[i]);
            if (size <= end && size > longest && memcmp(text + end - size, strings[i], size) == 0) {
                longest = size;
            }
        }
        if (longest) {
            *matched = true;
            return end - longest;
        }
    }
    *matched = false;
    return len;
}

static void test_random(void)
{
    begin("random texts in random pieces match a search in the whole text");
    char strings[4][64], text[MOST], out[MOST];
    const char *list[4] = {strings[0], strings[1], strings[2], strings[3]};
    int hits = 0;
    const int rounds = quick_run() ? 500 : 20000;
    for (int i = 0; i < rounds; i++) {
        size_t n = 1 + below(4);
        for (size_t k = 0; k < n; k++) {
            random_text(strings[k], 1 + below(6));
        }
        size_t len = random_text(text, below(200)), shown = 0;
        bool matched;
        size_t want = naive(text, len, list, n, &matched);
        hits += matched;
        bz_stop *m = make(list, n);
        for (size_t at = 0; at < len;) {
            size_t size = 0;
            for (uint32_t c = below(5); c > 0 && at + size < len;
                 c--) { /* whole characters; some pieces are empty */
                uint32_t cp;
                size += bz_utf8_decode(text + at + size, len - at - size, &cp);
            }
            char *exact =
                malloc(size + bz_stop_longest(m)); /* so that sanitizers see a byte too many */
            size_t got = bz_stop_push(m, text + at, size, exact);
            CHECK(got <= size + bz_stop_longest(m));
            CHECK(bz_utf8_valid(exact, got));
            memcpy(out + shown, exact, got);
            shown += got;
            free(exact);
            at += size;
            /* never less than what is certain */
            CHECK(bz_stop_matched(m) || shown + bz_stop_longest(m) > at);
        }
        shown += bz_stop_flush(m, out + shown);
        CHECKF(bz_stop_matched(m) == matched && shown == want && memcmp(out, text, want) == 0,
               "%zu bytes instead of %zu", shown, want);
        CHECK(bz_stop_flush(m, out) == 0);
        bz_stop_free(m);
    }
    CHECK(hits > rounds / 4 && hits < rounds);
}

static void test_requests(void)
{
    begin("invalid stop strings are refused with a reason");
    bz_stop *m = NULL;
    bz_error err = {0};
    const char *const empty[] = {"a", ""}, *const missing[] = {NULL}, *const broken[] = {"\xC3"};
    CHECK(bz_stop_new(&m, empty, 2, &err) == BZ_BAD_REQUEST);
    CHECKF(strcmp(err.text, "Stop string 2 is empty.") == 0, "%s", err.text);
    CHECK(bz_stop_new(&m, missing, 1, &err) == BZ_BAD_REQUEST);
    CHECK(bz_stop_new(&m, broken, 1, &err) == BZ_BAD_REQUEST);
    CHECKF(strcmp(err.text, "Stop string 1 is not valid UTF-8.") == 0, "%s", err.text);
}

int main(void)
{
    test_pieces();
    test_random();
    test_requests();
    return finish();
}
