/* Sets of configurations and their stacks, numbered, with the steps between them. Used by matcher.c
 * and base.c. */
#ifndef BZ_GRAMMAR_SETS_H
#define BZ_GRAMMAR_SETS_H

#include "grammar/grammar.h"
#include "grammar/set_table.h"

/* Stacks: the first two are not entries. */
enum { BZ_STACK_BOTTOM = 0, BZ_STACK_UNKNOWN = 1 };
/* An entry: a state to go on with, or a loop with the number of the round that runs. The rounds of
 * a counted loop (BZ_COUNT_BIT) only count, without limits. */
#define BZ_COUNT_BIT 0x40000000u

/* In place of a state: the text may end; the rule below which nothing is known has ended, after as
 * many rounds as the stack's number says. */
#define BZ_CONFIG_END    UINT32_MAX
#define BZ_CONFIG_RETURN (UINT32_MAX - 1)

enum { BZ_SET_DEAD = 0 }; /* no configuration */

typedef struct bz_config {
    uint32_t state, stack;
} bz_config;

typedef struct bz_set_info {
    uint32_t *next;  /* [256] UINT32_MAX: not known yet; NULL: see `steps` */
    uint16_t n_next; /* known in `steps` */
    bool can_end, returns;
    bool live;     /* it takes more bytes */
    uint32_t need; /* least number of rounds of a counted loop */
    uint32_t mask; /* matcher.c: slot of its tokens + 1 */
} bz_set_info;

typedef struct bz_step {
    uint64_t key; /* set << 8 | byte, plus 1; 0: empty */
    uint32_t to;
} bz_step;

typedef struct bz_reached {
    bz_config config;
    uint32_t round;
} bz_reached;

typedef struct bz_sets {
    const bz_grammar *g;
    bz_set_table stacks, sets;
    bz_set_info *info; /* [cap_info] by set */
    uint32_t cap_info;
    bz_step *steps; /* [n_step_slots] */
    uint32_t n_steps, n_step_slots;
    /* while a set is made */
    bz_reached *reached; /* hash table of those found, by round */
    bz_config *found;    /* [n_found] */
    uint32_t n_found, round;
    bool no_memory, ambiguous; /* failed */
} bz_sets;

bool bz_config_sets_begin(bz_sets *s, const bz_grammar *g); /* false: no memory; free it anyway */
void bz_config_sets_free(bz_sets *s);

static inline bool bz_config_sets_failed(const bz_sets *s)
{
    return s->no_memory || s->ambiguous;
}

uint32_t bz_stack_push(bz_sets *s, uint32_t entry, uint32_t count, uint32_t below);
typedef struct bz_stack_entry {
    uint32_t entry, count, below;
} bz_stack_entry;
bz_stack_entry bz_stack_top(const bz_sets *s, uint32_t stack);

/* Making a set: begin, reach or pop, end (its number). */
void bz_set_begin(bz_sets *s);
void bz_set_reach(bz_sets *s, uint32_t state, uint32_t stack); /* with what its calls begin with */
void bz_set_pop(bz_sets *s, uint32_t stack); /* what follows when the rule on the stack has ended */
uint32_t bz_set_end(bz_sets *s);
/* The set of one configuration without what follows from it. */
uint32_t bz_set_of_one(bz_sets *s, uint32_t state, uint32_t stack);

const bz_config *bz_set_configs(const bz_sets *s, uint32_t set, uint32_t *n);

/* The set after a byte. */
uint32_t bz_set_step_slow(bz_sets *s, uint32_t set, uint8_t byte);
static inline uint32_t bz_set_step(bz_sets *s, uint32_t set, uint8_t byte)
{
    const uint32_t *next = s->info[set].next;
    return next && next[byte] != UINT32_MAX ? next[byte] : bz_set_step_slow(s, set, byte);
}

#endif
