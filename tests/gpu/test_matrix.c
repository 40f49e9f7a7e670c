/* Products and attention on subgroup matrices: which steps run there, and their results. Software
 * adapters have no such matrices. There the choice of kernels is tested with a device whose limits
 * say that it has them, and the other cases test the kernels that replace them
 * (tests/web/test_matrices.ts compiles those on matrices). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/run/backend.h"
#include "support/check.h"
#include "support/devices.h"
#include "support/parity.h"
#include "support/random.h"

enum { ROWS = 512, MAX_DISPATCHES = 64 };

static gpu_limits real;

/* ---- choice of kernels
 * ------------------------------------------------------------------------------ */

typedef struct choice {
    const char *what;
    bool offered, exact, baseline; /* the device has matrices; f32 activations; an adapter without
                                      features */
    uint32_t storage;              /* bytes of workgroup memory */
    bz_type type;
    uint32_t rows, k, outputs, width; /* of heads */
    const char *kernels;              /* expected, in this order */
} choice;

static const choice choices[] = {
    {"both", true, false, false, 49152, BZ_F16, ROWS, 64, 2048, 64,
     "to_f16 linear_matrix to_f16 to_f16 to_f16 tower_attend_matrix"},
    {"not offered", false, false, false, 49152, BZ_F16, ROWS, 64, 2048, 64,
     "linear_tile F16 tower_attend"},
    {"exact", true, true, false, 49152, BZ_F16, ROWS, 64, 2048, 64, "linear_tile F16 tower_attend"},
    {"a baseline device", true, false, true, 16384, BZ_F16, ROWS, 64, 2048, 64,
     "linear_tile F16 tower_attend"},
    {"less workgroup memory", true, false, false, 32768, BZ_F16, ROWS, 64, 2048, 64,
     "to_f16 linear_matrix tower_attend"},
    {"other weights", true, false, false, 49152, BZ_F32, ROWS, 64, 2048, 64,
     "linear_tile F32 to_f16 to_f16 to_f16 tower_attend_matrix"},
    {"few rows", true, false, false, 49152, BZ_F16, 64, 64, 2048, 64,
     "linear_short F16 tower_attend"},
    {"few outputs", true, false, false, 49152, BZ_F16, ROWS, 64, 256, 64,
     "linear_tile F16 to_f16 to_f16 to_f16 tower_attend_matrix"},
    {"k not a multiple of 16, heads of 72", true, false, false, 49152, BZ_F16, ROWS, 72, 2048, 72,
     "linear_tile_any F16 tower_attend"},
};

static void test_choice(const choice *c)
{
    begin("matrices are chosen: %s", c->what);
    memory_weights w = {0};
    bz_weight x = weights_random(&w, BZ_F32, c->k, ROWS, 1),
              m = weights_random(&w, c->type, c->k, c->outputs, 1);
    bz_weight q = weights_random(&w, BZ_F32, 2 * c->width, ROWS, 1);
    gpu_limits pretended = real;
    pretended.matrices = c->offered;
    pretended.max_workgroup_storage = c->storage;
    parity p;
    if (parity_open(&p, &w,
                    &(parity_options){.f32_cache = true,
                                      .device = {.baseline = c->baseline},
                                      .limits = c->baseline ? NULL : &pretended})) {
        if (!c->exact) {
            bz_gpu_allow_f16(p.backend[1]);
        }
        bz_plan *plan = parity_plan(&p, c->rows);
        bz_linear(plan, bz_embed(plan, x, 1, "x"), m, "y");
        bz_tensor a = bz_embed(plan, q, 1, "q"), b = bz_embed(plan, q, 1, "k"),
                  v = bz_embed(plan, q, 1, "v");
        parity_run r = parity_prepare(&p, plan, bz_attend_all(plan, a, b, v, 2, c->width, "o"));
        bz_gpu_dispatch made[MAX_DISPATCHES];
        const size_t n = r.plan ? bz_gpu_dispatches(r.schedule[1], made, MAX_DISPATCHES) : 0;
        char got[1024] = "";
        for (size_t i = 0; i < n && i < MAX_DISPATCHES;
             i++) { /* without those that only load and store values */
            if (strncmp(made[i].name, "embed", 5) != 0 &&
                strncmp(made[i].name, "elementwise", 11) != 0 &&
                strcmp(made[i].name, "split_sum") != 0) {
                snprintf(got + strlen(got), sizeof got - strlen(got), "%s%.47s", *got ? " " : "",
                         made[i].name);
            }
        }
        CHECKF(strcmp(got, c->kernels) == 0, "%s", got);
        parity_release(&p, &r);
        p.failed = true; /* nothing was run */
    }
    parity_close(&p);
    weights_free(&w);
}

