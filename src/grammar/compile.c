/* From graphs to the table of automata, and what has to be known of the rules. */
#include <stdlib.h>
#include <string.h>

#include "grammar/grammar.h"

typedef struct compiler {
    const bz_build *b;
    bz_grammar *g;
    bool *productive; /* [n_states] the end can be reached */
    bool *nullable;   /* [n_states] without a byte */
    bz_byte_set *first;
    uint32_t *map; /* [rules of b] index in g; UINT32_MAX: not used */
    const char *(*name)(void *user, uint32_t rule);
    void *user;
} compiler;

static bz_status no_memory(bz_error *err)
{
    return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the grammar.");
}

bz_grammar *bz_grammar_hold(bz_grammar *g)
{
    atomic_fetch_add(&g->holders, 1);
    return g;
}

void bz_grammar_free(bz_grammar *g)
{
    if (!g || atomic_fetch_sub(&g->holders, 1) > 1) {
        return;
    }
    bz_dfa_free(&g->dfa);
    free(g->rule_of);
    free(g->last);
    free(g->rules);
    free(g->loops);
    free(g);
}

static uint32_t rule_called(const bz_grammar *g, uint32_t callee)
{
    return callee & BZ_LOOP_BIT ? g->loops[callee & ~BZ_LOOP_BIT].body : callee;
}

/* ---- automata ----------------------------------------------------------------------------------
 */

/* Rules in the order in which they are found from rule 0. Calls keep the numbers of `b` until all
 * rules are known. */
static bz_status append_rules(compiler *c, bz_error *err)
{
    bz_grammar *g = c->g;
    const bz_build *b = c->b;
    uint32_t *order = malloc((b->n_rules + (size_t)1) * sizeof *order);
    if (!order) {
        return no_memory(err);
    }
    memset(c->map, 0xFF, b->n_rules * sizeof *c->map);
    order[0] = 0;
    c->map[0] = 0;
    g->n_rules = 1;
    bz_status status = BZ_OK;
    for (uint32_t i = 0; i < g->n_rules && status == BZ_OK; i++) {
        const bz_rule *rule = &b->rules[order[i]];
        bz_compiled_rule *out = &g->rules[i];
        const uint32_t first_call = g->dfa.n_calls;
        status = bz_dfa_append(&g->dfa, b, rule->start, rule->end, &out->start, err);
        out->end = g->dfa.n_states;
        out->shared = rule->shared;
        out->leaf = g->dfa.n_calls == first_call;
        for (uint32_t k = first_call; k < g->dfa.n_calls; k++) {
            const uint32_t callee = g->dfa.calls[k].callee;
            const uint32_t called =
                callee & BZ_LOOP_BIT ? b->loops[callee & ~BZ_LOOP_BIT].body : callee;
            if (c->map[called] == UINT32_MAX) {
                c->map[called] = g->n_rules;
                order[g->n_rules++] = called;
            }
        }
    }
    free(order);
    return status;
}

static bz_status number_calls(compiler *c, bz_error *err)
{
    bz_grammar *g = c->g;
    for (uint32_t i = 0; i < c->b->n_loops; i++) {
        g->loops[i] = c->b->loops[i];
        const uint32_t body = c->map[g->loops[i].body];
        g->loops[i].body = body;
        if (body != UINT32_MAX) {
            g->rules[body].in_loop = true;
            g->rules[body].loop = i;
        }
    }
    g->n_loops = c->b->n_loops;
    for (uint32_t k = 0; k < g->dfa.n_calls; k++) {
        uint32_t *callee = &g->dfa.calls[k].callee;
        *callee = *callee & BZ_LOOP_BIT ? *callee : c->map[*callee];
    }
    const uint32_t n = g->dfa.n_states;
    g->rule_of = malloc(n * sizeof *g->rule_of);
    g->last = calloc(n, sizeof *g->last);
    c->productive = calloc(n, sizeof *c->productive);
    c->nullable = calloc(n, sizeof *c->nullable);
    c->first = calloc(n, sizeof *c->first);
    if (!g->rule_of || !g->last || !c->productive || !c->nullable || !c->first) {
        return no_memory(err);
    }
    for (uint32_t i = 0; i < g->n_rules; i++) {
        for (uint32_t s = g->rules[i].start; s < g->rules[i].end; s++) {
            g->rule_of[s] = i;
        }
    }
    return BZ_OK;
}

/* ---- which states can reach the end
 * -------------------------------------------------------------- */

static bool callee_productive(const compiler *c, uint32_t callee)
{
    const bz_grammar *g = c->g;
    return (callee & BZ_LOOP_BIT && g->loops[callee & ~BZ_LOOP_BIT].min == 0) ||
           c->productive[g->rules[rule_called(g, callee)].start];
}

