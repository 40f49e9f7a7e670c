/* Speed of the CPU kernels on one core, weights resident in the L2 cache.
 *
 *   bench_kernels [TABLE [K [KILOBYTES]]]    TABLE: a name of `--kernels`; best if absent
 *
 * For every block type, for 1 and 16 activation rows, with f32 activations (dequantize, dot) and
 * with int8 activations (unpack, dot8): GB/s of weight bytes and Gop/s (a multiplication and an
 * addition are two operations). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cpu/products.h"

enum { MAX_ROWS = 16, MANY_ROWS = 192 };

typedef struct bench {
    const bz_kernels *kernels;
    bz_type type;
    size_t k, n, rows; /* weight matrix [n][k], activations [rows][k] */
    uint8_t *weights;
    size_t row_bytes;
    float *x, *row, *out;
    bz_w8 w;
    bz_q8 q[MAX_ROWS];
    bz_w8 rows16;      /* room for 16 unpacked rows */
    void *packed;      /* of products.h */
    uint8_t *arranged; /* [BZ_FEW_ROWS] of products.h */
    uint8_t *blocks;   /* [MANY_ROWS] activations in blocks */
    float *many;       /* [MANY_ROWS][n] */
    uint16_t *bf16;    /* [MANY_ROWS][bf16_stride] */
    size_t bf16_stride;
    float *sums;
} bench;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void exact(bench *b)
{
    for (size_t i = 0; i < b->n; i++) {
        b->kernels->dequantize(b->type, b->weights + i * b->row_bytes, b->row, b->k);
        b->kernels->dot(b->row, b->x, b->k, b->rows, b->k, b->out);
    }
}

static void int8(bench *b)
{
    bool has_min = bz_type_has_min(b->type);
    for (size_t i = 0; i < b->n; i++) {
        b->kernels->unpack(b->type, b->weights + i * b->row_bytes, b->w, b->k);
        b->kernels->dot8(b->w, has_min, b->q, b->rows, b->k, b->out);
    }
}

/* products.h: one row at a time, or packed weights and blocks of rows. */
static void products(bench *b)
{
    const bz_products *p = b->kernels->products;
    if (b->rows <= BZ_FEW_ROWS) {
        p->rows(b->type, b->weights, b->n, b->arranged, b->rows, b->k, b->many, b->n);
        return;
    }
    for (size_t i = 0; i < b->n; i += BZ_PRODUCT_TILE) {
        const size_t count = b->n - i < BZ_PRODUCT_TILE ? b->n - i : BZ_PRODUCT_TILE;
        p->pack(b->type, b->weights + i * b->row_bytes, count, b->k, b->rows16, b->packed);
        bz_product_multiply(p, b->type, b->packed, count, b->blocks, b->rows, b->k, b->many + i,
                            b->n);
    }
}

static void bf16(bench *b)
{
    b->kernels->dot_bf16(b->weights, b->n, b->bf16, b->bf16_stride, b->rows, b->k, b->sums, b->many,
                         b->n);
}

static void unpack_only(bench *b)
{
    for (size_t i = 0; i < b->n; i++)
        b->kernels->unpack(b->type, b->weights + i * b->row_bytes, b->w, b->k);
}

static void dot8_only(bench *b)
{
    for (size_t i = 0; i < b->n; i++)
        b->kernels->dot8(b->w, bz_type_has_min(b->type), b->q, b->rows, b->k, b->out);
}

/* Shortest time of one pass, over about 0.2 s: other work on the machine can only add to it. */
static double best(void (*pass)(bench *), bench *b)
{
    double shortest = 1e9, start = now();
    pass(b);
    do {
        double t = now();
        pass(b);
        t = now() - t;
        shortest = t < shortest ? t : shortest;
    } while (now() - start < 0.2);
    return shortest;
}

/* Zeroed, and aligned to a cache line like the engine's own buffers. */
static void *alloc(size_t bytes)
{
    size_t whole = (bytes + 63) / 64 * 64;
    void *p = aligned_alloc(64, whole);
    if (!p) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    memset(p, 0, whole);
    return p;
}

