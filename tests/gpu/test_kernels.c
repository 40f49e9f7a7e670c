/* GPU kernels against the exact CPU kernels on random shapes: products of every block type, tables,
 * norms, rope and elementwise steps. test_attend.c has attention, test_experts.c the experts,
 * test_fuse.c fused steps, test_limits.c small bindings and dispatches.
 *
 *   sh tools/gpu-env.sh build/tests/gpu/test_kernels [part of a group's name] [part of a type's
 * name]
 *
 * BEZEL_SEED sets the random numbers. A software adapter takes seconds to compile some kernels, so
 * a few combinations of type, shape and rows are omitted unless BEZEL_THOROUGH is set; BEZEL_QUICK
 * tests a few types only. Bounds: float kernels differ from the CPU in the order of additions and
 * in fused multiply-adds, so a sum of k products may be off by some units in its last place.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/kernels.h"
#include "gpu/kernels/layout.h"
#include "support/check.h"
#include "support/devices.h"
#include "support/golden.h"
#include "support/parity.h"
#include "support/random.h"

static const char *wanted_type = "";

static const bz_type types[] = {BZ_F32,  BZ_F16,    BZ_BF16,   BZ_Q8_0, BZ_Q4_0, BZ_Q4_1,
                                BZ_Q5_0, BZ_Q5_1,   BZ_Q2_K,   BZ_Q3_K, BZ_Q4_K, BZ_Q5_K,
                                BZ_Q6_K, BZ_IQ4_NL, BZ_IQ4_XS, BZ_MXFP4};
enum { N_TYPES = sizeof types / sizeof *types };

/* A float type, blocks of 32 at odd offsets, wide loads. */
static bool is_chosen(bz_type t)
{
    return t == BZ_F32 || t == BZ_MXFP4 || t == BZ_Q4_K;
}

static bool thorough(void)
{
    return getenv("BEZEL_THOROUGH") != NULL;
}

static bool wants(bz_type t)
{
    return strstr(bz_type_of((uint32_t)t)->name, wanted_type) && (!quick_run() || is_chosen(t));
}

static void print_worst(void)
{
    printf("  %.2g of the bound used\n", parity_worst());
}

/* Sums of k products of either sign: the error grows with the square root of k. */
static bound sum_of(uint32_t k)
{
    return (bound){.of_rms = 4e-6 + 2.5e-7 * sqrt((double)k)};
}

/* ---- products ------------------------------------------------------------------------------ */

/* The buckets plans are made for, and passes that fill them partly. */
static const struct {
    uint32_t bucket, n[5];
} buckets[] = {{1, {1}}, {8, {1, 2, 3, 7, 8}}, {64, {9, 17, 63, 64}}, {512, {65, 100, 512}}};
enum { N_BUCKETS = 4 };

typedef struct shape {
    uint32_t k, outputs;
    bool slow_to_compile; /* tested for a few types only */
} shape;

enum { MAX_SHAPES = 10 };

/* k is a whole number of blocks; that of floats can be anything. */
static uint32_t shapes_of(bz_type type, shape *out)
{
    static const shape floats[] = {{1, 1, 0},    {5, 3, 0},    {37, 65, 0}, {96, 64, 0},
                                   {64, 260, 0}, {2051, 7, 1}, {2080, 8, 1}};
    static const shape blocks[] = {{1, 1, 0}, {3, 3, 0}, {2, 65, 0}, {5, 64, 0}, {6, 132, 0}};
    static const shape longer[] = {{2304, 20, 1}, {4352, 12, 1}, {2304, 9, 1}};
    uint32_t per_block = bz_type_of((uint32_t)type)->block_values, n = 0;
    const shape *from = per_block > 1 ? blocks : floats;
    size_t count = per_block > 1 ? sizeof blocks / sizeof *blocks : sizeof floats / sizeof *floats;
    for (size_t i = 0; i < count; i++) {
        out[n++] = (shape){from[i].k * per_block, from[i].outputs, from[i].slow_to_compile};
    }
    for (size_t i = 0; per_block > 1 && i < sizeof longer / sizeof *longer; i++) {
        out[n++] = longer[i];
    }
    return n;
}

