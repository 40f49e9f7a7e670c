/* Any bytes as a picture that is rewritten for a decoder of the system: an error message, or a file
 * that is rewritten to itself, within the limits, and has the pixels of the first one where a
 * library reads both. */
#include <stdlib.h>
#include <string.h>

#include "cli/media/plain.h"
#include "cli/media/system.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

bz_status os_decode_picture(rgb_image *p, picture_format format, const uint8_t *bytes, size_t n,
                            bz_error *err)
{
    rgb_image got;
    const bz_status status = decode_image(&got, bytes, n, err);
    if (status != BZ_OK) {
        return status;
    }
    const bool same = got.width == p->width && got.height == p->height;
    if (same) {
        memcpy(p->rgb, got.rgb, (size_t)got.width * got.height * 3);
    }
    image_free(&got);
    return same ? BZ_OK : system_picture_damaged(format, err);
}

bz_status os_decode_sound(bz_sound *s, sound_format format, const uint8_t *bytes, size_t n,
                          bz_error *err)
{
    (void)s, (void)bytes, (void)n;
    return system_sound_damaged(format, err);
}

static bz_status rewrite(plain_picture *p, picture_format format, const uint8_t *b, size_t n,
                         bz_error *err)
{
    return format == PICTURE_JPEG   ? plain_jpeg(p, b, n, err)
           : format == PICTURE_PNG  ? plain_png(p, b, n, err)
           : format == PICTURE_WEBP ? plain_webp(p, b, n, err)
                                    : plain_gif(p, b, n, err);
}

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* True: it is a picture, and small enough to decode it a thousand times. */
static bool rewrite_twice(picture_format format, const uint8_t *data, size_t size)
{
    plain_picture p, again;
    bz_error err = {0};
    bool small = false;
    if (rewrite(&p, format, data, size, &err) == BZ_OK) {
        must(p.n <= p.room && bz_image_check(p.width, p.height, NULL) == BZ_OK &&
             bz_image_check(p.canvas_width, p.canvas_height, NULL) == BZ_OK);
        must(rewrite(&again, format, p.bytes, p.n, &err) == BZ_OK && again.n == p.n &&
             memcmp(again.bytes, p.bytes, p.n) == 0 && again.canvas_width == p.width &&
             again.canvas_height == p.height && again.orientation == 1);
        plain_free(&again);
        small = (uint64_t)p.width * p.height < 1 << 18 &&
                (uint64_t)p.canvas_width * p.canvas_height < 1 << 18;
    } else {
        must(err.text[0] != 0);
    }
    plain_free(&p);
    return small;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rgb_image there, plain;
    bz_error err = {0};
    if (size < 12 || memcmp(data, "P6", 2) == 0) {
        return 0;
    }
    const picture_format format = data[0] == 0xFF  ? PICTURE_JPEG
                                  : data[0] == 'G' ? PICTURE_GIF
                                  : data[0] == 'R' ? PICTURE_WEBP
                                                   : PICTURE_PNG;
    if (rewrite_twice(format, data, size) && decode_image(&there, data, size, &err) == BZ_OK) {
        if (system_picture(&plain, format, data, size, &err) == BZ_OK) {
            must(plain.width == there.width && plain.height == there.height &&
                 memcmp(plain.rgb, there.rgb, (size_t)there.width * there.height * 3) == 0);
            image_free(&plain);
        } else {
            must(err.text[0] && !plain.rgb);
        }
        image_free(&there);
    }
    return 0;
}