/* A line: for several numbers of rows. */
static void print_rows(void (*pass)(bench *), bench *b)
{
    static const size_t rows[] = {1, 2, 8, 16, MANY_ROWS};
    const double ops = 2.0 * (double)(b->n * b->k) * 1e-9;
    printf("%-7s", bz_type_of((uint32_t)b->type)->name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        b->rows = rows[i];
        const double t = best(pass, b);
        if (i == 0)
            printf("  %7.2f GB/s", (double)(b->n * b->row_bytes) * 1e-9 / t);
        printf("  %7.1f", ops * (double)b->rows / t);
    }
    printf("\n");
}

static void run_bf16(bench *b)
{
    b->bf16_stride = b->k + BZ_BF16_STEP;
    b->bf16 = alloc(MANY_ROWS * b->bf16_stride * sizeof *b->bf16);
    b->sums = alloc(BZ_BF16_SUMS * sizeof *b->sums);
    b->many = alloc(MANY_ROWS * b->n * sizeof(float));
    for (size_t r = 0; r < MANY_ROWS; r++)
        b->kernels->to_bf16(b->x + r % MAX_ROWS * b->k, b->bf16 + r * b->bf16_stride, b->k);
    print_rows(bf16, b);
    free(b->many);
    free(b->sums);
    free(b->bf16);
}

static void run_products(bench *b)
{
    const bz_products *p = b->kernels->products;
    b->rows16 = (bz_w8){alloc(16 * b->k), alloc(b->k * sizeof(float)), alloc(b->k * sizeof(float))};
    b->packed = alloc(p->panel_bytes(b->k));
    b->arranged = alloc(BZ_FEW_ROWS * p->row_bytes(b->k));
    for (size_t r = 0; r < BZ_FEW_ROWS; r++)
        p->arrange_row(b->type, &b->q[r], b->k, b->arranged + r * p->row_bytes(b->k));
    b->blocks = alloc(MANY_ROWS / p->block_rows * p->block_bytes(b->k));
    b->many = alloc(MANY_ROWS * b->n * sizeof(float));
    for (size_t r = 0; r < MANY_ROWS; r++)
        p->arrange_in_block(&b->q[r % MAX_ROWS], b->k, r % p->block_rows,
                            b->blocks + r / p->block_rows * p->block_bytes(b->k));
    print_rows(products, b);
    free(b->many);
    free(b->blocks);
    free(b->arranged);
    free(b->packed);
    free(b->rows16.q);
    free(b->rows16.s);
    free(b->rows16.m);
}