/* Does the type have a kernel for few rows with int8 activations? All have one for many rows. */
static bool has_few8(bz_type t)
{
    return t == BZ_Q4_K || t == BZ_Q5_K || t == BZ_Q6_K;
}

/* Kernels that round activations to int8 get activations that rounding does not change, and the
 * same bound. */
static void test_linear(bz_type type, bool exact, gpu_options options, const char *device)
{
    shape shapes[MAX_SHAPES];
    uint32_t n_shapes = shapes_of(type, shapes);
    bool all = thorough() || is_chosen(type);
    begin("linear %s%s%s", bz_type_of((uint32_t)type)->name, exact ? "" : ", int8 activations",
          device);
    memory_weights w = {0};
    bz_weight x[MAX_SHAPES], m[MAX_SHAPES];
    for (uint32_t i = 0; i < n_shapes; i++) {
        x[i] = exact ? weights_random(&w, BZ_F32, shapes[i].k, 512, 1)
                     : weights_exact8(&w, shapes[i].k, 512);
        m[i] = weights_random(&w, type, shapes[i].k, shapes[i].outputs, 1);
    }
    parity p;
    parity_run runs[MAX_SHAPES][N_BUCKETS] = {0};
    bool open = parity_open(&p, &w, &(parity_options){.f32_cache = exact, .device = options});
    for (uint32_t i = 0; open && i < n_shapes; i++) { /* all at once: they compile in parallel */
        for (int b = 0; b < N_BUCKETS; b++) {
            bool odd = shapes[i].outputs % 4 != 0;
            bool again = !exact && !has_few8(type) &&
                         buckets[b].bucket <= 8; /* the exact kernels, once more */
            if (all || (!again && !shapes[i].slow_to_compile && !(odd && buckets[b].bucket == 8))) {
                bz_plan *plan = parity_plan(&p, buckets[b].bucket);
                runs[i][b] = parity_prepare(
                    &p, plan, bz_linear(plan, bz_embed(plan, x[i], 1, "x"), m[i], "y"));
            }
        }
    }
    for (uint32_t i = 0; open && i < n_shapes; i++) {
        for (int b = 0; b < N_BUCKETS; b++) {
            for (int c = 0; runs[i][b].plan && c < 5 && buckets[b].n[c]; c++) {
                parity_check(&p, &runs[i][b], &(parity_pass){.n = buckets[b].n[c]},
                             sum_of(shapes[i].k), "k %u, %u outputs, %u rows of %u", shapes[i].k,
                             shapes[i].outputs, buckets[b].n[c], buckets[b].bucket);
            }
            parity_release(&p, &runs[i][b]);
        }
    }
    parity_close(&p);
    weights_free(&w);
    print_worst();
}

static void test_linears(void)
{
    for (int t = 0; t < N_TYPES; t++) {
        if (wants(types[t])) {
            test_linear(types[t], true, (gpu_options){0}, "");
            if (bz_type_of((uint32_t)types[t])->block_values > 1) {
                test_linear(types[t], false, (gpu_options){0}, "");
            }
        }
    }
    /* kernels of software adapters */
    for (int t = 0; t < N_TYPES; t++) {
        if (wants(types[t])) {
            test_linear(types[t], true, (gpu_options){.threads = GPU_THREADS_SEQUENTIAL},
                        ", sequential");
        }
    }
    /* without what the faster kernels use */
    for (int t = 0; t < N_TYPES; t++) {
        if (wants(types[t]) && (thorough() || types[t] == BZ_Q4_K || types[t] == BZ_Q6_K)) {
            test_linear(types[t], false, (gpu_options){.no_subgroups = true}, ", no subgroups");
            test_linear(types[t], false, (gpu_options){.no_f16 = true, .baseline = true},
                        ", baseline");
            test_linear(types[t], true, (gpu_options){.baseline = true}, ", baseline");
        }
    }
}

/* ---- tables ------------------------------------------------------------------------------------
 */

