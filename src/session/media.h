/* An encoded picture or sound: rows for the text model, shared and never changed. */
#ifndef BZ_MEDIA_H
#define BZ_MEDIA_H

#include <stdatomic.h>

#include "bezel_media.h"

typedef struct bz_content { /* what was encoded, as a number that nothing else has */
    uint64_t a, b;
} bz_content;

struct bz_media {
    atomic_uint holders;
    bz_media_kind kind;
    uint32_t rows, width, pieces;
    bz_content content;
    float values[]; /* [rows][width] */
};

bz_media *bz_media_new(bz_media_kind kind, uint32_t rows, uint32_t width); /* NULL: out of memory */
bz_media *bz_media_hold(const bz_media *media);                            /* one holder more */

/* Of bytes; `seed` keeps kinds and sizes apart. */
bz_content bz_content_of(const void *bytes, size_t n, uint64_t seed);
bool bz_content_equal(bz_content a, bz_content b);

/* The number that stands for row i among a session's tokens: below zero, different for other
 * content. */
int32_t bz_media_token(const bz_media *media, uint32_t row);

#endif
