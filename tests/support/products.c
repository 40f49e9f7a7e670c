#include "support/products.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/products.h"
#include "support/aligned.h"
#include "support/check.h"
#include "support/random.h"

static const bz_type types[] = {BZ_Q8_0, BZ_Q4_0, BZ_Q4_1, BZ_Q5_0,   BZ_Q5_1,   BZ_Q2_K, BZ_Q3_K,
                                BZ_Q4_K, BZ_Q5_K, BZ_Q6_K, BZ_IQ4_NL, BZ_IQ4_XS, BZ_MXFP4};
enum { N_TYPES = sizeof types / sizeof *types, MAX_ROWS = 24 };

static void *room(size_t bytes)
{
    void *p = aligned_new((bytes + 63) / 64 * 64);
    if (!p)
        abort();
    memset(p, 0xA5, (bytes + 63) / 64 * 64);
    return p;
}

/* Exactly `bytes`, not more: a sanitizer sees any access past the end. */
static void *exact_room(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (!p)
        abort();
    return p;
}

typedef struct product {
    const bz_kernels *kernels;
    bz_type type;
    size_t k, outputs, rows;
    uint8_t *blocks;
    bz_q8 q[MAX_ROWS];
    float *few, *many; /* [rows][outputs] */
} product;

static void few_at_a_time(product *p)
{
    const bz_products *by = p->kernels->products;
    const size_t bytes = by->row_bytes(p->k), most = 1 + random_below(BZ_FEW_ROWS);
    uint8_t *rows = room(most * bytes);
    for (size_t r = 0; r < p->rows; r += most) {
        const size_t n = p->rows - r < most ? p->rows - r : most;
        for (size_t i = 0; i < n; i++)
            by->arrange_row(p->type, &p->q[r + i], p->k, rows + i * bytes);
        by->rows(p->type, p->blocks, p->outputs, rows, n, p->k, p->few + r * p->outputs,
                 p->outputs);
    }
    aligned_free(rows);
}

static void in_blocks(product *p)
{
    const bz_products *by = p->kernels->products;
    const size_t block_bytes = by->block_bytes(p->k), row_bytes = bz_row_bytes(p->type, p->k);
    const bz_w8 unpacked = {room(16 * p->k), room(p->k * sizeof(float)),
                            room(p->k * sizeof(float))};
    uint8_t *block = room((p->rows + by->block_rows - 1) / by->block_rows * block_bytes);
    void *panels = room(by->panel_bytes(p->k));
    for (size_t r = 0; r < p->rows; r++)
        by->arrange_in_block(&p->q[r], p->k, r % by->block_rows,
                             block + r / by->block_rows * block_bytes);
    for (size_t o = 0; o < p->outputs; o += BZ_PRODUCT_TILE) {
        const size_t count = p->outputs - o < BZ_PRODUCT_TILE ? p->outputs - o : BZ_PRODUCT_TILE;
        by->pack(p->type, p->blocks + o * row_bytes, count, p->k, unpacked, panels);
        bz_product_multiply(by, p->type, panels, count, block, p->rows, p->k, p->many + o,
                            p->outputs);
    }
    aligned_free(panels);
    aligned_free(block);
    aligned_free(unpacked.m);
    aligned_free(unpacked.s);
    aligned_free(unpacked.q);
}

/* The sum of one output in double, and of its terms' sizes. */
static double in_double(const product *p, size_t row, bz_w8 w, double *size)
{
    const bool has_min = bz_type_has_min(p->type);
    const bz_q8 *x = &p->q[row];
    double sum = 0;
    *size = 0;
    for (size_t g = 0; g < p->k / 16; g++) {
        int products = 0, total = 0;
        for (size_t i = 16 * g; i < 16 * g + 16; i++) {
            products += w.q[i] * x->q[i];
            total += x->q[i];
        }
        const double d = (double)x->d[g / 2], term = products * (double)w.s[g] * d,
                     low = has_min ? (double)w.m[g] * d * total : 0;
        sum += term - low;
        *size += fabs(term) + fabs(low);
    }
    return sum;
}

/* The order of additions depends on the number of lanes: tables with as many give the same bits. */
static void check_other_tables(const product *p)
{
    for (size_t i = 0; bz_kernels_at(i) != p->kernels; i++) { /* each pair once */
        product other = *p;
        other.kernels = bz_kernels_at(i);
        const bz_products *by = other.kernels->products;
        if (!by || by->lanes != p->kernels->products->lanes)
            continue;
        const size_t bytes = p->rows * p->outputs * sizeof(float);
        other.few = exact_room(bytes);
        other.many = exact_room(bytes);
        few_at_a_time(&other);
        in_blocks(&other);
        CHECKF(memcmp(p->few, other.few, bytes) == 0 && memcmp(p->few, other.many, bytes) == 0,
               "%s k %zu, %zu rows by %zu: other bits than %s", bz_type_of((uint32_t)p->type)->name,
               p->k, p->rows, p->outputs, other.kernels->name);
        free(other.many);
        free(other.few);
    }
}

