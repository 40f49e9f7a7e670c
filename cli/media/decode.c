#include "cli/media/decode.h"

#include <stdlib.h>
#include <string.h>

void image_free(rgb_image *p)
{
    free(p->rgb);
    *p = (rgb_image){0};
}

bz_status image_alloc(rgb_image *p, uint32_t width, uint32_t height, bz_error *err)
{
    const bz_status status = bz_image_check(width, height, err);
    if (status != BZ_OK) {
        return status;
    }
    p->rgb = calloc((size_t)width * height, 3);
    p->width = width;
    p->height = height;
    return p->rgb ? BZ_OK
                  : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for an image of %u x %u pixels.",
                            width, height);
}

void image_on_white(uint8_t *rgb, const uint8_t *rgba, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t alpha = rgba[4 * i + 3];
        for (size_t c = 0; c < 3; c++) {
            /* (color * alpha + 255 * (255 - alpha)) / 255, rounded: the bits of Pillow's
             * alpha_composite, which the reference implementation calls. */
            const uint32_t sum = rgba[4 * i + c] * alpha + 255 * (255 - alpha) + 128;
            rgb[3 * i + c] = (uint8_t)((sum + (sum >> 8)) >> 8);
        }
    }
}

/* (255 - ink) * (255 - black) / 255 */
void image_from_cmyk(uint8_t *rgb, const uint8_t *cmyk, size_t n, bool inverted)
{
    for (size_t i = 0; i < n; i++, cmyk += 4, rgb += 3) {
        const unsigned k = inverted ? cmyk[3] : 255u - cmyk[3];
        for (int c = 0; c < 3; c++) {
            const unsigned v = (inverted ? cmyk[c] : 255u - cmyk[c]) * k + 128;
            rgb[c] = (uint8_t)((v + (v >> 8)) >> 8);
        }
    }
}

/* ---- PPM, which needs no library ---------------------------------------------------- */

static bool ppm_number(const uint8_t *b, size_t n, size_t *at, uint32_t *out)
{
    uint32_t v = 0;
    size_t digits = 0;
    while (*at < n &&
           (b[*at] == ' ' || b[*at] == '\n' || b[*at] == '\t' || b[*at] == '\r' || b[*at] == '#')) {
        if (b[*at] == '#') {
            while (*at < n && b[*at] != '\n') {
                (*at)++;
            }
        } else {
            (*at)++;
        }
    }
    for (; *at < n && b[*at] >= '0' && b[*at] <= '9' && digits < 8; digits++, (*at)++) {
        v = v * 10 + (uint32_t)(b[*at] - '0');
    }
    *out = v;
    return digits > 0 && digits < 8;
}

static bz_status decode_ppm(rgb_image *p, const uint8_t *b, size_t n, bz_error *err)
{
    size_t at = 2;
    uint32_t width, height, maximum;
    if (!ppm_number(b, n, &at, &width) || !ppm_number(b, n, &at, &height) ||
        !ppm_number(b, n, &at, &maximum) || maximum != 255) {
        return bz_fail(
            err, BZ_BAD_FILE,
            "The PPM file is not 8-bit color: its header must be P6 with a maximum of 255.");
    }
    at++; /* one white space character */
    const bz_status status = image_alloc(p, width, height, err);
    if (status != BZ_OK) {
        return status;
    }
    const size_t bytes = (size_t)width * height * 3;
    if (at > n || n - at < bytes) {
        return bz_fail(err, BZ_BAD_FILE, "The PPM file is cut off.");
    }
    memcpy(p->rgb, b + at, bytes);
    return BZ_OK;
}

/* ---- formats, recognized by their first bytes --------------------------------------------- */

bz_status decode_image(rgb_image *p, const uint8_t *b, size_t n, bz_error *err)
{
    *p = (rgb_image){0};
    bz_status status;
    if (n >= 3 && b[0] == 0xFF && b[1] == 0xD8 && b[2] == 0xFF) {
        status = decode_jpeg(p, b, n, err);
    } else if (n >= 8 && memcmp(b, "\x89PNG\r\n\x1a\n", 8) == 0) {
        status = decode_png(p, b, n, err);
    } else if (n >= 12 && memcmp(b, "RIFF", 4) == 0 && memcmp(b + 8, "WEBP", 4) == 0) {
        status = decode_webp(p, b, n, err);
    } else if (n >= 6 && (memcmp(b, "GIF87a", 6) == 0 || memcmp(b, "GIF89a", 6) == 0)) {
        status = decode_gif(p, b, n, err);
    } else if (n >= 2 && b[0] == 'P' && b[1] == '6') {
        status = decode_ppm(p, b, n, err);
    } else {
        status = bz_fail(err, BZ_BAD_FILE,
                         "This file is not an image that Bezel reads (JPEG, PNG, WebP, GIF, PPM).");
    }
    if (status != BZ_OK) {
        image_free(p);
    }
    return status;
}

bz_status decode_sound(bz_sound *s, const uint8_t *b, size_t n, bz_error *err)
{
    *s = (bz_sound){0};
    const bool wav = n >= 12 && (memcmp(b, "RIFF", 4) == 0 || memcmp(b, "RF64", 4) == 0) &&
                     memcmp(b + 8, "WAVE", 4) == 0;
    return wav ? bz_wav_read(s, b, n, err) : decode_other_sound(s, b, n, err);
}
