/* Every kernel table of this machine: against the plain reference, against sums in
 * double, and against itself for every way to split the rows. Buffers have the exact size, so that
 * a sanitizer sees any access past the end. */
#include "cpu/kernels.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support/aligned.h"
#include "support/check.h"
#include "support/random.h"

static const bz_type quantized[] = {BZ_Q8_0,   BZ_Q4_0,   BZ_Q4_1, BZ_Q5_0, BZ_Q5_1,
                                    BZ_Q2_K,   BZ_Q3_K,   BZ_Q4_K, BZ_Q5_K, BZ_Q6_K,
                                    BZ_IQ4_NL, BZ_IQ4_XS, BZ_MXFP4};
enum { N_QUANTIZED = sizeof quantized / sizeof *quantized };

/* ---- helpers ---- */

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

static bool same(float a, float b)
{
    return bits_of(a) == bits_of(b) || (isnan(a) && isnan(b));
}

static bool same_all(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!same(a[i], b[i]))
            return false;
    return true;
}

/* Allocates at least one byte, never zero of them, and fills with a pattern. */
static void *room(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (!p)
        abort();
    memset(p, 0xA5, bytes);
    return p;
}

static float *random_row(size_t n)
{
    float *x = room(n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = random_float();
    return x;
}

/* Blocks of random bytes; `tame` keeps the scales finite and of ordinary size. */
static uint8_t *new_blocks(bz_type type, size_t n, bool tame)
{
    uint8_t *blocks = room(bz_row_bytes(type, n));
    random_blocks(type, blocks, n,
                  tame && bz_type_of((uint32_t)type)->block_values > 1 ? SCALES_TAME : SCALES_ANY);
    return blocks;
}

static bz_w8 new_w8(size_t k)
{
    return (bz_w8){room(k), room(k / 16 * sizeof(float)), room(k / 16 * sizeof(float))};
}

static void free_w8(bz_w8 w)
{
    free(w.q);
    free(w.s);
    free(w.m);
}

static bz_q8 new_q8(size_t k)
{
    return (bz_q8){room(k), room(k / 32 * sizeof(float)), room(k / 16 * sizeof(float))};
}

static void free_q8(bz_q8 x)
{
    free(x.q);
    free(x.d);
    free(x.sum);
}

/* ---- weights ---- */

static void test_dequantize(const bz_kernels *kernels)
{
    begin("%s: dequantize equals the reference to the last bit", kernels->name);
    for (uint32_t id = 0; id < BZ_TYPE_END; id++) {
        const bz_type_info *info = bz_type_of(id);
        if (!info || !info->runs)
            continue;
        for (size_t count = 1; count <= 21; count++) {
            size_t n = count * info->block_values;
            uint8_t *blocks = new_blocks((bz_type)id, n, count % 2 == 0);
            float *got = room(n * sizeof *got), *want = room(n * sizeof *want);
            kernels->dequantize((bz_type)id, blocks, got, n);
            bz_dequantize((bz_type)id, blocks, want, n);
            for (size_t i = 0; i < n; i++)
                CHECKF(same(got[i], want[i]), "%s value %zu of %zu is %.9g, not %.9g", info->name,
                       i, n, (double)got[i], (double)want[i]);
            free(want);
            free(got);
            free(blocks);
        }
    }

    begin("%s: dequantize of every f16 and bf16", kernels->name);
    uint16_t *words = room(65536 * sizeof *words);
    float *out = room(65536 * sizeof *out), *reference = room(65536 * sizeof *reference);
    for (unsigned i = 0; i < 65536; i++)
        words[i] = (uint16_t)i;
    for (int bf = 0; bf < 2; bf++) {
        kernels->dequantize(bf ? BZ_BF16 : BZ_F16, words, out, 65536);
        bz_dequantize(bf ? BZ_BF16 : BZ_F16, words, reference, 65536);
        CHECK(memcmp(out, reference, 65536 * sizeof *out) == 0);
    }
    free(reference);
    free(out);
    free(words);
}

static void test_unpack(const bz_kernels *kernels)
{
    begin("%s: unpack returns s * q - m", kernels->name);
    for (size_t t = 0; t < N_QUANTIZED; t++) {
        bz_type type = quantized[t];
        const bz_type_info *info = bz_type_of((uint32_t)type);
        bool has_min = bz_type_has_min(type);
        for (size_t count = 1; count <= 9; count++) {
            size_t n = count * info->block_values;
            uint8_t *blocks = new_blocks(type, n, count % 2 == 0);
            float *want = room(n * sizeof *want);
            bz_w8 w = new_w8(n), p = new_w8(n);
            kernels->unpack(type, blocks, w, n);
            bz_kernels_plain.unpack(type, blocks, p, n);
            bz_dequantize(type, blocks, want, n);
            for (size_t i = 0; i < n; i++) {
                float value = w.s[i / 16] * (float)w.q[i];
                if (has_min)
                    value -= w.m[i / 16];
                CHECKF(same(value, want[i]), "%s value %zu is %.9g, not %.9g", info->name, i,
                       (double)value, (double)want[i]);
                CHECKF(!has_min || w.q[i] >= 0, "%s value %zu has a minimum and q = %d", info->name,
                       i, w.q[i]);
            }
            CHECKF(memcmp(w.q, p.q, n) == 0, "%s: q differ from the plain ones", info->name);
            CHECKF(same_all(w.s, p.s, n / 16), "%s: s differ from the plain ones", info->name);
            CHECKF(!has_min || same_all(w.m, p.m, n / 16), "%s: m differ from the plain ones",
                   info->name);
            free_w8(p);
            free_w8(w);
            free(want);
            free(blocks);
        }
    }

    begin("%s: unpack needs no minima where there are none", kernels->name);
    for (size_t t = 0; t < N_QUANTIZED; t++) {
        if (bz_type_has_min(quantized[t]))
            continue;
        uint8_t *blocks = new_blocks(quantized[t], 512, true);
        bz_w8 w = new_w8(512), no_m = {w.q, w.s, NULL};
        kernels->unpack(quantized[t], blocks, no_m, 512);
        free_w8(w);
        free(blocks);
    }
    CHECK(true);
}

/* ---- activations ---- */

static void check_group(const float *x, bz_q8 q, size_t g, const char *what)
{
    double max = 0;
    for (size_t i = 32 * g; i < 32 * g + 32; i++)
        max = fabs((double)x[i]) > max ? fabs((double)x[i]) : max;
    CHECKF(fabs((double)q.d[g] - max / 127) <= max * 1e-7, "%s: d is %g, max %g", what,
           (double)q.d[g], max);
    int sum[2] = {0, 0};
    for (size_t i = 32 * g; i < 32 * g + 32; i++) {
        double exact = max > 0 ? (double)x[i] * 127 / max : 0;
        CHECKF(fabs(exact - q.q[i]) <= 0.5 + 2e-5 && q.q[i] >= -127, "%s: %g became %d", what,
               exact, q.q[i]);
        sum[i / 16 % 2] += q.q[i];
    }
    for (size_t h = 0; h < 2; h++)
        CHECKF(q.sum[2 * g + h] == q.d[g] * (float)sum[h], "%s: sum is %g", what,
               (double)q.sum[2 * g + h]);
}

static void test_quantize(const bz_kernels *kernels)
{
    begin("%s: quantize rounds to nearest, as the plain one", kernels->name);
    for (size_t k = 32; k <= 32 * 40; k += 32) {
        float *x = random_row(k);
        float scale = ldexpf(1, (int)random_below(60) - 30);
        for (size_t i = 0; i < k; i++)
            x[i] *= scale;
        bz_q8 q = new_q8(k), p = new_q8(k);
        kernels->quantize(x, q, k);
        bz_kernels_plain.quantize(x, p, k);
        for (size_t g = 0; g < k / 32; g++)
            check_group(x, q, g, "random");
        CHECK(memcmp(q.q, p.q, k) == 0);
        CHECK(same_all(q.d, p.d, k / 32) && same_all(q.sum, p.sum, k / 16));
        free_q8(p);
        free_q8(q);
        free(x);
    }

    begin("%s: quantize, ties and special groups", kernels->name);
    float x[32] = {0};
    bz_q8 q = new_q8(32);
    for (int i = 0; i < 32; i++) /* max 127: the scale is 1, values with .5 are ties */
        x[i] = (float)(i - 16) + 0.5f;
    x[0] = 127.0f;
    x[31] = 0.49999997f;
    kernels->quantize(x, q, 32);
    CHECK(q.d[0] == 1.0f && q.q[0] == 127 && q.q[1] == -15 && q.q[15] == -1 && q.q[16] == 1 &&
          q.q[31] == 0);
    memset(x, 0, sizeof x);
    kernels->quantize(x, q, 32);
    CHECK(q.d[0] == 0 && q.sum[0] == 0 && q.sum[1] == 0 && q.q[0] == 0 && q.q[31] == 0);
    for (int e = -149; e < 128; e++) { /* every size of number; the smallest count as zero */
        for (int i = 0; i < 32; i++)
            x[i] = ldexpf((float)(i - 15) / 16.0f, e);
        kernels->quantize(x, q, 32);
        CHECKF(q.q[31] == (e < -100 ? 0 : 127), "2^%d: %d", e, q.q[31]);
        CHECKF(isfinite(q.d[0]) && (isfinite(q.sum[0]) || e > 120), "2^%d", e);
        if (e >= -100 && e <= 120)
            check_group(x, q, 0, "power");
    }
    static const uint32_t bad[] = {0x7F800000u, 0xFF800000u, 0x7FC00000u, 0x7F800001u, 0xFFFFFFFFu};
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++)
        for (int at = 0; at < 32; at++) {
            for (int i = 0; i < 32; i++)
                x[i] = random_float();
            x[at] = float_of(bad[b]);
            kernels->quantize(x, q, 32);
            CHECKF(isnan(q.d[0]) && isnan(q.sum[0]) && isnan(q.sum[1]), "%08x at %d: d is %g",
                   bad[b], at, (double)q.d[0]);
            for (int i = 0; i < 32; i++)
                CHECK(q.q[i] == 0);
        }
    free_q8(q);
}

