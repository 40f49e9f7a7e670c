#include "cli/chat/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/os_program.h"

enum { MIN_BARE_BASE64 = 64 }; /* characters; anything shorter is a file name */

static bool begins(const char *text, size_t len, const char *with)
{
    const size_t n = strlen(with);
    return len >= n && strncmp(text, with, n) == 0;
}

static bz_status read_base64(source *s, const char *text, size_t len, bz_error *err)
{
    s->owned = malloc(len / 4 * 3 + 3);
    if (!s->owned) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for %.127s.", s->name);
    }
    if (!bz_base64_read(text, len, s->owned, &s->size)) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "%.127s is not valid base64: it has a wrong character or is cut off.",
                       s->name);
    }
    s->data = s->owned;
    return BZ_OK;
}

/* data:image/png;base64,... The media type is ignored: the format is recognized by the bytes. */
bz_status source_read_data(source *s, const char *text, size_t len, bz_error *err)
{
    static const char mark[] = ";base64";
    const char *comma = memchr(text, ',', len);
    const size_t head = comma ? (size_t)(comma - text) : len;
    snprintf(s->name, sizeof s->name, "%.*s", (int)(head < 60 ? head : 60), text);
    if (!comma) {
        return bz_fail(err, BZ_BAD_REQUEST, "%.127s has no comma before its data.", s->name);
    }
    if (head < sizeof mark - 1 || strncmp(comma - (sizeof mark - 1), mark, sizeof mark - 1) != 0) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "%.127s is not base64; other data: URLs are not supported.", s->name);
    }
    return read_base64(s, comma + 1, len - head - 1, err);
}

/* For messages: the last part of the path. */
static void name_after(source *s, const char *path)
{
    const char *slash = bz_os_last_slash(path);
    snprintf(s->name, sizeof s->name, "%.120s", slash && slash[1] ? slash + 1 : path);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'                 ? c - '0'
           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                : -1;
}

/* The path of a file:// URL, with %20 and the like decoded; the caller frees it. */
static char *path_of_address(const char *path)
{
    char *to = malloc(strlen(path) + 1);
    size_t n = 0;
    for (const char *p = path; to && *p; p++) {
        const bool coded = p[0] == '%' && hex_digit(p[1]) >= 0 && hex_digit(p[2]) >= 0 &&
                           (p[1] != '0' || p[2] != '0');
        to[n++] = (char)(coded ? hex_digit(p[1]) * 16 + hex_digit(p[2]) : *p);
        p += coded ? 2 : 0;
    }
    if (to) {
        to[n] = 0;
    }
    return to;
}

static bz_status open_file(source *s, const char *path, bz_error *err)
{
    name_after(s, path);
    const bz_status status = bz_os_map_file(path, &s->map, err); /* the error names the file */
    s->data = s->map.data;
    s->size = (size_t)s->map.size;
    return status;
}

static bz_status open_address(source *s, const char *text, bz_error *err)
{
    char *path = path_of_address(text);
    const bz_status status = path ? open_file(s, path, err)
                                  : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a file name.");
    free(path);
    return status;
}

bz_status source_open(source *s, const char *text, bz_error *err)
{
    static const char file[] = "file://";
    const size_t len = strlen(text);
    *s = (source){0};
    if (len == 0) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "An image or audio part has an empty source; give a file name.");
    }
    if (begins(text, len, "data:")) {
        return source_read_data(s, text, len, err);
    }
    if (begins(text, len, "http:") || begins(text, len, "https:")) {
        return bz_fail(
            err, BZ_BAD_REQUEST,
            "%.100s cannot be used: Bezel does not access the network. Save it to a file first.",
            text);
    }
    if (begins(text, len, file)) {
        return open_address(s, text + sizeof file - 1, err);
    }
    if (len >= MIN_BARE_BASE64 &&
        !bz_os_file_exists(text)) { /* the data of an input_audio part has no prefix */
        snprintf(s->name, sizeof s->name, "%.20s...", text);
        bz_error other = {0};
        if (read_base64(s, text, len, &other) == BZ_OK) {
            return BZ_OK;
        }
        source_close(s);
    }
    return open_file(s, text, err);
}

void source_close(source *s)
{
    free(s->owned);
    if (s->map.data) {
        bz_os_unmap(&s->map);
    }
    *s = (source){0};
}