/* ---- results ----------------------------------------------------------------------- */

static void test_products(void)
{
    static const struct {
        uint32_t k, outputs, rows[4];
    } shapes[] = {{64, 2048, {65, 127, 500, 512}},
                  {544, 2100, {512, 200}},
                  {16 * 17 * 2, 2049, {130}},
                  {32, 4096, {96, 97}}};
    begin("products on matrices: values that f16 represents give the f32 result");
    memory_weights w = {0};
    bz_weight x[4], m[4];
    for (int i = 0; i < 4; i++) {
        x[i] = weights_exact8(&w, shapes[i].k, ROWS);
        m[i] = weights_random(&w, BZ_F16, shapes[i].k, shapes[i].outputs, 1);
    }
    parity p;
    if (parity_open(&p, &w, &(parity_options){.f32_cache = true})) {
        bz_gpu_allow_f16(p.backend[1]);
        for (int i = 0; i < 4; i++) {
            bz_plan *plan = parity_plan(&p, ROWS);
            parity_run r =
                parity_prepare(&p, plan, bz_linear(plan, bz_embed(plan, x[i], 1, "x"), m[i], "y"));
            for (int c = 0; r.plan && c < 4 && shapes[i].rows[c]; c++) {
                parity_check(&p, &r, &(parity_pass){.n = shapes[i].rows[c]},
                             (bound){.of_rms = 4e-6 + 2.5e-7 * sqrt(shapes[i].k)},
                             "k %u, %u outputs, %u rows", shapes[i].k, shapes[i].outputs,
                             shapes[i].rows[c]);
            }
            parity_release(&p, &r);
        }
    }
    parity_close(&p);
    weights_free(&w);
}

/* Products of text: values of up to 2^exponent, beyond the range of f16 too. */
static void test_text_products(bz_type type, uint32_t k, uint32_t outputs, int exponent)
{
    begin("products of text on matrices: %s, k %u, %u outputs, 2^%d", bz_type_of(type)->name, k,
          outputs, exponent);
    float *values = malloc(sizeof *values * k * ROWS);
    for (size_t i = 0; i < (size_t)k * ROWS; i++) {
        values[i] = ldexpf((float)((int)random_below(2001) - 1000) / 1000.0f,
                           exponent - (int)(i / k % 3) - (int)(i % 5));
    }
    memory_weights w = {0};
    bz_weight x = weights_values(&w, values, k, ROWS), m = weights_random(&w, type, k, outputs, 1);
    parity p;
    if (parity_open(&p, &w, &(parity_options){0})) {
        bz_plan *plan = parity_plan(&p, ROWS);
        parity_run r = parity_prepare(&p, plan, bz_linear(plan, bz_embed(plan, x, 1, "x"), m, "y"));
        static const uint32_t rows[] = {65, 128, 200, 512};
        for (size_t i = 0; r.plan && i < sizeof rows / sizeof *rows; i++) {
            parity_check(&p, &r, &(parity_pass){.n = rows[i]},
                         (bound){.of_rms = real.matrices ? 4e-3 : 8e-2}, "%u rows", rows[i]);
        }
        printf("  %.2g of the bound used\n", parity_worst());
        parity_release(&p, &r);
    }
    parity_close(&p);
    weights_free(&w);
    free(values);
}

