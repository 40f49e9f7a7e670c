#include "source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"

enum { LEAST_BARE = 64 }; /* characters of base64 that may come without a word about it */

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
        return bz_fail(err, BZ_BAD_REQUEST, "%.127s is not base64: a character does not belong there, or the end is missing.", s->name);
    }
    s->data = s->owned;
    return BZ_OK;
}

/* data:image/png;base64,... What it says of its kind is not looked at: its bytes know better. */
bz_status source_read_data(source *s, const char *text, size_t len, bz_error *err)
{
    static const char mark[] = ";base64";
    const char *comma = memchr(text, ',', len);
    const size_t head = comma ? (size_t)(comma - text) : len;
    snprintf(s->name, sizeof s->name, "%.*s", (int)(head < 60 ? head : 60), text);
    if (!comma) {
        return bz_fail(err, BZ_BAD_REQUEST, "%.127s has no comma, behind which the data would begin.", s->name);
    }
    if (head < sizeof mark - 1 || strncmp(comma - (sizeof mark - 1), mark, sizeof mark - 1) != 0) {
        return bz_fail(err, BZ_BAD_REQUEST, "%.127s is not base64, which is the one kind of data: address that is read.", s->name);
    }
    return read_base64(s, comma + 1, len - head - 1, err);
}

/* The last part of a path says enough. */
static void name_after(source *s, const char *path)
{
    const char *slash = strrchr(path, '/');
    snprintf(s->name, sizeof s->name, "%.120s", slash && slash[1] ? slash + 1 : path);
}

bz_status source_open(source *s, const char *text, bz_error *err)
{
    const size_t len = strlen(text);
    *s = (source){0};
    if (begins(text, len, "data:")) {
        return source_read_data(s, text, len, err);
    }
    if (begins(text, len, "http:") || begins(text, len, "https:")) {
        return bz_fail(err, BZ_BAD_REQUEST, "%.100s is not fetched, as nothing is from the network; save it and name the file.", text);
    }
    const char *path = begins(text, len, "file://") ? text + 7 : text;
    if (path == text && len >= LEAST_BARE && !bz_os_file_exists(path)) { /* the data of an input_audio has no address */
        snprintf(s->name, sizeof s->name, "%.20s...", text);
        bz_error other = {0};
        if (read_base64(s, text, len, &other) == BZ_OK) {
            return BZ_OK;
        }
        source_close(s);
    }
    name_after(s, path);
    const bz_status status = bz_os_map_file(path, &s->map, err); /* it names the file */
    s->data = s->map.data;
    s->size = (size_t)s->map.size;
    return status;
}

void source_close(source *s)
{
    free(s->owned);
    if (s->map.data) {
        bz_os_unmap(&s->map);
    }
    *s = (source){0};
}
