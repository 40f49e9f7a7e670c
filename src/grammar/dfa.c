/* The subset construction, and products of automata. */
#include "grammar/dfa.h"

#include <stdlib.h>
#include <string.h>

#include "grammar/set_table.h"

void bz_dfa_free(bz_dfa *d)
{
    free(d->states);
    free(d->edges);
    free(d->calls);
    *d = (bz_dfa){0};
}

static bool grow(void **items, uint32_t n, uint32_t *cap, size_t size)
{
    if (n < *cap) {
        return true;
    }
    const uint32_t more = *cap ? 2 * *cap : 64;
    void *p = realloc(*items, more * size);
    if (!p) {
        return false;
    }
    *items = p;
    *cap = more;
    return true;
}

static bool add_state(bz_dfa *d, bool accepts)
{
    if (!grow((void **)&d->states, d->n_states, &d->cap_states, sizeof *d->states)) {
        return false;
    }
    d->states[d->n_states++] =
        (bz_dfa_state){.edges = d->n_edges, .calls = d->n_calls, .accepts = accepts};
    return true;
}

/* To the state added last, in order of bytes. Neighbors with the same target become one. */
static bool add_edge(bz_dfa *d, int lo, int hi, uint32_t to)
{
    bz_dfa_state *s = &d->states[d->n_states - 1];
    bz_dfa_edge *last = s->n_edges ? &d->edges[d->n_edges - 1] : NULL;
    if (last && last->to == to && last->hi + 1 == lo) {
        last->hi = (uint8_t)hi;
        return true;
    }
    if (!grow((void **)&d->edges, d->n_edges, &d->cap_edges, sizeof *d->edges)) {
        return false;
    }
    d->edges[d->n_edges++] = (bz_dfa_edge){to, (uint8_t)lo, (uint8_t)hi};
    s->n_edges++;
    return true;
}

static bool add_call(bz_dfa *d, uint32_t callee, uint32_t to)
{
    if (!grow((void **)&d->calls, d->n_calls, &d->cap_calls, sizeof *d->calls)) {
        return false;
    }
    d->calls[d->n_calls++] = (bz_dfa_call){callee, to};
    d->states[d->n_states - 1].n_calls++;
    return true;
}

static bz_status no_memory(bz_error *err)
{
    return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the grammar.");
}

static bz_status too_large(bz_error *err)
{
    return bz_fail(err, BZ_BAD_SCHEMA,
                   "The grammar is too large: its automaton has more than %d states.",
                   (int)BZ_MAX_DFA);
}

static bz_status too_slow(bz_error *err)
{
    return bz_fail(err, BZ_BAD_SCHEMA,
                   "The grammar is too large: its automaton takes more than %d million steps to "
                   "construct.",
                   (int)BZ_MAX_DFA_STEPS / 1000000);
}

/* ---- the subset construction ------------------------------------------------------------------
 */

typedef struct word_list {
    uint32_t *items;
    uint32_t n, cap;
} word_list;

static bool push_word(word_list *l, uint32_t word)
{
    if (!grow((void **)&l->items, l->n, &l->cap, sizeof *l->items)) {
        return false;
    }
    l->items[l->n++] = word;
    return true;
}

typedef struct subsets {
    const bz_build *b;
    uint32_t end;
    bz_set_table sets;
    uint32_t *mark; /* [n_states of b] round in which a state was reached last */
    uint32_t round;
    uint64_t steps;                      /* edges and states looked at */
    word_list reached, leaving, calling; /* states; edges of bytes; edges of calls */
} subsets;

static int by_word(const void *x, const void *y)
{
    const uint32_t p = *(const uint32_t *)x, q = *(const uint32_t *)y;
    return p < q ? -1 : p > q;
}

static bool reach(subsets *s, uint32_t state)
{
    if (s->mark[state] == s->round) {
        return true;
    }
    s->mark[state] = s->round;
    return push_word(&s->reached, state);
}

/* Adds what can be reached without a symbol, and keeps the states that matter: those with a symbol,
 * and the end. Returns the number of the set. */
