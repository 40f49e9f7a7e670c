/* Speed of the GPU's products on the shapes of the published models, by timestamps: f32 against
 * int8 activations.
 *
 *   bench_gpu_kernels [--small] [CASE]    --small: shapes for a software adapter; CASE: part of a
 * case's name
 *
 * Every line: time of all kernels of the product, operations and weight bytes per second, error
 * against the float kernels (root mean square, of the values' own), and the time of each kernel. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/run/internal.h"
#include "bench/gpu_bench.h"

enum { ROWS = 512, REPEATS = 5, MAX_LINES = 16 };

typedef struct shape {
    const char *name;
    bz_type type;
    uint32_t rows, k, outputs, experts; /* experts 0: one matrix */
    bool input_per_slot;                /* every slot has an input row of its own */
    bool gated;                         /* followed by GEGLU; gates and ups are one matrix */
    uint32_t rank;                      /* of an adapter; 0: none */
} shape;

static uint32_t seed = 1;

static uint32_t noise(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

/* Random integers under scales that make weights of about 1 / sqrt(k). */
static uint8_t *random_blocks(bz_type type, uint64_t values, uint32_t k)
{
    const bz_type_info *info = bz_type_of((uint32_t)type);
    uint64_t blocks = values / info->block_values;
    uint8_t *bytes = malloc(blocks * info->block_bytes);
    if (!bytes) {
        return NULL;
    }
    for (uint64_t i = 0; i < blocks * info->block_bytes; i++) {
        bytes[i] = (uint8_t)noise();
    }
    double unit = 1.0 / sqrt(k);
    for (uint64_t b = 0; b < blocks; b++) {
        uint8_t *block = bytes + b * info->block_bytes;
        uint16_t d, minimum;
        switch (type) {
        case BZ_Q4_K:
        case BZ_Q5_K:
            d = bz_f32_to_f16((float)(unit / 32 / (type == BZ_Q4_K ? 8 : 16)));
            minimum = bz_f32_to_f16((float)(unit / 32));
            memcpy(block, &d, 2);
            memcpy(block + 2, &minimum, 2);
            break;
        case BZ_Q6_K:
            d = bz_f32_to_f16((float)(unit / 64 / 32));
            memcpy(block + 208, &d, 2);
            break;
        case BZ_F32: {
            float x = ((float)(noise() & 0xffff) / 32768.0f - 1.0f) * (k ? 1.0f : 0.0f);
            memcpy(block, &x, 4);
            break;
        }
        case BZ_F16: {
            d = bz_f32_to_f16(((float)(noise() & 0xffff) / 32768.0f - 1.0f) * (float)unit);
            memcpy(block, &d, 2);
            break;
        }
        default: /* 32 values with an f16 scale */
            d = bz_f32_to_f16((float)(unit / (type == BZ_Q8_0 ? 128 : type == BZ_Q5_0 ? 16 : 8)));
            memcpy(block, &d, 2);
        }
    }
    return bytes;
}

/* ---- one product as a plan ---------------------------------------------------------- */

enum { W_INPUT, W_CHOICE, W_MATRIX, W_A, W_B, N_WEIGHTS };
enum { USED = 8, PANEL = BZ_LOW_RANK_PANEL };

typedef struct product {
    const shape *shape;
    bz_weight_info info[N_WEIGHTS];
    bz_weights table;
    const uint8_t *bytes[N_WEIGHTS];
} product;

static void make_product(product *p, const shape *s)
{
    uint32_t inputs = s->input_per_slot ? USED : 1;
    *p = (product){.shape = s};
    p->info[W_INPUT] =
        (bz_weight_info){.name = "input", .type = BZ_F32, .ne = {s->k * inputs, ROWS, 1}};
    p->info[W_CHOICE] = (bz_weight_info){
        .name = "choice", .type = BZ_F32, .ne = {s->experts ? s->experts : 32, ROWS, 1}};
    p->info[W_MATRIX] = (bz_weight_info){
        .name = "matrix", .type = s->type, .ne = {s->k, s->outputs, s->experts ? s->experts : 1}};
    const uint32_t rank = s->rank ? s->rank : 4;
    p->info[W_A] = (bz_weight_info){.name = "a", .type = BZ_F32, .ne = {s->k, rank, 1}};
    p->info[W_B] = (bz_weight_info){
        .name = "b", .type = BZ_F32, .ne = {PANEL, rank, (s->outputs + PANEL - 1) / PANEL}};
    p->table = (bz_weights){.info = p->info, .n = N_WEIGHTS, .cap = N_WEIGHTS};
    for (int i = 0; i < N_WEIGHTS; i++) {
        p->info[i].size =
            bz_row_bytes(p->info[i].type, p->info[i].ne[0]) * p->info[i].ne[1] * p->info[i].ne[2];
        p->bytes[i] = random_blocks(p->info[i].type,
                                    p->info[i].ne[0] * p->info[i].ne[1] * p->info[i].ne[2], s->k);
        if (!p->bytes[i]) {
            fail(s->name, &(bz_error){.text = "out of memory"});
        }
    }
}

static bz_plan *record(const product *p)
{
    bz_plan *plan = NULL;
    bz_error err = {0};
    if (bz_plan_new(&plan, &p->table, NULL, 0, p->shape->rows, p->shape->rows, &err) != BZ_OK) {
        fail("plan", &err);
    }
    bz_tensor y, x = bz_embed(plan, (bz_weight){1 + W_INPUT}, 1.0f, "input");
    if (p->shape->experts) {
        bz_tensor ids, shares, logits = bz_embed(plan, (bz_weight){1 + W_CHOICE}, 1.0f, "choice");
        bz_route(plan, logits, USED, &ids, &shares, "route");
        y = bz_expert_linear(plan, x, ids, (bz_weight){1 + W_MATRIX}, USED, "product");
        y = p->shape->gated ? bz_geglu_fused(plan, y, p->shape->outputs / 2, "geglu") : y;
    } else {
        bz_tensor low = p->shape->rank ? bz_linear(plan, x, (bz_weight){1 + W_A}, "a") : x;
        y = bz_linear(plan, x, (bz_weight){1 + W_MATRIX}, "product");
        y = p->shape->rank
                ? bz_add_low_rank(plan, y, low, BZ_NO_TENSOR, (bz_weight){1 + W_B}, 1, 0.01f, "b")
                : y;
    }
    if (bz_plan_finish(plan, y, &err) != BZ_OK) {
        fail("plan", &err);
    }
    return plan;
}

static float *run_once(bz_backend *b, bz_schedule *schedule, const bz_plan *plan, bz_kv *kv)
{
    static int32_t id[ROWS], pos[ROWS];
    static uint32_t out[ROWS], seq[ROWS];
    for (uint32_t i = 0; i < ROWS; i++) {
        id[i] = pos[i] = (int32_t)i;
        out[i] = i;
    }
    void *caches[1] = {kv};
    bz_rows rows = {.n = plan->rows,
                    .n_out = plan->rows,
                    .id = id,
                    .pos = pos,
                    .seq = seq,
                    .out = out,
                    .kv = caches};
    run_pass(b, schedule, &rows);
    size_t n = (size_t)plan->rows * bz_plan_tensor(plan, plan->output)->cols;
    float *copy = malloc(n * sizeof *copy);
    return copy ? memcpy(copy, b->output(b, schedule), n * sizeof *copy) : NULL;
}

static double error_of(const float *x, const float *y, size_t n)
{
    double sum = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        double d = (double)x[i] - (double)y[i];
        sum += d * d;
        all += (double)y[i] * (double)y[i];
    }
    return sqrt(sum / all);
}

