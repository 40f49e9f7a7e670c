#include "grammar/base.h"

#include <stdlib.h>
#include <string.h>

enum { MANY = 2048 }; /* staying tokens from which on bits are smaller and faster than a list */

typedef struct gatherer {
    bz_sets *s;
    const bz_trie *trie;
    const bz_byte_set *follow;
    bz_staying *staying;
    uint32_t n_staying, cap_staying;
    bz_leaving *leaving;
    bz_str *rest; /* [n_leaving] */
    uint32_t n_leaving, cap_leaving;
    uint32_t *sets; /* [longest + 1] by depth */
} gatherer;

void bz_base_free(bz_base *b)
{
    if (!b) {
        return;
    }
    free(b->levels);
    free(b->staying);
    bz_trie_free(b->rest);
    free(b->leaving);
    free(b);
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

static bool add_staying(gatherer *g, uint32_t from, uint32_t to, uint32_t rounds)
{
    for (uint32_t i = from; i < to; i++) {
        if (!grow((void **)&g->staying, g->n_staying, &g->cap_staying, sizeof *g->staying)) {
            return false;
        }
        g->staying[g->n_staying++] = (bz_staying){g->trie->order[i], rounds};
    }
    return true;
}

static bool add_leaving(gatherer *g, uint32_t from, uint32_t to, uint32_t depth, uint32_t rounds)
{
    for (uint32_t i = from; i < to; i++) {
        uint32_t cap = g->cap_leaving;
        const int32_t id = g->trie->order[i];
        const bz_str text = g->trie->text[id];
        if (!grow((void **)&g->leaving, g->n_leaving, &cap, sizeof *g->leaving) ||
            !grow((void **)&g->rest, g->n_leaving, &g->cap_leaving, sizeof *g->rest)) {
            return false;
        }
        g->leaving[g->n_leaving] = (bz_leaving){id, rounds};
        g->rest[g->n_leaving++] = (bz_str){text.data + depth, text.len - depth};
    }
    return true;
}

/* Tokens below `node`, where the rule can end: only those whose next byte can follow the rule. */
static bool add_rest(gatherer *g, uint32_t node, uint32_t set)
{
    const bz_trie *t = g->trie;
    for (uint32_t child = node + 1; child < t->after[node]; child = t->after[child]) {
        if (!bz_byte_in(g->follow, t->byte[child])) {
            continue;
        }
        uint32_t n;
        const uint32_t from = t->first[child], to = t->first[t->after[child]];
        bz_set_configs(g->s, set, &n);
        for (uint32_t i = 0; i < n; i++) {
            const bz_config c = bz_set_configs(g->s, set, &n)[i];
            if (c.state == BZ_CONFIG_RETURN && !add_leaving(g, from, to, t->depth[node], c.stack)) {
                return false;
            }
        }
    }
    return true;
}

static bool gather(gatherer *g)
{
    const bz_trie *t = g->trie;
    bz_sets *s = g->s;
    for (uint32_t node = 1; node < t->n_nodes;) {
        const uint32_t depth = t->depth[node];
        const uint32_t set = bz_set_step(s, g->sets[depth - 1], t->byte[node]);
        if (bz_config_sets_failed(s)) {
            return false;
        }
        if (set == BZ_SET_DEAD) {
            node = t->after[node];
            continue;
        }
        uint32_t from, to;
        bz_trie_tokens(t, node, &from, &to);
        if ((from < to && !add_staying(g, from, to, s->info[set].need)) ||
            (s->info[set].returns && !add_rest(g, node, set))) {
            s->no_memory = true;
            return false;
        }
        g->sets[depth] = set;
        node = s->info[set].live ? node + 1 : t->after[node];
    }
    return true;
}

/* Moves most of the staying tokens from the list to bits, if there are many. */
static bool make_levels(gatherer *g, bz_base *b)
{
    if (g->n_staying < MANY) {
        return true;
    }
    const size_t words = (g->trie->n_tokens + (size_t)63) / 64;
    uint32_t most = 0, kept = 0;
    for (uint32_t i = 0; i < g->n_staying; i++) {
        const uint32_t rounds = g->staying[i].rounds;
        most = rounds < BZ_BASE_LEVELS && rounds > most ? rounds : most;
    }
    b->n_levels = most + 1;
    b->levels = calloc(b->n_levels * words, sizeof *b->levels);
    if (!b->levels) {
        return false;
    }
    for (uint32_t i = 0; i < g->n_staying; i++) {
        const bz_staying x = g->staying[i];
        if (x.rounds >= BZ_BASE_LEVELS) {
            g->staying[kept++] = x;
            continue;
        }
        b->levels[x.rounds * words + ((uint32_t)x.id >> 6)] |= (uint64_t)1 << (x.id & 63);
        b->counts[x.rounds]++;
    }
    g->n_staying = kept;
    for (uint32_t i = 1; i < b->n_levels; i++) {
        b->counts[i] += b->counts[i - 1];
    }
    for (size_t i = words; i < b->n_levels * words; i++) {
        b->levels[i] |= b->levels[i - words];
    }
    return true;
}

static bool fill(gatherer *g, bz_base *b)
{
    if (!gather(g) || !make_levels(g, b)) {
        return false;
    }
    b->staying = g->staying;
    b->n_staying = g->n_staying;
    b->leaving = g->leaving;
    g->staying = NULL;
    g->leaving = NULL;
    return g->n_leaving == 0 || bz_trie_new(&b->rest, g->rest, g->n_leaving, NULL) == BZ_OK;
}

/* Whether the rounds of the rule's loop belong to it. */
static bool counts(const bz_grammar *g, uint32_t rule)
{
    return g->rules[rule].in_loop && g->rules[rule].leaf;
}

static bz_base *make(bz_sets *s, const bz_vocabulary *v, uint32_t state, const bz_byte_set *follow)
{
    const uint32_t rule = s->g->rule_of[state];
    const bool counted = counts(s->g, rule), safe = bz_safe_taken(s->g, state, counted, follow);
    const bz_trie *trie = safe ? bz_vocabulary_safe(v)->others : bz_vocabulary_trie(v);
    uint32_t stack = BZ_STACK_UNKNOWN;
    if (counted) {
        stack = bz_stack_push(s, BZ_COUNT_BIT | s->g->rules[rule].loop, 0, BZ_STACK_UNKNOWN);
    }
    gatherer g = {.s = s,
                  .trie = trie,
                  .follow = follow,
                  .sets = malloc((trie->longest + (size_t)1) * sizeof *g.sets)};
    bz_base *b = calloc(1, sizeof *b);
    bool good = g.sets && b && !bz_config_sets_failed(s);
    if (good) {
        b->safe = safe;
        b->counted = counted;
        g.sets[0] = bz_set_of_one(s, state, stack);
        good = fill(&g, b);
    }
    free(g.sets);
    free(g.staying);
    free(g.leaving);
    free(g.rest);
    if (!good) {
        bz_base_free(b);
        s->no_memory |= !s->ambiguous;
        return NULL;
    }
    return b;
}

bz_base *bz_base_new(bz_sets *s, const bz_vocabulary *v, uint32_t state)
{
    return make(s, v, state, &s->g->rules[s->g->rule_of[state]].follow);
}

/* ---- kept with the vocabulary -------------------------------------------------------------------
 */

/* What can follow a value in JSON: rules of values get all of it, so that schemas share them. */
static void widen(const bz_compiled_rule *rule, bz_byte_set *follow)
{
    static const char json[] = " \t\r\n,:]}\"{[-0123456789tfn";
    bz_byte_set wide = {{0}};
    for (size_t i = 0; json[i]; i++) {
        bz_byte_add(&wide, (uint8_t)json[i]);
    }
    *follow = rule->follow;
    for (int i = 0; i < 4; i++) {
        if (rule->in_loop || follow->bits[i] & ~wide.bits[i]) {
            return;
        }
    }
    *follow = wide;
}

/* The rule's automaton, the state in it and what may follow: all that a base depends on. */
static uint32_t *write_key(const bz_grammar *g, uint32_t state, const bz_byte_set *follow,
                           size_t *n)
{
    const bz_compiled_rule *rule = &g->rules[g->rule_of[state]];
    size_t size = 11;
    for (uint32_t i = rule->start; i < rule->end; i++) {
        size += 1 + 2 * (size_t)g->dfa.states[i].n_edges;
    }
    uint32_t *key = malloc(size * sizeof *key);
    if (!key) {
        return NULL;
    }
    *n = 0;
    key[(*n)++] = state - rule->start;
    key[(*n)++] = rule->in_loop;
    for (int i = 0; i < 4; i++) {
        key[(*n)++] = (uint32_t)follow->bits[i];
        key[(*n)++] = (uint32_t)(follow->bits[i] >> 32);
    }
    for (uint32_t i = rule->start; i < rule->end; i++) {
        const bz_dfa_state *d = &g->dfa.states[i];
        key[(*n)++] = d->n_edges << 1 | d->accepts;
        for (uint32_t k = 0; k < d->n_edges; k++) {
            const bz_dfa_edge *e = &g->dfa.edges[d->edges + k];
            key[(*n)++] = (uint32_t)e->lo << 8 | e->hi;
            key[(*n)++] = e->to - rule->start;
        }
    }
    return key;
}

static void release(void *value)
{
    bz_base_free(value);
}

const bz_base *bz_base_get(bz_sets *s, bz_vocabulary *v, uint32_t state, bool *own)
{
    const bz_compiled_rule *rule = &s->g->rules[s->g->rule_of[state]];
    *own = true;
    if (!rule->shared || !rule->leaf) {
        return bz_base_new(s, v, state);
    }
    bz_byte_set follow;
    size_t n;
    widen(rule, &follow);
    uint32_t *key = write_key(s->g, state, &follow, &n);
    if (!key) {
        s->no_memory = true;
        return NULL;
    }
    const bz_base *there = bz_vocabulary_get(v, key, n * sizeof *key);
    bool taken = true;
    if (!there) {
        bz_base *b = make(s, v, state, &follow);
        if (b) {
            there = bz_vocabulary_put(v, key, n * sizeof *key, b, release, &taken);
        }
        if (b && there != b) { /* another thread was first */
            bz_base_free(b);
            taken = true;
        }
    }
    *own = there && !taken;
    free(key);
    return there;
}
