#include <stdlib.h>

#include <webp/decode.h>
#include <webp/demux.h>

#include "cli/media/decode.h"

static bz_status damaged(bz_error *err)
{
    return bz_fail(err, BZ_BAD_FILE, "The WebP file is damaged or cut off.");
}

static int orientation(WebPDemuxer *demux)
{
    WebPChunkIterator chunk;
    int up = 1;
    if (WebPDemuxGetChunk(demux, "EXIF", 1, &chunk)) {
        up = exif_orientation(chunk.chunk.bytes, chunk.chunk.size);
        WebPDemuxReleaseChunkIterator(&chunk);
    }
    return up;
}

/* The first frame of an animation, on its canvas. */
static bz_status first_frame(rgb_image *p, const WebPData *data, bz_error *err)
{
    WebPAnimDecoderOptions options;
    uint8_t *rgba = NULL;
    int timestamp;
    if (!WebPAnimDecoderOptionsInit(&options)) {
        return damaged(err);
    }
    options.color_mode = MODE_RGBA;
    WebPAnimDecoder *d = WebPAnimDecoderNew(data, &options);
    WebPAnimInfo canvas;
    /* It reads the header again, and the file may have changed. */
    const bool ok = d && WebPAnimDecoderGetInfo(d, &canvas) && canvas.canvas_width == p->width &&
                    canvas.canvas_height == p->height &&
                    WebPAnimDecoderGetNext(d, &rgba, &timestamp);
    if (ok) {
        image_on_white(p->rgb, rgba, (size_t)p->width * p->height);
    }
    WebPAnimDecoderDelete(d);
    return ok ? BZ_OK : damaged(err);
}

static bz_status decode_transparent(rgb_image *p, const uint8_t *bytes, size_t n, bz_error *err)
{
    const size_t pixels = (size_t)p->width * p->height;
    uint8_t *rgba = malloc(pixels * 4);
    if (!rgba) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to read a WebP.");
    }
    const bool ok = WebPDecodeRGBAInto(bytes, n, rgba, pixels * 4, (int)p->width * 4);
    if (ok) {
        image_on_white(p->rgb, rgba, pixels);
    }
    free(rgba);
    return ok ? BZ_OK : damaged(err);
}

bz_status decode_webp(rgb_image *p, const uint8_t *bytes, size_t n, bz_error *err)
{
    WebPBitstreamFeatures features;
    const WebPData data = {bytes, n};
    if (WebPGetFeatures(bytes, n, &features) != VP8_STATUS_OK) {
        return damaged(err);
    }
    bz_status status = image_alloc(p, (uint32_t)features.width, (uint32_t)features.height, err);
    WebPDemuxer *demux = status == BZ_OK ? WebPDemux(&data) : NULL;
    if (status == BZ_OK && !demux) {
        status = damaged(err);
    }
    if (status == BZ_OK && features.has_animation) {
        status = first_frame(p, &data, err);
    } else if (status == BZ_OK) {
        status = features.has_alpha ? decode_transparent(p, bytes, n, err)
                 : WebPDecodeRGBInto(bytes, n, p->rgb, (size_t)p->width * p->height * 3,
                                     (int)p->width * 3)
                     ? BZ_OK
                     : damaged(err);
    }
    if (status == BZ_OK) {
        status = image_orient(p, orientation(demux), err);
    }
    WebPDemuxDelete(demux);
    return status;
}
