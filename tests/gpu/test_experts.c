/* route, expert_linear and expert_sum on the GPU against the CPU: ties, shares, experts that no row
 * or every row chose, plain and slotted inputs, every block type.
 *
 *   sh tools/gpu-env.sh build/tests/gpu/test_experts [part of a case's name]
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

static const char *wanted = "";

enum { IDS = 100 };

static bool starts(const char *name)
{
    if (!strstr(name, wanted)) {
        return false;
    }
    begin("%s", name);
    return true;
}

/* ---- choosing ---------------------------------------------------------------------------- */

/* Logits of few different values, so that most ranks are ties; the lower index must win. */
static bz_weight tied_logits(memory_weights *w, uint32_t experts, uint32_t values)
{
    float *x = malloc((size_t)IDS * experts * sizeof *x);
    for (size_t i = 0; i < (size_t)IDS * experts; i++) {
        x[i] = (float)random_below(values) - (float)values / 2;
    }
    bz_weight table = weights_values(w, x, experts, IDS);
    free(x);
    return table;
}

/* An id as a value: expert e's matrix is 1 x 1 and holds e. */
static bz_weight numbers(memory_weights *w, uint32_t experts)
{
    bz_weight m = weights_random(w, BZ_F32, 1, 1, experts);
    for (uint32_t e = 0; e < experts; e++) {
        ((float *)(void *)w->bytes[m.id - 1])[e] = (float)e;
    }
    return m;
}

static void test_route(uint32_t experts, uint32_t slots, uint32_t values)
{
    char name[100];
    snprintf(name, sizeof name, "route: %u of %u experts, %s", slots, experts,
             values ? "ties" : "no ties");
    if (!starts(name)) {
        return;
    }
    memory_weights w = {0};
    bz_weight logits =
        values ? tied_logits(&w, experts, values) : weights_random(&w, BZ_F32, experts, IDS, 1);
    bz_weight number = numbers(&w, experts);
    float ones[IDS];
    for (int i = 0; i < IDS; i++) {
        ones[i] = 1;
    }
    bz_weight input = weights_values(&w, ones, 1, IDS);
    parity p;
    bool open = parity_open(&p, &w, &(parity_options){0});
    static const uint32_t rows[3][2] = {{1, 1}, {8, 7}, {512, IDS}};
    for (int c = 0; open && c < 6; c++) {
        bz_plan *plan = parity_plan(&p, rows[c / 2][0]);
        bz_tensor ids, shares, y;
        bz_route(plan, bz_embed(plan, logits, 3, "logits"), slots, &ids, &shares, "route");
        y = bz_expert_linear(plan, bz_embed(plan, input, 1, "one"), ids, number, slots, "ids");
        parity_run r = parity_prepare(&p, plan, c % 2 ? shares : y);
        parity_check(&p, &r, &(parity_pass){.n = rows[c / 2][1]},
                     (bound){.of_value = c % 2 ? 3e-6 : 0}, "%s, %u rows", c % 2 ? "shares" : "ids",
                     rows[c / 2][1]);
        parity_release(&p, &r);
    }
    parity_close(&p);
    weights_free(&w);
}

static void test_too_many(void)
{
    if (!starts("route: more than the kernel has room for is refused")) {
        return;
    }
    static const struct {
        uint32_t experts, slots;
    } cases[] = {{80, 64}, {80, 65}, {1025, 8}}; /* the first one runs */
    memory_weights w = {0};
    bz_weight logits[3];
    for (int i = 0; i < 3; i++) {
        logits[i] = weights_random(&w, BZ_F32, cases[i].experts, IDS, 1);
    }
    parity p;
    bool open = parity_open(&p, &w, &(parity_options){0});
    for (int i = 0; open && i < 3; i++) {
        bz_plan *plan = parity_plan(&p, 8);
        bz_tensor ids, shares;
        bz_route(plan, bz_embed(plan, logits[i], 3, "logits"), cases[i].slots, &ids, &shares,
                 "route");
        if (i == 0) {
            parity_run r = parity_prepare(&p, plan, shares);
            parity_check(&p, &r, &(parity_pass){.n = 8}, (bound){.of_value = 3e-6}, "shares");
            parity_release(&p, &r);
            continue;
        }
        bz_error err = {0};
        bz_schedule *schedule = NULL;
        CHECK(bz_plan_finish(plan, bz_take_rows(plan, shares, "rows"), &err) == BZ_OK);
        bz_status status = p.backend[1]->prepare(p.backend[1], plan, &schedule, &err);
        CHECKF(status == BZ_UNSUPPORTED_MODEL && !schedule && strstr(err.text, "experts"), "%s",
               err.text);
        bz_plan_free(plan);
    }
    parity_close(&p);
    weights_free(&w);
}

/* ---- products and sums -------------------------------------------------------------------- */

