#include "cli/chat/media_cache.h"

#include <stdlib.h>
#include <string.h>

static bool is_of(const cached_media *one, bz_media_kind kind, const char *path, size_t len)
{
    return one->kind == kind && strlen(one->path) == len && memcmp(one->path, path, len) == 0;
}

const bz_media *media_cache_find(const media_cache *s, bz_media_kind kind, const char *path,
                                 size_t len, size_t nth)
{
    for (size_t i = 0; i < s->n; i++) {
        const cached_media *one = &s->list[i];
        if (is_of(one, kind, path, len) && nth-- == 0) {
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

static void remove_at(media_cache *s, size_t i)
{
    free_one(&s->list[i]);
    memmove(&s->list[i], &s->list[i + 1], (s->n - i - 1) * sizeof *s->list);
    s->n--;
}

void media_cache_remove(media_cache *s, bz_media_kind kind, const char *path)
{
    size_t i = s->n;
    while (i && !is_of(&s->list[i - 1], kind, path, strlen(path))) {
        i--;
    }
    if (i) {
        remove_at(s, i - 1);
    }
}

void media_cache_move(media_cache *from, media_cache *to, bz_media_kind kind, const char *path,
                      size_t len)
{
    size_t i = 0;
    while (i < from->n && !is_of(&from->list[i], kind, path, len)) {
        i++;
    }
    cached_media *more = i < from->n ? realloc(to->list, (to->n + 1) * sizeof *more) : NULL;
    if (more) {
        to->list = more;
        to->list[to->n++] = from->list[i];
        from->list[i] = (cached_media){0};
    }
    if (i < from->n) {
        remove_at(from, i);
    }
}

void media_cache_put_back(media_cache *from, media_cache *to)
{
    cached_media *more = from->n ? realloc(to->list, (to->n + from->n) * sizeof *more) : NULL;
    if (more) {
        memmove(more + from->n, more, to->n * sizeof *more);
        memcpy(more, from->list, from->n * sizeof *more);
        to->list = more;
        to->n += from->n;
        from->n = 0;
    }
    media_cache_clear(from);
}

void media_cache_clear(media_cache *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free_one(&s->list[i]);
    }
    free(s->list);
    *s = (media_cache){0};
}