/* ---- products ---- */

static void test_dot_tile(const bz_kernels *kernels)
{
    begin("%s: dots of several weight rows have the bits of one", kernels->name);
    for (int round = 0; round < 300; round++) {
        const size_t k = round < 100 ? (size_t)round + 1 : 1 + random_below(1600),
                     rows = 1 + random_below(10), count = 1 + random_below(14),
                     stride = k + random_below(40), stride_out = count + random_below(3);
        float *w = random_row(count * k), *x = random_row((rows - 1) * stride + k);
        float *got = room(((rows - 1) * stride_out + count) * sizeof *got), want;
        kernels->dot_tile(w, count, x, stride, rows, k, got, stride_out);
        for (size_t r = 0; r < rows; r++)
            for (size_t c = 0; c < count; c++) {
                kernels->dot(w + c * k, x + r * stride, stride, 1, k, &want);
                CHECKF(memcmp(&got[r * stride_out + c], &want, sizeof want) == 0,
                       "k %zu, row %zu of %zu, weight row %zu of %zu: %.9g, not %.9g", k, r, rows,
                       c, count, (double)got[r * stride_out + c], (double)want);
            }
        free(got);
        free(x);
        free(w);
    }
}

/* As the processor rounds to bf16: ties to even, denormals to zero, NaN quiet. */
static uint16_t bf16_of(float x)
{
    const uint32_t bits = bits_of(x), size = bits & 0x7FFFFFFF;
    if (size < 0x00800000)
        return (uint16_t)(bits >> 16 & 0x8000);
    if (size > 0x7F800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static float flushed(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0.0f, x) : x;
}

/* The definition in dot_bf16_avx512.c: 16 sums, of each step the odd values first, then their sum.
 */
static float plain_dot_bf16(const uint16_t *w, const uint16_t *x, size_t k)
{
    float sum[16] = {0}, quarter[4];
    for (size_t i = 0; i < k; i += 32)
        for (size_t j = 0; j < 16; j++)
            for (size_t odd = 2; odd-- > 0;) {
                const size_t at = i + 2 * j + odd;
                const float a = at < k ? flushed(float_of((uint32_t)w[at] << 16)) : 0,
                            b = at < k ? flushed(float_of((uint32_t)x[at] << 16)) : 0;
                sum[j] = flushed(fmaf(a, b, sum[j]));
            }
    for (size_t q = 0; q < 4; q++) {
        const float *s = sum + 4 * q;
        quarter[q] = (s[0] + s[2]) + (s[1] + s[3]);
    }
    return (quarter[0] + quarter[2]) + (quarter[1] + quarter[3]);
}

static void test_to_bf16(const bz_kernels *kernels)
{
    begin("%s: rounds to bf16", kernels->name);
    for (size_t n = 1; n <= 100; n++) {
        const size_t whole = (n + BZ_BF16_STEP - 1) / BZ_BF16_STEP * BZ_BF16_STEP;
        float *x = room(n * sizeof *x);
        uint16_t *got = room(whole * sizeof *got);
        for (size_t i = 0; i < n; i++) /* every kind of number; ties */
            x[i] = float_of((uint32_t)random_bits() & (i % 3 ? 0xFFFFFFFF : 0xFFFF8000));
        kernels->to_bf16(x, got, n);
        for (size_t i = 0; i < whole; i++) {
            const uint16_t want = i < n ? bf16_of(x[i]) : 0;
            CHECKF(got[i] == want, "%zu of %zu: %08x became %04x, not %04x", i, n,
                   i < n ? bits_of(x[i]) : 0, got[i], want);
        }
        free(got);
        free(x);
    }
}

static void test_dot_bf16(const bz_kernels *kernels)
{
    begin("%s: bf16 by bf16 has the bits of its definition, for any number of rows", kernels->name);
    float *sums = aligned_new(BZ_BF16_SUMS * sizeof *sums);
    for (int round = 0; round < 240 && sums; round++) {
        const bool wild = round % 4 == 3; /* denormals, infinities and NaN too */
        const size_t k = round < 120 ? (size_t)round + 1 : 1 + random_below(4000),
                     steps = (k + BZ_BF16_STEP - 1) / BZ_BF16_STEP,
                     stride = (steps + random_below(3)) * BZ_BF16_STEP,
                     rows = 1 + random_below(round % 3 ? 13 : 60), count = 1 + random_below(60),
                     stride_out = count + random_below(3);
        uint16_t *w = room(count * k * sizeof *w), *x = room(rows * stride * sizeof *x);
        float *row = room(k * sizeof *row);
        float *got = room(((rows - 1) * stride_out + count) * sizeof *got);
        for (size_t i = 0; i < count * k; i++)
            w[i] =
                wild && random_below(50) == 0 ? (uint16_t)random_bits() : bf16_of(random_float());
        for (size_t r = 0; r < rows; r++) {
            for (size_t i = 0; i < k; i++)
                row[i] = wild && random_below(k) == 0 ? float_of((uint32_t)random_bits())
                                                      : random_float();
            kernels->to_bf16(row, x + r * stride, k);
        }
        kernels->dot_bf16(w, count, x, stride, rows, k, sums, got, stride_out);
        for (size_t r = 0; r < rows; r++)
            for (size_t c = 0; c < count; c++) {
                const float want = plain_dot_bf16(w + c * k, x + r * stride, k),
                            have = got[r * stride_out + c];
                CHECKF(same(have, want),
                       "k %zu, row %zu of %zu, weight row %zu of %zu: %.9g, not %.9g", k, r, rows,
                       c, count, (double)have, (double)want);
            }
        free(got);
        free(row);
        free(x);
        free(w);
    }
    CHECK(sums != NULL);
    aligned_free(sums);

    begin("%s: one bf16 product keeps infinities and NaN", kernels->name);
    static const float bad[] = {INFINITY, -INFINITY, NAN, 3.4e38f};
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
        const uint16_t one = 0x3F80;
        uint16_t x[BZ_BF16_STEP];
        float out, room_for_sums[1];
        kernels->to_bf16(&bad[b], x, 1);
        kernels->dot_bf16(&one, 1, x, BZ_BF16_STEP, 1, 1, room_for_sums, &out, 1);
        CHECKF(b < 2    ? out == bad[b]
               : b == 2 ? isnan(out)
                        : isinf(out),
               "%g became %g", (double)bad[b], (double)out);
    }
}