static bool find_productive(const compiler *c, const bz_dfa_state *s)
{
    const bz_dfa *d = &c->g->dfa;
    if (s->accepts) {
        return true;
    }
    for (uint32_t i = 0; i < s->n_edges; i++) {
        if (c->productive[d->edges[s->edges + i].to]) {
            return true;
        }
    }
    for (uint32_t i = 0; i < s->n_calls; i++) {
        const bz_dfa_call *call = &d->calls[s->calls + i];
        if (c->productive[call->to] && callee_productive(c, call->callee)) {
            return true;
        }
    }
    return false;
}

/* Removes what leads nowhere. */
static void prune(compiler *c)
{
    bz_grammar *g = c->g;
    bz_dfa *d = &g->dfa;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = d->n_states; i-- > 0;) {
            if (!c->productive[i] && find_productive(c, &d->states[i])) {
                c->productive[i] = changed = true;
            }
        }
    }
    for (uint32_t i = 0; i < g->n_loops; i++) {
        const uint32_t body = g->loops[i].body;
        if (body != UINT32_MAX && !c->productive[g->rules[body].start]) {
            g->loops[i].max = 0;
        }
    }
    for (uint32_t i = 0; i < d->n_states; i++) {
        bz_dfa_state *s = &d->states[i];
        uint32_t edges = 0, calls = 0;
        for (uint32_t k = 0; k < s->n_edges; k++) {
            const bz_dfa_edge e = d->edges[s->edges + k];
            if (c->productive[e.to]) {
                d->edges[s->edges + edges++] = e;
            }
        }
        for (uint32_t k = 0; k < s->n_calls; k++) {
            const bz_dfa_call call = d->calls[s->calls + k];
            if (c->productive[call.to] && callee_productive(c, call.callee)) {
                d->calls[s->calls + calls++] = call;
            }
        }
        s->n_edges = edges;
        s->n_calls = calls;
        g->last[i] = s->accepts && edges == 0 && calls == 0;
    }
}

/* ---- the empty text, first bytes, following bytes
 * -------------------------------------------------- */

static bool callee_nullable(const compiler *c, uint32_t callee)
{
    const bz_grammar *g = c->g;
    return (callee & BZ_LOOP_BIT && g->loops[callee & ~BZ_LOOP_BIT].min == 0) ||
           c->nullable[g->rules[rule_called(g, callee)].start];
}

static bool merge(bz_byte_set *to, const bz_byte_set *from)
{
    bool changed = false;
    for (int i = 0; i < 4; i++) {
        changed |= (from->bits[i] & ~to->bits[i]) != 0;
        to->bits[i] |= from->bits[i];
    }
    return changed;
}

static bool pass_first(compiler *c, uint32_t state)
{
    const bz_grammar *g = c->g;
    const bz_dfa_state *s = &g->dfa.states[state];
    bool changed = s->accepts && !c->nullable[state];
    c->nullable[state] |= s->accepts;
    for (uint32_t k = 0; k < s->n_calls; k++) {
        const bz_dfa_call *call = &g->dfa.calls[s->calls + k];
        changed |= merge(&c->first[state], &c->first[g->rules[rule_called(g, call->callee)].start]);
        if (callee_nullable(c, call->callee)) {
            changed |= merge(&c->first[state], &c->first[call->to]);
            changed |= c->nullable[call->to] && !c->nullable[state];
            c->nullable[state] |= c->nullable[call->to];
        }
    }
    return changed;
}

static void find_first(compiler *c)
{
    const bz_dfa *d = &c->g->dfa;
    for (uint32_t i = 0; i < d->n_states; i++) {
        for (uint32_t k = 0; k < d->states[i].n_edges; k++) {
            const bz_dfa_edge *e = &d->edges[d->states[i].edges + k];
            for (int x = e->lo; x <= e->hi; x++) {
                bz_byte_add(&c->first[i], (uint8_t)x);
            }
        }
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = d->n_states; i-- > 0;) {
            changed |= pass_first(c, i);
        }
    }
    for (uint32_t i = 0; i < c->g->n_rules; i++) {
        c->g->rules[i].nullable = c->nullable[c->g->rules[i].start];
    }
}

static void find_follow(compiler *c)
{
    bz_grammar *g = c->g;
    const bz_dfa *d = &g->dfa;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < d->n_states; i++) {
            for (uint32_t k = 0; k < d->states[i].n_calls; k++) {
                const bz_dfa_call *call = &d->calls[d->states[i].calls + k];
                bz_compiled_rule *rule = &g->rules[rule_called(g, call->callee)];
                changed |= merge(&rule->follow, &c->first[call->to]);
                if (c->nullable[call->to]) {
                    changed |= merge(&rule->follow, &g->rules[g->rule_of[i]].follow);
                }
                if (rule->in_loop && !rule->leaf) { /* the next round is not part of the body */
                    changed |= merge(&rule->follow, &c->first[rule->start]);
                }
            }
        }
    }
}