typedef struct moe {
    bz_type type;
    uint32_t experts, slots, k, inner, outputs;
} moe;

/* The expert part of a layer: gate and up of the chosen experts, GEGLU, down, and the sum; or a
 * part of it. */
static bz_tensor record(bz_plan *plan, moe m, const bz_weight w[6], int part)
{
    bz_tensor ids, shares;
    bz_tensor x = bz_embed(plan, w[0], 1, "x");
    bz_route(plan, bz_embed(plan, w[1], 2, "logits"), m.slots, &ids, &shares, "route");
    bz_tensor gate_up =
        bz_expert_linear(plan, x, ids, w[2], m.slots, "gate_up"); /* [n][slots * 2 inner] */
    if (part == 0) {
        return gate_up;
    }
    bz_tensor inner = bz_geglu_fused(plan, gate_up, m.inner, "geglu"); /* [n][slots * inner] */
    bz_tensor down = bz_expert_linear(plan, inner, ids, w[3], m.slots, "down");
    return part == 1 ? down
                     : bz_expert_sum(plan, down, ids, shares, part == 2 ? w[4] : BZ_NO_WEIGHT,
                                     m.slots, "sum");
}

static void test_moe(moe m, const uint32_t (*rows)[2], int n_rows)
{
    char name[120];
    snprintf(name, sizeof name, "experts %s: %u of %u, %u to %u to %u",
             bz_type_of((uint32_t)m.type)->name, m.slots, m.experts, m.k, m.inner, m.outputs);
    if (!starts(name)) {
        return;
    }
    memory_weights w = {0};
    bz_weight all[6] = {weights_random(&w, BZ_F32, m.k, IDS, 1),
                        weights_random(&w, BZ_F32, m.experts, IDS, 1),
                        weights_random(&w, m.type, m.k, 2 * m.inner, m.experts),
                        weights_random(&w, m.type, m.inner, m.outputs, m.experts),
                        weights_random(&w, BZ_F32, m.experts, 1, 1)};
    parity p;
    bool open = parity_open(&p, &w, &(parity_options){.f32_cache = true});
    for (int part = 0; part < 4; part++) {
        for (int c = 0; open && c < n_rows; c++) {
            bz_plan *plan = parity_plan(&p, rows[c][0]);
            parity_run r = parity_prepare(&p, plan, record(plan, m, all, part));
            /* after GEGLU, whose tanh has the adapter's accuracy, large values differ by more */
            bound limit = {.of_rms = part ? 8e-6 : 4e-6 + 2.5e-7 * sqrt((double)m.k),
                           .of_value = part ? 4e-6 : 0};
            parity_check(&p, &r, &(parity_pass){.n = rows[c][1]}, limit, "part %d, %u rows of %u",
                         part, rows[c][1], rows[c][0]);
            parity_release(&p, &r);
        }
    }
    parity_close(&p);
    weights_free(&w);
    printf("  %.2g of the bound used\n", parity_worst());
}

/* ---- 8-bit activations -------------------------------------------------------------------- */

typedef enum choice {
    CHOICE_ANY,
    CHOICE_SAME,
    CHOICE_ALONE
} choice; /* all rows the same; one row another */

static bz_weight chosen_logits(memory_weights *w, uint32_t experts, uint32_t slots, choice c)
{
    if (c == CHOICE_ANY) {
        return weights_random(w, BZ_F32, experts, IDS, 1);
    }
    float *x = calloc((size_t)IDS * experts, sizeof *x);
    for (uint32_t r = 0; r < IDS; r++) {
        for (uint32_t s = 0; s < slots; s++) {
            uint32_t e = c == CHOICE_ALONE && r == 3 && s == 0 ? experts - 1 : s;
            x[r * experts + e] = 1 + (float)s;
        }
    }
    bz_weight table = weights_values(w, x, experts, IDS);
    free(x);
    return table;
}

/* With activations that 8 bits hold exactly, these kernels are as exact as the others: of one input
 * for all slots, gates and ups in one matrix or in two followed by GEGLU, of an input for each
 * slot. `ups` of a type without integers: float tiles share the choice with those of integers. */