static void test_dot(const bz_kernels *kernels)
{
    begin("%s: dot is near the sum in double", kernels->name);
    for (size_t k = 1; k <= 300; k++) {
        float *w = random_row(k), *x = random_row(k), got;
        kernels->dot(w, x, k, 1, k, &got);
        double want = 0, size = 0;
        for (size_t i = 0; i < k; i++) {
            want += (double)w[i] * x[i];
            size += fabs((double)w[i] * x[i]);
        }
        CHECKF(fabs((double)got - want) <= 1e-6 * size, "k %zu: %.9g, not %.9g", k, (double)got,
               want);
        free(x);
        free(w);
    }

    for (int bf = 0; bf < 2 && kernels->dot_halves; bf++) {
        const bz_type type = bf ? BZ_BF16 : BZ_F16;
        begin("%s: dot of a %s row has the bits of its f32 values", kernels->name,
              bz_type_of((uint32_t)type)->name);
        for (size_t k = 1; k <= 300; k++) {
            uint16_t *w = room(k * sizeof *w);
            float *x = random_row(k), *row = room(k * sizeof *row), want;
            random_blocks(type, (uint8_t *)w, k, SCALES_TAME);
            kernels->dequantize(type, w, row, k);
            kernels->dot(row, x, k, 1, k, &want);
            const float got = kernels->dot_halves(type, w, x, k);
            CHECKF(memcmp(&got, &want, sizeof got) == 0, "k %zu: %.9g, not %.9g", k, (double)got,
                   (double)want);
            free(row);
            free(x);
            free(w);
        }
    }

    begin("%s: dot has the same bits for any split of the rows", kernels->name);
    for (int round = 0; round < 400; round++) {
        size_t k = 1 + random_below(round % 4 ? 140 : 1600), rows = 1 + random_below(19);
        size_t stride = k + random_below(3) * random_below(40);
        float *w = random_row(k), *x = random_row((rows - 1) * stride + k);
        float *one = room(rows * sizeof *one), *all = room(rows * sizeof *all),
              *parts = room(rows * sizeof *parts);
        for (size_t r = 0; r < rows; r++)
            kernels->dot(w, x + r * stride, stride, 1, k, one + r);
        kernels->dot(w, x, stride, rows, k, all);
        for (size_t r = 0; r < rows;) {
            size_t part = 1 + random_below(rows - r);
            kernels->dot(w, x + r * stride, stride, part, k, parts + r);
            r += part;
        }
        CHECKF(memcmp(one, all, rows * sizeof *one) == 0, "k %zu rows %zu stride %zu", k, rows,
               stride);
        CHECKF(memcmp(one, parts, rows * sizeof *one) == 0, "k %zu rows %zu stride %zu, parts", k,
               rows, stride);
        free(parts);
        free(all);
        free(one);
        free(x);
        free(w);
    }
}

