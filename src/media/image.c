/* Target size of an image, and its patches. */
#include "media/image.h"

#include <math.h>

bool bz_image_target(bz_size from, uint32_t patch, uint32_t pool, uint32_t max_patches, bz_size *to)
{
    const double side = (double)patch * pool, pixels = (double)max_patches * patch * patch;
    const double longest =
        (double)(max_patches / (pool * pool)) * side; /* limit where the other side would be 0 */
    if (from.height == 0 || from.width == 0) {
        return false;
    }
    const double h = from.height, w = from.width, factor = sqrt(pixels / (h * w));
    double fit_h = floor(factor * h / side) * side, fit_w = floor(factor * w / side) * side;
    if (fit_h == 0 && fit_w == 0) {
        return false;
    }
    if (fit_h == 0) {
        fit_h = side;
        fit_w = fmin(floor(w / h) * side, longest);
    } else if (fit_w == 0) {
        fit_w = side;
        fit_h = fmin(floor(h / w) * side, longest);
    }
    if (fit_h * fit_w > pixels) {
        return false;
    }
    *to = (bz_size){(uint32_t)fit_h, (uint32_t)fit_w};
    return true;
}

bz_status bz_image_fit(bz_size from, uint32_t budget, bz_size *to, bz_error *err)
{
    if (from.height == 0 || from.width == 0) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "The image is %u x %u pixels, so it is empty; use another one.", from.width,
                       from.height);
    }
    if (from.height > BZ_MAX_SIDE || from.width > BZ_MAX_SIDE ||
        (uint64_t)from.height * from.width > BZ_MAX_PIXELS) {
        return bz_fail(
            err, BZ_BAD_REQUEST,
            "The image is %u x %u pixels; the limit is %d megapixels, so make it smaller "
            "first.",
            from.width, from.height, BZ_MAX_PIXELS / 1000000);
    }
    budget = budget ? budget : BZ_DEFAULT_BUDGET;
    if (budget > BZ_MAX_BUDGET) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "The image was given a budget of %u tokens; the models take up to %d.",
                       budget, BZ_MAX_BUDGET);
    }
    if (!bz_image_target(from, BZ_PATCH, BZ_POOL, budget * BZ_POOL * BZ_POOL, to)) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "The image is %u x %u pixels, too long and thin for %u tokens; crop it.",
                       from.width, from.height, budget);
    }
    return BZ_OK;
}

void bz_image_patches(const uint8_t *rgb, bz_size size, uint32_t side, float scale, float offset,
                      float *out)
{
    const uint32_t columns = size.width / side, rows = size.height / side;
    float value[256]; /* a lookup table: twice as fast as computing each value */
    for (uint32_t i = 0; i < 256; i++) {
        value[i] = (float)i * scale + offset;
    }
    for (uint32_t y = 0; y < rows; y++) {
        for (uint32_t x = 0; x < columns; x++) {
            for (uint32_t channel = 0; channel < 3; channel++) {
                for (uint32_t r = 0; r < side; r++) {
                    const uint8_t *row =
                        rgb + ((size_t)(y * side + r) * size.width + (size_t)x * side) * 3 +
                        channel;
                    for (uint32_t q = 0; q < side; q++) {
                        *out++ = value[row[3 * (size_t)q]];
                    }
                }
            }
        }
    }
}
