#include "cli/media/plain.h"

#include <string.h>

#include "base/little.h"

enum {
    SCREEN = 13, /* bytes of the header: signature, size, flags, background, ratio */
    IMAGE = 10,  /* of an image's, with the byte that introduces it */
    COLORS = 256,
    HAS_PALETTE = 0x80,
    ALL_COLORS = 7,
    INTERLACED = 0x40,
};

typedef struct gif_file {
    const uint8_t *b;
    size_t n, at;
    const uint8_t *palette; /* [1 << bits][3] of the whole file; NULL: none */
    int palette_bits;
    int transparent; /* an index, or -1 */
} gif_file;

static bz_status damaged(bz_error *err)
{
    return bz_fail(err, BZ_BAD_FILE, "The GIF file is damaged or cut off.");
}

static bool left(const gif_file *f, size_t n)
{
    return f->n - f->at >= n;
}

/* Past blocks of up to 255 bytes, each after its length; the last one is empty. */
static bool skip_blocks(gif_file *f)
{
    while (left(f, 1)) {
        const size_t size = f->b[f->at];
        if (!left(f, 1 + size)) {
            return false;
        }
        f->at += 1 + size;
        if (size == 0) {
            return true;
        }
    }
    return false;
}

/* A palette whose size is in `flags`; false: the file ends. */
static bool read_palette(gif_file *f, uint8_t flags, const uint8_t **palette, int *bits)
{
    if (flags & HAS_PALETTE) {
        *bits = (flags & 7) + 1;
        *palette = f->b + f->at;
        if (!left(f, (size_t)3 << *bits)) {
            return false;
        }
        f->at += (size_t)3 << *bits;
    }
    return true;
}

/* All colors that a pixel can name; those that the file lacks are the background, as if the pixel
 * were not there. */
static bool put_palette(plain_picture *p, const uint8_t *palette, int bits)
{
    const size_t n = palette ? (size_t)1 << bits : 0;
    bool ok = n == 0 || plain_put(p, palette, 3 * n);
    for (size_t i = n; ok && i < COLORS; i++) {
        ok = plain_put(p, p->background, 3);
    }
    return ok;
}

/* The frame at f->at as a file whose canvas is the frame. */
static bz_status put_frame(plain_picture *p, gif_file *f, bz_error *err)
{
    const uint8_t *image = f->b + f->at;
    const uint8_t *palette = f->palette;
    int bits = f->palette_bits;
    if (!left(f, IMAGE)) {
        return damaged(err);
    }
    f->at += IMAGE;
    if (!read_palette(f, image[9], &palette, &bits)) {
        return damaged(err);
    }
    const size_t pixels = f->at; /* the size of codes, and blocks */
    f->at += left(f, 1);
    if (!skip_blocks(f)) {
        return damaged(err);
    }
    const bool clear = f->transparent >= 0;
    if (clear) {
        memset(p->background, 255, sizeof p->background);
    }
    const uint8_t screen[SCREEN] = {'G',
                                    'I',
                                    'F',
                                    '8',
                                    '9',
                                    'a',
                                    image[5],
                                    image[6],
                                    image[7],
                                    image[8],
                                    HAS_PALETTE | ALL_COLORS,
                                    0,
                                    0};
    const uint8_t control[8] = {0x21, 0xF9, 4, clear, 0, 0, (uint8_t)(clear ? f->transparent : 0),
                                0};
    const uint8_t descriptor[IMAGE] = {
        ',', 0, 0, 0, 0, image[5], image[6], image[7], image[8], image[9] & INTERLACED};
    if (!plain_put(p, screen, sizeof screen) || !put_palette(p, palette, bits) ||
        !plain_put(p, control, sizeof control) || !plain_put(p, descriptor, sizeof descriptor) ||
        !plain_put(p, f->b + pixels, f->at - pixels) || !plain_put(p, ";", 1)) {
        return damaged(err);
    }
    const uint32_t width = bz_le16(image + 5), height = bz_le16(image + 7);
    p->left = bz_le16(image + 1);
    p->top = bz_le16(image + 3);
    p->canvas_width = p->canvas_width ? p->canvas_width : width;
    p->canvas_height = p->canvas_height ? p->canvas_height : height;
    return width && height ? plain_size(p, width, height, err) : damaged(err);
}

bz_status plain_gif(plain_picture *p, const uint8_t *b, size_t n, bz_error *err)
{
    gif_file f = {b, n, SCREEN, NULL, 0, -1};
    const bz_status status = plain_begin(p, n, err);
    if (status != BZ_OK || n < SCREEN || !read_palette(&f, b[10], &f.palette, &f.palette_bits)) {
        return status != BZ_OK ? status : damaged(err);
    }
    p->canvas_width = bz_le16(b + 6);
    p->canvas_height = bz_le16(b + 8);
    if (f.palette && b[11] && b[11] < 1 << f.palette_bits) { /* 0: black, as libraries have it */
        memcpy(p->background, f.palette + 3 * (size_t)b[11], 3);
    }
    while (left(&f, 2) && b[f.at] == '!') {
        const uint8_t *control = b + f.at + 1;
        if (control[0] == 0xF9 && left(&f, 8) && control[1] == 4) {
            f.transparent = control[2] & 1 ? control[5] : -1;
        }
        f.at += 2;
        if (!skip_blocks(&f)) {
            return damaged(err);
        }
    }
    return left(&f, 1) && b[f.at] == ',' ? put_frame(p, &f, err) : damaged(err);
}