static uint32_t close_set(subsets *s)
{
    const bz_build *b = s->b;
    uint32_t kept = 0;
    s->steps += s->reached.n;
    for (uint32_t i = 0; i < s->reached.n; i++) {
        const uint32_t state = s->reached.items[i];
        bool matters = state == s->end;
        for (uint32_t e = b->states[state]; e; e = b->edges[e].next) {
            if (b->edges[e].kind == BZ_EDGE_EMPTY) {
                if (!reach(s, b->edges[e].to)) {
                    return UINT32_MAX;
                }
            } else {
                matters = true;
            }
        }
        if (matters) {
            s->reached.items[kept++] = state; /* kept <= i: what is read later stays */
        }
    }
    s->reached.n = kept;
    if (kept > 1) {
        qsort(s->reached.items, kept, sizeof *s->reached.items, by_word);
    }
    bool fresh;
    return bz_sets_number(&s->sets, s->reached.items, kept, &fresh);
}

static void begin_set(subsets *s)
{
    s->round++;
    s->reached.n = 0;
}

static bool add_calls(subsets *s, bz_dfa *d, uint32_t first)
{
    const bz_build *b = s->b;
    for (uint32_t i = 0; i < s->calling.n; i++) {
        const uint32_t callee = b->edges[s->calling.items[i]].callee;
        bool done = false;
        for (uint32_t k = 0; k < i && !done; k++) {
            done = b->edges[s->calling.items[k]].callee == callee;
        }
        if (done) {
            continue;
        }
        begin_set(s);
        for (uint32_t k = i; k < s->calling.n; k++) {
            const bz_nfa_edge *e = &b->edges[s->calling.items[k]];
            if (e->callee == callee && !reach(s, e->to)) {
                return false;
            }
        }
        const uint32_t to = close_set(s);
        if (to == UINT32_MAX || !add_call(d, callee, first + to)) {
            return false;
        }
    }
    return true;
}

/* Edges of one set: the bytes are cut where an edge begins or ends. */
static bool add_bytes(subsets *s, bz_dfa *d, uint32_t first)
{
    const bz_build *b = s->b;
    bool cut[257] = {false};
    for (uint32_t i = 0; i < s->leaving.n; i++) {
        const bz_nfa_edge *e = &b->edges[s->leaving.items[i]];
        cut[e->lo] = cut[e->hi + 1] = true;
    }
    for (int lo = 0, hi; lo < 256; lo = hi + 1) {
        hi = lo;
        while (!cut[hi + 1] && hi < 255) {
            hi++;
        }
        begin_set(s);
        s->steps += s->leaving.n;
        for (uint32_t i = 0; i < s->leaving.n; i++) {
            const bz_nfa_edge *e = &b->edges[s->leaving.items[i]];
            if (e->lo <= lo && hi <= e->hi && !reach(s, e->to)) {
                return false;
            }
        }
        if (s->reached.n == 0) {
            continue;
        }
        const uint32_t to = close_set(s);
        if (to == UINT32_MAX || !add_edge(d, lo, hi, first + to)) {
            return false;
        }
    }
    return true;
}

/* Appends the state of set `number`. */
static bool expand(subsets *s, bz_dfa *d, uint32_t number, uint32_t first)
{
    const bz_build *b = s->b;
    const bz_word_list list = s->sets.lists[number];
    bool accepts = false;
    s->leaving.n = s->calling.n = 0;
    for (uint32_t i = 0; i < list.n; i++) {
        const uint32_t state = s->sets.words[list.first + i];
        accepts |= state == s->end;
        for (uint32_t e = b->states[state]; e; e = b->edges[e].next) {
            word_list *to = b->edges[e].kind == BZ_EDGE_BYTES  ? &s->leaving
                            : b->edges[e].kind == BZ_EDGE_CALL ? &s->calling
                                                               : NULL;
            if (to && !push_word(to, e)) {
                return false;
            }
        }
    }
    return add_state(d, accepts) && add_bytes(s, d, first) && add_calls(s, d, first);
}

static bz_status construct(subsets *s, bz_dfa *d, uint32_t start, uint32_t *first, bz_error *err)
{
    *first = d->n_states;
    begin_set(s);
    if (!reach(s, start) || close_set(s) == UINT32_MAX) {
        return no_memory(err);
    }
    for (uint32_t i = 0; i < s->sets.n_lists; i++) {
        if (d->n_states >= BZ_MAX_DFA || s->sets.n_words > 64 * BZ_MAX_DFA) {
            return too_large(err);
        }
        if (s->steps > BZ_MAX_DFA_STEPS) {
            return too_slow(err);
        }
        if (!expand(s, d, i, *first)) {
            return no_memory(err);
        }
    }
    return BZ_OK;
}