typedef struct timing {
    double total; /* microseconds of the product's own kernels */
    size_t n;
    bz_gpu_line lines[MAX_LINES];
} timing;

static bool is_own(const bz_gpu_line *l)
{
    return strncmp(l->name, "embed", 5) != 0 && strncmp(l->name, "route", 5) != 0;
}

static timing fastest(bz_backend *backend, const bz_schedule *schedule)
{
    timing best = {.total = 1e30};
    for (int i = 0; i < REPEATS; i++) {
        timing t = {0};
        t.n = bz_gpu_profile(backend, schedule, 0, t.lines, MAX_LINES);
        for (size_t l = 0; l < t.n; l++) {
            t.total += is_own(&t.lines[l]) ? t.lines[l].microseconds : 0;
        }
        best = t.n && t.total < best.total ? t : best;
    }
    return best;
}

/* The outputs, [rows][columns]; `plain`: those of the float kernels, NULL for themselves. */
static float *measure(const product *p, bz_gpu_model *model, bool exact, const float *plain)
{
    const shape *s = p->shape;
    bz_error err = {0};
    bz_backend *backend = NULL;
    bz_schedule *schedule = NULL;
    bz_kv *kv = NULL;
    bz_plan *plan = record(p);
    if (bz_gpu_new(&backend, model, exact, exact ? BZ_CACHE_F32 : BZ_CACHE_F16, true, &err) !=
            BZ_OK ||
        backend->kv_new(backend, NULL, 0, false, 0, NULL, &kv, &err) != BZ_OK ||
        backend->prepare(backend, plan, &schedule, &err) != BZ_OK) {
        fail(s->name, &err);
    }
    float *got = run_once(backend, schedule, plan, kv);
    const size_t n = (size_t)plan->rows * bz_plan_tensor(plan, plan->output)->cols;
    const timing t = fastest(backend, schedule);
    const double pairs = (double)s->rows * (s->experts ? USED : 1),
                 ops = 2.0 * pairs * s->k * s->outputs;
    const double bytes = (double)bz_row_bytes(s->type, s->k) * s->outputs *
                         (s->experts ? fmin(s->experts, pairs) : 1);
    printf("  %-6s %9.1f us  %6.1f Top/s  %7.1f GB/s  error %.1e ", exact ? "f32" : "int8", t.total,
           ops / t.total / 1e6, bytes / t.total / 1e3, plain ? error_of(got, plain, n) : 0.0);
    for (size_t l = 0; l < t.n; l++) {
        if (is_own(&t.lines[l])) {
            printf(" %s %.1f", t.lines[l].name, t.lines[l].microseconds);
        }
    }
    printf("\n");
    fflush(stdout);
    backend->release(backend, schedule);
    bz_plan_free(plan);
    backend->kv_free(backend, kv);
    backend->free(backend);
    return got;
}

