/* Steps that one kernel does together: on plans that hold exactly such a pattern, fused gives what the plain list
 * and the CPU give, with fewer dispatches; on plans that only look like one, nothing is fused.
 *
 *   sh tools/gpu-env.sh build/tests/gpu/test_fuse [part of a case's name]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/parity.h"
#include "support/random.h"

enum { HEADS = 3, HEAD = 32, WIDTH = HEADS * HEAD, IDS = 80 };

static memory_weights weights;
static bz_weight table, other_table, wide_norm, head_norm, factor, square;

static bz_tensor input(bz_plan *p)
{
    return bz_embed(p, table, 1, "x");
}

static bz_tensor residual(bz_plan *p)
{
    return bz_embed(p, other_table, 1, "residual");
}

static bz_tensor norm(bz_plan *p, bz_tensor x)
{
    return bz_rms_norm(p, x, wide_norm, WIDTH, 1e-6f, "norm");
}

static bz_tensor head_norms(bz_plan *p, bz_tensor x)
{
    return bz_rms_norm(p, x, head_norm, HEAD, 1e-6f, "norm");
}

static bz_tensor angles(bz_plan *p, uint32_t width)
{
    return bz_rope_table(p, BZ_NO_WEIGHT, width, width / 2, 10000, "angles");
}

/* ---- patterns --------------------------------------------------------------------------------- */

static bz_tensor norm_add(bz_plan *p)
{
    bz_tensor r = residual(p), x = input(p);
    return bz_add(p, r, norm(p, x), 1, "y");
}

static bz_tensor norm_add_no_weight(bz_plan *p)
{
    bz_tensor r = residual(p), x = input(p);
    return bz_add(p, r, bz_rms_norm(p, x, BZ_NO_WEIGHT, WIDTH, 1e-6f, "norm"), 1, "y");
}

static bz_tensor norm_add_scale(bz_plan *p)
{
    bz_tensor r = residual(p), x = input(p);
    return bz_scale(p, bz_add(p, r, norm(p, x), 1, "sum"), factor, "y");
}

/* The residual is what is normed: both stay alive until the sum is written. */
static bz_tensor norm_add_itself(bz_plan *p)
{
    bz_tensor x = input(p);
    return bz_scale(p, bz_add(p, x, norm(p, x), 1, "sum"), factor, "y");
}

/* What is normed is read again behind the fused steps. */
static bz_tensor norm_add_then_input(bz_plan *p)
{
    bz_tensor r = residual(p), x = input(p);
    bz_tensor y = bz_add(p, r, norm(p, x), 1, "sum");
    return bz_add(p, bz_linear(p, y, square, "product"), x, 0.5f, "y");
}

static bz_tensor norm_rope(bz_plan *p)
{
    bz_tensor t = angles(p, HEAD), x = input(p);
    return bz_rope(p, head_norms(p, x), t, HEAD, "y");
}

/* A stretch of a wider row, as q, k and v in one product are. */
static bz_tensor norm_rope_view(bz_plan *p)
{
    bz_tensor t = angles(p, HEAD), x = bz_columns(p, input(p), HEAD, 2 * HEAD);
    return bz_rope(p, head_norms(p, x), t, HEAD, "y");
}

/* ---- what only looks like one -------------------------------------------------------------------- */

static bz_tensor sum_of_norms(bz_plan *p)
{
    bz_tensor n = norm(p, input(p));
    return bz_add(p, n, n, 1, "y");
}

static bz_tensor sum_with_part_of_norm(bz_plan *p)
{
    bz_tensor n = head_norms(p, input(p));
    return bz_add(p, bz_columns(p, n, 0, HEAD), bz_columns(p, n, HEAD, HEAD), 1, "y");
}

static bz_tensor norm_read_twice(bz_plan *p)
{
    bz_tensor r = residual(p), n = norm(p, input(p));
    bz_tensor sum = bz_add(p, r, n, 1, "sum");
    return bz_add(p, bz_linear(p, n, square, "product"), sum, 0.5f, "y");
}

static bz_tensor scaled_sum(bz_plan *p)
{
    bz_tensor r = residual(p), x = input(p);
    return bz_add(p, r, norm(p, x), 0.5f, "y");
}

static bz_tensor norm_of_groups(bz_plan *p)
{
    bz_tensor r = residual(p), x = input(p);
    return bz_add(p, r, head_norms(p, x), 1, "y");
}

static bz_tensor rope_of_other_width(bz_plan *p)
{
    bz_tensor t = angles(p, WIDTH), x = input(p);
    return bz_rope(p, head_norms(p, x), t, WIDTH, "y");
}

static bz_tensor rope_and_norm_read(bz_plan *p)
{
    bz_tensor t = angles(p, HEAD), n = head_norms(p, input(p));
    bz_tensor turned = bz_rope(p, n, t, HEAD, "turned");
    return bz_add(p, n, turned, 0.5f, "y");
}

static bz_tensor rope_of_another(bz_plan *p)
{
    bz_tensor t = angles(p, HEAD), r = residual(p), n = head_norms(p, input(p));
    bz_tensor turned = bz_rope(p, r, t, HEAD, "turned");
    return bz_add(p, n, turned, 0.5f, "y");
}

