#include "cli/chat/media_cache.h"

#include <stdlib.h>
#include <string.h>

const bz_media *media_cache_find(const media_cache *s, bz_media_kind kind, const char *path,
                                 size_t len, size_t nth)
{
    for (size_t i = 0; i < s->n; i++) {
        const cached_media *one = &s->list[i];
        if (one->kind == kind && strlen(one->path) == len && memcmp(one->path, path, len) == 0 &&
            nth-- == 0) {
            return one->media;
        }
    }
    return NULL;
}

bool media_cache_add(media_cache *s, bz_media_kind kind, const char *path, size_t len,
                     bz_media *media)
{
    cached_media *more = realloc(s->list, (s->n + 1) * sizeof *more);
    char *copy = strndup(path, len);
    if (more) {
        s->list = more;
    }
    if (!more || !copy) {
        free(copy);
        bz_media_free(media);
        return false;
    }
    s->list[s->n++] = (cached_media){kind, copy, media};
    return true;
}

static void free_one(const cached_media *one)
{
    free(one->path);
    bz_media_free(one->media);
}

void media_cache_remove(media_cache *s, bz_media_kind kind, const char *path)
{
    size_t i = s->n;
    while (i && (s->list[i - 1].kind != kind || strcmp(s->list[i - 1].path, path) != 0)) {
        i--;
    }
    if (i) {
        free_one(&s->list[i - 1]);
        memmove(&s->list[i - 1], &s->list[i], (s->n - i) * sizeof *s->list);
        s->n--;
    }
}

void media_cache_clear(media_cache *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free_one(&s->list[i]);
    }
    free(s->list);
    *s = (media_cache){0};
}
