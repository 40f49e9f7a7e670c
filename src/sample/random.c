/* Philox4x32-10. */
#include "sample/random.h"

void bz_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int i = 0; i < 10; i++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

uint64_t bz_random_bits(uint64_t seed, uint64_t i)
{
    const uint32_t counter[4] = {(uint32_t)i, (uint32_t)(i >> 32), 0, 0};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t out[4];
    bz_philox(counter, key, out);
    return (uint64_t)out[1] << 32 | out[0];
}

double bz_random_unit(uint64_t seed, uint64_t i)
{
    return (double)(bz_random_bits(seed, i) >> 11) * 0x1p-53;
}