static void run(const bz_kernels *kernels, bool by_products, bz_type type, size_t k, size_t target)
{
    const bz_type_info *info = bz_type_of((uint32_t)type);
    bool quantized = info->block_values > 1;
    bench b = {.kernels = kernels, .type = type, .k = k, .row_bytes = bz_row_bytes(type, k)};
    b.n = target / b.row_bytes ? target / b.row_bytes : 1;
    size_t bytes = b.n * b.row_bytes;
    b.weights = alloc(bytes);
    /* Random bytes without infinite or NaN scales: bit 6 is cleared in every byte, and with it a
     * bit of the exponent of any f16. */
    uint32_t seed = 1;
    for (size_t i = 0; i < bytes; i++) {
        seed = seed * 1664525u + 1013904223u;
        b.weights[i] = (uint8_t)((seed >> 24) & 0xBF);
    }
    if (!quantized) /* values between 1 and 2 */
        for (size_t i = info->block_bytes - 1; i < bytes; i += info->block_bytes)
            b.weights[i] = type == BZ_F16 ? 0x3C : 0x3F, b.weights[i - 1] |= 0x80;
    if (type == BZ_MXFP4) /* the scale is a whole byte: no subnormal results */
        for (size_t i = 0; i < bytes; i += info->block_bytes)
            b.weights[i] = (uint8_t)(116 + b.weights[i] % 8);
    b.x = alloc(MAX_ROWS * k * sizeof *b.x);
    b.row = alloc(k * sizeof *b.row);
    b.out = alloc(MAX_ROWS * sizeof *b.out);
    b.w = (bz_w8){alloc(k), alloc(k / 16 * sizeof(float)), alloc(k / 16 * sizeof(float))};
    for (size_t i = 0; i < MAX_ROWS * k; i++) {
        seed = seed * 1664525u + 1013904223u;
        b.x[i] = (float)(seed >> 8) * 0x1p-23f - 1.0f;
    }
    for (size_t r = 0; r < MAX_ROWS; r++) {
        b.q[r] = (bz_q8){alloc(k), alloc(k / 32 * sizeof(float)), alloc(k / 16 * sizeof(float))};
        kernels->quantize(b.x + r * k, b.q[r], k);
    }

    double ops = 2.0 * (double)(b.n * k) * 1e-9, giga = (double)bytes * 1e-9;
    if (by_products && quantized)
        run_products(&b);
    if (by_products && type == BZ_BF16 && kernels->dot_bf16)
        run_bf16(&b);
    if (!by_products)
        printf("%-7s", info->name);
    for (size_t rows = 1; !by_products && rows <= MAX_ROWS; rows += MAX_ROWS - 1) {
        b.rows = rows;
        double t = best(exact, &b);
        printf("  %7.2f %7.1f", giga / t, ops * (double)rows / t);
        if (quantized) {
            t = best(int8, &b);
            printf("  %7.2f %7.1f", giga / t, ops * (double)rows / t);
        } else {
            printf("  %7s %7s", "-", "-");
        }
    }
    if (quantized && !by_products) {
        b.rows = 1;
        double one = best(dot8_only, &b);
        b.rows = MAX_ROWS;
        printf("  %7.2f  %7.2f  %7.1f", giga / best(unpack_only, &b), giga / one,
               ops * MAX_ROWS / best(dot8_only, &b));
    }
    if (!by_products)
        printf("\n");
    for (size_t r = 0; r < MAX_ROWS; r++) {
        free(b.q[r].q);
        free(b.q[r].d);
        free(b.q[r].sum);
    }
    free(b.w.q);
    free(b.w.s);
    free(b.w.m);
    free(b.out);
    free(b.row);
    free(b.x);
    free(b.weights);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    size_t k = argc > 2 ? strtoul(argv[2], NULL, 10) : 1536;
    size_t target = (argc > 3 ? strtoul(argv[3], NULL, 10) : 384) * 1024;
    const bz_kernels *kernels = bz_kernels_best(name);
    if (!kernels || k == 0 || k % 256 != 0) {
        fprintf(stderr, "usage: bench_kernels [TABLE [K, a multiple of 256 [KILOBYTES]]]\n");
        return 2;
    }
    printf("table %s, K %zu, %zu KB of weights, one core\n", kernels->name, k, target / 1024);
    printf("            exact, 1 row       int8, 1 row     exact, 16 rows     int8, 16 rows"
           "   unpack   dot8 1  dot8 16\n");
    printf("type        GB/s   Gop/s      GB/s   Gop/s      GB/s   Gop/s      GB/s   Gop/s"
           "     GB/s     GB/s    Gop/s\n");
    for (uint32_t id = 0; id < BZ_TYPE_END; id++) {
        const bz_type_info *info = bz_type_of(id);
        if (info && info->runs)
            run(kernels, false, (bz_type)id, k, target);
    }
    if (!kernels->products)
        return 0;
    printf("\nint8, straight from the blocks (products.h), and bf16\n");
    printf("type            1 row   Gop/s  2 rows   8 rows  16 rows  %d rows\n", MANY_ROWS);
    for (uint32_t id = 0; id < BZ_TYPE_END; id++) {
        const bz_type_info *info = bz_type_of(id);
        if (info && info->runs)
            run(kernels, true, (bz_type)id, k, target);
    }
    return 0;
}