static void test_embed(void)
{
    enum { ROWS = 61 };
    static const int32_t ids[] = {0, 60, 1, 59, 30, 31, 29, 0, 60, 7, 7};
    for (int t = 0; t < N_TYPES; t++) {
        if (!wants(types[t])) {
            continue;
        }
        uint32_t block = bz_type_of((uint32_t)types[t])->block_values,
                 k = block == 1 ? 77 : 3 * block;
        begin("embed %s, with any finite scale", bz_type_of((uint32_t)types[t])->name);
        memory_weights w = {0};
        bz_weight table[] = {weights_random(&w, types[t], k, ROWS, 1),
                             weights_wild(&w, types[t], k, ROWS)};
        parity p;
        bool open = parity_open(&p, &w, &(parity_options){0});
        for (int i = 0; open && i < 4; i++) {
            bz_plan *plan = parity_plan(&p, i < 2 ? 8 : 64);
            bz_tensor y = bz_embed(plan, table[i % 2], i == 2 ? 39.25f : 1, "y");
            parity_run r = parity_prepare(&p, plan, y);
            /* a scale times a number, less a minimum: the difference may be small against both */
            bound limit = {.of_rms = bz_type_has_min(types[t]) ? 3e-7 : 0,
                           .of_value = 3e-7,
                           .absolute = 1e-37};
            parity_check(&p, &r, &(parity_pass){.n = i < 2 ? 8 : 11, .ids = ids}, limit, "case %d",
                         i);
            parity_release(&p, &r);
        }
        parity_close(&p);
        weights_free(&w);
        print_worst();
    }
}

/* ---- norms ----------------------------------------------------------------------------------- */

static void test_norms(void)
{
    static const struct {
        uint32_t width, groups;
    } norms[] = {{1, 1},    {2, 5},    {3, 1},    {5, 7},   {31, 2},  {64, 8},
                 {100, 3},  {255, 1},  {256, 4},  {257, 1}, {512, 2}, {513, 3},
                 {1536, 1}, {2816, 1}, {3001, 1}, {5000, 1}};
    enum { N = sizeof norms / sizeof *norms };
    static const uint32_t rows[4][2] = {{1, 1}, {8, 3}, {64, 33}, {512, 65}};
    begin("rms_norm of widths 1 to 5000, with and without weight");
    memory_weights w = {0};
    bz_weight x[N], g[N];
    for (int i = 0; i < N; i++) {
        x[i] = weights_random(&w, BZ_F32, norms[i].width * norms[i].groups, 65, 1);
        g[i] = weights_random(&w, BZ_F32, norms[i].width, 1, 1);
    }
    parity p;
    bool open = parity_open(&p, &w, &(parity_options){0});
    for (int i = 0; open && i < N; i++) {
        for (int c = 0; c < 8; c++) {
            const uint32_t bucket = rows[c / 2][0], n = rows[c / 2][1];
            bz_plan *plan = parity_plan(&p, bucket);
            bz_tensor t = bz_embed(plan, x[i], c == 3 ? 1e-4f : c == 5 ? 1e6f : 1, "x");
            t = bz_rms_norm(plan, t, c % 2 ? g[i] : BZ_NO_WEIGHT, norms[i].width, 1e-6f, "y");
            parity_run r = parity_prepare(&p, plan, t);
            parity_check(&p, &r, &(parity_pass){.n = n},
                         (bound){.of_value = 2e-6, .absolute = 1e-9},
                         "width %u, %u groups, %u rows, weight %d", norms[i].width, norms[i].groups,
                         n, c % 2);
            parity_release(&p, &r);
        }
    }
    parity_close(&p);
    weights_free(&w);
    print_worst();
}

/* ---- value by value -----------------------------------------------------------------------------
 */

/* Columns of a wide table, so that every step also sees views: odd offsets, strides other than
 * their width. */
