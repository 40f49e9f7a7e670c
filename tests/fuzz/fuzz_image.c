/* libFuzzer target: the size of an image, a budget of tokens and pixels. The resized image has
 * whole tokens, at most the budget, and its patches are in range. */
#include <stdlib.h>
#include <string.h>

#include "media/image.h"
#include "bezel_media.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    MAX_BYTES = 1 << 12,
    MAX_TOKENS = 2
}; /* resized; of larger ones only the sizes are checked */

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void resize(const uint8_t *data, size_t size, bz_size from, bz_size to)
{
    const size_t n = (size_t)from.height * from.width * 3;
    uint8_t *rgb = malloc(n);
    bz_resize *r = NULL;
    bz_error err = {0};
    must(rgb != NULL);
    for (size_t i = 0; i < n; i += size) {
        memcpy(rgb + i, data, size < n - i ? size : n - i);
    }
    must(bz_resize_new(&r, rgb, from, to, &err) == BZ_OK);
    while (!bz_resize_step(r)) {
    }
    const size_t values = (size_t)to.height * to.width * 3;
    float *patches = malloc(values * sizeof *patches);
    must(patches != NULL);
    bz_image_patches(bz_resize_pixels(r), to, BZ_PATCH, 1.0f, 0.0f, patches);
    unsigned outside = 0;
    for (size_t i = 0; i < values; i++) {
        outside += !(patches[i] >= 0 && patches[i] <= 255);
    }
    must(outside == 0);
    free(patches);
    bz_resize_free(r);
    free(rgb);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 6) {
        return 0;
    }
    const bz_size from = {(uint32_t)(data[0] | data[1] << 8), (uint32_t)(data[2] | data[3] << 8)};
    const uint32_t budget = data[4] + (uint32_t)(data[5] % 5) * 256;
    bz_size to;
    bz_error err = {0};
    if (bz_image_fit(from, budget, &to, &err) != BZ_OK) {
        must(err.text[0]);
        return 0;
    }
    const uint32_t tokens = to.height / BZ_TOKEN_SIDE * (to.width / BZ_TOKEN_SIDE);
    must(to.height % BZ_TOKEN_SIDE == 0 && to.width % BZ_TOKEN_SIDE == 0 && tokens > 0);
    must(tokens <= (budget ? budget : BZ_DEFAULT_BUDGET));
    if ((uint64_t)from.height * from.width * 3 <= MAX_BYTES && tokens <= MAX_TOKENS) {
        resize(data, size, from, to);
    }
    return 0;
}
