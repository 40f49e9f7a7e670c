#include "grammar/matcher.h"

#include <stdlib.h>
#include <string.h>

#include "grammar/base.h"

enum {
    MASKS = 32, /* kept: 32 KB each for 262,144 tokens */
    /* Sizes from which on everything but the state is forgotten. */
    MAX_SETS = 1 << 16,
    MAX_STEPS = 1 << 19,
    MAX_KEPT_WORDS = 1 << 22
};

typedef struct kept_mask {
    uint64_t *bits;
    uint32_t set, n;
} kept_mask;

struct bz_matcher {
    bz_grammar *g;
    bz_vocabulary *v;
    const bz_trie *trie;
    size_t words;
    bz_sets sets;
    uint32_t set;          /* the state */
    const bz_base **bases; /* [n_states of the grammar] NULL: not needed yet */
    bool *own;             /* [n_states] of them */
    kept_mask masks[MASKS];
    uint32_t next_mask;
    uint32_t *path; /* [longest + 1] sets by depth in a tree */
};

/* ---- making one
 * ------------------------------------------------------------------------------------ */

static uint32_t first_set(bz_matcher *m)
{
    bz_set_begin(&m->sets);
    bz_set_reach(&m->sets, 0, BZ_STACK_BOTTOM);
    return bz_set_end(&m->sets);
}

bz_status bz_matcher_new(bz_matcher **out, bz_grammar *g, bz_vocabulary *v, bz_error *err)
{
    bz_matcher *m = calloc(1, sizeof *m);
    bool good = m != NULL;
    if (good) {
        m->g = bz_grammar_hold(g);
        m->v = v;
        m->trie = bz_vocabulary_trie(v);
        m->words = (m->trie->n_tokens + (size_t)63) / 64;
        m->bases = calloc(g->dfa.n_states, sizeof(const bz_base *));
        m->own = calloc(g->dfa.n_states, sizeof *m->own);
        m->path = malloc((m->trie->longest + (size_t)1) * sizeof *m->path);
        good = bz_config_sets_begin(&m->sets, g) && m->bases && m->own && m->path;
    }
    if (good) {
        m->set = first_set(m);
        good = !m->sets.no_memory;
    }
    if (!good) {
        bz_matcher_free(m);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the grammar's state.");
    }
    *out = m;
    return BZ_OK;
}

void bz_matcher_free(bz_matcher *m)
{
    if (!m) {
        return;
    }
    for (uint32_t i = 0; m->bases && m->own && i < m->g->dfa.n_states; i++) {
        if (m->own[i]) {
            bz_base_free((bz_base *)m->bases[i]);
        }
    }
    for (int i = 0; i < MASKS; i++) {
        free(m->masks[i].bits);
    }
    free(m->bases);
    free(m->own);
    free(m->path);
    bz_config_sets_free(&m->sets);
    bz_grammar_free(m->g);
    free(m);
}

void bz_matcher_restart(bz_matcher *m)
{
    m->set = first_set(m);
}

bz_status bz_matcher_check(const bz_matcher *m, bz_error *err)
{
    if (m->sets.ambiguous) {
        return bz_fail(err, BZ_BAD_SCHEMA,
                       "The grammar is too ambiguous: there are thousands of ways to read the text "
                       "so far.");
    }
    return m->sets.no_memory ? bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the grammar's state.")
                             : BZ_OK;
}

/* ---- masks
 * ------------------------------------------------------------------------------------------- */

static const bz_base *base_of(bz_matcher *m, uint32_t state)
{
    if (!m->bases[state]) {
        bool own;
        m->bases[state] = bz_base_get(&m->sets, m->v, state, &own);
        m->own[state] = own && m->bases[state];
    }
    return m->bases[state];
}

static inline void set_bit(kept_mask *k, int32_t id)
{
    const uint64_t bit = (uint64_t)1 << (id & 63);
    k->n += !(k->bits[(uint32_t)id >> 6] & bit);
    k->bits[(uint32_t)id >> 6] |= bit;
}

static uint32_t count(const uint64_t *bits, size_t words)
{
    uint32_t n = 0;
    for (size_t i = 0; i < words; i++) {
        n += bits[i] ? (uint32_t)__builtin_popcountll(bits[i]) : 0;
    }
    return n;
}

/* Adds tokens of which there are n. Most masks have no more than one such set, which comes first,
 * so that nothing has to be counted. */
static void add_set(const bz_matcher *m, kept_mask *k, const uint64_t *from, uint32_t n)
{
    if (k->n == 0) {
        memcpy(k->bits, from, m->words * sizeof *from);
        k->n = n;
        return;
    }
    for (size_t i = 0; i < m->words; i++) {
        k->bits[i] |= from[i];
    }
    k->n = count(k->bits, m->words);
}

