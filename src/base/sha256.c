/* SHA-256 (FIPS 180-4). */
#include "base/sha256.h"

#include <string.h>

/* First 32 fractional bits of the cube roots of the first 64 primes. */
static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static uint32_t word(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void compress(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64];
    for (int i = 0; i < 16; i++) {
        w[i] = word(block + 4 * i);
    }
    for (int i = 16; i < 64; i++) {
        const uint32_t x = w[i - 15], y = w[i - 2];
        w[i] = w[i - 16] + (rotate(x, 7) ^ rotate(x, 18) ^ x >> 3) + w[i - 7] +
               (rotate(y, 17) ^ rotate(y, 19) ^ y >> 10);
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int i = 0; i < 64; i++) {
        const uint32_t one =
            h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + w[i];
        const uint32_t two =
            (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + one;
        d = c, c = b, b = a, a = one + two;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

void bz_sha256_begin(bz_sha256 *s)
{
    /* First 32 fractional bits of the square roots of the first 8 primes. */
    *s = (bz_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                               0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void bz_sha256_add(bz_sha256 *s, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    size_t held = (size_t)(s->n % BZ_SHA256_BLOCK);
    s->n += n;
    if (held) {
        const size_t more = n < BZ_SHA256_BLOCK - held ? n : BZ_SHA256_BLOCK - held;
        memcpy(s->block + held, p, more);
        p += more;
        n -= more;
        if (held + more < BZ_SHA256_BLOCK) {
            return;
        }
        compress(s->state, s->block);
    }
    for (; n >= BZ_SHA256_BLOCK; p += BZ_SHA256_BLOCK, n -= BZ_SHA256_BLOCK) {
        compress(s->state, p);
    }
    if (n) {
        memcpy(s->block, p, n);
    }
}

/* Padding: a one bit, zeros, then the length in bits as 8 bytes, up to the end of a block. */
void bz_sha256_end(bz_sha256 *s, uint8_t digest[BZ_SHA256_BYTES])
{
    static const uint8_t padding[BZ_SHA256_BLOCK] = {0x80};
    const uint64_t bits = 8 * s->n;
    const size_t held = (size_t)(s->n % BZ_SHA256_BLOCK);
    uint8_t length[8];
    for (int i = 0; i < 8; i++) {
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    }
    bz_sha256_add(s, padding, (held < 56 ? 56 : 120) - held);
    bz_sha256_add(s, length, sizeof length);
    for (int i = 0; i < BZ_SHA256_BYTES; i++) {
        digest[i] = (uint8_t)(s->state[i / 4] >> (24 - 8 * (i % 4)));
    }
}

void bz_sha256_text(const uint8_t digest[BZ_SHA256_BYTES], char out[BZ_SHA256_TEXT])
{
    for (int i = 0; i < BZ_SHA256_BYTES; i++) {
        out[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    out[BZ_SHA256_TEXT - 1] = 0;
}