static void test_elementwise(void)
{
    static const uint32_t widths[] = {1,  3,    64,
                                      65, 2057, 1000}; /* 2057 by 512: several values to a thread */
    static const uint32_t rows[3][2] = {{1, 1}, {8, 5}, {512, 130}};
    enum { N = 6, WIDE = 4219 };
    begin("add, scale, mul_vector, geglu, softcap, take_rows, columns, concat");
    memory_weights w = {0};
    bz_weight wide = weights_random(&w, BZ_F32, WIDE, 130, 1),
              one = weights_values(&w, (float[]){-1.625f}, 1, 1), v[N];
    for (int i = 0; i < N; i++) {
        v[i] = weights_random(&w, BZ_F32, widths[i], 1, 1);
    }
    parity p;
    bool open = parity_open(&p, &w, &(parity_options){0});
    for (int i = 0; open && i < N; i++) {
        for (int c = 0; c < 3; c++) {
            for (int op = 0; op < 10; op++) {
                const uint32_t n = widths[i], bucket = rows[c][0];
                bz_plan *plan = parity_plan(&p, bucket);
                const float large = op == 5 ? 60 : 6; /* 60: tanh is 1 */
                bz_tensor x = bz_embed(plan, wide, large, "x");
                bz_tensor a = bz_columns(plan, x, 5, n), b = bz_columns(plan, x, 5 + n, n), y = {0};
                bound limit = {.of_value = 1e-6};
                switch (op) {
                case 0: y = bz_add(plan, a, b, 1, "y"); break;
                case 1: y = bz_add(plan, a, b, 0.7071f, "y"); break;
                case 2: y = bz_scale(plan, a, one, "y"); break;
                case 3: y = bz_mul_vector(plan, a, v[i], 0.3f, "y"); break;
                case 4:
                case 5: y = bz_geglu(plan, a, b, "y"); break;
                case 6: /* alternating groups of gates and ups */
                    y = bz_geglu_fused(plan, bz_columns(plan, x, 7, 2 * n), n % 5 ? n : n / 5, "y");
                    break;
                case 9: y = bz_concat(plan, a, b, "y"); break;
                case 7:
                    y = bz_softcap(plan, bz_add(plan, a, b, 1, "s"), 2.5f, "y");
                    limit.of_value = 2e-6;
                    break;
                default:
                    y = bz_add(plan, bz_columns(plan, a, n / 2, 1), bz_columns(plan, b, n - 1, 1),
                               1, "y");
                }
                /* where tanh is nearly -1, the CPU has few digits of 1 + tanh */
                limit.absolute = op >= 4 && op <= 6 ? 1e-6 * (double)large : 0;
                parity_run r = parity_prepare(&p, plan, y);
                parity_check(&p, &r, &(parity_pass){.n = rows[c][1]}, limit,
                             "op %d, %u columns, %u rows", op, n, rows[c][1]);
                parity_release(&p, &r);
            }
        }
    }
    begin("take_rows of any rows, then more steps on them");
    /* One sum may come out near nothing; what it may be off by depends on what sums of 1000 are
     * like, about 10. */
    const bound limit = {.absolute = 10 * sum_of(1000).of_rms};
    for (int c = 0; open && c < 3; c++) {
        uint32_t out[130], n = rows[c][1];
        for (uint32_t i = 0; i < n; i++) {
            out[i] = (uint32_t)random_below(n); /* some twice, some not at all */
        }
        bz_plan *plan = parity_plan(&p, rows[c][0]);
        bz_tensor x = bz_columns(plan, bz_embed(plan, wide, 1, "x"), 11, 1000);
        bz_tensor y = bz_take_rows(plan, x, "rows");
        y = bz_softcap(plan, bz_linear(plan, y, v[N - 1], "sum"), 30, "y");
        parity_run r = parity_prepare(&p, plan, y);
        for (uint32_t n_out = 1; n_out <= n; n_out = n_out * 2 + 1) {
            parity_check(&p, &r, &(parity_pass){.n = n, .n_out = n_out, .out = out}, limit,
                         "%u of %u rows", n_out, n);
        }
        parity_release(&p, &r);
    }
    parity_close(&p);
    weights_free(&w);
    print_worst();
}

