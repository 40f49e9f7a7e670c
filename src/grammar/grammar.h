/* A compiled grammar: one automaton per rule, all in one table, and what is known of the rules.
 * Immutable, so that threads can share it. matcher.h runs it.
 *
 * A text is read by configurations: a state, and a stack of what follows when its rule ends. Every
 * state that is left in the table can still reach the end, so a matcher never gets stuck. */
#ifndef BZ_GRAMMAR_GRAMMAR_H
#define BZ_GRAMMAR_GRAMMAR_H

#include <stdatomic.h>

#include "grammar/dfa.h"

typedef struct bz_byte_set {
    uint64_t bits[4];
} bz_byte_set;

static inline bool bz_byte_in(const bz_byte_set *s, uint8_t byte)
{
    return s->bits[byte >> 6] >> (byte & 63) & 1;
}

/* Returns whether it was not in the set. */
static inline bool bz_byte_add(bz_byte_set *s, uint8_t byte)
{
    const bool fresh = !bz_byte_in(s, byte);
    s->bits[byte >> 6] |= (uint64_t)1 << (byte & 63);
    return fresh;
}

typedef struct bz_compiled_rule {
    uint32_t start, end; /* its states: [start, end) */
    bool nullable;       /* the empty text belongs to it */
    bool leaf;           /* it has no calls */
    bool shared;         /* see bz_rule */
    bool in_loop;        /* the body of a loop, */
    uint32_t loop;       /* this one */
    bz_byte_set follow;  /* bytes that can come after it; of a body, after its loop */
} bz_compiled_rule;

/* Where in an answer the grammar holds. */
typedef struct bz_grammar_place {
    bool thought_first; /* the answer may begin with a thought, which is free */
    bool thought_open;  /* it begins inside a thought */
    bool calls_only;    /* everything is free but tool calls, which the grammar begins with, */
    bool one_call;      /* and after one the answer ends */
} bz_grammar_place;

struct bz_grammar {
    atomic_uint holders;
    bz_grammar_place place; /* set before it is shared */
    bz_dfa dfa;
    uint32_t *rule_of; /* [n_states] */
    bool *last;        /* [n_states] it accepts and has neither edges nor calls */
    bz_compiled_rule *rules;
    bz_loop *loops;
    uint32_t n_rules, n_loops;
};

/* Compiles rule 0 and what it calls. Fails for a grammar without texts, and for a rule that calls
 * itself before it takes a byte; `name` (may be NULL) names rules in that message. */
bz_status bz_grammar_compile(bz_grammar **out, const bz_build *b,
                             const char *(*name)(void *user, uint32_t rule), void *user,
                             bz_error *err);
/* Readers return one with one holder. */
bz_grammar *bz_grammar_hold(bz_grammar *g);

#endif
