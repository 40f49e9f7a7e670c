#include "grammar/set_table.h"

#include <stdlib.h>
#include <string.h>

void bz_sets_free(bz_set_table *t)
{
    free(t->words);
    free(t->lists);
    free(t->slots);
    *t = (bz_set_table){0};
}

void bz_sets_clear(bz_set_table *t)
{
    t->n_words = t->n_lists = 0;
    if (t->n_slots) {
        memset(t->slots, 0, t->n_slots * sizeof *t->slots);
    }
}

static uint64_t hash_of(const uint32_t *words, uint32_t n)
{
    uint64_t h = n + (uint64_t)0x9E3779B97F4A7C15u;
    for (uint32_t i = 0; i < n; i++) {
        h = (h ^ words[i]) * 0xD6E8FEB86659FD93u;
        h ^= h >> 32;
    }
    return h;
}

static bool grow_slots(bz_set_table *t)
{
    const uint32_t n = t->n_slots ? 2 * t->n_slots : 256;
    uint32_t *slots = calloc(n, sizeof *slots);
    if (!slots) {
        return false;
    }
    for (uint32_t i = 0; i < t->n_lists; i++) {
        uint32_t at = (uint32_t)t->lists[i].hash & (n - 1);
        while (slots[at]) {
            at = (at + 1) & (n - 1);
        }
        slots[at] = i + 1;
    }
    free(t->slots);
    t->slots = slots;
    t->n_slots = n;
    return true;
}

static bool grow(void **items, uint32_t wanted, uint32_t *cap, size_t size)
{
    if (wanted <= *cap) {
        return true;
    }
    uint32_t more = *cap ? *cap : 256;
    while (more < wanted) {
        more *= 2;
    }
    void *p = realloc(*items, more * size);
    if (!p) {
        return false;
    }
    *items = p;
    *cap = more;
    return true;
}

uint32_t bz_sets_number(bz_set_table *t, const uint32_t *words, uint32_t n, bool *fresh)
{
    *fresh = false;
    if (2 * t->n_lists >= t->n_slots && !grow_slots(t)) {
        return UINT32_MAX;
    }
    const uint64_t hash = hash_of(words, n);
    uint32_t at = (uint32_t)hash & (t->n_slots - 1);
    for (; t->slots[at]; at = (at + 1) & (t->n_slots - 1)) {
        const bz_word_list *l = &t->lists[t->slots[at] - 1];
        if (l->hash == hash && l->n == n &&
            (n == 0 || memcmp(t->words + l->first, words, n * sizeof *words) == 0)) {
            return t->slots[at] - 1;
        }
    }
    if (!grow((void **)&t->words, t->n_words + n, &t->cap_words, sizeof *t->words) ||
        !grow((void **)&t->lists, t->n_lists + 1, &t->cap_lists, sizeof *t->lists)) {
        return UINT32_MAX;
    }
    if (n) {
        memcpy(t->words + t->n_words, words, n * sizeof *words);
    }
    t->lists[t->n_lists] = (bz_word_list){t->n_words, n, hash};
    t->n_words += n;
    t->slots[at] = t->n_lists + 1;
    *fresh = true;
    return t->n_lists++;
}