/* The best of logits, and its row of a table; with equal logits the first. */
static void test_best(void)
{
    static const uint32_t vocabs[] = {1, 7, 256, 257, 4219};
    enum { N = sizeof vocabs / sizeof *vocabs };
    begin("best of 1 to 4219 logits, embed_best");
    memory_weights w = {0};
    bz_weight logits = weights_random(&w, BZ_F32, vocabs[N - 1], 130, 1), table[N],
              zero = weights_values(&w, (float[]){0}, 1, 1),
              minus = weights_values(&w, (float[]){-1}, 1, 1);
    for (int i = 0; i < N; i++) {
        table[i] = weights_random(&w, BZ_Q8_0, 64, vocabs[i], 1);
    }
    parity p;
    bool open = parity_open(&p, &w, &(parity_options){0});
    for (int i = 0; open && i < 2 * N; i++) {
        bz_plan *plan = parity_plan(&p, 1);
        bz_tensor z = bz_columns(plan, bz_embed(plan, logits, 1, "x"), 0, vocabs[i / 2]);
        bz_tensor ids = BZ_NO_TENSOR;
        z = bz_scale(plan, z, i % 2 ? zero : minus, "z"); /* all equal; or not */
        bz_best(plan, z, 3, 2, &ids, "best");
        bz_tensor y = bz_embed_best(plan, ids, 2, table[i / 2], 1.5f, "y");
        parity_run r = parity_prepare(&p, plan, y);
        parity_check(&p, &r, &(parity_pass){.n = 1, .n_out = 1}, (bound){.absolute = 0},
                     "%u logits%s", vocabs[i / 2], i % 2 ? ", all equal" : "");
        parity_release(&p, &r);
    }
    parity_close(&p);
    weights_free(&w);
    print_worst();
}

/* The best of the tokens of some groups: numbers of groups around those of a workgroup, ids of one
 * and of two words, an output head in several bindings. Groups may be equally good, and tokens. */
static void test_listed(bz_type type)
{
    static const struct {
        uint32_t groups, each, top;
        bz_type ids;
        bool equal;
    } cases[] = {{1, 1, 1, BZ_I32, false},     {3, 7, 2, BZ_I64, false},
                 {65, 40, 64, BZ_I32, false},  {300, 4, 33, BZ_I64, false},
                 {2048, 3, 32, BZ_I32, false}, {130, 24, 32, BZ_I32, true}};
    enum { N = sizeof cases / sizeof *cases, COMPARED = 3 };
    const uint32_t k = bz_type_of((uint32_t)type)->block_values == 1 ? 77 : 256;
    begin("top, list_rows, linear_listed %s, best of a list", bz_type_of((uint32_t)type)->name);
    memory_weights w = {0};
    bz_weight x = weights_random(&w, BZ_F32, k, 4, 1), groups[N], ids[N], head[N],
              zero = weights_values(&w, (float[]){0}, 1, 1);
    for (int i = 0; i < N; i++) {
        groups[i] = weights_random(&w, BZ_F32, k, cases[i].groups, 1);
        ids[i] = weights_ids(&w, cases[i].ids, cases[i].each, cases[i].groups);
        head[i] = weights_random(&w, type, k, (uint64_t)cases[i].groups * cases[i].each, 1);
    }
    gpu_limits small = parity_limits();
    small.max_binding = 1 << 18;         /* several pieces */
    if (!gpu_layout_of(type).repacked) { /* repacking is not folded */
        small.max_workgroups = 300;
    }
    for (int limited = 0; limited < 2; limited++) {
        parity p;
        bool open = parity_open(
            &p, &w, &(parity_options){.f32_cache = true, .limits = limited ? &small : NULL});
        for (int i = 0; open && i < COMPARED * N; i++) {
            const int c = i / COMPARED;
            const bool one_row = i % COMPARED == 0;
            bz_plan *plan = parity_plan(&p, one_row ? 1 : 4);
            bz_tensor z = bz_embed(plan, x, 1, "x"), best = BZ_NO_TENSOR;
            bz_tensor list = bz_linear(plan, z, groups[c], "groups");
            list = cases[c].equal ? bz_scale(plan, list, zero, "equal_groups") : list;
            list = bz_top(plan, list, cases[c].top, "top");
            list = bz_list_rows(plan, list, ids[c], "list");
            bz_tensor y = bz_linear_listed(plan, z, list, head[c], "y");
            if (one_row) {
                y = cases[c].equal ? bz_scale(plan, y, zero, "equal_tokens") : y;
                bz_best_listed(plan, y, list, 2, 1, &best, "best");
                best = bz_columns(plan, best, 1, 1);
            }
            const bool sums = i % COMPARED == 1;
            parity_run r = parity_prepare(&p, plan, one_row ? best : sums ? y : list);
            parity_check(&p, &r, &(parity_pass){.n = one_row ? 1 : 3},
                         sums ? sum_of(k) : (bound){.absolute = 0}, "%s: %u of %u groups of %u%s",
                         one_row ? "best"
                         : sums  ? "logits"
                                 : "list",
                         cases[c].top, cases[c].groups, cases[c].each,
                         limited ? ", small bindings" : "");
            parity_release(&p, &r);
        }
        parity_close(&p);
    }
    weights_free(&w);
    print_worst();
}