/* ---- rules that call themselves at once
 * -------------------------------------------------------------- */

enum { NOT_SEEN, OPEN, CLOSED };

typedef struct frame {
    uint32_t state, call;
} frame;

static bz_status left_recursive(const compiler *c, uint32_t rule, bz_error *err)
{
    const char *name = NULL;
    for (uint32_t i = 0; c->name && i < c->b->n_rules; i++) {
        name = c->map[i] == rule ? c->name(c->user, i) : name;
    }
    return bz_fail(err, BZ_BAD_SCHEMA,
                   "The rule %s can begin with itself, which has no end; write the repetition with "
                   "* or with the call at the end.",
                   name ? name : "of the grammar");
}

/* Whether the open states from `state` to the top of the stack are of several rules. */
static bool leaves_rule(const bz_grammar *g, const frame *stack, uint32_t depth, uint32_t state)
{
    while (depth-- && stack[depth].state != state) {
        if (g->rule_of[stack[depth].state] != g->rule_of[state]) {
            return true;
        }
    }
    return false;
}

/* Depth first over states: from a state to the starts of its calls, and past calls that may be
 * empty. A circle through a call is a rule that calls itself. */
static bz_status check_recursion(const compiler *c, bz_error *err)
{
    const bz_grammar *g = c->g;
    const bz_dfa *d = &g->dfa;
    uint8_t *seen = calloc(d->n_states, 1);
    frame *stack = malloc((2 * (size_t)d->n_states + 2) * sizeof *stack);
    bz_status status = seen && stack ? BZ_OK : no_memory(err);
    for (uint32_t i = 0; i < d->n_states && status == BZ_OK; i++) {
        uint32_t depth = 0;
        if (seen[i] == NOT_SEEN) {
            seen[i] = OPEN;
            stack[depth++] = (frame){i, 0};
        }
        while (depth && status == BZ_OK) {
            frame *f = &stack[depth - 1];
            const bz_dfa_state *s = &d->states[f->state];
            if (f->call == 2 * s->n_calls) {
                seen[f->state] = CLOSED;
                depth--;
                continue;
            }
            const bz_dfa_call *call = &d->calls[s->calls + f->call / 2];
            const bool past = f->call++ % 2;
            const uint32_t next = past ? call->to : g->rules[rule_called(g, call->callee)].start;
            if (past && !callee_nullable(c, call->callee)) {
                continue;
            }
            if (seen[next] == OPEN && (!past || leaves_rule(g, stack, depth, next))) {
                status = left_recursive(c, g->rule_of[next], err);
            } else if (seen[next] == NOT_SEEN) {
                seen[next] = OPEN;
                stack[depth++] = (frame){next, 0};
            }
        }
    }
    free(seen);
    free(stack);
    return status;
}

/* ---- all of it
 * ------------------------------------------------------------------------------------------ */

static bz_status compile(compiler *c, bz_error *err)
{
    bz_status status = append_rules(c, err);
    if (status == BZ_OK) {
        status = number_calls(c, err);
    }
    if (status != BZ_OK) {
        return status;
    }
    prune(c);
    if (!c->productive[0]) {
        return bz_fail(
            err, BZ_BAD_SCHEMA,
            "No text fits the grammar: its parts contradict each other, or a rule has no "
            "end.");
    }
    find_first(c);
    status = check_recursion(c, err);
    if (status == BZ_OK) {
        find_follow(c);
    }
    return status;
}

bz_status bz_grammar_compile(bz_grammar **out, const bz_build *b,
                             const char *(*name)(void *user, uint32_t rule), void *user,
                             bz_error *err)
{
    bz_status status = bz_build_status(b, err);
    if (status != BZ_OK) {
        return status;
    }
    compiler c = {.b = b, .g = calloc(1, sizeof *c.g), .name = name, .user = user};
    if (!c.g) {
        return no_memory(err);
    }
    atomic_init(&c.g->holders, 1);
    c.g->rules = calloc(b->n_rules + (size_t)1, sizeof *c.g->rules);
    c.g->loops = calloc(b->n_loops + (size_t)1, sizeof *c.g->loops);
    c.map = malloc((b->n_rules + (size_t)1) * sizeof *c.map);
    status = c.g->rules && c.g->loops && c.map ? compile(&c, err) : no_memory(err);
    free(c.productive);
    free(c.nullable);
    free(c.first);
    free(c.map);
    if (status != BZ_OK) {
        bz_grammar_free(c.g);
        return status;
    }
    *out = c.g;
    return BZ_OK;
}
