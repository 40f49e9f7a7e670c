#include "cli/media/plain.h"

#include <string.h>

enum { RIFF = 12, CHUNK = 8, HAS_ALPHA = 0x10 };

typedef struct webp_part {
    const uint8_t *body; /* NULL: there is none */
    uint32_t size;
} webp_part;

typedef struct webp_file {
    webp_part canvas, frame, alpha, pixels, exif;
    bool lossless;
} webp_file;

static bz_status damaged(bz_error *err)
{
    return bz_fail(err, BZ_BAD_FILE, "The WebP file is damaged or cut off.");
}

static uint32_t number(const uint8_t *b, int bytes)
{
    uint32_t v = 0;
    for (int i = 0; i < bytes; i++) {
        v |= (uint32_t)b[i] << 8 * i;
    }
    return v;
}

static void keep(webp_part *part, const uint8_t *chunk, uint32_t size)
{
    if (!part->body) { /* the first of its kind counts */
        *part = (webp_part){chunk + CHUNK, size};
    }
}

/* Finds the first of each kind of chunk: name, length, content, filled up to an even length. */
static bool find_parts(webp_file *f, const uint8_t *b, size_t n)
{
    for (size_t at = 0; n - at >= CHUNK;) {
        const uint8_t *chunk = b + at;
        const uint32_t size = number(chunk + 4, 4);
        if (size > n - at - CHUNK) {
            return false;
        }
        const bool lossless = memcmp(chunk, "VP8L", 4) == 0;
        if (memcmp(chunk, "VP8X", 4) == 0) {
            keep(&f->canvas, chunk, size);
        } else if (memcmp(chunk, "ANMF", 4) == 0) {
            keep(&f->frame, chunk, size);
        } else if (memcmp(chunk, "ALPH", 4) == 0) {
            keep(&f->alpha, chunk, size);
        } else if (memcmp(chunk, "EXIF", 4) == 0) {
            keep(&f->exif, chunk, size);
        } else if (lossless || memcmp(chunk, "VP8 ", 4) == 0) {
            f->lossless = f->pixels.body ? f->lossless : lossless;
            keep(&f->pixels, chunk, size);
        }
        at += CHUNK + (size_t)size;
        at += size & 1 && at < n;
    }
    return true;
}

static bool put_number(plain_picture *p, uint32_t v, int bytes)
{
    const uint8_t b[4] = {(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24)};
    return plain_put(p, b, (size_t)bytes);
}

static bool put_part(plain_picture *p, const char *name, webp_part part)
{
    return !part.body ||
           (plain_put(p, name, 4) && put_number(p, part.size, 4) &&
            plain_put(p, part.body, part.size) && (part.size % 2 == 0 || plain_put(p, "", 1)));
}

/* The size that the pixels themselves state. */
static bool read_size(const webp_file *f, uint32_t *width, uint32_t *height)
{
    const webp_part x = f->pixels;
    if (f->lossless && x.size >= 5 && x.body[0] == 0x2F) {
        const uint32_t bits = number(x.body + 1, 4);
        *width = (bits & 0x3FFF) + 1;
        *height = (bits >> 14 & 0x3FFF) + 1;
        return true;
    }
    if (!f->lossless && x.size >= 10 && memcmp(x.body + 3, "\x9D\x01\x2A", 3) == 0) {
        *width = number(x.body + 6, 2) & 0x3FFF;
        *height = number(x.body + 8, 2) & 0x3FFF;
        return true;
    }
    return false;
}

static bool put_file(plain_picture *p, const webp_file *f, uint32_t width, uint32_t height)
{
    bool ok = plain_put(p, "RIFF\0\0\0\0WEBP", RIFF);
    if (f->alpha.body && !f->lossless) { /* pixels of this kind have their alpha beside them */
        ok = ok && plain_put(p, "VP8X", 4) && put_number(p, 10, 4) && put_number(p, HAS_ALPHA, 4) &&
             put_number(p, width - 1, 3) && put_number(p, height - 1, 3) &&
             put_part(p, "ALPH", f->alpha);
    }
    ok = ok && put_part(p, f->lossless ? "VP8L" : "VP8 ", f->pixels);
    const size_t rest = p->n - CHUNK;
    for (int i = 0; ok && i < 4; i++) {
        p->bytes[4 + i] = (uint8_t)(rest >> 8 * i);
    }
    return ok && rest <= UINT32_MAX;
}

bz_status plain_webp(plain_picture *p, const uint8_t *b, size_t n, bz_error *err)
{
    enum { CANVAS = 10, FRAME = 16 };
    webp_file f = {0}, inner = {0};
    uint32_t width, height;
    const bz_status status = plain_begin(p, n, err);
    if (status != BZ_OK) {
        return status;
    }
    const size_t stated = number(b + 4, 4);
    if (stated < 4 || stated > n - CHUNK || !find_parts(&f, b + RIFF, stated - 4)) {
        return damaged(err);
    }
    memset(p->background, 255, sizeof p->background);
    if (f.canvas.body && f.canvas.size < CANVAS) {
        return damaged(err);
    }
    if (f.frame.body) { /* an animation: its first frame */
        if (!f.canvas.body || f.frame.size < FRAME ||
            !find_parts(&inner, f.frame.body + FRAME, f.frame.size - FRAME)) {
            return damaged(err);
        }
        p->left = 2 * number(f.frame.body, 3);
        p->top = 2 * number(f.frame.body + 3, 3);
        p->canvas_width = number(f.canvas.body + 4, 3) + 1;
        p->canvas_height = number(f.canvas.body + 7, 3) + 1;
    } else {
        inner = f;
    }
    if (!inner.pixels.body || !read_size(&inner, &width, &height) || width == 0 || height == 0) {
        return damaged(err);
    }
    if (f.exif.body) {
        p->orientation = exif_orientation(f.exif.body, f.exif.size);
    }
    return put_file(p, &inner, width, height) ? plain_size(p, width, height, err) : damaged(err);
}
