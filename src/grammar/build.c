#include "grammar/build.h"

#include <stdlib.h>

#include "base/utf8.h"

void bz_build_free(bz_build *b)
{
    free(b->states);
    free(b->edges);
    free(b->rules);
    free(b->loops);
    *b = (bz_build){0};
}

bz_status bz_build_status(const bz_build *b, bz_error *err)
{
    return !b->failed     ? BZ_OK
           : b->too_large ? bz_fail(err, BZ_BAD_SCHEMA,
                                    "The grammar is too large: it has more than %d states.",
                                    (int)BZ_MAX_STATES)
                          : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the grammar.");
}

/* Room for one more item of `size` bytes. */
static bool grow(bz_build *b, void **items, uint32_t n, uint32_t *cap, size_t size)
{
    if (n < *cap) {
        return !b->failed;
    }
    const uint32_t more = *cap ? 2 * *cap : 64;
    b->too_large |= n >= BZ_MAX_STATES;
    void *p = b->failed || b->too_large ? NULL : realloc(*items, more * size);
    if (!p) {
        b->failed = true;
        return false;
    }
    *items = p;
    *cap = more;
    return true;
}

uint32_t bz_build_state(bz_build *b)
{
    if (!grow(b, (void **)&b->states, b->n_states, &b->cap_states, sizeof *b->states)) {
        return 0;
    }
    b->states[b->n_states] = 0;
    return b->n_states++;
}

uint32_t bz_build_rule(bz_build *b)
{
    const uint32_t start = bz_build_state(b), end = bz_build_state(b);
    if (!grow(b, (void **)&b->rules, b->n_rules, &b->cap_rules, sizeof *b->rules)) {
        return 0;
    }
    b->rules[b->n_rules] = (bz_rule){.start = start, .end = end};
    return b->n_rules++;
}

uint32_t bz_build_loop(bz_build *b, uint32_t body, uint32_t min, uint32_t max)
{
    if (!grow(b, (void **)&b->loops, b->n_loops, &b->cap_loops, sizeof *b->loops)) {
        return BZ_LOOP_BIT;
    }
    b->loops[b->n_loops] = (bz_loop){body, min, max};
    return BZ_LOOP_BIT | b->n_loops++;
}

static void add_edge(bz_build *b, uint32_t from, bz_nfa_edge edge)
{
    if (b->n_edges == 0) {
        b->n_edges = 1; /* index 0 means none */
    }
    if (!grow(b, (void **)&b->edges, b->n_edges, &b->cap_edges, sizeof *b->edges)) {
        return;
    }
    edge.next = b->states[from];
    b->edges[b->n_edges] = edge;
    b->states[from] = b->n_edges++;
}

void bz_build_bytes(bz_build *b, uint32_t from, uint32_t to, uint8_t lo, uint8_t hi)
{
    add_edge(b, from, (bz_nfa_edge){.kind = BZ_EDGE_BYTES, .to = to, .lo = lo, .hi = hi});
}

void bz_build_empty(bz_build *b, uint32_t from, uint32_t to)
{
    add_edge(b, from, (bz_nfa_edge){.kind = BZ_EDGE_EMPTY, .to = to});
}

void bz_build_call(bz_build *b, uint32_t from, uint32_t to, uint32_t callee)
{
    add_edge(b, from, (bz_nfa_edge){.kind = BZ_EDGE_CALL, .to = to, .callee = callee});
}

void bz_build_text(bz_build *b, uint32_t from, uint32_t to, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const uint32_t next = i + 1 < len ? bz_build_state(b) : to;
        bz_build_bytes(b, from, next, (uint8_t)text[i], (uint8_t)text[i]);
        from = next;
    }
    if (len == 0) {
        bz_build_empty(b, from, to);
    }
}

/* Ranges of texts of n bytes whose continuation bytes may be anything from lo to hi: cut into parts
 * in which every byte has a range of its own. */
static void byte_ranges(bz_build *b, uint32_t from, uint32_t to, const uint8_t *lo,
                        const uint8_t *hi, size_t n)
{
    static const uint8_t least[3] = {0x80, 0x80, 0x80}, most[3] = {0xBF, 0xBF, 0xBF};
    if (n == 1) {
        bz_build_bytes(b, from, to, lo[0], hi[0]);
        return;
    }
    if (lo[0] == hi[0]) {
        const uint32_t mid = bz_build_state(b);
        bz_build_bytes(b, from, mid, lo[0], lo[0]);
        byte_ranges(b, mid, to, lo + 1, hi + 1, n - 1);
        return;
    }
    bool low = false,
         high = false; /* the first and last lead byte have continuations of their own */
    for (size_t i = 1; i < n; i++) {
        low |= lo[i] != 0x80;
        high |= hi[i] != 0xBF;
    }
    if (low) {
        const uint32_t mid = bz_build_state(b);
        bz_build_bytes(b, from, mid, lo[0], lo[0]);
        byte_ranges(b, mid, to, lo + 1, most, n - 1);
    }
    const int first = lo[0] + low, last = hi[0] - high;
    if (first <= last) {
        const uint32_t mid = bz_build_state(b);
        bz_build_bytes(b, from, mid, (uint8_t)first, (uint8_t)last);
        byte_ranges(b, mid, to, least, most, n - 1);
    }
    if (high) {
        const uint32_t mid = bz_build_state(b);
        bz_build_bytes(b, from, mid, hi[0], hi[0]);
        byte_ranges(b, mid, to, least, hi + 1, n - 1);
    }
}

void bz_build_chars(bz_build *b, uint32_t from, uint32_t to, uint32_t first, uint32_t last)
{
    /* characters of 1, 2, 3 (before and after the surrogates) and 4 bytes */
    static const struct {
        uint32_t first, last;
    } sizes[] = {{0, 0x7F}, {0x80, 0x7FF}, {0x800, 0xD7FF}, {0xE000, 0xFFFF}, {0x10000, 0x10FFFF}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const uint32_t x = first > sizes[i].first ? first : sizes[i].first,
                       y = last < sizes[i].last ? last : sizes[i].last;
        if (x > y) {
            continue;
        }
        char lo[4], hi[4];
        const size_t n = bz_utf8_encode(x, lo);
        bz_utf8_encode(y, hi);
        byte_ranges(b, from, to, (const uint8_t *)lo, (const uint8_t *)hi, n);
    }
}
