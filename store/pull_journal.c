#include "store/pull_journal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* FNV-1a. It finds torn and damaged lines; the SHA-256 of the blob finds everything else. */
static uint32_t sum_of(const char *text, size_t n)
{
    uint32_t sum = 2166136261u;
    for (size_t i = 0; i < n; i++) {
        sum = (sum ^ (unsigned char)text[i]) * 16777619u;
    }
    return sum;
}

enum { SUM_DIGITS = 8 };

/* Appends the sum and the line end. */
static size_t seal(char line[BZ_JOURNAL_LINE], int n)
{
    return (size_t)n + (size_t)snprintf(line + n, BZ_JOURNAL_LINE - (size_t)n, " %08" PRIx32 "\n",
                                        sum_of(line, (size_t)n));
}

size_t bz_journal_head(char line[BZ_JOURNAL_LINE], const char digest[BZ_DIGEST_TEXT], uint64_t size)
{
    return seal(line, snprintf(line, BZ_JOURNAL_LINE, "bezel-pull 1 %.71s %" PRIu64, digest, size));
}

size_t bz_journal_range(char line[BZ_JOURNAL_LINE], bz_range range)
{
    return seal(line,
                snprintf(line, BZ_JOURNAL_LINE, "%" PRIu64 " %" PRIu64, range.from, range.to));
}

/* The next line without its sum and line end; *used: bytes with them. */
static bool next_line(const char *text, size_t n, bz_str *line, size_t *used)
{
    const char *end = n ? memchr(text, '\n', n) : NULL;
    char sum[SUM_DIGITS + 2];
    if (!end || end - text <= SUM_DIGITS + 1) {
        return false;
    }
    *used = (size_t)(end - text) + 1;
    *line = (bz_str){text, *used - SUM_DIGITS - 2};
    snprintf(sum, sizeof sum, " %08" PRIx32, sum_of(line->data, line->len));
    return memcmp(line->data + line->len, sum, SUM_DIGITS + 1) == 0;
}

/* Decimal digits only, without overflow. */
static bool cut_number(bz_str *s, uint64_t *value)
{
    size_t i = 0;
    *value = 0;
    for (; i < s->len && s->data[i] >= '0' && s->data[i] <= '9'; i++) {
        const uint64_t digit = (uint64_t)(s->data[i] - '0');
        if (*value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        *value = *value * 10 + digit;
    }
    *s = (bz_str){s->data + i, s->len - i};
    return i > 0;
}

size_t bz_journal_parse(const char *text, size_t n, const char digest[BZ_DIGEST_TEXT],
                        uint64_t size, bz_ranges *done)
{
    char head[BZ_JOURNAL_LINE];
    size_t at = bz_journal_head(head, digest, size), used;
    bz_str line;
    if (n < at || memcmp(text, head, at) != 0) {
        return 0;
    }
    for (; next_line(text + at, n - at, &line, &used); at += used) {
        bz_range r;
        bool valid = cut_number(&line, &r.from) && line.len && line.data[0] == ' ';
        if (valid) {
            line = (bz_str){line.data + 1, line.len - 1};
            valid = cut_number(&line, &r.to) && line.len == 0 && r.from < r.to && r.to <= size;
        }
        if (!valid) {
            break;
        }
        if (!bz_ranges_add(done, r.from, r.to)) {
            return 0;
        }
    }
    return at;
}
