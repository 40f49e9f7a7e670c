#include "cli/media/plain.h"

#include <string.h>

static uint32_t number(const uint8_t *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static bz_status damaged(const char *why, bz_error *err)
{
    return bz_fail(err, BZ_BAD_FILE, "The PNG file is damaged or cut off: %s.", why);
}

/* CRC-32 of Ethernet, four bits at a time. */
static uint32_t checksum(const uint8_t *b, size_t n)
{
    static const uint32_t table[16] = {0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC,
                                       0x76DC4190, 0x6B6B51F4, 0x4DB26158, 0x5005713C,
                                       0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C,
                                       0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C};
    uint32_t crc = 0xFFFFFFFF;
    for (size_t i = 0; i < n; i++) {
        crc ^= b[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

static bool is(const uint8_t *chunk, const char *type)
{
    return memcmp(chunk + 4, type, 4) == 0;
}

/* Chunks: length, type, content, checksum of type and content. */
bz_status plain_png(plain_picture *p, const uint8_t *b, size_t n, bz_error *err)
{
    enum { SIGNATURE = 8, AROUND = 12, HEADER = 13 };
    bz_status status = plain_begin(p, n, err);
    bool pixels = false;
    size_t at = SIGNATURE;
    if (status != BZ_OK) {
        return status;
    }
    plain_put(p, b, SIGNATURE);
    while (status == BZ_OK) {
        const uint8_t *chunk = b + at, *body = chunk + 8;
        const uint32_t size = n - at >= AROUND ? number(chunk) : 0;
        if (n - at < AROUND || size > n - at - AROUND) {
            return damaged("it ends too early", err);
        }
        const bool needed = is(chunk, "IHDR") || is(chunk, "PLTE") || is(chunk, "tRNS") ||
                            is(chunk, "IDAT") || is(chunk, "IEND");
        if ((needed || is(chunk, "eXIf")) && checksum(chunk + 4, size + 4) != number(body + size)) {
            return damaged("a checksum is wrong", err);
        }
        if ((at == SIGNATURE) != is(chunk, "IHDR") || (at == SIGNATURE && size != HEADER)) {
            return damaged("its header is missing or not the first part", err);
        }
        if (at == SIGNATURE) {
            status = plain_size(p, number(body), number(body + 4), err);
        } else if (is(chunk, "eXIf")) {
            p->orientation = exif_orientation(body, size);
        } else if (!needed && !(chunk[4] & 0x20)) {
            return damaged("it needs a part that is not known", err);
        }
        pixels = pixels || is(chunk, "IDAT");
        if (needed) {
            plain_put(p, chunk, (size_t)size + AROUND);
        }
        at += (size_t)size + AROUND;
        if (is(chunk, "IEND")) {
            return pixels || status != BZ_OK ? status : damaged("it has no pixels", err);
        }
    }
    return status;
}
