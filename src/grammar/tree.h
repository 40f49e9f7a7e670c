/* An expression over characters, as regular expressions and GBNF have them, before it becomes part
 * of a rule. Nodes are in an arena and never change, so that a node may occur in several places. */
#ifndef BZ_GRAMMAR_TREE_H
#define BZ_GRAMMAR_TREE_H

#include "base/arena.h"
#include "grammar/build.h"

typedef enum bz_tree_kind {
    BZ_TREE_EMPTY,  /* the empty text */
    BZ_TREE_CHARS,  /* one character of a set */
    BZ_TREE_TEXT,   /* bytes */
    BZ_TREE_SEQ,    /* all items, one after the other */
    BZ_TREE_ALT,    /* one of the items; without items: no text at all */
    BZ_TREE_REPEAT, /* item, from min to max times */
    BZ_TREE_CALL,   /* a rule or a loop */
    BZ_TREE_BEGIN,  /* ^ and $ of a regular expression: removed by regex.c */
    BZ_TREE_END
} bz_tree_kind;

typedef struct bz_char_range {
    uint32_t first, last;
} bz_char_range;

typedef struct bz_tree {
    bz_tree_kind kind;
    uint32_t n; /* ranges, items or bytes */
    union {
        const bz_char_range *ranges; /* in order, apart from each other */
        const struct bz_tree **items;
        const char *text;
    } of;
    const struct bz_tree *item;
    uint32_t min, max, callee;
} bz_tree;

/* Constructors; NULL without memory, and NULL items make a NULL node. */
const bz_tree *bz_tree_empty(bz_arena *a);
const bz_tree *bz_tree_text(bz_arena *a, const char *text, size_t n); /* copied */
/* Sorts and joins the ranges; `negated`: every other character. */
const bz_tree *bz_tree_chars(bz_arena *a, const bz_char_range *ranges, size_t n, bool negated);
const bz_tree *bz_tree_seq(bz_arena *a, const bz_tree *x, const bz_tree *y);
const bz_tree *bz_tree_list(bz_arena *a, bz_tree_kind kind, const bz_tree *const *items, size_t n);
const bz_tree *bz_tree_repeat(bz_arena *a, const bz_tree *item, uint32_t min, uint32_t max);
const bz_tree *bz_tree_call(bz_arena *a, uint32_t callee);
const bz_tree *bz_tree_mark(bz_arena *a, bz_tree_kind kind);

/* Adds the expression to the graph. `escape`: characters as they are in a JSON string; `regular`:
 * no loops are made, counts are written out. Rules whose texts may be empty are looked up in
 * nullable [n_rules], if that is not NULL. */
typedef struct bz_tree_out {
    bz_build *build;
    bz_arena *arena;
    bool escape, regular;
    bool (*rule_may_be_empty)(void *user, uint32_t callee);
    const bz_tree *(*rule_not_empty)(void *user,
                                     uint32_t callee); /* its texts that are not empty */
    void *user;
} bz_tree_out;

void bz_tree_emit(const bz_tree_out *out, const bz_tree *t, uint32_t from, uint32_t to);
bool bz_tree_may_be_empty(const bz_tree_out *out, const bz_tree *t);
/* The same texts without the empty one; NULL: no memory. */
const bz_tree *bz_tree_not_empty(const bz_tree_out *out, const bz_tree *t);

#endif
