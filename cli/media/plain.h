/* For decoders of the operating system, which obey what a picture file says beside the picture:
 * color profiles, gamma, orientation, previews, further frames. The files are rewritten without all
 * that, and checked: such a decoder takes memory for any size, and may return half a picture for
 * half a file without an error. */
#ifndef BZ_CLI_PLAIN_H
#define BZ_CLI_PLAIN_H

#include "cli/media/decode.h"

typedef struct plain_picture {
    uint8_t *bytes; /* [n] a file of one picture and nothing else; plain_free */
    size_t n, room;
    uint32_t width, height; /* of that picture, which bz_image_check accepts */
    /* What it is put on before it is turned upright. */
    uint32_t canvas_width, canvas_height, left, top;
    uint8_t background[3];
    int orientation; /* Exif's, 1 to 8 */
} plain_picture;

/* For bytes that begin as decode_image recognizes the format. plain_free is needed after failures
 * too. */
bz_status plain_jpeg(plain_picture *p, const uint8_t *bytes, size_t n, bz_error *err);
bz_status plain_png(plain_picture *p, const uint8_t *bytes, size_t n, bz_error *err);
bz_status plain_webp(plain_picture *p, const uint8_t *bytes, size_t n, bz_error *err);
bz_status plain_gif(plain_picture *p, const uint8_t *bytes, size_t n, bz_error *err);
void plain_free(plain_picture *p);

/* ---- shared by these ---------------------------------------------------------------- */

/* Room for what a file of n bytes is rewritten to: as much, and a few headers. */
bz_status plain_begin(plain_picture *p, size_t n, bz_error *err);
/* False: there is no room, as no file of n bytes needs so much. */
bool plain_put(plain_picture *p, const void *bytes, size_t n);
/* The picture is all there is, unless the canvas has been set. Refuses what is too large. */
bz_status plain_size(plain_picture *p, uint32_t width, uint32_t height, bz_error *err);

#endif
