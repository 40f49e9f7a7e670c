#include "grammar/trie.h"

#include <stdlib.h>
#include <string.h>

void bz_trie_free(bz_trie *t)
{
    if (!t) {
        return;
    }
    free(t->byte);
    free(t->depth);
    free(t->after);
    free(t->first);
    free(t->order);
    free(t->text);
    free(t->bytes);
    free(t);
}

typedef struct sort_item {
    uint64_t key; /* the first eight bytes, so that most comparisons touch no text */
    const bz_str *text;
    int32_t id;
} sort_item;

static int by_text(const void *x, const void *y)
{
    const sort_item *p = x, *q = y;
    if (p->key != q->key) {
        return p->key < q->key ? -1 : 1;
    }
    const size_t n = p->text->len < q->text->len ? p->text->len : q->text->len;
    const int order = memcmp(p->text->data, q->text->data, n);
    if (order || p->text->len != q->text->len) {
        return order ? order : p->text->len < q->text->len ? -1 : 1;
    }
    return p->id < q->id ? -1 : 1;
}

static uint64_t key_of(bz_str s)
{
    uint64_t key = 0;
    for (size_t i = 0; i < 8; i++) {
        key = key << 8 | (i < s.len ? (uint8_t)s.data[i] : 0);
    }
    return key;
}

static size_t common(bz_str x, bz_str y)
{
    const size_t n = x.len < y.len ? x.len : y.len;
    size_t i = 0;
    while (i < n && x.data[i] == y.data[i]) {
        i++;
    }
    return i;
}

/* The texts in order become nodes: each shares the beginning of the one before. */
static void add_nodes(bz_trie *t)
{
    uint32_t open[BZ_MAX_TOKEN_BYTES + 1] = {0}; /* node by depth */
    bz_str before = {"", 0};
    uint32_t n = 1;
    t->byte[0] = 0;
    t->depth[0] = 0;
    t->first[0] = 0;
    for (uint32_t i = 0; i < t->n_order; i++) {
        const bz_str s = t->text[t->order[i]];
        const size_t same = common(before, s);
        for (size_t d = same + 1; d <= before.len; d++) {
            t->after[open[d]] = n;
        }
        for (size_t d = same + 1; d <= s.len; d++) {
            t->byte[n] = (uint8_t)s.data[d - 1];
            t->depth[n] = (uint16_t)d;
            t->first[n] = i;
            open[d] = n++;
        }
        before = s;
    }
    for (size_t d = 0; d <= before.len; d++) {
        t->after[open[d]] = n;
    }
    t->first[n] = t->n_order;
    t->n_nodes = n;
}

static bool fill(bz_trie *t, const bz_str *text, uint32_t n)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        bytes += text[i].len <= BZ_MAX_TOKEN_BYTES ? text[i].len : 0;
    }
    sort_item *items = malloc((n + (size_t)1) * sizeof *items);
    t->text = calloc(n + (size_t)1, sizeof *t->text);
    t->bytes = malloc(bytes + 1);
    t->order = malloc((n + (size_t)1) * sizeof *t->order);
    t->byte = malloc(bytes + 1);
    t->depth = malloc((bytes + 1) * sizeof *t->depth);
    t->after = malloc((bytes + 1) * sizeof *t->after);
    t->first = malloc((bytes + 2) * sizeof *t->first);
    if (!items || !t->text || !t->bytes || !t->order || !t->byte || !t->depth || !t->after ||
        !t->first) {
        free(items);
        return false;
    }
    t->n_tokens = n;
    char *at = t->bytes;
    for (uint32_t i = 0; i < n; i++) {
        const bz_str s = text[i];
        if (s.len == 0 || s.len > BZ_MAX_TOKEN_BYTES) {
            t->text[i] = (bz_str){at, 0};
            continue;
        }
        memcpy(at, s.data, s.len);
        t->text[i] = (bz_str){at, s.len};
        at += s.len;
        t->longest = s.len > t->longest ? (uint32_t)s.len : t->longest;
        items[t->n_order++] = (sort_item){key_of(s), &t->text[i], (int32_t)i};
    }
    qsort(items, t->n_order, sizeof *items, by_text);
    for (uint32_t i = 0; i < t->n_order; i++) {
        t->order[i] = items[i].id;
    }
    free(items);
    add_nodes(t);
    return true;
}

/* Gives back what the bound on the number of nodes left unused. */
static void shrink(void **array, size_t size)
{
    void *p = realloc(*array, size);
    *array = p ? p : *array;
}

bz_status bz_trie_new(bz_trie **out, const bz_str *text, uint32_t n, bz_error *err)
{
    bz_trie *t = calloc(1, sizeof *t);
    if (!t || !fill(t, text, n)) {
        bz_trie_free(t);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the vocabulary's tree.");
    }
    shrink((void **)&t->byte, t->n_nodes * sizeof *t->byte);
    shrink((void **)&t->depth, t->n_nodes * sizeof *t->depth);
    shrink((void **)&t->after, t->n_nodes * sizeof *t->after);
    shrink((void **)&t->first, (t->n_nodes + (size_t)1) * sizeof *t->first);
    *out = t;
    return BZ_OK;
}
