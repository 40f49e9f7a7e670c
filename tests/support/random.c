#include "random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t state = 7;

void random_seed(uint32_t seed)
{
    state = seed ? seed : 7;
}

void random_seed_or(uint32_t otherwise)
{
    const char *given = getenv("BEZEL_SEED");
    random_seed(given && given[0] ? (uint32_t)strtoul(given, NULL, 0) : otherwise);
    printf("  BEZEL_SEED=%u\n", (unsigned)state);
}

uint32_t random_bits(void)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

float random_float(void)
{
    return (float)(int32_t)random_bits() * 0x1p-31f;
}

size_t random_below(size_t n)
{
    return random_bits() % n;
}

/* Changes the exponent of the f16 whose upper byte is *high. */
static void tame_half(uint8_t *high, block_scales scales)
{
    if (scales == SCALES_TAME) {
        *high = (uint8_t)(0x20 | (*high & 0x83)); /* 2^-7 to 2^-6 */
    } else if (scales == SCALES_FINITE && (*high & 0x7C) == 0x7C) {
        *high = (uint8_t)(*high & ~0x40); /* not infinite */
    }
}

/* F32, F16, BF16: between -1 and 1, or any finite number. */
static void random_floats(bz_type type, uint8_t *out, size_t n, block_scales scales)
{
    size_t bytes = bz_row_bytes(type, 1);
    for (size_t i = 0; i < n; i++) {
        float x = random_float();
        uint32_t bits;
        memcpy(&bits, &x, 4);
        uint16_t half = type == BZ_F16 ? bz_f32_to_f16(x) : (uint16_t)(bits >> 16);
        memcpy(out + i * bytes, type == BZ_F32 ? (void *)&bits : (void *)&half, bytes);
        if (scales == SCALES_FINITE && type == BZ_F16) {
            out[2 * i] = (uint8_t)random_bits();
            out[2 * i + 1] = (uint8_t)random_bits();
            tame_half(&out[2 * i + 1], scales);
        }
    }
}

void random_blocks(bz_type type, uint8_t *blocks, size_t n, block_scales scales)
{
    const bz_type_info *info = bz_type_of((uint32_t)type);
    size_t bytes = bz_row_bytes(type, n);
    if (info->block_values == 1 && scales != SCALES_ANY) {
        random_floats(type, blocks, n, scales);
        return;
    }
    for (size_t i = 0; i < bytes; i++) {
        blocks[i] = (uint8_t)random_bits();
    }
    for (size_t at = 0; info->block_values > 1 && scales != SCALES_ANY && at < bytes;
         at += info->block_bytes) {
        uint8_t *b = blocks + at;
        int fields[2] = {0, -1};
        switch (type) {
        case BZ_Q4_1:
        case BZ_Q5_1:
        case BZ_Q4_K:
        case BZ_Q5_K: fields[1] = 2; break;
        case BZ_Q2_K: fields[0] = 80, fields[1] = 82; break;
        case BZ_Q3_K: fields[0] = 108; break;
        case BZ_Q6_K: fields[0] = 208; break;
        case BZ_MXFP4:
            fields[0] = -1,
            b[0] = (uint8_t)(scales == SCALES_TAME ? 120 + random_below(4) : random_below(200));
            break;
        default: break;
        }
        for (int f = 0; f < 2; f++) {
            if (fields[f] >= 0) {
                tame_half(&b[fields[f] + 1], scales);
            }
        }
    }
}
