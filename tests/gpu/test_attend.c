/* kv_write and attend on the GPU against the CPU: head sizes, grouped queries, windows and rings,
 * caches of every type, prompts in chunks and tokens after them.
 *
 *   sh tools/gpu-env.sh build/tests/gpu/test_attend [part of a case's name]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/devices.h"
#include "support/golden.h"
#include "support/parity.h"
#include "support/random.h"

enum { N_BUCKETS = 4, IDS = 64, CHUNK = 64 };
static const uint32_t buckets[N_BUCKETS] = {1, 8, 64, 512};

typedef struct layer {
    uint32_t width, heads, kv_heads, window;
    float sharp;     /* factor of the queries: 1, scores of some units; 30, one key takes all */
    uint32_t column; /* where the queries begin in a wider row */
} layer;

/* One chunk or token after the other; where the numbers end, the sequence does. */
static const uint32_t story[] = {64, 1, 7, 8, 3, 64, 17, 1, 50, 1, 2, 9};

typedef struct attention {
    parity p;
    memory_weights w;
    layer l;
    bz_cache_type type;
    bz_cache_info cache;
    bz_weight q, kv;
    parity_run runs[N_BUCKETS];
} attention;

static bool open_attention(attention *a, layer l, bz_cache_type type)
{
    *a = (attention){.l = l, .type = type};
    a->cache = (bz_cache_info){.kv_heads = l.kv_heads, .head_dim = l.width, .window = l.window};
    a->q = weights_random(&a->w, BZ_F32, l.heads * l.width + 2 * l.column, IDS, 1);
    a->kv = weights_random(&a->w, BZ_F32, 2 * l.kv_heads * l.width + 3, IDS, 1);
    const parity_options o = {.f32_cache = type == BZ_CACHE_F32,
                              .cache = type,
                              .caches = &a->cache,
                              .n_caches = 1,
                              .slack = CHUNK - 1};
    if (!parity_open(&a->p, &a->w, &o)) {
        return false;
    }
    for (int b = 0; b < N_BUCKETS; b++) {
        bz_plan *plan = parity_plan(&a->p, buckets[b]);
        bz_tensor q = bz_embed(plan, a->q, l.sharp, "q"), kv = bz_embed(plan, a->kv, 1, "kv");
        q = l.column ? bz_columns(plan, q, l.column, l.heads * l.width) : q;
        const uint32_t n = l.kv_heads * l.width;
        bz_kv_write(plan, bz_columns(plan, kv, 1, n), bz_columns(plan, kv, 1 + n, n), (bz_cache){1},
                    "write");
        a->runs[b] = parity_prepare(
            &a->p, plan, bz_attend(plan, q, (bz_cache){1}, l.heads, l.width, l.window, "y"));
    }
    return true;
}

static void close_attention(attention *a)
{
    for (int b = 0; b < N_BUCKETS; b++) {
        parity_release(&a->p, &a->runs[b]);
    }
    parity_close(&a->p);
    weights_free(&a->w);
    printf("  %.2g of the bound used\n", parity_worst());
}

/* A chunk of n random rows at a position; in the smallest bucket, or in the largest. */
static bool feed(attention *a, uint32_t position, uint32_t n, bool largest, bound limit)
{
    int32_t ids[512];
    int b = largest ? N_BUCKETS - 1 : 0;
    while (buckets[b] < n) {
        b++;
    }
    for (uint32_t i = 0; i < n; i++) {
        ids[i] = (int32_t)random_below(IDS);
    }
    return parity_check(&a->p, &a->runs[b],
                        &(parity_pass){.n = n, .position = position, .ids = ids}, limit,
                        "%u rows of %u at %u", n, buckets[b], position);
}

/* exp of a difference d is good to about d units in the last place. Both back ends round to the
 * same f16, and to the same integers, except where a value lies between two of them: then one value
 * of a key is off by one. Tiles compute with keys in f16. */