static void test_moe8(moe m, bz_type ups, choice c, const uint32_t (*rows)[2], int n_rows)
{
    static const char *const choices[] = {"", ", all rows the same", ", a row alone"};
    char name[160];
    snprintf(name, sizeof name, "experts %s, %s, 8-bit activations: %u of %u, %u to %u%s",
             bz_type_of((uint32_t)m.type)->name, bz_type_of((uint32_t)ups)->name, m.slots,
             m.experts, m.k, m.outputs, choices[c]);
    if (!starts(name)) {
        return;
    }
    memory_weights w = {0};
    bz_weight x = weights_exact8(&w, m.k, IDS),
              wide = weights_exact8(&w, (uint64_t)m.slots * m.k, IDS);
    bz_weight logits = chosen_logits(&w, m.experts, m.slots, c);
    bz_weight first = weights_random(&w, m.type, m.k, m.outputs, m.experts);
    bz_weight second = weights_random(&w, ups, m.k, m.outputs, m.experts);
    parity p;
    bool open = parity_open(&p, &w, &(parity_options){0});
    for (int part = 0; part < 4; part++) {
        static const char *const parts[] = {"one input", "an input each",
                                            "gates and ups of one matrix", "of two"};
        for (int i = 0; open && i < n_rows && (part != 2 || m.outputs % 2 == 0); i++) {
            bz_plan *plan = parity_plan(&p, rows[i][0]);
            bz_tensor ids, shares, in = bz_embed(plan, part == 1 ? wide : x, 1, "x");
            bz_route(plan, bz_embed(plan, logits, 1, "logits"), m.slots, &ids, &shares, "route");
            bz_tensor y = bz_expert_linear(plan, in, ids, first, m.slots, "y");
            if (part == 2) {
                y = bz_geglu_fused(plan, y, m.outputs / 2, "geglu");
            } else if (part == 3) {
                y = bz_geglu(plan, y, bz_expert_linear(plan, in, ids, second, m.slots, "up"),
                             "geglu");
            }
            parity_run r = parity_prepare(&p, plan, y);
            const bound near = {.of_rms = 4e-6 + 2.5e-7 * sqrt((double)m.k),
                                .of_value = part < 2 ? 0 : 2e-6};
            parity_check(&p, &r, &(parity_pass){.n = rows[i][1]}, near, "%s, %u rows of %u",
                         parts[part], rows[i][1], rows[i][0]);
            parity_release(&p, &r);
        }
    }
    parity_close(&p);
    weights_free(&w);
    printf("  %.2g of the bound used\n", parity_worst());
}

int main(int argc, char **argv)
{
    devices_keep();
    static const bz_type types[] = {BZ_F32,  BZ_F16,    BZ_BF16,   BZ_Q8_0, BZ_Q4_0, BZ_Q4_1,
                                    BZ_Q5_0, BZ_Q5_1,   BZ_Q2_K,   BZ_Q3_K, BZ_Q4_K, BZ_Q5_K,
                                    BZ_Q6_K, BZ_IQ4_NL, BZ_IQ4_XS, BZ_MXFP4};
    static const uint32_t rows[4][2] = {{1, 1}, {8, 5}, {64, 17}, {512, 100}};
    wanted = argc > 1 ? argv[1] : "";
    random_seed_or(20240609);
    static const uint32_t routes[][3] = {
        {1, 1, 0},  {2, 2, 1},   {5, 3, 2},   {8, 8, 0},   {8, 2, 1},    {63, 4, 3},    {64, 8, 2},
        {65, 8, 4}, {128, 8, 0}, {128, 8, 1}, {128, 8, 6}, {512, 10, 9}, {1024, 64, 30}};
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        test_route(routes[i][0], routes[i][1], routes[i][2]);
    }
    test_too_many();
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        uint32_t block = bz_type_of((uint32_t)types[i])->block_values;
        if (!quick_run() || i % 5 == 0) {
            test_moe((moe){types[i], 6, 2, block == 1 ? 50 : block, block == 1 ? 33 : block, 37},
                     rows, 4);
        }
    }
    test_moe((moe){BZ_Q4_0, 128, 8, 64, 32, 65}, rows, 4);
    test_moe((moe){BZ_F32, 3, 1, 9, 2, 1}, rows, 4);
    test_moe((moe){BZ_Q8_0, 4, 4, 96, 64, 7}, rows, 4);
    test_moe((moe){BZ_F16, 16, 5, 301, 67, 301}, rows, 4);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        uint32_t block = bz_type_of((uint32_t)types[i])->block_values;
        if (block > 1 && (!quick_run() || i % 4 == 0)) {
            test_moe8((moe){types[i], 6, 2, block == 32 ? 96 : block, 0, 40}, types[i], CHOICE_ANY,
                      rows, 4);
        }
    }
    test_moe8((moe){BZ_Q8_0, 128, 8, 704, 0, 76}, BZ_Q8_0, CHOICE_ANY, rows, 4);
    test_moe8((moe){BZ_Q4_K, 130, 3, 512, 0, 70}, BZ_Q4_K, CHOICE_ANY, rows,
              4); /* more experts than are listed at once; odd outputs */
    test_moe8((moe){BZ_Q4_0, 9, 2, 160, 0, 136}, BZ_Q4_0, CHOICE_SAME, rows, 4);
    test_moe8((moe){BZ_Q6_K, 9, 2, 256, 0, 136}, BZ_Q6_K, CHOICE_ALONE, rows, 4);
    test_moe8((moe){BZ_Q4_0, 3, 2, 64, 0, 136}, BZ_F32, CHOICE_ANY, rows, 4);
    return finish();
}
