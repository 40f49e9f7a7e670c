/* Deterministic automata: a rule's graph after the subset construction. A call is a symbol like a
 * byte, so a state may have several calls, each with one state that follows it. */
#ifndef BZ_GRAMMAR_DFA_H
#define BZ_GRAMMAR_DFA_H

#include "grammar/build.h"

typedef struct bz_dfa_edge {
    uint32_t to;
    uint8_t lo, hi;
} bz_dfa_edge;

typedef struct bz_dfa_call {
    uint32_t callee, to;
} bz_dfa_call;

typedef struct bz_dfa_state {
    uint32_t edges, n_edges; /* in order of bytes, apart from each other */
    uint32_t calls, n_calls;
    bool accepts;
} bz_dfa_state;

/* Zero-initialize. Several automata can be appended to one; states are numbered through. */
typedef struct bz_dfa {
    bz_dfa_state *states;
    bz_dfa_edge *edges;
    bz_dfa_call *calls;
    uint32_t n_states, n_edges, n_calls;
    uint32_t cap_states, cap_edges, cap_calls;
} bz_dfa;

enum {
    BZ_MAX_DFA = 200000,        /* states of one grammar */
    BZ_MAX_DFA_STEPS = 20000000 /* of constructing one: about 0.3 s */
};

void bz_dfa_free(bz_dfa *d);

/* Appends the automaton of the graph between two states; *first is its start. */
bz_status bz_dfa_append(bz_dfa *d, const bz_build *b, uint32_t start, uint32_t end, uint32_t *first,
                        bz_error *err);

/* The state after a byte, or BZ_DFA_DEAD. */
#define BZ_DFA_DEAD UINT32_MAX
static inline uint32_t bz_dfa_next(const bz_dfa *d, uint32_t state, uint8_t byte)
{
    const bz_dfa_state *s = &d->states[state];
    if (s->n_edges == 0) {
        return BZ_DFA_DEAD;
    }
    const bz_dfa_edge *e = d->edges + s->edges;
    uint32_t low = 0, high = s->n_edges;
    while (low < high) {
        const uint32_t mid = (low + high) / 2;
        if (e[mid].hi < byte) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < s->n_edges && e[low].lo <= byte ? e[low].to : BZ_DFA_DEAD;
}

/* ---- automata without calls, which start in state 0 -------------------------------------------
 */

bool bz_dfa_accepts(const bz_dfa *d, const char *text, size_t len);
/* Whether there is a text at all. */
bool bz_dfa_has_text(const bz_dfa *d);
/* The texts of both, or those of x that are not of y (`without`). *out is all-zero. */
bz_status bz_dfa_meet(bz_dfa *out, const bz_dfa *x, const bz_dfa *y, bool without, bz_error *err);
/* Adds it to a graph. */
void bz_dfa_emit(const bz_dfa *d, bz_build *b, uint32_t from, uint32_t to);

#endif
