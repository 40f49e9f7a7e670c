/* Keys and values as a cache stores them (plan/cache.h). Q8 and Q4 are blocks as in GGUF files,
 * Q8_0 and Q4_0, so that the kernels for those unpack them; the last block of a head is filled up
 * with zeros. */
#include <math.h>
#include <string.h>

#include "cpu/internal.h"
#include "file/blocks.h"

enum { BLOCK = BZ_CACHE_BLOCK };
static const float TOO_LARGE = 65000; /* near the end of f16, in which a GPU computes */
static const float TINY = 1e-30f;     /* 8 divided by it is finite */

/* The product with a Hadamard matrix of n rows, divided by sqrt(n); n is 1, 2, 4 ... 32. */
static void hadamard(float *x, size_t n)
{
    for (size_t half = 1; half < n; half *= 2) {
        for (size_t i = 0; i < n; i += 2 * half) {
            for (size_t j = i; j < i + half; j++) {
                const float a = x[j], b = x[j + half];
                x[j] = a + b;
                x[j + half] = a - b;
            }
        }
    }
    for (size_t i = 0; i < n; i++) {
        x[i] *= n == 32   ? 0.17677669f
                : n == 16 ? 0.25f
                : n == 8  ? 0.35355338f
                : n == 4  ? 0.5f
                : n == 2  ? 0.70710677f
                          : 1.0f;
    }
}

void cpu_cache_rotate(float *x, size_t n)
{
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t count = n - i < BLOCK ? n - i : BLOCK,
                     power = count & (~count + 1); /* the largest that divides it */
        for (size_t j = 0; j < count; j += power) {
            hadamard(x + i + j, power);
        }
    }
}

static void put_f16(uint8_t to[2], float value)
{
    const uint16_t half = bz_f32_to_f16(value);
    to[0] = (uint8_t)half;
    to[1] = (uint8_t)(half >> 8);
}

static void write_q8(const bz_kernels *k, const float x[BLOCK], bz_block_q8_0 *to)
{
    int8_t q[BLOCK];
    float d, sum[2];
    k->quantize(x, (bz_q8){q, &d, sum}, BLOCK);
    put_f16(to->d, d <= TOO_LARGE / 127 ? d : NAN);
    memcpy(to->q, q, sizeof q);
}

/* The value with the largest magnitude becomes -8, the end of the range that is farther from 0. */
static void write_q4(const float x[BLOCK], bz_block_q4_0 *to)
{
    float largest = 0;
    bool finite = true;
    for (size_t i = 0; i < BLOCK; i++) {
        finite = finite && fabsf(x[i]) <= TOO_LARGE;
        largest = fabsf(x[i]) > fabsf(largest) ? x[i] : largest;
    }
    put_f16(to->d, finite ? largest / -8.0f : NAN);
    const float inverse = fabsf(largest) < TINY ? 0 : -8.0f / largest;
    for (size_t i = 0; i < BLOCK / 2; i++) {
        uint8_t two[2];
        for (size_t h = 0; h < 2; h++) {
            const float q = finite ? rintf(x[i + h * (BLOCK / 2)] * inverse) : 0;
            two[h] = (uint8_t)(8 + (q < -8 ? -8 : q > 7 ? 7 : (int)q));
        }
        to->q[i] = (uint8_t)(two[0] | two[1] << 4);
    }
}

void cpu_cache_write(const bz_kernels *k, bz_cache_type type, const float *x, uint8_t *to, size_t n)
{
    if (type == BZ_CACHE_F32) {
        memcpy(to, x, n * sizeof *x);
        return;
    }
    if (type == BZ_CACHE_F16) {
        k->to_f16(x, (uint16_t *)(void *)to, n);
        return;
    }
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t count = n - i < BLOCK ? n - i : BLOCK;
        float block[BLOCK] = {0};
        memcpy(block, x + i, count * sizeof *x);
        if (type == BZ_CACHE_Q8) {
            write_q8(k, block, (bz_block_q8_0 *)(void *)to + i / BLOCK);
        } else {
            cpu_cache_rotate(block, count);
            write_q4(block, (bz_block_q4_0 *)(void *)to + i / BLOCK);
        }
    }
}

void cpu_cache_read(const bz_kernels *k, bz_cache_type type, const uint8_t *from, float *to,
                    size_t n)
{
    static const bz_type stored[] = {[BZ_CACHE_F16] = BZ_F16,
                                     [BZ_CACHE_F32] = BZ_F32,
                                     [BZ_CACHE_Q8] = BZ_Q8_0,
                                     [BZ_CACHE_Q4] = BZ_Q4_0};
    const bool blocks = type == BZ_CACHE_Q8 || type == BZ_CACHE_Q4;
    const size_t whole = blocks ? n / BLOCK * BLOCK : n;
    k->dequantize(stored[type], from, to, whole);
    if (whole < n) { /* a shorter last block */
        float block[BLOCK];
        k->dequantize(stored[type], from + bz_cache_bytes(type, (uint32_t)whole), block, BLOCK);
        memcpy(to + whole, block, (n - whole) * sizeof *to);
    }
}
