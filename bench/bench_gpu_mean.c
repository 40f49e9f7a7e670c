/* Speed of the mean embedding of a canvas's rows (soft_embed) by timestamps, for distributions from
 * sharp to flat.
 *
 *   bench_gpu_mean [--small]    --small: shapes for a software adapter
 *
 * 64 rows, a quarter of DiffusionGemma's canvas, of normal logits after its softcap, and a table
 * of Q6_K. Every line: deviation and temperature, tokens per row that count in exact and in other
 * sessions, then what each kernel took. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/run/internal.h"
#include "bench/gpu_bench.h"

enum {
    ROWS = 64,
    REPEATS = 80,
    FEW_REPEATS = 2,
    MAX_LINES = 16
}; /* an idle GPU reaches its full clock only after tens of runs */

typedef struct mean {
    uint32_t width, vocab;
    int repeats;
    bz_weight_info info;
    bz_weights table;
    const uint8_t *bytes[1];
    bz_gpu_model *model;
} mean;

static uint32_t seed = 1;

static uint32_t noise(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

static void make_table(mean *m)
{
    m->info = (bz_weight_info){.name = "table", .type = BZ_Q6_K, .ne = {m->width, m->vocab, 1}};
    m->table = (bz_weights){.info = &m->info, .n = 1, .cap = 1};
    const size_t n = bz_row_bytes(BZ_Q6_K, m->width) * m->vocab;
    uint8_t *bytes = malloc(n);
    if (!bytes) {
        fail("table", &(bz_error){.text = "out of memory"});
    }
    for (size_t i = 0; i < n; i++) {
        bytes[i] = (uint8_t)noise();
    }
    const uint16_t scale = bz_f32_to_f16(0x1p-11f);
    for (size_t i = 208; i < n; i += 210) {
        memcpy(bytes + i, &scale, 2);
    }
    m->bytes[0] = bytes;
}

static float *random_logits(const mean *m, double deviation)
{
    float *z = malloc((size_t)ROWS * m->vocab * sizeof *z);
    for (size_t i = 0; z && i < (size_t)ROWS * m->vocab; i++) {
        double sum = 0; /* of twelve, its deviation 1 */
        for (int k = 0; k < 12; k++) {
            sum += (double)noise() * 0x1p-24 - 0.5;
        }
        z[i] = (float)(30 * tanh(sum * deviation / 30));
    }
    return z;
}

/* How many of the most likely tokens hold all but eps of the row's sum. */
static int descending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

static uint32_t tokens_needed(const mean *m, const float *row, double temperature, double eps)
{
    float *z = malloc(m->vocab * sizeof *z);
    double total = 0, sum = 0;
    uint32_t n = 0;
    memcpy(z, row, m->vocab * sizeof *z);
    qsort(z, m->vocab, sizeof *z, descending);
    for (uint32_t i = 0; i < m->vocab; i++) {
        total += exp(((double)z[i] - (double)z[0]) / temperature);
    }
    while (n < m->vocab && sum < (1 - eps) * total) {
        sum += exp(((double)z[n++] - (double)z[0]) / temperature);
    }
    free(z);
    return n;
}

/* Microseconds of all kernels of soft_embed, by kernel. */
static void measure(const mean *m, const float *z, double temperature, bool exact)
{
    bz_error err = {0};
    bz_plan *plan = NULL;
    bz_backend *b = NULL;
    bz_schedule *schedule = NULL;
    bz_kv *kv = NULL;
    if (bz_plan_new(&plan, &m->table, NULL, 0, ROWS, ROWS, &err) != BZ_OK) {
        fail("plan", &err);
    }
    bz_tensor logits = bz_read_kept(plan, bz_kept_tensor(plan, m->vocab), "logits"),
              soft = bz_kept_tensor(plan, m->width), stats = BZ_NO_TENSOR;
    bz_logit_stats(plan, logits, 0, &stats, "logit_stats");
    bz_soft_embed(plan, logits, stats, (bz_weight){1}, 1, 0, soft, "soft");
    if (bz_plan_finish(plan, soft, &err) != BZ_OK ||
        bz_gpu_new(&b, m->model, exact, exact ? BZ_CACHE_F32 : BZ_CACHE_F16, true, &err) != BZ_OK ||
        b->kv_new(b, NULL, 0, false, 0, NULL, &kv, &err) != BZ_OK ||
        b->prepare(b, plan, &schedule, &err) != BZ_OK) {
        fail("soft_embed", &err);
    }
    int32_t pos[ROWS], id[ROWS] = {0};
    uint32_t out[ROWS], seq[ROWS] = {0};
    float draw[ROWS] = {0};
    for (uint32_t i = 0; i < ROWS; i++) {
        pos[i] = (int32_t)i;
        out[i] = i;
    }
    void *caches[1] = {kv};
    const bz_rows rows = {.n = ROWS,
                          .n_out = ROWS,
                          .id = id,
                          .pos = pos,
                          .seq = seq,
                          .out = out,
                          .kv = caches,
                          .kept_input = z,
                          .temperature = (float)temperature,
                          .uniform = draw};
    run_pass(b, schedule, &rows);
    bz_gpu_line best[MAX_LINES];
    size_t n_best = 0;
    double fastest = 1e30;
    for (int i = 0; i < m->repeats; i++) {
        bz_gpu_line lines[MAX_LINES];
        const size_t n = bz_gpu_profile(b, schedule, 0, lines, MAX_LINES);
        double total = 0;
        for (size_t l = 0; l < n; l++) {
            total += strstr(lines[l].name, "soft_") ? lines[l].microseconds : 0;
        }
        if (n && total < fastest) {
            fastest = total;
            n_best = n;
            memcpy(best, lines, n * sizeof *lines);
        }
    }
    printf("  %-5s %8.1f us:", exact ? "exact" : "int8", fastest);
    for (size_t l = 0; l < n_best; l++) {
        if (strstr(best[l].name, "soft_")) {
            printf(" %s %.1f", strstr(best[l].name, "soft_") + 5, best[l].microseconds);
        }
    }
    printf("\n");
    fflush(stdout);
    b->release(b, schedule);
    bz_plan_free(plan);
    b->kv_free(b, kv);
    b->free(b);
}

int main(int argc, char **argv)
{
    static const double cases[][2] = {{14, 0.5}, {6, 0.48}, {6, 0.56}, {6, 0.64},
                                      {6, 0.72}, {4, 0.72}, {1, 0.8}}; /* deviation, temperature */
    const bool small = argc > 1 && strcmp(argv[1], "--small") == 0;
    mean m = {.width = small ? 512 : 2816,
              .vocab = small ? 4096 : 262144,
              .repeats = small ? FEW_REPEATS : REPEATS};
    make_table(&m);
    m.model = load_weights(&m.table, m.bytes, "table");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float *z = random_logits(&m, cases[i][0]);
        if (!z) {
            fail("logits", &(bz_error){.text = "out of memory"});
        }
        printf(
            "deviation %g, temperature %g: %u and %u tokens hold a row but for 2^-16 and 2^-12\n",
            cases[i][0], cases[i][1], tokens_needed(&m, z, cases[i][1], 0x1p-16),
            tokens_needed(&m, z, cases[i][1], 0x1p-12));
        measure(&m, z, cases[i][1], true);
        measure(&m, z, cases[i][1], false);
        free(z);
    }
    bz_gpu_model_drop(m.model);
    free((void *)(uintptr_t)m.bytes[0]);
    return 0;
}
