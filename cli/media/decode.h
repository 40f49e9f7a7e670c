/* Decodes image, sound and video files to pixels and samples. The format is recognized by the
 * bytes, never by the file name. PPM and WAV are always read; the other formats need libjpeg,
 * libpng, libwebp, giflib, libsndfile and libav, each of which a build may lack (missing.c);
 * decoders of Windows and macOS stand in for all but libav (system.h). */
#ifndef BZ_CLI_DECODE_H
#define BZ_CLI_DECODE_H

#include "base/error.h"
#include "bezel_media.h"

typedef struct rgb_image {
    uint8_t *rgb; /* [height][width][3], upright; the caller frees it */
    uint32_t width, height;
} rgb_image;

/* An animation's first frame. Transparent pixels are composited on white, as the reference
 * implementation does; color profiles are ignored. */
bz_status decode_image(rgb_image *p, const uint8_t *bytes, size_t n, bz_error *err);
bz_status decode_sound(bz_sound *s, const uint8_t *bytes, size_t n, bz_error *err);

/* ---- videos ------------------------------------------------------------------------- */

typedef struct video_reader video_reader;
typedef struct video_info {
    uint64_t frames;
    double rate; /* per second; 0: unknown */
} video_info;

/* The bytes must stay until the reader is closed. */
bz_status video_open(video_reader **v, const uint8_t *bytes, size_t n, video_info *info,
                     bz_error *err);
/* Decodes a frame; each call needs a larger number than the one before. As decode_image. */
bz_status video_frame(video_reader *v, uint64_t index, rgb_image *p, bz_error *err);
void video_close(video_reader *v);

/* ---- shared by the decoders ------------------------------------------------------ */

/* Allocates the pixels, zeroed. Sizes that bz_image_check refuses are refused before allocating. */
bz_status image_alloc(rgb_image *p, uint32_t width, uint32_t height, bz_error *err);
void image_free(rgb_image *p);
/* rgb = rgba on white, for n pixels; rgb may be rgba. */
void image_on_white(uint8_t *rgb, const uint8_t *rgba, size_t n);
/* For n pixels; inverted: 255 is no ink. */
void image_from_cmyk(uint8_t *rgb, const uint8_t *cmyk, size_t n, bool inverted);

/* The orientation, 1 to 8, in Exif data that starts with "Exif\0\0" or with its TIFF header; 1 if
 * there is none. */
int exif_orientation(const uint8_t *bytes, size_t n);
/* Rotates and mirrors the image so that it is upright. */
bz_status image_orient(rgb_image *p, int orientation, bz_error *err);

bz_status decode_jpeg(rgb_image *p, const uint8_t *bytes, size_t n, bz_error *err);
bz_status decode_png(rgb_image *p, const uint8_t *bytes, size_t n, bz_error *err);
bz_status decode_webp(rgb_image *p, const uint8_t *bytes, size_t n, bz_error *err);
bz_status decode_gif(rgb_image *p, const uint8_t *bytes, size_t n, bz_error *err);
/* FLAC, OGG, MP3. */
bz_status decode_other_sound(bz_sound *s, const uint8_t *bytes, size_t n, bz_error *err);

#endif
