#include "grammar/sets.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_FOUND = 2048,     /* configurations of a set, before the grammar is too ambiguous */
    REACHED_SLOTS = 8192, /* power of two, much more than MAX_FOUND with what leads to them */
    MAX_WORDS = 1 << 25,  /* of all sets together */
    MANY_STEPS = 12       /* steps of a set from which on it has a table of them */
};

bool bz_config_sets_begin(bz_sets *s, const bz_grammar *g)
{
    bool fresh;
    *s = (bz_sets){.g = g};
    s->reached = calloc(REACHED_SLOTS, sizeof *s->reached);
    s->found = malloc((MAX_FOUND + 2) * sizeof *s->found);
    s->n_step_slots = 1024;
    s->steps = calloc(s->n_step_slots, sizeof *s->steps);
    const uint32_t bottom[3] = {UINT32_MAX, 0, 0}, unknown[3] = {UINT32_MAX, 1, 0};
    if (!s->reached || !s->found || !s->steps ||
        bz_sets_number(&s->stacks, bottom, 3, &fresh) == UINT32_MAX ||
        bz_sets_number(&s->stacks, unknown, 3, &fresh) == UINT32_MAX) {
        return false;
    }
    bz_set_begin(s);
    bz_set_end(s); /* the empty one */
    return !s->no_memory;
}

void bz_config_sets_free(bz_sets *s)
{
    for (uint32_t i = 0; i < s->sets.n_lists && i < s->cap_info; i++) {
        free(s->info[i].next);
    }
    bz_sets_free(&s->stacks);
    bz_sets_free(&s->sets);
    free(s->info);
    free(s->steps);
    free(s->reached);
    free(s->found);
    *s = (bz_sets){0};
}

/* ---- stacks ------------------------------------------------------------------------------------
 */

uint32_t bz_stack_push(bz_sets *s, uint32_t entry, uint32_t count, uint32_t below)
{
    const uint32_t words[3] = {entry, count, below};
    bool fresh;
    const uint32_t stack = bz_sets_number(&s->stacks, words, 3, &fresh);
    s->no_memory |= stack == UINT32_MAX;
    s->ambiguous |= s->stacks.n_words > MAX_WORDS;
    return stack == UINT32_MAX ? (uint32_t)BZ_STACK_BOTTOM : stack;
}

bz_stack_entry bz_stack_top(const bz_sets *s, uint32_t stack)
{
    const uint32_t *w = s->stacks.words + s->stacks.lists[stack].first;
    return (bz_stack_entry){w[0], w[1], w[2]};
}

/* ---- making a set -------------------------------------------------------------------------------
 */

void bz_set_begin(bz_sets *s)
{
    s->n_found = 0;
    if (++s->round == 0) {
        memset(s->reached, 0, REACHED_SLOTS * sizeof *s->reached);
        s->round = 1;
    }
}

/* Appends a configuration unless it was found before. */
static void find(bz_sets *s, uint32_t state, uint32_t stack)
{
    uint64_t h = ((uint64_t)state << 32 | stack) * 0x9E3779B97F4A7C15u;
    uint32_t at = (uint32_t)(h >> 40) & (REACHED_SLOTS - 1);
    while (s->reached[at].round == s->round) {
        if (s->reached[at].config.state == state && s->reached[at].config.stack == stack) {
            return;
        }
        at = (at + 1) & (REACHED_SLOTS - 1);
    }
    if (s->n_found >= MAX_FOUND) {
        s->ambiguous = true;
        return;
    }
    s->reached[at] = (bz_reached){{state, stack}, s->round};
    s->found[s->n_found++] = (bz_config){state, stack};
}

void bz_set_reach(bz_sets *s, uint32_t state, uint32_t stack)
{
    find(s, state, stack);
}

