#include "session/media.h"

#include <stdlib.h>
#include <string.h>

bz_media *bz_media_new(bz_media_kind kind, uint32_t rows, uint32_t width)
{
    bz_media *m = calloc(1, sizeof *m + (size_t)rows * width * sizeof *m->values);
    if (m) {
        atomic_init(&m->holders, 1);
        m->kind = kind;
        m->rows = rows;
        m->width = width;
        m->pieces = 1;
    }
    return m;
}

bz_media *bz_media_hold(const bz_media *media)
{
    bz_media *m = (bz_media *)(uintptr_t)media; /* only the count changes */
    atomic_fetch_add(&m->holders, 1);
    return m;
}

void bz_media_free(bz_media *m)
{
    if (m && atomic_fetch_sub(&m->holders, 1) == 1) {
        for (uint32_t i = 0; m->frames && i < m->pieces; i++) {
            bz_media_free(m->frames[i].media);
        }
        free(m->frames);
        free(m);
    }
}

bz_media_kind bz_media_get_kind(const bz_media *m)
{
    return m->kind;
}

uint32_t bz_media_pieces(const bz_media *m)
{
    return m->pieces;
}

const float *bz_media_rows(const bz_media *m, uint32_t *rows, uint32_t *width)
{
    *rows = m->rows;
    *width = m->width;
    return m->frames ? NULL : m->values;
}

/* ---- content ------------------------------------------------------------------- */

/* The finalizer of splitmix64: every bit of x changes half the bits of the result. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

bz_content bz_content_of(const void *bytes, size_t n, uint64_t seed)
{
    const uint8_t *p = bytes;
    bz_content c = {mix(seed + 0x9E3779B97F4A7C15u) ^ n, mix(seed ^ 0xD1B54A32D192ED03u) + n};
    for (; n > 0;) {
        uint64_t word = 0;
        const size_t step = n < 8 ? n : 8;
        memcpy(&word, p, step);
        c.a = (c.a ^ word) * 0x9E3779B97F4A7C15u;
        c.a ^= c.a >> 32;
        c.b = (c.b + mix(word)) * 0xD6E8FEB86659FD93u;
        c.b ^= c.b >> 29;
        p += step;
        n -= step;
    }
    return (bz_content){mix(c.a ^ c.b >> 1), mix(c.b)};
}

bool bz_content_equal(bz_content x, bz_content y)
{
    return x.a == y.a && x.b == y.b;
}

int32_t bz_media_token(const bz_media *m, uint32_t row)
{
    const uint64_t number = mix(m->content.a + mix(m->content.b + row));
    return -1 - (int32_t)(number & 0x3FFFFFFF);
}