static void test_lists(void)
{
    for (int t = 0; t < N_TYPES; t++) {
        if (wants(types[t])) {
            test_listed(types[t]);
        }
    }
}

/* ---- rotation ----------------------------------------------------------------------------------
 */

static void test_rope(void)
{
    static const struct {
        uint32_t width, pairs, heads;
        bool factors;
    } cases[] = {{2, 1, 1, 0},    {4, 1, 3, 0},    {6, 3, 2, 1},     {64, 32, 8, 0},
                 {72, 36, 5, 1},  {128, 64, 1, 0}, {256, 128, 4, 0}, {256, 32, 16, 1},
                 {512, 64, 2, 0}, {512, 256, 3, 1}};
    enum { N = sizeof cases / sizeof *cases };
    static const uint32_t rows[3][2] = {{1, 1}, {8, 5}, {512, 66}};
    begin("rope of widths 2 to 512, partly rotated, with factors, at large positions");
    memory_weights w = {0};
    bz_weight x[N], f[N];
    for (int i = 0; i < N; i++) {
        float factors[256];
        for (int k = 0; k < 256; k++) {
            factors[k] = 1 + 7 * fabsf(random_float());
        }
        x[i] = weights_random(&w, BZ_F32, cases[i].width * cases[i].heads, 66, 1);
        f[i] = weights_values(&w, factors, cases[i].width / 2, 1);
    }
    parity p;
    bool open = parity_open(&p, &w, &(parity_options){0});
    for (int i = 0; open && i < N; i++) {
        for (int c = 0; c < 6; c++) {
            bz_plan *plan = parity_plan(&p, rows[c % 3][0]);
            bool late = c >= 3; /* the table is made where memory has been used before */
            bz_tensor table = {0}, t = {0};
            bz_weight factors = cases[i].factors ? f[i] : BZ_NO_WEIGHT;
            if (!late) {
                table =
                    bz_rope_table(plan, factors, cases[i].width, cases[i].pairs, 10000, "angles");
            }
            t = bz_embed(plan, x[i], 1, "x");
            if (late) {
                t = bz_rms_norm(plan, bz_add(plan, t, t, 1, "twice"), BZ_NO_WEIGHT, cases[i].width,
                                0, "norm");
                bz_cut(plan, "here");
                table =
                    bz_rope_table(plan, factors, cases[i].width, cases[i].pairs, 1000000, "angles");
            }
            parity_run r = parity_prepare(&p, plan, bz_rope(plan, t, table, cases[i].width, "y"));
            parity_check(&p, &r,
                         &(parity_pass){.n = rows[c % 3][1], .position = c == 2 ? 0 : 130000},
                         (bound){.of_rms = 1e-6, .of_value = 1e-6},
                         "width %u, %u pairs, %u heads, %u rows, late %d", cases[i].width,
                         cases[i].pairs, cases[i].heads, rows[c % 3][1], late);
            parity_release(&p, &r);
        }
    }
    parity_close(&p);
    weights_free(&w);
    print_worst();
}

/* ---- all ----------------------------------------------------------------------------------------
 */

static const struct {
    const char *name;
    void (*run)(void);
} groups[] = {{"linear", test_linears}, {"embed", test_embed},
              {"norm", test_norms},     {"elementwise", test_elementwise},
              {"best", test_best},      {"rope", test_rope},
              {"list", test_lists}};

int main(int argc, char **argv)
{
    devices_keep();
    wanted_type = argc > 2 ? argv[2] : "";
    random_seed_or(20240607);
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        if (argc < 2 || strstr(groups[i].name, argv[1])) {
            groups[i].run();
        }
    }
    return finish();
}