/* Weights of one row from random blocks of a type where k allows it, else made up. */
static bz_w8 random_weights(bz_type type, size_t k)
{
    bz_w8 w = new_w8(k);
    if (k % bz_type_of((uint32_t)type)->block_values == 0) {
        uint8_t *blocks = new_blocks(type, k, true);
        memset(w.m, 0, k / 16 * sizeof(float));
        bz_kernels_plain.unpack(type, blocks, w, k);
        free(blocks);
    } else {
        for (size_t i = 0; i < k; i++)
            w.q[i] = (int8_t)(bz_type_has_min(type) ? random_below(32) : random_bits() % 256);
        for (size_t g = 0; g < k / 16; g++) {
            w.s[g] = random_float();
            w.m[g] = bz_type_has_min(type) ? random_float() : 0;
        }
    }
    return w;
}

static double exact_dot8(bz_w8 w, bz_q8 x, size_t k, bool has_min, double *size)
{
    double sum = 0;
    *size = 0;
    for (size_t g = 0; g < k / 16; g++) {
        int products = 0;
        for (size_t i = 16 * g; i < 16 * g + 16; i++)
            products += w.q[i] * x.q[i];
        double term = (double)products * w.s[g] * x.d[g / 2],
               low = has_min ? (double)w.m[g] * x.sum[g] : 0;
        sum += term - low;
        *size += fabs(term) + fabs(low);
    }
    return sum;
}

