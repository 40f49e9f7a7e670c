/* An encoded image or audio: rows for the text model, reference-counted and immutable. */
#ifndef BZ_MEDIA_H
#define BZ_MEDIA_H

#include <stdatomic.h>

#include "bezel_media.h"

typedef struct bz_content { /* 128-bit hash of what was encoded */
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
bz_media *bz_media_hold(const bz_media *media);                            /* adds a reference */

/* The hash of bytes [n]; `seed` distinguishes kinds and sizes. */
bz_content bz_content_of(const void *bytes, size_t n, uint64_t seed);
bool bz_content_equal(bz_content a, bz_content b);

/* The token of a row in a session's sequence: a number below zero that depends on the content. */
int32_t bz_media_token(const bz_media *media, uint32_t row);

#endif
