#include "cli/media/plain.h"

#include <string.h>

enum {
    SOI = 0xD8,
    EOI = 0xD9,
    SOS = 0xDA,
    DNL = 0xDC,
    APP0 = 0xE0,
    APP1 = 0xE1,
    APP14 = 0xEE,
    APP15 = 0xEF,
    COM = 0xFE,
};

static bz_status damaged(const char *why, bz_error *err)
{
    return bz_fail(err, BZ_BAD_FILE, "The JPEG file is damaged: %s.", why);
}

static bz_status cut(bz_error *err)
{
    return bz_fail(err, BZ_BAD_FILE, "The JPEG file is cut off: it ends before the image does.");
}

/* Of a frame: baseline, progressive and so on. */
static bool is_frame(int marker)
{
    return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

/* Without a length: restarts, and one of arithmetic coding. */
static bool is_alone(int marker)
{
    return (marker >= 0xD0 && marker <= 0xD7) || marker == 0x01;
}

/* What decoding needs. Of the parts for applications, those that say what the channels are. */
static bool is_needed(int marker, const uint8_t *body, size_t n)
{
    if (marker < APP0 || marker > COM || (marker > APP15 && marker < COM)) {
        return true;
    }
    return (marker == APP0 && n >= 5 && memcmp(body, "JFIF", 5) == 0) ||
           (marker == APP14 && n >= 5 && memcmp(body, "Adobe", 5) == 0);
}

/* The next marker at or after `at`, past anything between; n if there is none. */
static size_t next_marker(const uint8_t *b, size_t n, size_t at)
{
    while (at + 1 < n &&
           !(b[at] == 0xFF && b[at + 1] != 0 && b[at + 1] != 0xFF && !is_alone(b[at + 1]))) {
        at++;
    }
    return at + 1 < n ? at : n;
}

bz_status plain_jpeg(plain_picture *p, const uint8_t *b, size_t n, bz_error *err)
{
    bz_status status = plain_begin(p, n, err);
    bool framed = false, scanned = false, described = false;
    size_t at = 2;
    if (status != BZ_OK) {
        return status;
    }
    plain_put(p, b, 2);
    while (status == BZ_OK) {
        const size_t marker_at = next_marker(b, n, at);
        const int marker = marker_at < n ? b[marker_at + 1] : 0;
        if (marker == EOI) {
            plain_put(p, b + marker_at, 2);
            return framed && scanned ? BZ_OK : damaged("it has no image", err);
        }
        if (marker == SOI) {
            return damaged("it begins twice", err);
        }
        if (n - marker_at < 4) {
            return cut(err);
        }
        const uint8_t *body = b + marker_at + 4;
        const size_t size = (size_t)b[marker_at + 2] << 8 | b[marker_at + 3];
        if (size < 2) {
            return damaged("a part of it has no length", err);
        }
        if (size - 2 > n - marker_at - 4) {
            return cut(err);
        }
        at = marker_at + 2 + size;
        if (is_frame(marker)) {
            if (framed || size < 8) {
                return damaged("it has more than one frame", err);
            }
            framed = true;
            status = plain_size(p, (uint32_t)body[3] << 8 | body[4],
                                (uint32_t)body[1] << 8 | body[2], err);
        } else if (marker == APP1 && !described && !scanned && size >= 8 &&
                   memcmp(body, "Exif\0\0", 6) == 0) {
            described = true;
            p->orientation = exif_orientation(body, size - 2);
        } else if (marker == DNL) {
            return damaged("it states its height twice", err);
        }
        if (marker == SOS) {
            if (!framed) {
                return damaged("its pixels come before its size", err);
            }
            scanned = true;
            at = next_marker(b, n, at); /* coded pixels have no length */
        }
        if (is_needed(marker, body, size - 2)) {
            plain_put(p, b + marker_at, at - marker_at);
        }
    }
    return status;
}
