/* Decoders of the operating system, for formats whose library a build lacks (missing.c): Windows'
 * Imaging Component and Media Foundation, macOS's ImageIO and AudioToolbox. */
#ifndef BZ_CLI_SYSTEM_H
#define BZ_CLI_SYSTEM_H

#include "cli/media/samples.h"

typedef enum picture_format {
    PICTURE_JPEG,
    PICTURE_PNG,
    PICTURE_WEBP,
    PICTURE_GIF,
} picture_format;

typedef enum sound_format { SOUND_MP3, SOUND_FLAC, SOUND_OGG, SOUND_AAC, SOUND_M4A } sound_format;

extern const char *const picture_names[], *const sound_names[];

/* As decode_image and decode_sound, for bytes that begin as decode_image recognizes the format. */
bz_status system_picture(rgb_image *p, picture_format format, const uint8_t *bytes, size_t n,
                         bz_error *err);
bz_status system_sound(bz_sound *s, const uint8_t *bytes, size_t n, bz_error *err);

/* ---- in os_*.c ---------------------------------------------------------------------- */

/* Decodes a file of plain.h into the pixels that p has; transparent ones are put on white. Another
 * size than that of p is an error. */
bz_status os_decode_picture(rgb_image *p, picture_format format, const uint8_t *bytes, size_t n,
                            bz_error *err);
/* Appends to s->pcm, which is the caller's to free, also after a failure. s->cut: the file ends, or
 * is damaged, after these samples. */
bz_status os_decode_sound(bz_sound *s, sound_format format, const uint8_t *bytes, size_t n,
                          bz_error *err);

/* ---- sentences shared by these -------------------------------------------------------- */

bz_status system_picture_damaged(picture_format format, bz_error *err);
bz_status system_sound_damaged(sound_format format, bz_error *err);

#endif
