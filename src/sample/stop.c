#include "sample/stop.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* One string with Knuth, Morris and Pratt's table: back[i] is the length of the longest proper
 * prefix of text that ends text[0..i]. */
typedef struct pattern {
    char *text;
    size_t *back;
    size_t len;
    size_t at; /* the longest prefix that the stream ends with, in bytes */
} pattern;

struct bz_stop {
    pattern *patterns;
    size_t n, longest;
    /* Text held back is what the furthest pattern has matched: there is no other copy. */
    const pattern *lead;
    size_t held;
    bool matched;
};

void bz_stop_free(bz_stop *m)
{
    if (!m) {
        return;
    }
    for (size_t i = 0; m->patterns && i < m->n; i++) {
        free(m->patterns[i].text);
        free(m->patterns[i].back);
    }
    free(m->patterns);
    free(m);
}

/* The length of the longest prefix that the stream ends with after byte c. */
static size_t advance(const pattern *p, size_t at, char c)
{
    while (at > 0 && p->text[at] != c) {
        at = p->back[at - 1];
    }
    return p->text[at] == c ? at + 1 : at;
}

static bool fill(pattern *p, const char *string)
{
    p->len = strlen(string);
    p->text = malloc(p->len + 1);
    p->back = malloc(p->len * sizeof *p->back);
    if (!p->text || !p->back) {
        return false;
    }
    memcpy(p->text, string, p->len + 1);
    p->back[0] = 0;
    for (size_t i = 1; i < p->len; i++) {
        p->back[i] = advance(p, p->back[i - 1], p->text[i]);
    }
    return true;
}

bz_status bz_stop_new(bz_stop **out, const char *const *strings, size_t n, bz_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!strings[i] || !strings[i][0]) {
            return bz_fail(err, BZ_BAD_REQUEST, "Stop string %zu is empty.", i + 1);
        }
        if (!bz_utf8_valid(strings[i], strlen(strings[i]))) {
            return bz_fail(err, BZ_BAD_REQUEST, "Stop string %zu is not valid UTF-8.", i + 1);
        }
    }
    bz_stop *m = calloc(1, sizeof *m);
    bool ok = m && (m->patterns = calloc(n + 1, sizeof *m->patterns)) != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        m->n = i + 1;
        ok = fill(&m->patterns[i], strings[i]);
        m->longest = m->patterns[i].len > m->longest ? m->patterns[i].len : m->longest;
    }
    if (!ok) {
        bz_stop_free(m);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for %zu stop strings.", n);
    }
    *out = m;
    return BZ_OK;
}

size_t bz_stop_longest(const bz_stop *m)
{
    return m->longest;
}

bool bz_stop_matched(const bz_stop *m)
{
    return m->matched;
}

/* Takes one byte; writes what is no longer held back and returns how much. */
static size_t push_byte(bz_stop *m, char c, char *out)
{
    const pattern *lead = NULL, *found = NULL;
    for (size_t i = 0; i < m->n; i++) {
        pattern *p = &m->patterns[i];
        p->at = advance(p, p->at, c);
        lead = !lead || p->at > lead->at ? p : lead;
        found = p->at == p->len && (!found || p->len > found->len) ? p : found;
    }
    const size_t pending = m->held + 1; /* what was held, and c */
    const size_t keep = found ? found->len : lead ? lead->at : 0;
    const size_t shown = pending - keep;
    for (size_t i = 0; i < shown; i++) {
        out[i] = i < m->held ? m->lead->text[i] : c;
    }
    m->lead = lead;
    m->held = keep;
    if (found) {
        m->matched = true;
        m->held = 0;
    }
    return shown;
}

size_t bz_stop_push(bz_stop *m, const char *text, size_t len, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < len && !m->matched; i++) {
        n += push_byte(m, text[i], out + n);
    }
    return n;
}

size_t bz_stop_flush(bz_stop *m, char *out)
{
    size_t n = m->held;
    if (n) {
        memcpy(out, m->lead->text, n);
    }
    m->held = 0;
    for (size_t i = 0; i < m->n; i++) {
        m->patterns[i].at = 0;
    }
    return n;
}
