#include "grammar/safe.h"

#include <stdlib.h>
#include <string.h>

/* ---- safe characters ---------------------------------------------------------------------------
 */

/* Where in a character a text is: before it, before its last byte, its last two or three, or after
 * a first byte that limits the next. E2_80 is the beginning of the line separators. */
typedef enum utf8_place {
    WHOLE,
    ONE,
    TWO,
    THREE,
    E0,
    E2,
    E2_80,
    ED,
    F0,
    F4,
    UTF8_PLACES
} utf8_place;

typedef struct byte_step {
    uint8_t lo, hi;
    uint8_t to;
} byte_step;

#define MAX_STEPS 14

static const byte_step steps[UTF8_PLACES][MAX_STEPS] = {
    [WHOLE] = {{0x20, 0x21, WHOLE},
               {0x23, 0x5B, WHOLE},
               {0x5D, 0x7E, WHOLE},
               {0xC2, 0xDF, ONE},
               {0xE0, 0xE0, E0},
               {0xE1, 0xE1, TWO},
               {0xE2, 0xE2, E2},
               {0xE3, 0xEC, TWO},
               {0xED, 0xED, ED},
               {0xEE, 0xEF, TWO},
               {0xF0, 0xF0, F0},
               {0xF1, 0xF3, THREE},
               {0xF4, 0xF4, F4}},
    [ONE] = {{0x80, 0xBF, WHOLE}},
    [TWO] = {{0x80, 0xBF, ONE}},
    [THREE] = {{0x80, 0xBF, TWO}},
    [E0] = {{0xA0, 0xBF, ONE}},
    [E2] = {{0x80, 0x80, E2_80}, {0x81, 0xBF, ONE}},
    [E2_80] = {{0x80, 0xA7, WHOLE}, {0xAA, 0xBF, WHOLE}},
    [ED] = {{0x80, 0x9F, ONE}},
    [F0] = {{0x90, 0xBF, TWO}},
    [F4] = {{0x80, 0x8F, TWO}},
};

static int step_of(utf8_place place, uint8_t byte)
{
    for (int i = 0; i < MAX_STEPS && steps[place][i].hi; i++) {
        if (byte >= steps[place][i].lo && byte <= steps[place][i].hi) {
            return steps[place][i].to;
        }
    }
    return -1;
}

/* Characters of a safe text; 0: it is not safe. */
static uint32_t count_safe(bz_str s)
{
    int place = WHOLE;
    uint32_t n = 0;
    for (size_t i = 0; i < s.len && place >= 0; i++) {
        n += place == WHOLE;
        place = step_of((utf8_place)place, (uint8_t)s.data[i]);
    }
    return place == WHOLE ? n : 0;
}

void bz_safe_free(bz_safe *s)
{
    free(s->levels);
    free(s->longer);
    bz_trie_free(s->others);
}

bz_status bz_safe_new(bz_safe *s, const bz_str *text, uint32_t n, bz_error *err)
{
    const size_t words = (n + (size_t)63) / 64;
    bz_str *others = calloc(n + (size_t)1, sizeof *others);
    s->levels = calloc(BZ_SAFE_LEVELS * words + 1, sizeof *s->levels);
    s->longer = malloc((n + (size_t)1) * sizeof *s->longer);
    if (!others || !s->levels || !s->longer) {
        free(others);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the vocabulary's tree.");
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t characters = count_safe(text[i]);
        if (characters == 0) {
            others[i] = text[i];
        } else if (characters > BZ_SAFE_LEVELS) {
            s->longer[s->n_longer++] = (bz_safe_token){(int32_t)i, characters};
        } else {
            s->levels[(characters - 1) * words + (i >> 6)] |= (uint64_t)1 << (i & 63);
            s->counts[characters - 1]++;
        }
    }
    for (size_t i = words; i < BZ_SAFE_LEVELS * words; i++) {
        s->levels[i] |= s->levels[i - words];
    }
    for (int i = 1; i < BZ_SAFE_LEVELS; i++) {
        s->counts[i] += s->counts[i - 1];
    }
    bz_safe_token *fewer = realloc(s->longer, (s->n_longer + (size_t)1) * sizeof *fewer);
    s->longer = fewer ? fewer : s->longer;
    const bz_status status = bz_trie_new(&s->others, others, n, err);
    free(others);
    return status;
}

/* ---- states that take them
 * ------------------------------------------------------------------------ */

enum { MAX_PLACES = 512 }; /* looked at before giving up */

typedef struct place {
    uint32_t state;
    utf8_place utf8;
} place;

typedef struct search {
    const bz_dfa *d;
    place list[MAX_PLACES];
    uint32_t n;
} search;

static bool visit(search *x, uint32_t state, utf8_place utf8)
{
    for (uint32_t i = x->n; i-- > 0;) {
        if (x->list[i].state == state && x->list[i].utf8 == utf8) {
            return true;
        }
    }
    if (x->n == MAX_PLACES) {
        return false;
    }
    x->list[x->n++] = (place){state, utf8};
    return true;
}

/* Whether the state has edges for all bytes of a step; visits where they lead. */
static bool covers(search *x, uint32_t state, byte_step step, bool counted)
{
    const bz_dfa_state *s = &x->d->states[state];
    unsigned next = step.lo;
    for (uint32_t i = 0; i < s->n_edges && next <= step.hi; i++) {
        const bz_dfa_edge *e = &x->d->edges[s->edges + i];
        if (e->hi < next) {
            continue;
        }
        if (e->lo > next) {
            return false;
        }
        next = e->hi + 1u;
        if (counted && step.to == WHOLE) { /* the round must end with the character */
            const bz_dfa_state *to = &x->d->states[e->to];
            if (!to->accepts || to->n_edges) {
                return false;
            }
        } else if (!visit(x, e->to, (utf8_place)step.to)) {
            return false;
        }
    }
    return next > step.hi;
}

bool bz_safe_taken(const bz_grammar *g, uint32_t state, bool counted, const bz_byte_set *follow)
{
    const bz_compiled_rule *rule = &g->rules[g->rule_of[state]];
    bool follows = false; /* a safe character may come after the rule */
    for (int i = 0; i < MAX_STEPS && steps[WHOLE][i].hi; i++) {
        for (unsigned byte = steps[WHOLE][i].lo; byte <= steps[WHOLE][i].hi; byte++) {
            follows |= bz_byte_in(follow, (uint8_t)byte);
        }
    }
    if (counted && (follows || state != rule->start)) {
        return false;
    }
    search x = {.d = &g->dfa};
    visit(&x, state, WHOLE);
    for (uint32_t i = 0; i < x.n; i++) {
        const place p = x.list[i];
        const bz_dfa_state *s = &g->dfa.states[p.state];
        if (s->n_calls || (s->accepts && follows)) {
            return false;
        }
        for (int k = 0; k < MAX_STEPS && steps[p.utf8][k].hi; k++) {
            if (!covers(&x, p.state, steps[p.utf8][k], counted)) {
                return false;
            }
        }
    }
    return true;
}