static void test_dot8(const bz_kernels *kernels)
{
    begin("%s: dot8 is near the sum in double", kernels->name);
    for (size_t t = 0; t < N_QUANTIZED; t++) {
        bz_type type = quantized[t];
        bool has_min = bz_type_has_min(type);
        for (size_t k = 32; k <= 2304; k += k < 1024 ? 32 : 256) {
            bz_w8 w = random_weights(type, k);
            float *x = random_row(k), got;
            bz_q8 q = new_q8(k);
            kernels->quantize(x, q, k);
            kernels->dot8(w, has_min, &q, 1, k, &got);
            double size, want = exact_dot8(w, q, k, has_min, &size);
            CHECKF(fabs((double)got - want) <= 1e-6 * size, "%s k %zu: %.9g, not %.9g",
                   bz_type_of((uint32_t)type)->name, k, (double)got, want);
            free_q8(q);
            free(x);
            free_w8(w);
        }
    }

    begin("%s: dot8, the largest products are exact", kernels->name);
    for (size_t k = 32; k <= 320; k += 32)
        for (int weight = -128; weight <= 127; weight += weight == -128 ? 1 : 127)
            for (int value = -127; value <= 127; value += 127)
                for (int mixed = 0; mixed < 2; mixed++) {
                    bz_w8 w = new_w8(k);
                    bz_q8 q = new_q8(k);
                    int64_t want = 0;
                    for (size_t i = 0; i < k; i++) {
                        w.q[i] = (int8_t)weight;
                        q.q[i] = (int8_t)(mixed && random_bits() % 3 == 0 ? -value : value);
                        want += (int64_t)w.q[i] * q.q[i];
                    }
                    for (size_t g = 0; g < k / 16; g++)
                        w.s[g] = 0.25f, w.m[g] = NAN, q.d[g / 2] = 2.0f,
                        q.sum[g] = NAN; /* unread */
                    float got;
                    kernels->dot8(w, false, &q, 1, k, &got);
                    CHECKF(got == 0.5f * (float)want, "k %zu, %d times %d: %.9g", k, weight, value,
                           (double)got);
                    free_q8(q);
                    free_w8(w);
                }

    begin("%s: dot8 has the same bits for any split of the rows", kernels->name);
    for (int round = 0; round < 400; round++) {
        bz_type type = quantized[random_below(N_QUANTIZED)];
        bool has_min = bz_type_has_min(type);
        size_t k = 32 * (1 + random_below(round % 4 ? 16 : 70)), rows = 1 + random_below(19);
        bz_w8 w = random_weights(type, k);
        bz_q8 q[20];
        for (size_t r = 0; r < rows; r++) {
            float *x = random_row(k);
            q[r] = new_q8(k);
            kernels->quantize(x, q[r], k);
            free(x);
        }
        float one[20], all[20], parts[20];
        for (size_t r = 0; r < rows; r++)
            kernels->dot8(w, has_min, q + r, 1, k, one + r);
        kernels->dot8(w, has_min, q, rows, k, all);
        for (size_t r = 0; r < rows;) {
            size_t part = 1 + random_below(rows - r);
            kernels->dot8(w, has_min, q + r, part, k, parts + r);
            r += part;
        }
        CHECKF(memcmp(one, all, rows * sizeof *one) == 0, "k %zu rows %zu", k, rows);
        CHECKF(memcmp(one, parts, rows * sizeof *one) == 0, "k %zu rows %zu, parts", k, rows);
        for (size_t r = 0; r < rows; r++)
            free_q8(q[r]);
        free_w8(w);
    }

    begin("%s: the 8-bit product is near the exact one", kernels->name);
    for (size_t t = 0; t < N_QUANTIZED; t++) {
        const char *name = bz_type_of((uint32_t)quantized[t])->name;
        size_t k = 1536;
        uint8_t *blocks = new_blocks(quantized[t], k, true);
        float *x = random_row(k), *row = room(k * sizeof *row), got, exact;
        bz_w8 w = new_w8(k);
        bz_q8 q = new_q8(k);
        kernels->unpack(quantized[t], blocks, w, k);
        kernels->quantize(x, q, k);
        kernels->dot8(w, bz_type_has_min(quantized[t]), &q, 1, k, &got);
        kernels->dequantize(quantized[t], blocks, row, k);
        kernels->dot(row, x, k, 1, k, &exact);
        double length = 0;
        for (size_t i = 0; i < k; i++)
            length += (double)row[i] * row[i];
        /* Rounding errors are even within d/2 = 1/254: about 0.0023 times the length of w. */
        CHECKF(fabs((double)got - (double)exact) < 0.02 * sqrt(length), "%s: %g, exact %g", name,
               (double)got, (double)exact);
        free_q8(q);
        free_w8(w);
        free(row);
        free(x);
        free(blocks);
    }

    begin("%s: a bad scale or activation shows in the product", kernels->name);
    for (size_t k = 32; k <= 288; k += 32)
        for (size_t at = 0; at < k; at += 7) {
            bz_w8 w = random_weights(BZ_Q8_0, k);
            float *x = random_row(k), got[5];
            bz_q8 q[5];
            for (size_t r = 0; r < 5; r++) {
                float keep = x[at];
                q[r] = new_q8(k);
                x[at] = r == 2 ? INFINITY : keep;
                kernels->quantize(x, q[r], k);
                x[at] = keep;
            }
            kernels->dot8(w, false, q, 5, k, got);
            for (size_t r = 0; r < 5; r++)
                CHECKF(r == 2 ? isnan(got[r]) : isfinite(got[r]), "k %zu at %zu row %zu", k, at, r);
            w.s[at / 16] = NAN;
            kernels->dot8(w, false, q, 5, k, got);
            for (size_t r = 0; r < 5; r++) {
                CHECKF(isnan(got[r]), "k %zu at %zu row %zu with a NaN scale", k, at, r);
                free_q8(q[r]);
            }
            free(x);
            free_w8(w);
        }
}

