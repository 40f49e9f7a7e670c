#include <stdlib.h>
#include <string.h>

#include <gif_lib.h>

#include "cli/media/decode.h"

typedef struct gif_bytes {
    const uint8_t *bytes;
    size_t n, at;
} gif_bytes;

static int on_read(GifFileType *g, GifByteType *to, int want)
{
    gif_bytes *b = g->UserData;
    size_t n = want > 0 ? (size_t)want : 0;
    n = n < b->n - b->at ? n : b->n - b->at;
    memcpy(to, b->bytes + b->at, n);
    b->at += n;
    return (int)n;
}

static bz_status damaged(bz_error *err)
{
    return bz_fail(err, BZ_BAD_FILE, "The GIF file is damaged or cut off.");
}

static void put(rgb_image *p, uint32_t x, uint32_t y, const ColorMapObject *map, int index)
{
    if (x < p->width && y < p->height && map && index < map->ColorCount) {
        const GifColorType *c = &map->Colors[index];
        uint8_t *to = p->rgb + ((size_t)y * p->width + x) * 3;
        to[0] = c->Red;
        to[1] = c->Green;
        to[2] = c->Blue;
    }
}

/* Reads the next frame onto a canvas of the background color, or a white one if the frame has a
 * transparent color. transparent: its index, or NO_TRANSPARENT_COLOR. */
static bz_status read_frame(rgb_image *p, GifFileType *g, int transparent, bz_error *err)
{
    static const unsigned first[4] = {0, 4, 2, 1}, step[4] = {8, 8, 4, 2};
    if (DGifGetImageDesc(g) != GIF_OK || g->Image.Width <= 0 || g->Image.Height <= 0) {
        return damaged(err);
    }
    const uint32_t width = (uint32_t)g->Image.Width, height = (uint32_t)g->Image.Height;
    const uint32_t left = (uint32_t)g->Image.Left, top = (uint32_t)g->Image.Top;
    const ColorMapObject *map = g->Image.ColorMap ? g->Image.ColorMap : g->SColorMap;
    bz_status status = image_alloc(p, g->SWidth > 0 ? (uint32_t)g->SWidth : width,
                                   g->SHeight > 0 ? (uint32_t)g->SHeight : height, err);
    if (status != BZ_OK) {
        return status;
    }
    if (transparent != NO_TRANSPARENT_COLOR) {
        memset(p->rgb, 255, (size_t)p->width * p->height * 3);
    } else {
        for (uint32_t i = 0; g->SBackGroundColor && i < p->width * p->height; i++) {
            put(p, i % p->width, i / p->width, g->SColorMap, g->SBackGroundColor);
        }
    }
    GifPixelType *line = malloc(width);
    const int passes = g->Image.Interlace ? 4 : 1;
    for (int pass = 0; line && status == BZ_OK && pass < passes; pass++) {
        for (uint32_t y = g->Image.Interlace ? first[pass] : 0; y < height;
             y += g->Image.Interlace ? step[pass] : 1) {
            if (DGifGetLine(g, line, (int)width) != GIF_OK) {
                status = damaged(err);
                break;
            }
            for (uint32_t x = 0; x < width; x++) {
                if (line[x] != transparent) {
                    put(p, left + x, top + y, map, line[x]);
                }
            }
        }
    }
    const bool ok = line != NULL;
    free(line);
    return ok ? status : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to read a GIF.");
}

bz_status decode_gif(rgb_image *p, const uint8_t *bytes, size_t n, bz_error *err)
{
    gif_bytes b = {bytes, n, 0};
    int error;
    GifFileType *g = DGifOpen(&b, on_read, &error);
    if (!g) {
        return damaged(err);
    }
    bz_status status = BZ_BAD_FILE;
    bool found = false, more = true;
    int transparent = NO_TRANSPARENT_COLOR;
    while (more && !found) {
        GifRecordType record;
        GifByteType *extension;
        int code;
        more = DGifGetRecordType(g, &record) == GIF_OK && record != TERMINATE_RECORD_TYPE;
        if (more && record == IMAGE_DESC_RECORD_TYPE) {
            found = true;
            status = read_frame(p, g, transparent, err);
        } else if (more && record == EXTENSION_RECORD_TYPE) {
            more = DGifGetExtension(g, &code, &extension) == GIF_OK;
            GraphicsControlBlock control;
            if (more && extension && code == GRAPHICS_EXT_FUNC_CODE &&
                DGifExtensionToGCB(extension[0], extension + 1, &control) == GIF_OK) {
                transparent = control.TransparentColor;
            }
            while (more && extension) {
                more = DGifGetExtensionNext(g, &extension) == GIF_OK;
            }
        }
    }
    DGifCloseFile(g, &error);
    return found ? status : damaged(err);
}
