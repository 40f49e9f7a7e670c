/* Encoded media: rows for the text model, reference-counted and immutable. */
#ifndef BZ_MEDIA_H
#define BZ_MEDIA_H

#include <stdatomic.h>

#include "base/arena.h"

#include "bezel_media.h"

typedef struct bz_content { /* 128-bit hash of what was encoded */
    uint64_t a, b;
} bz_content;

/* A frame of a video: an image, and when it is shown. */
typedef struct bz_frame {
    bz_media *media;
    double seconds;
} bz_frame;

struct bz_media {
    atomic_uint holders;
    bz_media_kind kind;
    uint32_t rows, width, pieces;
    bz_content content;
    bz_frame *frames; /* [pieces] of a video, which has no values of its own; else NULL */
    float values[];   /* [rows][width] */
};

/* An image or audio; NULL: out of memory. A video is made by bz_video_new. */
bz_media *bz_media_new(bz_media_kind kind, uint32_t rows, uint32_t width);
bz_media *bz_media_hold(const bz_media *media); /* adds a reference */

/* What stands for a video in a prompt, with one <|video|> for all tokens of a frame:
 *
 *   00:00 <|image><|video|><image|> 00:01 <|image><|video|><image|>
 *
 * Fractions of seconds are dropped, and there are no hours. NULL: out of memory. */
const char *bz_video_text(const bz_media *video, bz_arena *arena);

/* The hash of bytes [n]; `seed` distinguishes kinds and sizes. */
bz_content bz_content_of(const void *bytes, size_t n, uint64_t seed);
bool bz_content_equal(bz_content a, bz_content b);

/* The token of a row in a session's sequence: a number below zero that depends on the content. */
int32_t bz_media_token(const bz_media *media, uint32_t row);

#endif
