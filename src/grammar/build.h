/* A grammar while it is read: rules whose bodies are graphs (NFA) over bytes.
 *
 * An edge takes a range of bytes, takes nothing, or calls a rule or a loop, which takes what that
 * takes. A loop repeats a rule between `min` and `max` times and counts at run time, so that
 * x{0,1000} costs as much as x. Texts of special tokens are written as two bytes, BZ_SPECIAL_BYTE
 * and a number: the former does not occur in UTF-8.
 */
#ifndef BZ_GRAMMAR_BUILD_H
#define BZ_GRAMMAR_BUILD_H

#include "base/error.h"

enum { BZ_SPECIAL_BYTE = 0xFF };
#define BZ_NO_LIMIT UINT32_MAX  /* max of a loop without one */
#define BZ_LOOP_BIT 0x80000000u /* in a callee: the rest is the index of a loop */

typedef enum bz_edge_kind { BZ_EDGE_BYTES, BZ_EDGE_EMPTY, BZ_EDGE_CALL } bz_edge_kind;

typedef struct bz_nfa_edge {
    uint32_t to, next; /* next: of the same state; 0: none */
    uint32_t callee;   /* CALL: a rule, or BZ_LOOP_BIT and a loop */
    uint8_t kind, lo, hi;
} bz_nfa_edge;

typedef struct bz_rule {
    uint32_t start, end; /* states: every way from start to end is a text of the rule */
    bool shared; /* one of a few rules that every schema has: what is known of it is kept with the
                    vocabulary */
} bz_rule;

typedef struct bz_loop {
    uint32_t body; /* a rule that no empty text belongs to and that only this loop calls */
    uint32_t min, max;
} bz_loop;

/* Zero-initialize. After `failed` everything else is undefined, but may be called and freed. */
typedef struct bz_build {
    uint32_t *states;   /* [n_states] first edge; 0: none */
    bz_nfa_edge *edges; /* [n_edges] index 0 is not used */
    bz_rule *rules;
    bz_loop *loops;
    uint32_t n_states, n_edges, n_rules, n_loops;
    uint32_t cap_states, cap_edges, cap_rules, cap_loops;
    bool failed;    /* no memory, */
    bool too_large; /* or more states or edges than BZ_MAX_STATES */
} bz_build;

enum { BZ_MAX_STATES = 1 << 20 };

void bz_build_free(bz_build *b);
/* The error of `failed`; OK if it did not. */
bz_status bz_build_status(const bz_build *b, bz_error *err);

uint32_t bz_build_rule(bz_build *b);  /* a rule without texts; rule 0 is the whole grammar */
uint32_t bz_build_state(bz_build *b); /* a state without edges */
uint32_t bz_build_loop(bz_build *b, uint32_t body, uint32_t min, uint32_t max);

void bz_build_bytes(bz_build *b, uint32_t from, uint32_t to, uint8_t lo, uint8_t hi);
void bz_build_empty(bz_build *b, uint32_t from, uint32_t to);
void bz_build_call(bz_build *b, uint32_t from, uint32_t to, uint32_t callee);
void bz_build_text(bz_build *b, uint32_t from, uint32_t to, const char *text, size_t len);
/* The characters from `first` to `last`, as UTF-8; surrogates are left out. */
void bz_build_chars(bz_build *b, uint32_t from, uint32_t to, uint32_t first, uint32_t last);

#endif