void bz_set_pop(bz_sets *s, uint32_t stack)
{
    const bz_grammar *g = s->g;
    for (;;) {
        if (stack == BZ_STACK_BOTTOM) {
            find(s, BZ_CONFIG_END, 0);
            return;
        }
        if (stack == BZ_STACK_UNKNOWN) {
            find(s, BZ_CONFIG_RETURN, 0);
            return;
        }
        const bz_stack_entry top = bz_stack_top(s, stack);
        if (!(top.entry & (BZ_LOOP_BIT | BZ_COUNT_BIT))) {
            find(s, top.entry, top.below);
            return;
        }
        const bz_loop *loop = &g->loops[top.entry & ~(BZ_LOOP_BIT | BZ_COUNT_BIT)];
        const uint32_t body = g->rules[loop->body].start;
        if (top.entry & BZ_COUNT_BIT) {
            find(s, BZ_CONFIG_RETURN, top.count);
            find(s, body, bz_stack_push(s, top.entry, top.count + 1, top.below));
            return;
        }
        if (top.count < loop->max) {
            /* without a limit, rounds after the least number are alike */
            const uint32_t enough = loop->min ? loop->min : 1;
            const bool same = loop->max == BZ_NO_LIMIT && top.count >= enough;
            find(s, body, same ? stack : bz_stack_push(s, top.entry, top.count + 1, top.below));
        }
        if (top.count < loop->min || s->no_memory) {
            return;
        }
        stack = top.below;
    }
}

static void call(bz_sets *s, const bz_dfa_call *c, uint32_t stack)
{
    const bz_grammar *g = s->g;
    /* a call at the end of a rule returns to where the rule does: recursion at the end takes no
       stack */
    const uint32_t inner = g->last[c->to] ? stack : bz_stack_push(s, c->to, 0, stack);
    if (!(c->callee & BZ_LOOP_BIT)) {
        find(s, g->rules[c->callee].start, inner);
        return;
    }
    const bz_loop *loop = &g->loops[c->callee & ~BZ_LOOP_BIT];
    if (loop->min == 0) {
        bz_set_pop(s, inner);
    }
    if (loop->max > 0) {
        find(s, g->rules[loop->body].start, bz_stack_push(s, c->callee, 1, inner));
    }
}

static int by_config(const void *x, const void *y)
{
    const bz_config *p = x, *q = y;
    return p->state != q->state   ? (p->state < q->state ? -1 : 1)
           : p->stack != q->stack ? (p->stack < q->stack ? -1 : 1)
                                  : 0;
}

static bool is_special(uint32_t state)
{
    return state >= BZ_CONFIG_RETURN;
}

static void describe(bz_sets *s, uint32_t set)
{
    bz_set_info info = {.need = UINT32_MAX};
    for (uint32_t i = 0; i < s->n_found; i++) {
        const bz_config c = s->found[i];
        uint32_t rounds = 0;
        info.can_end |= c.state == BZ_CONFIG_END;
        info.returns |= c.state == BZ_CONFIG_RETURN;
        info.live |= !is_special(c.state);
        if (c.state == BZ_CONFIG_RETURN) {
            rounds = c.stack;
        } else if (!is_special(c.state) && c.stack > BZ_STACK_UNKNOWN) {
            const bz_stack_entry top = bz_stack_top(s, c.stack);
            rounds = !(top.entry & BZ_LOOP_BIT) && top.entry & BZ_COUNT_BIT ? top.count : 0;
        }
        info.need = rounds < info.need ? rounds : info.need;
    }
    s->info[set] = info;
}

static uint32_t number_set(bz_sets *s)
{
    bool fresh;
    _Static_assert(sizeof(bz_config) == 2 * sizeof(uint32_t), "a configuration is two words");
    if (s->n_found > 1) {
        qsort(s->found, s->n_found, sizeof *s->found, by_config);
    }
    const uint32_t set =
        bz_sets_number(&s->sets, (const uint32_t *)(const void *)s->found, 2 * s->n_found, &fresh);
    s->ambiguous |= s->sets.n_words > MAX_WORDS;
    if (set == UINT32_MAX) {
        s->no_memory = true;
        return BZ_SET_DEAD;
    }
    if (set >= s->cap_info) {
        const uint32_t more = s->cap_info ? 2 * s->cap_info : 256;
        bz_set_info *info = realloc(s->info, more * sizeof *info);
        if (!info) { /* the set has a number but no description: nothing goes on */
            s->no_memory = true;
            return BZ_SET_DEAD;
        }
        s->info = info;
        s->cap_info = more;
    }
    if (fresh) {
        describe(s, set);
    }
    return set;
}