/* ---- rows ---- */

static void test_rows(const bz_kernels *kernels)
{
    begin("%s: sum_squares, dot_f16, axpy, axpy_f16 on every length", kernels->name);
    for (size_t n = 0; n <= 530; n += n < 80 ? 1 : 37) {
        float *x = random_row(n), *y = random_row(n), *old = room(n * sizeof *old);
        uint16_t *h = room(n * sizeof *h);
        double squares = 0, product = 0, size = 0;
        for (size_t i = 0; i < n; i++) {
            h[i] = bz_f32_to_f16(random_float());
            old[i] = y[i];
            squares += (double)x[i] * x[i];
            product += (double)x[i] * bz_f16_to_f32(h[i]);
            size += fabs((double)x[i] * bz_f16_to_f32(h[i]));
        }
        CHECKF(fabs((double)kernels->sum_squares(x, n) - squares) <= 1e-6 * squares,
               "sum_squares of %zu", n);
        CHECKF(fabs((double)kernels->dot_f16(x, h, n) - product) <= 1e-6 * size, "dot_f16 of %zu",
               n);
        kernels->axpy(0.75f, x, y, n);
        for (size_t i = 0; i < n; i++) {
            double want = (double)old[i] + 0.75 * (double)x[i];
            CHECKF(fabs((double)y[i] - want) <= 2e-7, "axpy of %zu at %zu", n, i);
            old[i] = y[i];
        }
        kernels->axpy_f16(-0.3f, h, y, n);
        for (size_t i = 0; i < n; i++) {
            double want = (double)old[i] + (double)-0.3f * bz_f16_to_f32(h[i]);
            CHECKF(fabs((double)y[i] - want) <= 2e-7, "axpy_f16 of %zu at %zu", n, i);
        }
        free(h);
        free(old);
        free(y);
        free(x);
    }

    begin("%s: axpy has the same bits at any offset in a row", kernels->name);
    float *x = random_row(64), y[64], z[64];
    uint16_t h[64];
    for (size_t i = 0; i < 64; i++) {
        y[i] = z[i] = random_float();
        h[i] = bz_f32_to_f16(x[i]);
    }
    kernels->axpy(0.3f, x, y, 64);
    kernels->axpy_f16(0.7f, h, y, 64);
    for (size_t i = 0; i < 64; i++) {
        kernels->axpy(0.3f, x + i, z + i, 1);
        kernels->axpy_f16(0.7f, h + i, z + i, 1);
    }
    CHECK(memcmp(y, z, sizeof y) == 0);
    free(x);

    begin("%s: to_f16 equals the reference", kernels->name);
    for (size_t n = 0; n <= 40; n++) {
        float *v = room(n * sizeof *v);
        uint16_t *out = room(n * sizeof *out);
        for (int round = 0; round < 200; round++) {
            for (size_t i = 0; i < n; i++)
                v[i] = round % 2 ? float_of(random_bits())
                                 : ldexpf(random_float(), (int)random_below(44) - 26);
            kernels->to_f16(v, out, n);
            for (size_t i = 0; i < n; i++)
                CHECKF(out[i] == bz_f32_to_f16(v[i]), "%08x became %04x", bits_of(v[i]), out[i]);
        }
        free(out);
        free(v);
    }

    begin("%s: dot_f16 sees every f16 value", kernels->name);
    for (unsigned i = 0; i < 65536; i++) {
        uint16_t k[9] = {0, 0, 0, 0, 0, 0, 0, 0, 0};
        float q[9] = {0, 0, 0, 0, 0, 0, 0, 0, 0}, value = bz_f16_to_f32((uint16_t)i);
        size_t at = i % 9;
        k[at] = (uint16_t)i;
        q[at] = 1.0f;
        float got = kernels->dot_f16(q, k, 9);
        CHECKF(got == value || (isnan(got) && isnan(value)), "%04x is %g", i, (double)got);
    }
}

/* ---- towers ---- */