bz_status bz_dfa_append(bz_dfa *d, const bz_build *b, uint32_t start, uint32_t end, uint32_t *first,
                        bz_error *err)
{
    bz_status status = bz_build_status(b, err);
    if (status != BZ_OK) {
        return status;
    }
    subsets s = {.b = b, .end = end, .mark = calloc(b->n_states + 1, sizeof *s.mark)};
    status = s.mark ? construct(&s, d, start, first, err) : no_memory(err);
    bz_sets_free(&s.sets);
    free(s.mark);
    free(s.reached.items);
    free(s.leaving.items);
    free(s.calling.items);
    return status;
}

/* ---- automata without calls ---------------------------------------------------------------------
 */

bool bz_dfa_accepts(const bz_dfa *d, const char *text, size_t len)
{
    uint32_t state = 0;
    for (size_t i = 0; i < len && state != BZ_DFA_DEAD; i++) {
        state = bz_dfa_next(d, state, (uint8_t)text[i]);
    }
    return state != BZ_DFA_DEAD && d->states[state].accepts;
}

bool bz_dfa_has_text(const bz_dfa *d)
{
    for (uint32_t i = 0; i < d->n_states; i++) { /* all states are reached from the start */
        if (d->states[i].accepts) {
            return true;
        }
    }
    return false;
}

/* The pairs of states; y's may be dead where `without`. */
static bool meet_state(bz_dfa *out, bz_set_table *pairs, const bz_dfa *x, const bz_dfa *y,
                       uint32_t number, bool without)
{
    uint32_t p = pairs->words[pairs->lists[number].first],
             q = pairs->words[pairs->lists[number].first + 1];
    const bool in_y = q != BZ_DFA_DEAD && y->states[q].accepts;
    if (!add_state(out, x->states[p].accepts && in_y != without)) {
        return false;
    }
    for (uint32_t i = 0; i < x->states[p].n_edges; i++) {
        const bz_dfa_edge e = x->edges[x->states[p].edges + i];
        for (int lo = e.lo, hi; lo <= e.hi; lo = hi + 1) {
            uint32_t next = q == BZ_DFA_DEAD ? q : bz_dfa_next(y, q, (uint8_t)lo);
            hi = lo;
            while (hi < e.hi &&
                   (q == BZ_DFA_DEAD || bz_dfa_next(y, q, (uint8_t)(hi + 1)) == next)) {
                hi++;
            }
            if (next == BZ_DFA_DEAD && !without) {
                continue;
            }
            const uint32_t pair[2] = {e.to, next};
            bool fresh;
            const uint32_t to = bz_sets_number(pairs, pair, 2, &fresh);
            if (to == UINT32_MAX || !add_edge(out, lo, hi, to)) {
                return false;
            }
        }
    }
    return true;
}

bz_status bz_dfa_meet(bz_dfa *out, const bz_dfa *x, const bz_dfa *y, bool without, bz_error *err)
{
    bz_set_table pairs = {0};
    const uint32_t start[2] = {0, 0};
    bool fresh;
    bz_status status =
        bz_sets_number(&pairs, start, 2, &fresh) == UINT32_MAX ? no_memory(err) : BZ_OK;
    for (uint32_t i = 0; status == BZ_OK && i < pairs.n_lists; i++) {
        status = i >= BZ_MAX_DFA                             ? too_large(err)
                 : meet_state(out, &pairs, x, y, i, without) ? BZ_OK
                                                             : no_memory(err);
    }
    bz_sets_free(&pairs);
    return status;
}

void bz_dfa_emit(const bz_dfa *d, bz_build *b, uint32_t from, uint32_t to)
{
    const uint32_t first = b->n_states;
    for (uint32_t i = 0; i < d->n_states && !b->failed; i++) {
        bz_build_state(b);
    }
    for (uint32_t i = 0; i < d->n_states && !b->failed; i++) {
        const bz_dfa_state *s = &d->states[i];
        for (uint32_t k = 0; k < s->n_edges; k++) {
            const bz_dfa_edge *e = &d->edges[s->edges + k];
            bz_build_bytes(b, first + i, first + e->to, e->lo, e->hi);
        }
        if (s->accepts) {
            bz_build_empty(b, first + i, to);
        }
    }
    bz_build_empty(b, from, first);
}
