/* Exif orientation: reading it, and turning an image upright. */
#include <stdlib.h>
#include <string.h>

#include "cli/media/decode.h"

typedef struct tiff {
    const uint8_t *b;
    size_t n;
    bool big; /* byte order */
} tiff;

static uint32_t number(const tiff *t, size_t at, int bytes)
{
    uint32_t v = 0;
    for (int i = 0; i < bytes; i++) {
        v |= (uint32_t)t->b[at + (size_t)i] << 8 * (t->big ? bytes - 1 - i : i);
    }
    return v;
}

int exif_orientation(const uint8_t *b, size_t n)
{
    enum { ORIENTATION = 0x0112, ENTRY = 12 };
    if (n >= 6 && memcmp(b, "Exif\0\0", 6) == 0) {
        b += 6;
        n -= 6;
    }
    if (n < 8 || !(memcmp(b, "II*\0", 4) == 0 || memcmp(b, "MM\0*", 4) == 0)) {
        return 1;
    }
    const tiff t = {b, n, b[0] == 'M'};
    const size_t first = number(&t, 4, 4);
    if (first > n || n - first < 2) {
        return 1;
    }
    const uint32_t entries = number(&t, first, 2);
    for (uint32_t i = 0; i < entries; i++) {
        const size_t at = first + 2 + (size_t)i * ENTRY;
        if (at + ENTRY > n) {
            break;
        }
        if (number(&t, at, 2) == ORIENTATION) {
            const uint32_t v = number(&t, at + 8, 2);
            return v >= 1 && v <= 8 ? (int)v : 1;
        }
    }
    return 1;
}

bz_status image_orient(rgb_image *p, int orientation, bz_error *err)
{
    if (orientation <= 1 || orientation > 8) {
        return BZ_OK;
    }
    const bool transposed = orientation >= 5;
    const uint32_t w = p->width, h = p->height, width = transposed ? h : w,
                   height = transposed ? w : h;
    uint8_t *rgb = malloc((size_t)w * h * 3);
    if (!rgb) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for an image of %u x %u pixels.", w, h);
    }
    /* 2: mirrored left-right, 3: rotated by 180 degrees, 4: mirrored top-bottom; 5 to 8: transposed
     * first, then the same */
    const bool flip_x =
        orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    const bool flip_y =
        orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++) {
            const uint32_t a = transposed ? y : x,
                           b = transposed ? x
                                          : y; /* column and row of the source before flipping */
            const uint32_t from_x = flip_x ? w - 1 - a : a, from_y = flip_y ? h - 1 - b : b;
            memcpy(rgb + ((size_t)y * width + x) * 3, p->rgb + ((size_t)from_y * w + from_x) * 3,
                   3);
        }
    }
    free(p->rgb);
    *p = (rgb_image){rgb, width, height};
    return BZ_OK;
}