/* The rounds that a loop has left after the one that runs, and those that must still come. */
typedef struct rounds_left {
    uint32_t most, least;
} rounds_left;

/* Tokens that leave the rule: their rest is read from `set`, what follows the rule. */
static void add_leaving(bz_matcher *m, const bz_base *b, uint32_t set, rounds_left left,
                        kept_mask *k)
{
    const bz_trie *t = b->rest;
    bz_sets *s = &m->sets;
    m->path[0] = set;
    for (uint32_t node = 1; node < t->n_nodes && !bz_config_sets_failed(s);) {
        const uint32_t depth = t->depth[node];
        const uint32_t to = bz_set_step(s, m->path[depth - 1], t->byte[node]);
        if (to == BZ_SET_DEAD) {
            node = t->after[node];
            continue;
        }
        uint32_t i, end;
        bz_trie_tokens(t, node, &i, &end);
        for (; i < end; i++) {
            const bz_leaving *x = &b->leaving[t->order[i]];
            if (x->rounds <= left.most && x->rounds >= left.least) {
                set_bit(k, x->id);
            }
        }
        m->path[depth] = to;
        node++;
    }
}

static void add_staying(const bz_matcher *m, const bz_base *b, rounds_left left, kept_mask *k)
{
    if (b->safe) {
        const bz_safe *safe = bz_vocabulary_safe(m->v);
        const uint32_t most = b->counted ? left.most : UINT32_MAX; /* after the first character */
        const uint32_t level = most < BZ_SAFE_LEVELS ? most : BZ_SAFE_LEVELS - 1;
        add_set(m, k, safe->levels + level * m->words, safe->counts[level]);
        for (uint32_t i = 0; i < safe->n_longer; i++) {
            if (safe->longer[i].characters - 1 <= most) {
                set_bit(k, safe->longer[i].id);
            }
        }
    }
    if (b->n_levels) {
        const uint32_t level = left.most < b->n_levels ? left.most : b->n_levels - 1;
        add_set(m, k, b->levels + level * m->words, b->counts[level]);
    }
    for (uint32_t i = 0; i < b->n_staying; i++) {
        if (b->staying[i].rounds <= left.most) {
            set_bit(k, b->staying[i].id);
        }
    }
}

/* The set after the rule of a configuration has ended. */
static uint32_t after_rule(bz_matcher *m, uint32_t stack)
{
    bz_set_begin(&m->sets);
    bz_set_pop(&m->sets, stack);
    return bz_set_end(&m->sets);
}

static void add_config(bz_matcher *m, bz_config c, kept_mask *k)
{
    const bz_base *b = base_of(m, c.state);
    if (!b) {
        return;
    }
    const bz_compiled_rule *rule = &m->g->rules[m->g->rule_of[c.state]];
    rounds_left left = {UINT32_MAX, 0};
    uint32_t stack = c.stack;
    if (rule->in_loop &&
        rule->leaf) { /* the loop is on top of the stack, and counted by the base */
        const bz_stack_entry top = bz_stack_top(&m->sets, stack);
        const bz_loop *loop = &m->g->loops[rule->loop];
        left.most = loop->max == BZ_NO_LIMIT ? UINT32_MAX : loop->max - top.count;
        left.least = loop->min > top.count ? loop->min - top.count : 0;
        stack = top.below;
    }
    add_staying(m, b, left, k);
    if (b->rest && stack != BZ_STACK_BOTTOM) {
        add_leaving(m, b, after_rule(m, stack), left, k);
    }
}

/* A place for the tokens of the current state. */
static kept_mask *take_slot(bz_matcher *m)
{
    kept_mask *k = &m->masks[m->next_mask];
    if (!k->bits) {
        k->bits = malloc(m->words * sizeof *k->bits);
        if (!k->bits) {
            m->sets.no_memory = true;
            return NULL;
        }
    }
    m->next_mask = (m->next_mask + 1) % MASKS;
    return k;
}

static kept_mask *find_mask(bz_matcher *m)
{
    const uint32_t slot = m->sets.info[m->set].mask;
    return slot && m->masks[slot - 1].set == m->set ? &m->masks[slot - 1] : NULL;
}

static kept_mask *make_mask(bz_matcher *m)
{
    kept_mask *k = take_slot(m);
    if (!k) {
        return NULL;
    }
    memset(k->bits, 0, m->words * sizeof *k->bits);
    k->set = BZ_SET_DEAD;
    k->n = 0;
    uint32_t n;
    bz_set_configs(&m->sets, m->set, &n);
    for (uint32_t i = 0; i < n && !bz_config_sets_failed(&m->sets); i++) {
        const bz_config c = bz_set_configs(&m->sets, m->set, &n)[i]; /* the table may move */
        if (c.state < BZ_CONFIG_RETURN) {
            add_config(m, c, k);
        }
    }
    k->set = m->set;
    m->sets.info[m->set].mask = (uint32_t)(k - m->masks) + 1;
    return k;
}

