#include "cli/media/system.h"

#include <stdlib.h>
#include <string.h>

#include "cli/media/plain.h"

const char *const picture_names[] = {"JPEG", "PNG", "WebP", "GIF"};
const char *const sound_names[] = {"MP3", "FLAC", "OGG", "AAC", "M4A"};

bz_status system_picture_damaged(picture_format format, bz_error *err)
{
    return bz_fail(err, BZ_BAD_FILE, "The %s file is damaged or cut off.", picture_names[format]);
}

bz_status system_sound_damaged(sound_format format, bz_error *err)
{
    return bz_fail(err, BZ_BAD_FILE, "The %s file is damaged or cut off.", sound_names[format]);
}

/* ---- pictures ----------------------------------------------------------------------- */

/* The frame on its canvas, and no further. */
static void put_on_canvas(rgb_image *canvas, const rgb_image *frame, const plain_picture *from)
{
    const size_t pixels = (size_t)canvas->width * canvas->height;
    for (size_t i = 0; i < pixels; i++) {
        memcpy(canvas->rgb + 3 * i, from->background, 3);
    }
    if (from->left >= canvas->width) {
        return;
    }
    const uint32_t room = canvas->width - from->left,
                   width = frame->width < room ? frame->width : room;
    for (uint32_t y = 0; y < frame->height && from->top + y < canvas->height; y++) {
        memcpy(canvas->rgb + ((size_t)(from->top + y) * canvas->width + from->left) * 3,
               frame->rgb + (size_t)y * frame->width * 3, (size_t)width * 3);
    }
}

static bz_status decode_plain(rgb_image *p, picture_format format, const plain_picture *plain,
                              bz_error *err)
{
    rgb_image frame = {0};
    bz_status status = image_alloc(&frame, plain->width, plain->height, err);
    if (status == BZ_OK) {
        status = os_decode_picture(&frame, format, plain->bytes, plain->n, err);
    }
    const bool whole = plain->left == 0 && plain->top == 0 && plain->width == plain->canvas_width &&
                       plain->height == plain->canvas_height;
    if (status == BZ_OK && whole) {
        *p = frame;
        frame = (rgb_image){0};
    } else if (status == BZ_OK) {
        status = image_alloc(p, plain->canvas_width, plain->canvas_height, err);
        if (status == BZ_OK) {
            put_on_canvas(p, &frame, plain);
        }
    }
    image_free(&frame);
    return status == BZ_OK ? image_orient(p, plain->orientation, err) : status;
}

bz_status system_picture(rgb_image *p, picture_format format, const uint8_t *bytes, size_t n,
                         bz_error *err)
{
    plain_picture plain = {0};
    bz_status status = format == PICTURE_JPEG   ? plain_jpeg(&plain, bytes, n, err)
                       : format == PICTURE_PNG  ? plain_png(&plain, bytes, n, err)
                       : format == PICTURE_WEBP ? plain_webp(&plain, bytes, n, err)
                                                : plain_gif(&plain, bytes, n, err);
    *p = (rgb_image){0};
    if (status == BZ_OK) {
        status = decode_plain(p, format, &plain, err);
    }
    plain_free(&plain);
    if (status != BZ_OK) {
        image_free(p);
    }
    return status;
}

/* ---- sound -------------------------------------------------------------------------- */

static bool recognize(const uint8_t *b, size_t n, sound_format *format)
{
    if (n >= 4 && memcmp(b, "fLaC", 4) == 0) {
        *format = SOUND_FLAC;
    } else if (n >= 4 && memcmp(b, "OggS", 4) == 0) {
        *format = SOUND_OGG;
    } else if (n >= 8 && memcmp(b + 4, "ftyp", 4) == 0) {
        *format = SOUND_M4A;
    } else if (n >= 2 && b[0] == 0xFF && (b[1] & 0xF6) == 0xF0) {
        *format = SOUND_AAC;
    } else if (n >= 3 && (memcmp(b, "ID3", 3) == 0 || (b[0] == 0xFF && (b[1] & 0xE0) == 0xE0))) {
        *format = SOUND_MP3;
    } else {
        return false;
    }
    return true;
}

/* The number of samples in a FLAC file's first block; 0: unknown. */
static uint64_t flac_frames(const uint8_t *b, size_t n)
{
    enum { BLOCK = 8, TOTAL = BLOCK + 13 };
    uint64_t total = 0;
    if (n >= TOTAL + 5 && (b[4] & 0x7F) == 0) {
        total = b[TOTAL] & 15;
        for (int i = 1; i < 5; i++) {
            total = total << 8 | b[TOTAL + i];
        }
    }
    return total;
}

bz_status system_sound(bz_sound *s, const uint8_t *bytes, size_t n, bz_error *err)
{
    sound_format format;
    *s = (bz_sound){0};
    if (!recognize(bytes, n, &format)) {
        return bz_fail(
            err, BZ_BAD_FILE,
            "This file is not a sound that Bezel reads (WAV, FLAC, OGG, MP3, AAC, M4A).");
    }
    bz_status status = os_decode_sound(s, format, bytes, n, err);
    if (status == BZ_OK && s->frames == 0) {
        status =
            bz_fail(err, BZ_BAD_FILE, "The sound file has no samples; it is probably cut off.");
    }
    if (status != BZ_OK) {
        free(s->pcm);
        *s = (bz_sound){0};
        return status;
    }
    s->cut = s->cut || (format == SOUND_FLAC && s->frames < flac_frames(bytes, n)) ||
             (format == SOUND_OGG && ogg_is_cut(bytes, n));
    return BZ_OK;
}