int main(int argc, char **argv)
{
    static const shape shapes[] = {
        {"gate or up, Q4_K", BZ_Q4_K, 512, 1536, 6144, 0, false, false, 0},
        {"down, Q6_K", BZ_Q6_K, 512, 6144, 1536, 0, false, false, 0},
        {"down, Q4_K", BZ_Q4_K, 512, 12288, 1536, 0, false, false, 0},
        {"query, Q5_K", BZ_Q5_K, 512, 1536, 2048, 0, false, false, 0},
        {"key, Q8_0", BZ_Q8_0, 512, 1536, 256, 0, false, false, 0},
        {"gate, Q4_0", BZ_Q4_0, 512, 1536, 6144, 0, false, false, 0},
        {"gate at 64 rows, Q4_K", BZ_Q4_K, 64, 1536, 6144, 0, false, false, 0},
        {"vision gate, F16", BZ_F16, 512, 768, 3072, 0, false, false, 0},
        {"one row's gate, Q4_K", BZ_Q4_K, 1, 1536, 6144, 0, false, false, 0},
        {"one row's gate, Q4_0", BZ_Q4_0, 1, 1536, 6144, 0, false, false, 0},
        {"one row's gate, Q8_0", BZ_Q8_0, 1, 1536, 6144, 0, false, false, 0},
        {"one row's gate, adapted, Q4_K", BZ_Q4_K, 1, 1536, 6144, 0, false, false, 16},
        {"one row's down, adapted, Q4_K", BZ_Q4_K, 1, 12288, 1536, 0, false, false, 16},
        {"one row's small product, adapted, Q4_K", BZ_Q4_K, 1, 256, 1536, 0, false, false, 16},
        {"gate, adapted, Q4_K", BZ_Q4_K, 512, 1536, 6144, 0, false, false, 16},
        {"vocabulary, Q6_K", BZ_Q6_K, 1, 1536, 262144, 0, false, false, 0},
        {"experts' gate and up, Q4_K", BZ_Q4_K, 512, 2816, 1408, 128, false, true, 0},
        {"experts' down, Q8_0", BZ_Q8_0, 512, 704, 2816, 128, true, false, 0},
        {"experts' down, Q5_0", BZ_Q5_0, 512, 704, 2816, 128, true, false, 0},
        {"one row's experts' gate and up, Q4_K", BZ_Q4_K, 1, 2816, 1408, 128, false, true, 0},
        {"one row's experts' gate and up, Q4_0", BZ_Q4_0, 1, 2816, 1408, 128, false, true, 0},
        {"one row's experts' down, Q8_0", BZ_Q8_0, 1, 704, 2816, 128, true, false, 0},
        {"one row's experts' down, Q5_0", BZ_Q5_0, 1, 704, 2816, 128, true, false, 0},
        {"one row's experts' down, Q4_0", BZ_Q4_0, 1, 704, 2816, 128, true, false, 0},
        /* a step over DiffusionGemma's canvas */
        {"canvas, query, Q4_K", BZ_Q4_K, 256, 2816, 4096, 0, false, false, 0},
        {"canvas, key, Q4_K", BZ_Q4_K, 256, 2816, 2048, 0, false, false, 0},
        {"canvas, value, Q6_K", BZ_Q6_K, 256, 2816, 2048, 0, false, false, 0},
        {"canvas, attention's output, Q4_K", BZ_Q4_K, 256, 4096, 2816, 0, false, false, 0},
        {"canvas, gate or up, Q4_K", BZ_Q4_K, 256, 2816, 2112, 0, false, false, 0},
        {"canvas, down, Q5_0", BZ_Q5_0, 256, 2112, 2816, 0, false, false, 0},
        {"canvas, down, Q8_0", BZ_Q8_0, 256, 2112, 2816, 0, false, false, 0},
        {"canvas, router, F32", BZ_F32, 256, 2816, 128, 0, false, false, 0},
        {"canvas, experts' gate and up, Q4_K", BZ_Q4_K, 256, 2816, 1408, 128, false, true, 0},
        {"canvas, experts' down, Q5_0", BZ_Q5_0, 256, 704, 2816, 128, true, false, 0},
        {"canvas, experts' down, Q8_0", BZ_Q8_0, 256, 704, 2816, 128, true, false, 0},
        {"canvas, vocabulary, Q6_K", BZ_Q6_K, 64, 2816, 262144, 0, false, false, 0},
    };
    bool small = argc > 1 && strcmp(argv[1], "--small") == 0;
    const char *only = argc > 1 + small ? argv[1 + small] : "";
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        shape s = shapes[i];
        if (!strstr(s.name, only)) {
            continue;
        }
        if (small) {
            s.rows = s.rows > 70 ? 70 : s.rows;
            s.k = s.k == 704 ? 224 : 512;
            s.outputs = 208;
            s.experts = s.experts ? 16 : 0;
        }
        product p;
        make_product(&p, &s);
        bz_gpu_model *model = load_weights(&p.table, p.bytes, s.name);
        printf("%s: %u rows, %u -> %u%s%s\n", s.name, s.rows, s.k, s.outputs,
               s.experts ? " by experts" : "", s.gated ? ", GEGLU" : "");
        float *plain = measure(&p, model, true, NULL);
        free(measure(&p, model, false, plain));
        free(plain);
        bz_gpu_model_drop(model);
        for (int w = 0; w < N_WEIGHTS; w++) {
            free((void *)(uintptr_t)p.bytes[w]);
        }
    }
    return 0;
}
