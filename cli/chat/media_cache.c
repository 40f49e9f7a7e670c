#include "cli/chat/media_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

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
    char *copy = bz_text_copy(path, len);
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

void media_cache_forget(media_cache *s, bz_media_kind kind, const char *path, size_t len)
{
    size_t i = 0;
    while (i < s->n && !is_of(&s->list[i], kind, path, len)) {
        i++;
    }
    if (i < s->n) {
        remove_at(s, i);
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
