/* Gives numbers to lists of words: equal lists get the same number, in the order of first use. */
#ifndef BZ_GRAMMAR_SET_TABLE_H
#define BZ_GRAMMAR_SET_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bz_word_list {
    uint32_t first, n; /* in `words` */
    uint64_t hash;
} bz_word_list;

/* Zero-initialize. */
typedef struct bz_set_table {
    uint32_t *words;
    bz_word_list *lists;
    uint32_t *slots; /* number + 1; 0: empty */
    uint32_t n_words, n_lists, cap_words, cap_lists, n_slots;
} bz_set_table;

void bz_sets_free(bz_set_table *t);
void bz_sets_clear(bz_set_table *t); /* forgets the lists, keeps the memory */
/* The number of a list; *fresh: it is new. UINT32_MAX: no memory. */
uint32_t bz_sets_number(bz_set_table *t, const uint32_t *words, uint32_t n, bool *fresh);

#endif