/* The sum is wanted itself, beside its scaled form: norm and add still fit together. */
static bz_tensor sum_read_twice(bz_plan *p)
{
    bz_tensor r = residual(p), x = input(p);
    bz_tensor sum = bz_add(p, r, norm(p, x), 1, "sum");
    bz_tensor scaled = bz_scale(p, sum, factor, "scaled");
    return bz_add(p, bz_linear(p, scaled, square, "product"), sum, 0.5f, "y");
}

static bz_tensor scale_of_another(bz_plan *p)
{
    bz_tensor r = residual(p), x = input(p);
    bz_tensor sum = bz_add(p, r, norm(p, x), 1, "sum");
    bz_tensor scaled = bz_scale(p, r, factor, "scaled");
    return bz_add(p, sum, scaled, 0.5f, "y");
}

static const struct {
    const char *name;
    bz_tensor (*record)(bz_plan *p);
    int saved; /* dispatches fewer than the plain list's */
} cases[] = {
    {"norm and add", norm_add, 1},
    {"norm without weight and add", norm_add_no_weight, 1},
    {"norm, add and scale", norm_add_scale, 2},
    {"norm, add to what is normed, scale", norm_add_itself, 2},
    {"norm and add, and the input again later", norm_add_then_input, 1},
    {"norm and rope", norm_rope, 1},
    {"norm and rope of some columns", norm_rope_view, 1},
    {"not fused: a norm added to itself", sum_of_norms, 0},
    {"not fused: parts of a norm added", sum_with_part_of_norm, 0},
    {"not fused: a norm that is read again", norm_read_twice, 0},
    {"not fused: a sum with a factor", scaled_sum, 0},
    {"not fused: norms of groups in a sum", norm_of_groups, 0},
    {"not fused: heads of another width", rope_of_other_width, 0},
    {"not fused: a norm that is turned and read", rope_and_norm_read, 0},
    {"not fused: rope of something else", rope_of_another, 0},
    {"fused in part: a sum that is scaled and read", sum_read_twice, 1},
    {"fused in part: scale of something else", scale_of_another, 1},
};

/* Outputs of one pass and its dispatches. */
static float *run(parity *p, parity_run *r, const parity_pass *pass, uint64_t *dispatches)
{
    uint64_t before = gpu_counts_of(p->device).dispatches;
    float *out = parity_output(p->backend[1], r->schedule[1], p->kv[1], pass, r->cols);
    *dispatches = gpu_counts_of(p->device).dispatches - before;
    return out;
}

static void test_case(size_t i, parity *fused, parity *plain)
{
    static const uint32_t rows[][2] = {{1, 1}, {8, 3}, {64, 64}, {512, 70}};
    const bound limit = {.of_rms = 4e-6, .of_value = 2e-6};
    begin("%s", cases[i].name);
    for (size_t c = 0; c < 4; c++) {
        const parity_pass pass = {.n = rows[c][1], .position = 1000};
        bz_plan *first = parity_plan(fused, rows[c][0]), *second = parity_plan(plain, rows[c][0]);
        parity_run f = parity_prepare(fused, first, cases[i].record(first));
        parity_run u = parity_prepare(plain, second, cases[i].record(second));
        uint64_t n_fused = 0, n_plain = 0;
        float *a = run(fused, &f, &pass, &n_fused), *b = run(plain, &u, &pass, &n_plain);
        if (CHECK(a && b)) {
            within(a, b, pass.n, f.cols, limit, "fused against plain");
            CHECKF(n_plain - n_fused == (uint64_t)cases[i].saved, "%d dispatches fused, %d plain", (int)n_fused, (int)n_plain);
        }
        parity_check(fused, &f, &pass, limit, "fused against the CPU, %u rows", pass.n);
        parity_check(plain, &u, &pass, limit, "plain against the CPU, %u rows", pass.n);
        free(a);
        free(b);
        parity_release(fused, &f);
        parity_release(plain, &u);
    }
}

int main(int argc, char **argv)
{
    begin("two back ends open");
    random_seed_or(20240610);
    table = weights_random(&weights, BZ_F32, WIDTH, IDS, 1);
    other_table = weights_random(&weights, BZ_F32, WIDTH, IDS, 1);
    wide_norm = weights_random(&weights, BZ_F32, WIDTH, 1, 1);
    head_norm = weights_random(&weights, BZ_F32, HEAD, 1, 1);
    factor = weights_values(&weights, (float[]){0.37f}, 1, 1);
    square = weights_random(&weights, BZ_F32, WIDTH, WIDTH, 1);
    parity fused = {0}, plain = {0};
    if (parity_open(&fused, &weights, &(parity_options){0}) &&
        parity_open(&plain, &weights, &(parity_options){.no_fuse = true})) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            if (argc < 2 || strstr(cases[i].name, argv[1])) {
                test_case(i, &fused, &plain);
            }
        }
    }
    parity_close(&fused);
    parity_close(&plain);
    weights_free(&weights);
    return finish();
}
