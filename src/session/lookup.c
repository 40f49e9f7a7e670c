#include "session/lookup.h"

#include <stdlib.h>

enum { MIN_BITS = 8, MAX_BITS = 16 };

bool bz_lookup_init(bz_lookup *l, uint32_t context)
{
    uint32_t bits = MIN_BITS;
    while (bits < MAX_BITS && 1u << bits < context) {
        bits++;
    }
    *l = (bz_lookup){.bits = bits};
    l->pairs = calloc((size_t)1 << bits, sizeof *l->pairs);
    l->triples = calloc((size_t)1 << bits, sizeof *l->triples);
    return l->pairs && l->triples;
}

void bz_lookup_free(bz_lookup *l)
{
    free(l->pairs);
    free(l->triples);
    *l = (bz_lookup){0};
}

/* Slot of the `count` tokens before `end`. */
static uint32_t slot(const bz_lookup *l, const int32_t *tokens, uint32_t end, uint32_t count)
{
    uint32_t h = 0;
    for (uint32_t i = end - count; i < end; i++) {
        h = (h ^ (uint32_t)tokens[i]) * 0x9E3779B1u;
        h ^= h >> 15;
    }
    return h >> (32 - l->bits);
}

/* Whether the `count` tokens before a and those before b are the same: slots collide. */
static bool same(const int32_t *tokens, uint32_t a, uint32_t b, uint32_t count)
{
    for (uint32_t i = 1; i <= count; i++) {
        if (tokens[a - i] != tokens[b - i]) {
            return false;
        }
    }
    return true;
}

/* The position after the last occurrence of the last `count` tokens; 0: there is none. */
static uint32_t find(const bz_lookup *l, const uint32_t *table, const int32_t *tokens, uint32_t n,
                     uint32_t count)
{
    const uint32_t at = n >= count ? table[slot(l, tokens, n, count)] : 0;
    return at && same(tokens, at, n, count) ? at : 0;
}

uint32_t bz_lookup_find(bz_lookup *l, int32_t *tokens, uint32_t n, uint32_t most)
{
    for (; l->n < n; l->n++) { /* the end itself has nothing after it and is not indexed yet */
        if (l->n >= 2) {
            l->pairs[slot(l, tokens, l->n, 2)] = l->n;
        }
        if (l->n >= 3) {
            l->triples[slot(l, tokens, l->n, 3)] = l->n;
        }
    }
    uint32_t at = find(l, l->triples, tokens, n, 3), drafts = 0;
    at = at ? at : find(l, l->pairs, tokens, n, 2);
    while (at && drafts < most && tokens[at] >= 0) { /* may read drafts: a repetition goes on */
        tokens[n + drafts++] = tokens[at++];
    }
    return drafts;
}