bz_status bz_matcher_mask(bz_matcher *m, bz_token_mask *out, bz_error *err)
{
    const bz_set_table *t = &m->sets.sets;
    if (t->n_lists > MAX_SETS || m->sets.n_steps > MAX_STEPS ||
        t->n_words + m->sets.stacks.n_words > MAX_KEPT_WORDS) {
        bz_matcher_compact(m);
    }
    const kept_mask *k = bz_config_sets_failed(&m->sets) ? NULL : find_mask(m);
    if (!k) {
        k = bz_config_sets_failed(&m->sets) ? NULL : make_mask(m);
    }
    const bz_status status = bz_matcher_check(m, err);
    if (status == BZ_OK && k) {
        *out = (bz_token_mask){k->bits, k->n, bz_matcher_can_end(m)};
    }
    return status;
}

/* ---- the state
 * ----------------------------------------------------------------------------------------- */

bool bz_matcher_can_end(const bz_matcher *m)
{
    return m->sets.info[m->set].can_end;
}

bool bz_matcher_take(bz_matcher *m, const char *bytes, size_t n)
{
    uint32_t set = m->set;
    for (size_t i = 0; i < n && set != BZ_SET_DEAD; i++) {
        set = bz_set_step(&m->sets, set, (uint8_t)bytes[i]);
    }
    if (set == BZ_SET_DEAD) {
        return false;
    }
    m->set = set;
    return true;
}

bool bz_matcher_take_token(bz_matcher *m, int32_t id)
{
    const bz_str s = id >= 0 && (uint32_t)id < m->trie->n_tokens ? m->trie->text[id] : (bz_str){0};
    return s.len && bz_matcher_take(m, s.data, s.len);
}

/* The byte that every text goes on with; -1: there are several, or the text may end. */
static int only_byte(const bz_matcher *m, uint32_t set)
{
    const bz_dfa *d = &m->g->dfa;
    uint32_t n;
    const bz_config *c = bz_set_configs(&m->sets, set, &n);
    int byte = -1;
    for (uint32_t i = 0; i < n; i++) {
        if (c[i].state >= BZ_CONFIG_RETURN || d->states[c[i].state].n_edges != 1) {
            return -1;
        }
        const bz_dfa_edge *e = &d->edges[d->states[c[i].state].edges];
        if (e->lo != e->hi || (byte >= 0 && byte != e->lo)) {
            return -1;
        }
        byte = e->lo;
    }
    return byte;
}

size_t bz_matcher_forced(bz_matcher *m, char *out, size_t cap)
{
    uint32_t set = m->set;
    size_t n = 0;
    while (n < cap && !bz_config_sets_failed(&m->sets)) {
        const int byte = only_byte(m, set);
        if (byte < 0) {
            break;
        }
        out[n++] = (char)byte;
        set = bz_set_step(&m->sets, set, (uint8_t)byte);
    }
    return n;
}

/* ---- forgetting
 * ------------------------------------------------------------------------------------------ */

/* A stack of the old tables in the new ones. chain: [stacks of `from`] scratch. */
static uint32_t copy_stack(bz_sets *to, const bz_sets *from, uint32_t stack, uint32_t *chain)
{
    uint32_t n = 0, copy;
    while (stack > BZ_STACK_UNKNOWN) {
        chain[n++] = stack;
        stack = bz_stack_top(from, stack).below;
    }
    copy = stack;
    while (n) {
        const bz_stack_entry e = bz_stack_top(from, chain[--n]);
        copy = bz_stack_push(to, e.entry, e.count, copy);
    }
    return copy;
}

bool bz_matcher_compact(bz_matcher *m)
{
    bz_sets fresh;
    uint32_t *chain = malloc(m->sets.stacks.n_lists * sizeof *chain);
    bool good = bz_config_sets_begin(&fresh, m->g) && chain;
    uint32_t n, set = BZ_SET_DEAD;
    const bz_config *c = bz_set_configs(&m->sets, m->set, &n);
    if (good) {
        bz_set_begin(&fresh);
        for (uint32_t i = 0; i < n; i++) {
            if (c[i].state == BZ_CONFIG_END) {
                bz_set_pop(&fresh, BZ_STACK_BOTTOM);
            } else {
                bz_set_reach(&fresh, c[i].state, copy_stack(&fresh, &m->sets, c[i].stack, chain));
            }
        }
        set = bz_set_end(&fresh);
        good = !bz_config_sets_failed(&fresh);
    }
    free(chain);
    if (!good) { /* goes on as it is */
        bz_config_sets_free(&fresh);
        return false;
    }
    bz_config_sets_free(&m->sets);
    m->sets = fresh;
    m->set = set;
    for (int i = 0; i < MASKS; i++) {
        m->masks[i].set = BZ_SET_DEAD;
    }
    return true;
}