/* Row 3 is too large for f16, row 5 is NaN: other rows must not change. */
static void test_edges(void)
{
    enum { K = 64, OUTPUTS = 2048 };
    begin("products on matrices: what f16 cannot hold stays in its row, and finite");
    float *values = malloc(sizeof *values * K * ROWS);
    for (size_t i = 0; i < (size_t)K * ROWS; i++) {
        values[i] = (float)((int)random_below(255) - 127) / 128.0f;
    }
    for (size_t k = 0; k < K; k++) {
        values[3 * K + k] *= 1e7f;
    }
    values[5 * K + 7] = NAN;
    memory_weights w = {0};
    bz_weight x = weights_values(&w, values, K, ROWS),
              m = weights_random(&w, BZ_F16, K, OUTPUTS, 1);
    parity p;
    if (parity_open(&p, &w, &(parity_options){.f32_cache = true})) {
        bz_gpu_allow_f16(p.backend[1]);
        bz_plan *plan = parity_plan(&p, ROWS);
        parity_run r = parity_prepare(&p, plan, bz_linear(plan, bz_embed(plan, x, 1, "x"), m, "y"));
        const parity_pass pass = {.n = ROWS};
        float *gpu_rows =
            r.plan ? parity_output(p.backend[1], r.schedule[1], p.kv[1], &pass, OUTPUTS) : NULL;
        float *cpu_rows =
            r.plan ? parity_output(p.backend[0], r.schedule[0], p.kv[0], &pass, OUTPUTS) : NULL;
        uint32_t infinite = 0, numbers = 0, wrong = 0;
        for (uint32_t i = 0; gpu_rows && cpu_rows && i < ROWS; i++) { /* last first */
            const uint32_t row = ROWS - 1 - i;
            for (uint32_t o = 0; o < OUTPUTS; o++) {
                const float y = gpu_rows[(size_t)i * OUTPUTS + o],
                            z = cpu_rows[(size_t)i * OUTPUTS + o];
                infinite += row == 3 && !isfinite(y);
                numbers += row == 5 && !isnan(y);
                wrong += row != 3 && row != 5 && !(fabsf(y - z) < 1e-3f);
            }
        }
        CHECKF(gpu_rows && cpu_rows && infinite == 0 && numbers == 0 && wrong == 0,
               "%u infinite, %u numbers, %u wrong", infinite, numbers, wrong);
        free(gpu_rows);
        free(cpu_rows);
        parity_release(&p, &r);
    }
    parity_close(&p);
    weights_free(&w);
    free(values);
}

/* Scores that grow along the keys, so that a row's maximum moves many times; and scores that are
 * all alike. Queries and keys are exact in f16, so scores are exact; weights and values are
 * rounded. */
static void test_attention(uint32_t doublings)
{
    enum { HEADS = 3, WIDTH = 64, COLS = HEADS * WIDTH };
    begin("attention on matrices: keys that double %u times", doublings);
    memory_weights w = {0};
    float *k = malloc(sizeof *k * COLS * ROWS);
    for (uint32_t i = 0; i < COLS * ROWS; i++) {
        k[i] =
            ldexpf((float)((int)random_below(255) - 127), (int)(doublings * (i / COLS) / ROWS) - 7);
    }
    bz_weight q = weights_exact8(&w, COLS, ROWS), keys = weights_values(&w, k, COLS, ROWS);
    bz_weight v = weights_random(&w, BZ_F32, COLS, ROWS, 1);
    static const uint32_t rows[] = {65, 96, 127, 129, 480, 500, 512};
    parity p;
    if (parity_open(&p, &w, &(parity_options){.f32_cache = true})) {
        bz_gpu_allow_f16(p.backend[1]);
        bz_plan *plan = parity_plan(&p, ROWS);
        bz_tensor a = bz_embed(plan, q, 1, "q"), b = bz_embed(plan, keys, 1, "k"),
                  c = bz_embed(plan, v, 1, "v");
        parity_run r = parity_prepare(&p, plan, bz_attend_all(plan, a, b, c, HEADS, WIDTH, "o"));
        for (size_t i = 0; r.plan && i < sizeof rows / sizeof *rows; i++) {
            parity_check(&p, &r, &(parity_pass){.n = rows[i]},
                         (bound){.of_rms = real.matrices ? 4e-3 : 1e-4}, "%u rows", rows[i]);
        }
        printf("  %.2g of the bound used\n", parity_worst());
        parity_release(&p, &r);
    }
    parity_close(&p);
    weights_free(&w);
    free(k);
}

int main(void)
{
    devices_keep();
    real = parity_limits();
    printf("  this device has %ssubgroup matrices\n", real.matrices ? "" : "no ");
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        test_choice(&choices[i]);
    }
    test_products();
    test_text_products(BZ_Q4_K, 1024, 130, 0);
    test_text_products(BZ_Q6_K, 256, 2048, 30);
    test_text_products(BZ_Q8_0, 320, 300, -60);
    test_text_products(BZ_IQ4_XS, 512, 257, 0);
    test_text_products(BZ_F16, 64, 128, 20);
    test_edges();
    test_attention(0);
    test_attention(4);
    test_attention(7);
    return finish();
}