static void check_product(product *p, bool extreme)
{
    const size_t row_bytes = bz_row_bytes(p->type, p->k);
    const char *name = bz_type_of((uint32_t)p->type)->name;
    p->blocks = exact_room(p->outputs * row_bytes);
    random_blocks(p->type, p->blocks, p->outputs * p->k, SCALES_TAME);
    p->few = exact_room(p->rows * p->outputs * sizeof(float));
    p->many = exact_room(p->rows * p->outputs * sizeof(float));
    float *x = exact_room(p->k * sizeof *x);
    for (size_t r = 0; r < p->rows; r++) {
        for (size_t i = 0; i < p->k; i++) /* all of the largest size, or ordinary */
            x[i] = extreme ? (random_bits() % 8 && r ? 127.0f : -127.0f) : random_float();
        p->q[r] = (bz_q8){exact_room(p->k), exact_room(p->k / 32 * sizeof(float)),
                          exact_room(p->k / 16 * sizeof(float))};
        p->kernels->quantize(x, p->q[r], p->k);
    }
    few_at_a_time(p);
    in_blocks(p);
    CHECKF(memcmp(p->few, p->many, p->rows * p->outputs * sizeof(float)) == 0,
           "%s k %zu, %zu rows by %zu: other bits in blocks", name, p->k, p->rows, p->outputs);
    check_other_tables(p);
    const bz_w8 w = {exact_room(p->k), exact_room(p->k / 16 * sizeof(float)),
                     exact_room(p->k / 16 * sizeof(float))};
    for (size_t o = 0; o < p->outputs; o++) {
        bz_kernels_plain.unpack(p->type, p->blocks + o * row_bytes, w, p->k);
        for (size_t r = 0; r < p->rows; r++) {
            double size;
            const double want = in_double(p, r, w, &size);
            const float got = p->few[r * p->outputs + o];
            CHECKF(fabs((double)got - want) <= 1e-6 * size + 1e-30,
                   "%s k %zu row %zu of %zu, output %zu: %.9g, not %.9g", name, p->k, r, p->rows, o,
                   (double)got, want);
        }
    }
    free(w.q);
    free(w.s);
    free(w.m);
    for (size_t r = 0; r < p->rows; r++) {
        free(p->q[r].q);
        free(p->q[r].d);
        free(p->q[r].sum);
    }
    free(x);
    free(p->many);
    free(p->few);
    free(p->blocks);
}

/* A NaN or infinity in weights or activations makes the products with it NaN, and no other. */
static void test_not_finite(const bz_kernels *kernels)
{
    begin("%s: a bad scale or activation shows in the product", kernels->name);
    const size_t k = 544;
    enum { OUTPUTS = 20, ROWS = 11 };
    product p = {.kernels = kernels, .type = BZ_Q8_0, .k = k, .outputs = OUTPUTS, .rows = ROWS};
    const size_t row_bytes = bz_row_bytes(p.type, k);
    float few[ROWS * OUTPUTS], many[ROWS * OUTPUTS], *x = exact_room(k * sizeof *x);
    p.blocks = exact_room(p.outputs * row_bytes);
    p.few = few;
    p.many = many;
    for (size_t at = 0; at < k; at += 37) {
        random_blocks(p.type, p.blocks, p.outputs * k, SCALES_TAME);
        p.blocks[3 * row_bytes + at / 32 * 34] = 0;
        p.blocks[3 * row_bytes + at / 32 * 34 + 1] = 0x7E; /* f16 NaN */
        for (size_t r = 0; r < p.rows; r++) {
            for (size_t i = 0; i < k; i++)
                x[i] = random_float();
            x[at] = r == 5 ? INFINITY : 0.5f;
            p.q[r] = (bz_q8){exact_room(k), exact_room(k / 32 * sizeof(float)),
                             exact_room(k / 16 * sizeof(float))};
            kernels->quantize(x, p.q[r], k);
        }
        few_at_a_time(&p);
        in_blocks(&p);
        check_other_tables(&p);
        for (size_t r = 0; r < p.rows; r++) {
            for (size_t o = 0; o < p.outputs; o++) {
                const bool bad = r == 5 || o == 3;
                CHECKF(isnan(few[r * OUTPUTS + o]) == bad && isnan(many[r * OUTPUTS + o]) == bad,
                       "at %zu, row %zu, output %zu", at, r, o);
            }
            free(p.q[r].q);
            free(p.q[r].d);
            free(p.q[r].sum);
        }
    }
    free(p.blocks);
    free(x);
}

void test_products(const bz_kernels *kernels)
{
    for (size_t t = 0; t < N_TYPES; t++) {
        const bz_type_info *info = bz_type_of((uint32_t)types[t]);
        begin("%s: products of %s, alone and in blocks", kernels->name, info->name);
        for (int round = 0; round < 40; round++) {
            size_t k = 32 * (1 + random_below(round % 4 ? 24 : 90));
            k = (k + info->block_values - 1) / info->block_values * info->block_values;
            product p = {.kernels = kernels,
                         .type = types[t],
                         .k = k,
                         .outputs = 1 + random_below(round % 3 ? 20 : 70),
                         .rows = 1 + random_below(MAX_ROWS)};
            check_product(&p, round % 5 == 0);
        }
    }
    test_not_finite(kernels);
}
