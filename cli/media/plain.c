#include "cli/media/plain.h"

#include <stdlib.h>
#include <string.h>

enum { HEADERS = 1024 }; /* bytes that rewriting may add, with a palette of 256 colors */

bz_status plain_begin(plain_picture *p, size_t n, bz_error *err)
{
    *p = (plain_picture){.orientation = 1};
    p->room = n + HEADERS;
    p->bytes = malloc(p->room);
    return p->bytes ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to read a picture.");
}

bool plain_put(plain_picture *p, const void *bytes, size_t n)
{
    if (n > p->room - p->n) {
        return false;
    }
    memcpy(p->bytes + p->n, bytes, n);
    p->n += n;
    return true;
}

bz_status plain_size(plain_picture *p, uint32_t width, uint32_t height, bz_error *err)
{
    p->width = width;
    p->height = height;
    if (p->canvas_width == 0) {
        p->canvas_width = width;
        p->canvas_height = height;
    }
    const bz_status status = bz_image_check(p->canvas_width, p->canvas_height, err);
    return status == BZ_OK ? bz_image_check(width, height, err) : status;
}

void plain_free(plain_picture *p)
{
    free(p->bytes);
    *p = (plain_picture){0};
}
