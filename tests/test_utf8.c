/* UTF-8: every code point there and back, every short byte string against a check
 * written the other way round, and the boundaries of table 3-7 by hand. */
#include "base/utf8.h"
#include "support/check.h"

#include <string.h>

/* Is text[0..n) exactly one character? Decodes by arithmetic alone, then asks whether
 * the value needs that many bytes and is allowed. */
static bool one_character(const unsigned char *b, size_t n)
{
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t value;
    if (n == 1) {
        return b[0] < 0x80;
    }
    if (n == 2 && b[0] >> 5 == 6) {
        value = b[0] & 31u;
    } else if (n == 3 && b[0] >> 4 == 14) {
        value = b[0] & 15u;
    } else if (n == 4 && b[0] >> 3 == 30) {
        value = b[0] & 7u;
    } else {
        return false;
    }
    for (size_t i = 1; i < n; i++) {
        if (b[i] >> 6 != 2) {
            return false;
        }
        value = value * 64 + (b[i] & 63u);
    }
    return value >= smallest[n] && value <= 0x10FFFF && (value < 0xD800 || value > 0xDFFF);
}

static void every_code_point(void)
{
    begin("every code point encodes and decodes");
    for (uint32_t cp = 0; cp <= 0x10FFFF; cp++) {
        if (cp >= 0xD800 && cp <= 0xDFFF) {
            continue;
        }
        char text[4];
        uint32_t back = 0;
        size_t n = bz_utf8_encode(cp, text);
        bool good = bz_utf8_decode(text, n, &back) == n && back == cp && bz_utf8_valid(text, n) &&
                    one_character((const unsigned char *)text, n) && bz_utf8_complete(text, n) == n;
        for (size_t k = 1; k < n; k++) { /* every proper beginning is held back */
            good = good && bz_utf8_complete(text, k) == 0 && bz_utf8_decode(text, k, &back) == 1 &&
                   back == BZ_UTF8_REPLACEMENT;
        }
        if (!good) {
            CHECKF(false, "U+%04X", (unsigned)cp);
        }
    }
}

static void every_short_string(void)
{
    begin("all strings of up to three bytes, and four with the edges of each byte");
    static const unsigned char edges[] = {0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0,
                                          0xBF, 0xC0, 0xC2, 0xDF, 0xE0, 0xED, 0xEF,
                                          0xF0, 0xF3, 0xF4, 0xF5, 0xFF};
    for (uint32_t v = 0; v < 1u << 24; v++) {
        unsigned char b[4] = {(unsigned char)(v >> 16), (unsigned char)(v >> 8), (unsigned char)v,
                              0x80};
        size_t want = 1;
        bool bad = true;
        for (size_t n = 1; n <= 3; n++) {
            if (one_character(b, n)) {
                want = n;
                bad = false;
            }
        }
        uint32_t cp;
        size_t got = bz_utf8_decode((const char *)b, 3, &cp);
        if (got != want || (bad && cp != BZ_UTF8_REPLACEMENT)) {
            CHECKF(false, "bytes %06X: %zu instead of %zu", (unsigned)v, got, want);
        }
    }
    for (int a = 0xC0; a < 0x100; a++) {
        for (size_t i = 0; i < sizeof edges; i++) {
            for (size_t j = 0; j < sizeof edges; j++) {
                for (size_t k = 0; k < sizeof edges; k++) {
                    unsigned char b[4] = {(unsigned char)a, edges[i], edges[j], edges[k]};
                    size_t want = one_character(b, 4)   ? 4
                                  : one_character(b, 3) ? 3
                                  : one_character(b, 2) ? 2
                                                        : 1;
                    uint32_t cp;
                    size_t got = bz_utf8_decode((const char *)b, 4, &cp);
                    if (got != want) {
                        CHECKF(false, "%02X %02X %02X %02X: %zu instead of %zu", b[0], b[1], b[2],
                               b[3], got, want);
                    }
                }
            }
        }
    }
}

static void bad_bytes(void)
{
    begin("one U+FFFD per bad byte");
    static const struct {
        const char *text;
        size_t characters;
    } cases[] = {
        {"\xC0\xAF", 2},                     /* overlong slash */
        {"\xE0\x80\xAF", 3},                 /* the same in three bytes */
        {"\xF0\x80\x80\xAF", 4},             /* and in four */
        {"\xED\xA0\x80", 3},                 /* a surrogate */
        {"\xF4\x90\x80\x80", 4},             /* above U+10FFFF */
        {"\xF5\x80\x80\x80", 4},             /* no such lead byte */
        {"\xE2\x96", 2},                     /* cut short */
        {"\xE2\x96x", 3},                    /* interrupted */
        {"\xF0\x9F\x99\xF0\x9F\x99\x82", 4}, /* cut short, then whole */
        {"a\xFFz", 3},
        {"\x80\x80\x80", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t len = strlen(cases[i].text), n = 0;
        for (size_t at = 0; at < len; n++) {
            uint32_t cp;
            at += bz_utf8_decode(cases[i].text + at, len - at, &cp);
        }
        CHECKF(n == cases[i].characters, "case %zu: %zu characters", i, n);
        CHECKF(!bz_utf8_valid(cases[i].text, len), "case %zu is valid", i);
    }
    char out[4];
    CHECK(bz_utf8_encode(0xD800, out) == 3 && memcmp(out, "\xEF\xBF\xBD", 3) == 0);
    CHECK(bz_utf8_encode(0x110000, out) == 3 && memcmp(out, "\xEF\xBF\xBD", 3) == 0);
    CHECK(bz_utf8_valid("a\0b", 3) && bz_utf8_valid("", 0));
}

static void held_back(void)
{
    begin("incomplete characters at the end are held back");
    CHECK(bz_utf8_complete("", 0) == 0);
    CHECK(bz_utf8_complete("abc", 3) == 3);
    CHECK(bz_utf8_complete("ab\xE2", 3) == 2);
    CHECK(bz_utf8_complete("ab\xE2\x96", 4) == 2);
    CHECK(bz_utf8_complete("ab\xE2\x96\x81", 5) == 5);
    CHECK(bz_utf8_complete("\xF0\x9F\x99", 3) == 0);
    CHECK(bz_utf8_complete("\xE0\x80", 2) == 2);     /* overlong: nothing can complete it */
    CHECK(bz_utf8_complete("\xED\xA0", 2) == 2);     /* surrogate */
    CHECK(bz_utf8_complete("\xF4\x90\x80", 3) == 3); /* too large */
    CHECK(bz_utf8_complete("\x80\x80", 2) == 2);
    CHECK(bz_utf8_complete("\xC0", 1) == 1);
    CHECK(bz_utf8_complete("\xFF", 1) == 1);
    CHECK(bz_utf8_complete("\xE2\xE2", 2) == 1); /* the first is lost, the second may live */
}

int main(void)
{
    every_code_point();
    every_short_string();
    bad_bytes();
    held_back();
    return finish();
}