static bound bound_of(const attention *a)
{
    const double exact = a->l.sharp > 1 ? 5e-4 : 1e-5 + 2e-8 * a->l.width;
    const double rounded = a->type == BZ_CACHE_Q8 ? 8e-3 : a->type == BZ_CACHE_Q4 ? 3e-2 : 0;
    return (bound){.of_rms = exact + rounded * (a->l.sharp > 1 ? 10 : 1)};
}

static void test_story(layer l, bz_cache_type type)
{
    attention a;
    bool open = open_attention(&a, l, type);
    uint32_t at = 0;
    for (size_t i = 0; open && i < sizeof story / sizeof *story; i++) {
        open = feed(&a, at, story[i], i == 4, bound_of(&a));
        at += story[i];
    }
    /* The same sequence again from its middle, as an edited prompt does: rows written before must
     * not show. */
    open = open && feed(&a, 120, 64, false, bound_of(&a)) && feed(&a, 184, 1, false, bound_of(&a));
    close_attention(&a);
}

/* Positions one before, at and one past the window, first row by row, then as one chunk. */
static void test_edges(layer l, bz_cache_type type)
{
    attention a;
    bool open = open_attention(&a, l, type);
    const uint32_t start = l.window - 4;
    for (uint32_t at = 0; open && at < start; at += CHUNK) {
        open = feed(&a, at, start - at < CHUNK ? start - at : CHUNK, false, bound_of(&a));
    }
    for (uint32_t i = 0; open && i < 8; i++) {
        open = feed(&a, start + i, 1, i & 1, bound_of(&a));
    }
    for (uint32_t i = 0; open && i < 8; i++) {
        open = feed(&a, start - i, 9, i & 1, bound_of(&a));
    }
    close_attention(&a);
}

static void test_layer(layer l, bz_cache_type type, const char *name)
{
    begin("%s", name);
    test_story(l, type);
    if (l.window > 8 && type != BZ_CACHE_F32) {
        begin("%s, around the window's edge", name);
        test_edges(l, type);
    }
}

int main(int argc, char **argv)
{
    devices_keep();
    static const layer layers[] = {
        {64, 1, 1, 0, 1, 0},   {64, 8, 2, 33, 1, 3},   {72, 6, 2, 0, 1, 0},
        {72, 3, 3, 16, 30, 0}, {128, 8, 1, 100, 1, 0}, {128, 12, 1, 0, 30, 0},
        {256, 4, 1, 64, 1, 0}, {256, 16, 8, 40, 1, 0}, {256, 5, 5, 0, 1, 1},
        {512, 8, 1, 0, 1, 0},  {512, 4, 2, 65, 1, 0},  {512, 9, 1, 0, 30, 0},
        {2, 3, 1, 0, 1, 0},    {10, 4, 4, 7, 1, 0},    {320, 2, 1, 48, 1, 0},
        {512, 16, 1, 1, 1, 0}, {1024, 2, 1, 0, 1, 0}};
    const char *wanted = argc > 1 ? argv[1] : "";
    random_seed_or(20240608);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        for (int t = 0; t < 4; t++) {
            const layer l = layers[i];
            const bz_cache_type type = (bz_cache_type)t;
            char name[100];
            snprintf(name, sizeof name, "attend %s, %u heads of %u on %u, %s %u%s",
                     bz_cache_type_name(type), l.heads, l.width, l.kv_heads,
                     l.window ? "window" : "all", l.window, l.sharp > 1 ? ", sharp" : "");
            const bool skip = type == BZ_CACHE_F32   ? i % 3 || quick_run()
                              : type == BZ_CACHE_F16 ? i % 4 && quick_run()
                                                     : (i + (size_t)t) % 5 && quick_run();
            if (!skip && strstr(name, wanted)) {
                test_layer(l, type, name);
                devices_count_as(DEVICES_SEQUENTIAL);
                strcat(name, ", sequential");
                test_layer(l, type, name);
                devices_count_as(DEVICES_PARALLEL);
            }
        }
    }
    return finish();
}