uint32_t bz_set_end(bz_sets *s)
{
    const bz_grammar *g = s->g;
    const bz_dfa *d = &g->dfa;
    for (uint32_t i = 0; i < s->n_found && !bz_config_sets_failed(s); i++) {
        const bz_config c = s->found[i];
        if (is_special(c.state)) {
            continue;
        }
        const bz_dfa_state *state = &d->states[c.state];
        for (uint32_t k = 0; k < state->n_calls; k++) {
            call(s, &d->calls[state->calls + k], c.stack);
        }
        if (state->accepts) {
            bz_set_pop(s, c.stack);
        }
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->n_found; i++) {
        const bz_config c = s->found[i];
        if (is_special(c.state) || d->states[c.state].n_edges) {
            s->found[kept++] = c;
        }
    }
    s->n_found = bz_config_sets_failed(s) ? 0 : kept;
    return number_set(s);
}

uint32_t bz_set_of_one(bz_sets *s, uint32_t state, uint32_t stack)
{
    bz_set_begin(s);
    find(s, state, stack);
    return number_set(s);
}

const bz_config *bz_set_configs(const bz_sets *s, uint32_t set, uint32_t *n)
{
    *n = s->sets.lists[set].n / 2;
    return (const bz_config *)(const void *)(s->sets.words + s->sets.lists[set].first);
}

/* ---- steps
 * ---------------------------------------------------------------------------------------- */

static uint32_t slot_of(const bz_sets *s, uint64_t key)
{
    return (uint32_t)((key * 0x9E3779B97F4A7C15u) >> 32) & (s->n_step_slots - 1);
}

static bool grow_steps(bz_sets *s)
{
    const uint32_t n = s->n_step_slots;
    bz_step *old = s->steps, *steps = calloc(2 * (size_t)n, sizeof *steps);
    if (!steps) {
        s->no_memory = true;
        return false;
    }
    s->steps = steps;
    s->n_step_slots = 2 * n;
    for (uint32_t i = 0; i < n; i++) {
        if (old[i].key) {
            uint32_t at = slot_of(s, old[i].key);
            while (steps[at].key) {
                at = (at + 1) & (s->n_step_slots - 1);
            }
            steps[at] = old[i];
        }
    }
    free(old);
    return true;
}

static uint32_t compute_step(bz_sets *s, uint32_t set, uint8_t byte)
{
    const bz_word_list list = s->sets.lists[set];
    bz_set_begin(s);
    for (uint32_t i = 0; i < list.n; i += 2) {
        const uint32_t state = s->sets.words[list.first + i];
        const uint32_t to = is_special(state) ? BZ_DFA_DEAD : bz_dfa_next(&s->g->dfa, state, byte);
        if (to != BZ_DFA_DEAD) {
            find(s, to, s->sets.words[list.first + i + 1]);
        }
    }
    return s->n_found ? bz_set_end(s) : (uint32_t)BZ_SET_DEAD;
}

static void keep_step(bz_sets *s, uint32_t set, uint8_t byte, uint32_t to)
{
    bz_set_info *info = &s->info[set];
    if (!info->next && info->n_next >= MANY_STEPS) {
        info->next = malloc(256 * sizeof *info->next);
        if (info->next) {
            memset(info->next, 0xFF, 256 * sizeof *info->next);
        }
    }
    if (info->next) {
        info->next[byte] = to;
        return;
    }
    if (2 * s->n_steps >= s->n_step_slots && !grow_steps(s)) {
        return;
    }
    const uint64_t key = ((uint64_t)set << 8 | byte) + 1;
    uint32_t at = slot_of(s, key);
    while (s->steps[at].key) {
        at = (at + 1) & (s->n_step_slots - 1);
    }
    s->steps[at] = (bz_step){key, to};
    s->n_steps++;
    info->n_next++;
}

uint32_t bz_set_step_slow(bz_sets *s, uint32_t set, uint8_t byte)
{
    const uint64_t key = ((uint64_t)set << 8 | byte) + 1;
    uint32_t at = slot_of(s, key);
    while (s->steps[at].key) {
        if (s->steps[at].key == key) {
            if (s->info[set].next) {
                s->info[set].next[byte] = s->steps[at].to;
            }
            return s->steps[at].to;
        }
        at = (at + 1) & (s->n_step_slots - 1);
    }
    const uint32_t to = compute_step(s, set, byte);
    if (!bz_config_sets_failed(s)) {
        keep_step(s, set, byte, to);
    }
    return to;
}