static void test_panel(const bz_kernels *k)
{
    begin("%s: panels", k->name);
    const size_t lengths[] = {1, 2, 7, 64, 72, 767, 768, 769, 2000};
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        const size_t n = lengths[l], stride = n + 3, out_stride = 21;
        for (size_t rows = 1; rows <= 13; rows += rows < 7 ? 1 : 6) {
            for (size_t cols = 1; cols <= BZ_PANEL; cols += cols == 1 ? 6 : cols == 7 ? 1 : 8) {
                float *a = random_row((rows - 1) * stride + n), *b = random_row(n * BZ_PANEL);
                float *out = room(((rows - 1) * out_stride + cols) * sizeof *out);
                k->panel(a, stride, rows, b, n, out, out_stride, cols);
                double worst = 0;
                for (size_t r = 0; r < rows; r++) {
                    for (size_t c = 0; c < cols; c++) {
                        double sum = 0, size = 0;
                        for (size_t i = 0; i < n; i++) {
                            const double p =
                                (double)a[r * stride + i] * (double)b[i * BZ_PANEL + c];
                            sum += p;
                            size += fabs(p);
                        }
                        worst = fmax(worst,
                                     fabs((double)out[r * out_stride + c] - sum) / (size + 1e-30));
                    }
                    for (size_t c = cols; r + 1 < rows && c < out_stride; c++) {
                        CHECK(bits_of(out[r * out_stride + c]) ==
                              0xA5A5A5A5u); /* nothing outside is written */
                    }
                }
                CHECKF(worst < 1e-5, "%zu rows, %zu columns of %zu: off by %g", rows, cols, n,
                       worst);
                float *one = room(cols * sizeof *one); /* a row by itself is the same row */
                k->panel(a + (rows - 1) * stride, stride, 1, b, n, one, out_stride, cols);
                CHECK(same_all(one, out + (rows - 1) * out_stride, cols));
                free(one);
                free(a);
                free(b);
                free(out);
            }
        }
    }
}

static void test_exponentials(const bz_kernels *k)
{
    begin("%s: exponentials", k->name);
    for (size_t n = 1; n < 40; n++) {
        float *x = random_row(n), *y = room(n * sizeof *y), *up = random_row(n),
              *out = room(n * sizeof *out);
        double sum = 0, worst = 0, high = -1e30;
        for (size_t i = 0; i < n; i++) {
            x[i] *= (float)(n % 3 == 0 ? 1 : 30);
            if ((double)x[i] > high)
                high = (double)x[i];
        }
        memcpy(y, x, n * sizeof *y);
        const float total = k->exp_sum(y, n);
        for (size_t i = 0; i < n; i++) {
            const double want = exp((double)x[i] - high);
            const double off = fabs((double)y[i] - want) / (want + 1e-30);
            if (off > worst)
                worst = off;
            sum += want;
        }
        CHECKF(worst < 5e-6 && fabs((double)total - sum) < 1e-5 * sum, "%zu: off by %g, sum %g", n,
               worst, (double)total - sum);
        k->gelu_mul(x, up, out, n);
        for (size_t i = 0; i < n; i++) {
            const double v = (double)x[i],
                         want = 0.5 * v *
                                (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))) *
                                (double)up[i];
            CHECKF(fabs((double)out[i] - want) < 1e-5 * (fabs(v * (double)up[i]) + 1e-6),
                   "gelu(%g)", v);
        }
        k->silu(x, out, n);
        for (size_t i = 0; i < n; i++) {
            const double v = (double)x[i], want = v / (1 + exp(-v));
            CHECKF(fabs((double)out[i] - want) < 1e-5 * (fabs(v) + 1e-6), "silu(%g)", v);
        }
        k->silu(x, x, n); /* in place */
        CHECK(same_all(x, out, n));
        free(x);
        free(y);
        free(up);
        free(out);
    }
    begin("%s: exponentials at the ends", k->name);
    float ends[] = {0.0f, -1000.0f, -87.5f, -3e38f}, wild[] = {1e30f, -1e30f, 100.0f, -100.0f},
          out[4];
    const float sum = k->exp_sum(ends, 4);
    CHECK(ends[0] == 1.0f && ends[1] < 1e-37f && sum >= 1.0f && sum < 1.0001f);
    k->silu(wild, out, 4);
    CHECK(out[0] == 1e30f && fabsf(out[1]) < 1e-5f && out[2] == 100.0f && fabsf(out[3]) < 1e-30f);
}

static void test_softcap(const bz_kernels *k)
{
    begin("%s: soft cap", k->name);
    for (size_t n = 1; n < 40; n++) {
        float *x = random_row(n), *out = room(n * sizeof *out);
        for (size_t i = 0; i < n; i++)
            x[i] *= n % 2 ? 5.0f : 200.0f;
        k->softcap(x, 30.0f, out, n);
        for (size_t i = 0; i < n; i++)
            CHECKF(fabs((double)out[i] / (30 * tanh((double)x[i] / 30)) - 1) <= 1e-6 || x[i] == 0,
                   "of %g: %g", (double)x[i], (double)out[i]);
        k->softcap(x, 30.0f, x, n); /* in place */
        CHECK(same_all(x, out, n));
        free(out);
        free(x);
    }
    float wild[9] = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f, 0, NAN, 1, NAN}, out[9];
    k->softcap(wild, 30.0f, out, 9);
    CHECK(isnan(out[0]) && isnan(out[6]) && isnan(out[8]) && out[1] == 30.0f && out[2] == -30.0f &&
          out[3] == 30.0f && out[4] == -30.0f && out[5] == 0.0f);
}

