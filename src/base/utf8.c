/* UTF-8 decoding, encoding and validation. */
#include "base/utf8.h"

/* What the first byte of a character determines: its length, and the allowed range of the second
 * byte. That range excludes overlong forms, surrogates and values above U+10FFFF; later bytes are
 * always 80..BF. */
typedef struct lead {
    size_t len; /* 0: not a first byte */
    unsigned lo, hi;
} lead;

static lead lead_of(unsigned char c)
{
    if (c < 0x80) {
        return (lead){1, 0, 0};
    }
    if (c < 0xC2 || c > 0xF4) {
        return (lead){0, 0, 0};
    }
    if (c < 0xE0) {
        return (lead){2, 0x80, 0xBF};
    }
    if (c < 0xF0) {
        return (lead){3, c == 0xE0 ? 0xA0 : 0x80, c == 0xED ? 0x9F : 0xBF};
    }
    return (lead){4, c == 0xF0 ? 0x90 : 0x80, c == 0xF4 ? 0x8F : 0xBF};
}

/* How many bytes at the start of text, at most l.len, form a valid prefix of the character. */
static size_t valid_prefix(const char *text, size_t len, lead l)
{
    size_t n = 1;
    while (n < len && n < l.len) {
        unsigned char c = (unsigned char)text[n];
        unsigned lo = n == 1 ? l.lo : 0x80, hi = n == 1 ? l.hi : 0xBF;
        if (c < lo || c > hi) {
            break;
        }
        n++;
    }
    return n;
}

size_t bz_utf8_decode(const char *text, size_t len, uint32_t *cp)
{
    unsigned char first = (unsigned char)text[0];
    if (first < 0x80) {
        *cp = first;
        return 1;
    }
    lead l = lead_of(first);
    if (l.len == 0 || valid_prefix(text, len, l) < l.len) {
        *cp = BZ_UTF8_REPLACEMENT;
        return 1;
    }
    uint32_t value = first & (0x7Fu >> l.len);
    for (size_t i = 1; i < l.len; i++) {
        value = value << 6 | ((unsigned char)text[i] & 0x3Fu);
    }
    *cp = value;
    return l.len;
}

size_t bz_utf8_encode(uint32_t cp, char out[4])
{
    if (cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF)) {
        cp = BZ_UTF8_REPLACEMENT;
    }
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xC0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3F));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xE0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3F));
        out[2] = (char)(0x80 | (cp & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3F));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3F));
    out[3] = (char)(0x80 | (cp & 0x3F));
    return 4;
}

size_t bz_utf8_complete(const char *text, size_t len)
{
    /* An incomplete character starts at one of the last three bytes, is valid so far, and is
     * longer than what is left of the text. */
    for (size_t back = 1; back <= 3 && back <= len; back++) {
        const char *p = text + len - back;
        lead l = lead_of((unsigned char)*p);
        if (l.len > back && valid_prefix(p, back, l) == back) {
            return len - back;
        }
    }
    return len;
}

bool bz_utf8_valid(const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        size_t n = bz_utf8_decode(text + i, len - i, &cp);
        if (n == 1 && (unsigned char)text[i] >= 0x80) {
            return false;
        }
        i += n;
    }
    return true;
}
