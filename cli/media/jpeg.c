#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "cli/media/decode.h"

typedef struct jpeg_state {
    struct jpeg_error_mgr errors; /* first member: libjpeg passes a pointer to it */
    jmp_buf back;
    bool cut; /* the file ends before the image does */
    int up;   /* Exif's orientation */
    struct jpeg_decompress_struct d;
    rgb_image *p;
    uint8_t *row; /* [width][4], CMYK only */
    bz_error *err;
    bz_status status;
} jpeg_state;

static void on_error(j_common_ptr c)
{
    jpeg_state *s = (jpeg_state *)(void *)c->err;
    char text[JMSG_LENGTH_MAX];
    c->err->format_message(c, text);
    s->status = bz_fail(s->err, BZ_BAD_FILE, "The JPEG file is damaged: %.150s.", text);
    longjmp(s->back, 1);
}

static void on_message(j_common_ptr c, int level)
{
    jpeg_state *s = (jpeg_state *)(void *)c->err;
    s->cut = s->cut || (level < 0 && c->err->msg_code == JWRN_JPEG_EOF);
}

static int orientation(const struct jpeg_decompress_struct *d)
{
    for (jpeg_saved_marker_ptr m = d->marker_list; m; m = m->next) {
        if (m->marker == JPEG_APP0 + 1 && m->data_length >= 6 &&
            memcmp(m->data, "Exif\0\0", 6) == 0) {
            return exif_orientation(m->data, m->data_length);
        }
    }
    return 1;
}

/* All calls that libjpeg may leave by longjmp. State is in *s, so that it survives the jump. */
static void read_all(jpeg_state *s, const uint8_t *bytes, size_t n)
{
    struct jpeg_decompress_struct *d = &s->d;
    if (setjmp(s->back)) {
        return;
    }
    jpeg_create_decompress(d);
    jpeg_save_markers(d, JPEG_APP0 + 1, 0xFFFF);
    jpeg_mem_src(d, bytes, (unsigned long)n);
    jpeg_read_header(d, TRUE);
    s->up = orientation(d); /* what comes later is not read in every kind of file */
    const bool cmyk = d->jpeg_color_space == JCS_CMYK || d->jpeg_color_space == JCS_YCCK;
    d->out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    s->status = image_alloc(s->p, d->image_width, d->image_height, s->err);
    s->row = s->status == BZ_OK && cmyk ? malloc((size_t)d->image_width * 4) : NULL;
    if (s->status == BZ_OK && cmyk && !s->row) {
        s->status = bz_fail(s->err, BZ_OUT_OF_MEMORY, "No memory for an image of %u x %u pixels.",
                            s->p->width, s->p->height);
    }
    if (s->status != BZ_OK) {
        return;
    }
    jpeg_start_decompress(d);
    while (d->output_scanline < d->output_height) {
        uint8_t *to = s->p->rgb + (size_t)d->output_scanline * s->p->width * 3,
                *line = cmyk ? s->row : to;
        jpeg_read_scanlines(d, &line, 1);
        if (cmyk) {
            /* Adobe stores the values inverted. */
            image_from_cmyk(to, s->row, s->p->width, d->saw_Adobe_marker);
        }
    }
    jpeg_finish_decompress(d);
    s->status = s->cut ? bz_fail(s->err, BZ_BAD_FILE,
                                 "The JPEG file is cut off: it ends before the image does.")
                       : image_orient(s->p, s->up, s->err);
}

bz_status decode_jpeg(rgb_image *p, const uint8_t *bytes, size_t n, bz_error *err)
{
    jpeg_state *s = calloc(1, sizeof *s);
    if (!s) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to read a JPEG.");
    }
    s->p = p;
    s->err = err;
    s->d.err = jpeg_std_error(&s->errors);
    s->errors.error_exit = on_error;
    s->errors.emit_message = on_message;
    read_all(s, bytes, n);
    jpeg_destroy_decompress(&s->d);
    const bz_status status = s->status;
    free(s->row);
    free(s);
    return status;
}