/* Attention over an f16 cache where it is, against the same through f32 keys and panels of values;
 * the sums also in two parts, as at the end of a ring. */
static void test_heads(const bz_kernels *k)
{
    if (!k->scores_f16) {
        return;
    }
    begin("%s: heads over f16 keys and values have the bits of f32 ones", k->name);
    for (int round = 0; round < 60; round++) {
        const size_t d = 32 * (1 + random_below(9)), n = 1 + random_below(64),
                     heads = 1 + random_below(9), first = random_below((uint32_t)n + 1);
        float *q = random_row(heads * d), *x = random_row(n * d), *f32 = room(n * d * sizeof *f32);
        float *got = room(heads * n * sizeof *got), *want = room(heads * sizeof *want);
        float *sums = room(heads * d * sizeof *sums), *panel = room(n * BZ_PANEL * sizeof *panel);
        float *column = room(heads * BZ_PANEL * sizeof *column);
        uint16_t *rows = room(n * d * sizeof *rows);
        k->to_f16(x, rows, n * d);
        k->dequantize(BZ_F16, rows, f32, n * d);
        k->scores_f16(q, heads, (const uint8_t *)rows, 2 * d, n, d, got, n);
        for (size_t j = 0; j < n; j++) {
            k->dot(f32 + j * d, q, d, heads, d, want);
            for (size_t h = 0; h < heads; h++)
                CHECKF(memcmp(&got[h * n + j], &want[h], sizeof *want) == 0,
                       "d %zu head %zu of %zu, position %zu of %zu: %.9g, not %.9g", d, h, heads, j,
                       n, (double)got[h * n + j], (double)want[h]);
        }
        k->values_f16(got, n, heads, (const uint8_t *)rows, 2 * d, first, d, sums, false);
        k->values_f16(got + first, n, heads, (const uint8_t *)(rows + first * d), 2 * d, n - first,
                      d, sums, true);
        for (size_t v = 0; v < d; v += BZ_PANEL) {
            for (size_t j = 0; j < n; j++)
                memcpy(panel + j * BZ_PANEL, f32 + j * d + v, BZ_PANEL * sizeof *panel);
            k->panel(got, n, heads, panel, n, column, BZ_PANEL, BZ_PANEL);
            for (size_t h = 0; h < heads; h++)
                CHECKF(memcmp(sums + h * d + v, column + h * BZ_PANEL, BZ_PANEL * sizeof *column) ==
                           0,
                       "d %zu head %zu of %zu, values from %zu on, %zu + %zu positions", d, h,
                       heads, v, first, n - first);
        }
        free(rows);
        free(column);
        free(panel);
        free(sums);
        free(want);
        free(got);
        free(f32);
        free(x);
        free(q);
    }
}

/* NaN passes through the exponentials, so that it shows in what is computed from them. */
static void test_nan(const bz_kernels *k)
{
    begin("%s: NaN is not lost", k->name);
    for (size_t n = 1; n <= 17; n++)
        for (size_t at = 0; at < n; at++) {
            float x[17], up[17], out[17];
            for (size_t i = 0; i < n; i++)
                x[i] = up[i] = random_float();
            x[at] = NAN;
            k->gelu_mul(x, up, out, n);
            CHECKF(isnan(out[at]), "gelu of %zu at %zu", n, at);
            k->silu(x, out, n);
            CHECKF(isnan(out[at]), "silu of %zu at %zu", n, at);
            CHECKF(isnan(k->exp_sum(x, n)), "exp_sum of %zu at %zu", n, at);
        }
}

int main(void)
{
    begin("selection of a kernel table");
    CHECK(bz_kernels_best("plain") == &bz_kernels_plain);
    CHECK(bz_kernels_best("nonsense") == NULL);
    const bz_kernels *best = bz_kernels_best(NULL);
    CHECK(best != NULL && bz_kernels_best(best->name) == best);

    for (size_t i = 0; i < bz_kernels_count(); i++) {
        const bz_kernels *k = bz_kernels_at(i);
        CHECK(bz_kernels_best(k->name) == k);
        const bz_kernels *better = i > 0 ? bz_kernels_at(i - 1) : NULL;
        if (k->dot_tile && !(better && k->dot_tile == better->dot_tile))
            test_dot_tile(k);
        if (better && k->dot == better->dot)
            continue; /* differs in its integer products otherwise: test_products.c */
        test_dequantize(k);
        test_unpack(k);
        test_quantize(k);
        test_dot(k);
        test_dot8(k);
        test_rows(k);
        test_panel(k);
        test_heads(k);
        test_exponentials(k);
        test_softcap(k);
        test_nan(k);
    }
    for (size_t i = 0; i < bz_kernels_count(); i++) {
        const bz_kernels *k = bz_kernels_at(i);
        if (k->dot_bf16) {
            test_to_bf16(k);
            test_dot_bf16(k);
        }
    }
    return finish();
}
