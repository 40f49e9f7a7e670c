/* Pictures as the vision tower wants them: the size that fills a token budget, Pillow's bicubic
 * resize to the last bit, and patches. Decoded RGB comes in; nothing here knows file formats.
 */
#ifndef BZ_MEDIA_IMAGE_H
#define BZ_MEDIA_IMAGE_H

#include "base/error.h"

enum {
    BZ_PATCH = 16,           /* pixels of a patch's side */
    BZ_POOL = 3,             /* patches of a soft token's side */
    BZ_TOKEN_SIDE = 48,      /* pixels of a soft token's side */
    BZ_DEFAULT_BUDGET = 280, /* soft tokens of a picture, at most */
    BZ_MAX_BUDGET = 1120,
    BZ_MAX_PIXELS = 1 << 26, /* of a picture that is accepted: 67 megapixels */
    BZ_MAX_SIDE = 1 << 20
};

typedef struct bz_size {
    uint32_t height, width;
} bz_size;

/* The size a picture is stretched to: as many pixels as `max_patches` patches have, or a little
 * less, in the picture's proportions, each side a multiple of patch * pool. False: no such size,
 * the sides differ too much. */
bool bz_image_target(bz_size from, uint32_t patch, uint32_t pool, uint32_t max_patches,
                     bz_size *to);

/* The same for Gemma 4 with a budget of 70 to 1120 soft tokens (0: 280); refusals say why. */
bz_status bz_image_fit(bz_size from, uint32_t budget, bz_size *to, bz_error *err);

/* Stretching, in slices of work. rgb: [height][width][3], not copied. */
typedef struct bz_resize bz_resize;
bz_status bz_resize_new(bz_resize **resize, const uint8_t *rgb, bz_size from, bz_size to,
                        bz_error *err);
bool bz_resize_step(bz_resize *resize); /* a few milliseconds of it; true: finished */
const uint8_t *
bz_resize_pixels(const bz_resize *resize); /* [to.height][to.width][3], valid until it is freed */
void bz_resize_free(bz_resize *resize);

/* Patches of `side` pixels, row-major over the grid, each [3][side][side]: byte * scale + offset.
 */
void bz_image_patches(const uint8_t *rgb, bz_size size, uint32_t side, float scale, float offset,
                      float *out);

#endif
