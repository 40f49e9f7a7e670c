/* Prepares images for the vision tower: the size that fills a token budget, Pillow's bicubic
 * resize (bit-equal), and patches. The input is decoded RGB; file formats are handled elsewhere.
 */
#ifndef BZ_MEDIA_IMAGE_H
#define BZ_MEDIA_IMAGE_H

#include "base/error.h"

enum {
    BZ_PATCH = 16,           /* side of a patch in pixels */
    BZ_POOL = 3,             /* side of a soft token in patches */
    BZ_TOKEN_SIDE = 48,      /* side of a soft token in pixels */
    BZ_DEFAULT_BUDGET = 280, /* maximum soft tokens per image */
    BZ_MAX_BUDGET = 1120,
    BZ_MAX_PIXELS = 1 << 26, /* of the input: 67 megapixels */
    BZ_MAX_SIDE = 1 << 20
};

typedef struct bz_size {
    uint32_t height, width;
} bz_size;

/* The size an image is resized to: as many pixels as `max_patches` patches have, or a little less,
 * in about the image's proportions, each side a multiple of patch * pool. False: there is no such
 * size, because the image is too long and thin. */
bool bz_image_target(bz_size from, uint32_t patch, uint32_t pool, uint32_t max_patches,
                     bz_size *to);

/* The same for Gemma 4 with a budget of 70 to 1120 soft tokens (0: 280). */
bz_status bz_image_fit(bz_size from, uint32_t budget, bz_size *to, bz_error *err);

/* Resizes in steps. rgb: [from.height][from.width][3], not copied. */
typedef struct bz_resize bz_resize;
bz_status bz_resize_new(bz_resize **resize, const uint8_t *rgb, bz_size from, bz_size to,
                        bz_error *err);
bool bz_resize_step(bz_resize *resize); /* works a few milliseconds; true: finished */
/* [to.height][to.width][3], valid until bz_resize_free. */
const uint8_t *bz_resize_pixels(const bz_resize *resize);
void bz_resize_free(bz_resize *resize);

/* out: patches of side x side pixels, row-major over the grid, each [3][side][side]; values are
 * byte * scale + offset. */
void bz_image_patches(const uint8_t *rgb, bz_size size, uint32_t side, float scale, float offset,
                      float *out);

#endif
