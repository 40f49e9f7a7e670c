/* Merges a run of symbols by rank: a scan for short runs, a heap for long ones. */
#include "text/bpe.h"

#include <stdlib.h>
#include <string.h>

/* Up to this many symbols a scan for the lowest rank is faster than a heap. */
enum { SHORT = 64 };

/* A symbol of a long run, linked to its remaining neighbors. */
typedef struct bz_bpe_node {
    uint32_t symbol;
    uint32_t prev, next; /* END at the ends */
    uint32_t rank;       /* of the pair with next; BZ_RANK_NONE if merged away or last */
} bz_bpe_node;

#define END UINT32_MAX

/* realloc of n elements that fails instead of overflowing. */
static void *resize(void *p, size_t n, size_t size)
{
    return n > SIZE_MAX / size ? NULL : realloc(p, n * size);
}

bool bz_bpe_push(bz_bpe *w, uint32_t symbol)
{
    if (w->n == w->cap) {
        size_t cap = w->cap ? 2 * w->cap : 256;
        uint32_t *more = resize(w->symbol, cap, sizeof *more);
        if (!more) {
            return false;
        }
        w->symbol = more;
        w->cap = cap;
    }
    w->symbol[w->n++] = symbol;
    return true;
}

void bz_bpe_free(bz_bpe *w)
{
    free(w->symbol);
    free(w->node);
    free(w->heap);
    *w = (bz_bpe){0};
}

/* ---- short: scan ----------------------------------------------------------------- */

static void merge_short(const bz_tokenizer *t, bz_bpe *w)
{
    uint32_t rank[SHORT]; /* rank[i]: of symbols i and i + 1 */
    uint32_t *symbol = w->symbol;
    size_t n = w->n;
    for (size_t i = 0; i + 1 < n; i++) {
        rank[i] = bz_vocab_rank(t, symbol[i], symbol[i + 1]);
    }
    while (n > 1) {
        size_t at = 0;
        for (size_t i = 1; i + 1 < n; i++) {
            if (rank[i] < rank[at]) {
                at = i;
            }
        }
        if (rank[at] == BZ_RANK_NONE) {
            break;
        }
        symbol[at] = bz_vocab_result(t, symbol[at], symbol[at + 1], rank[at]);
        n--;
        for (size_t i = at + 1; i < n; i++) {
            symbol[i] = symbol[i + 1];
        }
        for (size_t i = at + 1; i + 1 < n; i++) {
            rank[i] = rank[i + 1];
        }
        if (at > 0) {
            rank[at - 1] = bz_vocab_rank(t, symbol[at - 1], symbol[at]);
        }
        if (at + 1 < n) {
            rank[at] = bz_vocab_rank(t, symbol[at], symbol[at + 1]);
        }
    }
    w->n = n;
}

/* ---- long: a heap of rank << 32 | position ----------------------------------------- */

static void sift_down(uint64_t *heap, size_t n, size_t i)
{
    uint64_t moving = heap[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= n) {
            break;
        }
        if (child + 1 < n && heap[child + 1] < heap[child]) {
            child++;
        }
        if (heap[child] >= moving) {
            break;
        }
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = moving;
}

static uint64_t heap_pop(bz_bpe *w)
{
    uint64_t top = w->heap[0];
    w->heap[0] = w->heap[--w->heap_n];
    if (w->heap_n > 1) {
        sift_down(w->heap, w->heap_n, 0);
    }
    return top;
}

static bool heap_push(bz_bpe *w, uint64_t entry)
{
    if (w->heap_n == w->heap_cap) {
        size_t cap = w->heap_cap + w->heap_cap / 2 + SHORT;
        uint64_t *more = resize(w->heap, cap, sizeof *more);
        if (!more) {
            return false;
        }
        w->heap = more;
        w->heap_cap = cap;
    }
    size_t i = w->heap_n++;
    while (i > 0 && w->heap[(i - 1) / 2] > entry) {
        w->heap[i] = w->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    w->heap[i] = entry;
    return true;
}

/* Ranks the pair that starts at node i and adds it to the heap. */
static bool rank_pair(const bz_tokenizer *t, bz_bpe *w, uint32_t i)
{
    bz_bpe_node *a = &w->node[i];
    a->rank = a->next == END ? BZ_RANK_NONE : bz_vocab_rank(t, a->symbol, w->node[a->next].symbol);
    return a->rank == BZ_RANK_NONE || heap_push(w, (uint64_t)a->rank << 32 | i);
}

static bool start_long(const bz_tokenizer *t, bz_bpe *w)
{
    if (w->n > w->node_cap) {
        size_t cap = w->n + w->n / 2;
        free(w->node);
        w->node_cap = 0;
        w->node = resize(NULL, cap, sizeof *w->node);
        if (!w->node) {
            return false;
        }
        w->node_cap = cap;
    }
    if (w->n > w->heap_cap) {
        free(w->heap);
        w->heap_cap = 0;
        w->heap = resize(NULL, w->n, sizeof *w->heap);
        if (!w->heap) {
            return false;
        }
        w->heap_cap = w->n;
    }
    w->heap_n = 0;
    for (size_t i = 0; i < w->n; i++) {
        bool last = i + 1 == w->n;
        uint32_t rank = last ? BZ_RANK_NONE : bz_vocab_rank(t, w->symbol[i], w->symbol[i + 1]);
        w->node[i] = (bz_bpe_node){w->symbol[i], i ? (uint32_t)(i - 1) : END,
                                   last ? END : (uint32_t)(i + 1), rank};
        if (rank != BZ_RANK_NONE) {
            w->heap[w->heap_n++] = (uint64_t)rank << 32 | i;
        }
    }
    for (size_t i = w->heap_n / 2; i-- > 0;) {
        sift_down(w->heap, w->heap_n, i);
    }
    return true;
}

static bool merge_long(const bz_tokenizer *t, bz_bpe *w)
{
    if (!start_long(t, w)) {
        return false;
    }
    while (w->heap_n) {
        uint64_t top = heap_pop(w);
        uint32_t i = (uint32_t)top, rank = (uint32_t)(top >> 32);
        bz_bpe_node *a = &w->node[i];
        if (a->rank != rank) {
            continue; /* stale: one of the two was merged with another symbol */
        }
        bz_bpe_node *b = &w->node[a->next];
        a->symbol = bz_vocab_result(t, a->symbol, b->symbol, rank);
        a->next = b->next;
        b->rank = BZ_RANK_NONE;
        if (a->next != END) {
            w->node[a->next].prev = i;
        }
        if (!rank_pair(t, w, i) || (a->prev != END && !rank_pair(t, w, a->prev))) {
            return false;
        }
    }
    size_t n = 0;
    for (uint32_t i = 0; i != END; i = w->node[i].next) {
        w->symbol[n++] = w->node[i].symbol; /* the first node is never merged away */
    }
    w->n = n;
    return true;
}

bool bz_bpe_merge(const bz_tokenizer *t, bz_bpe *w)
{
    if (w->n < 2) {
        return true;
    }
    if (w->n <= SHORT) {
        merge_short(t, w);
        return true;
    }
    return merge_long(t, w);
}
