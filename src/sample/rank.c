/* The best k tokens with a heap, and all tokens with a radix sort. */
#include "sample/rank.h"

#include <float.h>
#include <math.h>
#include <string.h>

static bz_candidate candidate(float logit, uint32_t id)
{
    return (bz_candidate){logit > FLT_MAX ? FLT_MAX : logit, (int32_t)id};
}

/* ---- the best k: a heap with the worst of them on top ------------------------------------ */

static int worse(bz_candidate a, bz_candidate b)
{
    return a.logit < b.logit || (a.logit == b.logit && a.id > b.id);
}

/* Replaces heap[at] by c and restores the heap order below it. */
static void sift_down(bz_candidate *heap, uint32_t n, uint32_t at, bz_candidate c)
{
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= n) {
            break;
        }
        if (child + 1 < n && worse(heap[child + 1], heap[child])) {
            child++;
        }
        if (!worse(heap[child], c)) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = c;
}

static void sift_up(bz_candidate *heap, uint32_t at, bz_candidate c)
{
    while (at > 0 && worse(c, heap[(at - 1) / 2])) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = c;
}

/* Most blocks of a long row have no value that can enter the list. NaN compares false. */
enum { BLOCK = 64, LANES = 8 };

static int any_above(const float *x, float limit)
{
    int any = 0;
    for (int i = 0; i < BLOCK; i++) {
        any |= x[i] > limit;
    }
    return any;
}

static float block_max(const float *x)
{
    float max[LANES];
    for (int k = 0; k < LANES; k++) {
        max[k] = -INFINITY;
    }
    for (int i = 0; i < BLOCK; i += LANES) {
        for (int k = 0; k < LANES; k++) {
            max[k] = x[i + k] > max[k] ? x[i + k] : max[k];
        }
    }
    for (int k = 1; k < LANES; k++) {
        max[0] = max[k] > max[0] ? max[k] : max[0];
    }
    return max[0];
}

/* Inserts c if the list has fewer than k entries or c is better than its worst; returns the new
 * count. */
static uint32_t insert(bz_candidate *heap, uint32_t count, uint32_t k, bz_candidate c)
{
    if (count < k) {
        sift_up(heap, count, c);
        return count + 1;
    }
    if (worse(heap[0], c)) {
        sift_down(heap, count, 0, c);
    }
    return count;
}

/* A lower bound that at least k values exceed: just below the k-th greatest block maximum. Without
 * it an ascending row would insert every value. */
static float first_limit(const float *row, uint32_t n, uint32_t k, bz_candidate *heap)
{
    uint32_t count = 0;
    if (n / BLOCK < k) {
        return -INFINITY;
    }
    for (uint32_t first = 0; first + BLOCK <= n; first += BLOCK) {
        float x = block_max(row + first);
        if (x > (count == k ? heap[0].logit : -INFINITY)) {
            count = insert(heap, count, k, candidate(x, first));
        }
    }
    return count == k ? nextafterf(heap[0].logit, -INFINITY) : -INFINITY;
}

uint32_t bz_rank_best(const float *row, uint32_t n, uint32_t k, bz_candidate *out)
{
    uint32_t count = 0;
    float limit = first_limit(row, n, k, out);
    for (uint32_t first = 0; first < n; first += BLOCK) {
        uint32_t end = n - first < BLOCK ? n : first + BLOCK;
        if (end - first == BLOCK && !any_above(row + first, limit)) {
            continue;
        }
        for (uint32_t i = first; i < end; i++) {
            if (row[i] > limit) {
                count = insert(out, count, k, candidate(row[i], i));
                limit =
                    count == k ? out[0].logit : limit; /* equal logits with higher ids are worse */
            }
        }
    }
    for (uint32_t left = count; left > 1; left--) { /* heap sort: move the worst to the end */
        bz_candidate last = out[left - 1];
        out[left - 1] = out[0];
        sift_down(out, left - 1, 0, last);
    }
    return count;
}

/* ---- all: three passes of a radix sort --------------------------------------------------- */

enum { DIGIT = 11, DIGITS = 1 << DIGIT, PASSES = 3 };

/* Ascending keys are descending logits. */
static uint32_t key_of(float x)
{
    uint32_t bits;
    x = x == 0 ? 0 : x; /* -0 equals 0 */
    memcpy(&bits, &x, sizeof bits);
    return bits >> 31 ? bits : ~(bits | 0x80000000u);
}

uint32_t bz_rank_all(const float *row, uint32_t n, bz_candidate *out, bz_candidate *scratch)
{
    uint32_t start[PASSES][DIGITS] = {{0}};
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) { /* in order of ids: every pass is stable */
        if (row[i] > -INFINITY) {
            scratch[count] = candidate(row[i], i);
            uint32_t key = key_of(scratch[count].logit);
            count++;
            for (int p = 0; p < PASSES; p++) {
                start[p][key >> (p * DIGIT) & (DIGITS - 1)]++;
            }
        }
    }
    for (int p = 0; p < PASSES; p++) {
        uint32_t at = 0;
        for (int d = 0; d < DIGITS; d++) {
            uint32_t size = start[p][d];
            start[p][d] = at;
            at += size;
        }
        const bz_candidate *from = p % 2 ? out : scratch;
        bz_candidate *to = p % 2 ? scratch : out;
        for (uint32_t i = 0; i < count; i++) {
            to[start[p][key_of(from[i].logit) >> (p * DIGIT) & (DIGITS - 1)]++] = from[i];
        }
    }
    return count;
}
