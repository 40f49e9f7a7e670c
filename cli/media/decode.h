/* Files of pictures and sound as pixels and samples, by what their bytes are, never by their names.
 * The glue around libjpeg, libpng, libwebp, giflib and libsndfile; a build without them reads PPM
 * and WAV. */
#ifndef BZ_CLI_DECODE_H
#define BZ_CLI_DECODE_H

#include "base/error.h"
#include "media/wav.h"

typedef struct picture {
    uint8_t *rgb; /* [height][width][3], upright; the caller frees it */
    uint32_t width, height;
} picture;

/* Of several frames the first. Alpha is dropped, colour profiles are not looked at. */
bz_status decode_picture(picture *p, const uint8_t *bytes, size_t n, bz_error *err);
bz_status decode_sound(bz_sound *s, const uint8_t *bytes, size_t n, bz_error *err);

/* ---- inside --------------------------------------------------------------------- */

/* Room for the pixels; refuses what bz_image_fit would refuse, before anything is allocated. */
bz_status picture_make(picture *p, uint32_t width, uint32_t height, bz_error *err);
void picture_free(picture *p);

/* The orientation, 1 to 8, that Exif data (from "Exif\0\0" or its TIFF header on) asks for; 1 where
 * it does not. */
int exif_orientation(const uint8_t *bytes, size_t n);
bz_status picture_turn(picture *p, int orientation, bz_error *err);

bz_status decode_jpeg(picture *p, const uint8_t *bytes, size_t n, bz_error *err);
bz_status decode_png(picture *p, const uint8_t *bytes, size_t n, bz_error *err);
bz_status decode_webp(picture *p, const uint8_t *bytes, size_t n, bz_error *err);
bz_status decode_gif(picture *p, const uint8_t *bytes, size_t n, bz_error *err);
bz_status decode_packaged_sound(bz_sound *s, const uint8_t *bytes, size_t n, bz_error *err);

#endif
