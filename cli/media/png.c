#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "cli/media/decode.h"

/* Instead of libpng's own limit; image_alloc decides. */
enum { MAX_SIDE = 1 << 20 };

typedef struct png_state {
    const uint8_t *bytes;
    size_t n, at;
    png_structp png;
    png_infop info;
    rgb_image *p;
    uint8_t *rgba; /* [height][width][4] */
    uint8_t **rows;
    bz_error *err;
    bz_status status;
} png_state;

static void on_error(png_structp png, png_const_charp text)
{
    png_state *s = png_get_error_ptr(png);
    s->status = bz_fail(s->err, BZ_BAD_FILE, "The PNG file is damaged or cut off: %.150s.", text);
    longjmp(png_jmpbuf(png), 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png, (void)text;
}

static void on_read(png_structp png, png_bytep to, size_t n)
{
    png_state *s = png_get_io_ptr(png);
    if (n > s->n - s->at) {
        png_error(png, "it ends too early");
    }
    memcpy(to, s->bytes + s->at, n);
    s->at += n;
}

/* Converts every kind to 8-bit RGB: palettes and gray are expanded, 16-bit values keep their upper
 * 8 bits, transparent pixels are composited on white. State is in *s, so that it survives libpng's
 * longjmp. */
static void read_all(png_state *s)
{
    png_structp png = s->png;
    if (setjmp(png_jmpbuf(png))) {
        return;
    }
    png_set_read_fn(png, s, on_read);
    png_set_user_limits(png, MAX_SIDE, MAX_SIDE);
    png_read_info(png, s->info);
    s->status = image_alloc(s->p, png_get_image_width(png, s->info),
                            png_get_image_height(png, s->info), s->err);
    if (s->status != BZ_OK) {
        return;
    }
    png_set_expand(png);
    png_set_strip_16(png);
    png_set_gray_to_rgb(png);
    png_set_add_alpha(png, 255, PNG_FILLER_AFTER); /* to pixels without */
    png_set_interlace_handling(png);
    png_read_update_info(png, s->info);
    if (png_get_rowbytes(png, s->info) != (size_t)s->p->width * 4) {
        png_error(png, "its rows have an unexpected size");
    }
    s->rgba = malloc((size_t)s->p->width * s->p->height * 4);
    s->rows = malloc(s->p->height * sizeof *s->rows);
    if (!s->rgba || !s->rows) {
        png_error(png, "not enough memory");
    }
    for (uint32_t y = 0; y < s->p->height; y++) {
        s->rows[y] = s->rgba + (size_t)y * s->p->width * 4;
    }
    png_read_image(png, s->rows);
    image_on_white(s->p->rgb, s->rgba, (size_t)s->p->width * s->p->height);
    png_read_end(png, s->info);
    png_bytep exif = NULL;
    png_uint_32 bytes = 0;
    const int up =
        png_get_eXIf_1(png, s->info, &bytes, &exif) && exif ? exif_orientation(exif, bytes) : 1;
    s->status = image_orient(s->p, up, s->err);
}

bz_status decode_png(rgb_image *p, const uint8_t *bytes, size_t n, bz_error *err)
{
    png_state s = {.bytes = bytes, .n = n, .p = p, .err = err};
    s.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &s, on_error, on_warning);
    s.info = s.png ? png_create_info_struct(s.png) : NULL;
    if (!s.info) {
        png_destroy_read_struct(&s.png, NULL, NULL);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to read a PNG.");
    }
    read_all(&s);
    png_destroy_read_struct(&s.png, &s.info, NULL);
    free(s.rgba);
    free(s.rows);
    return s.status;
}
