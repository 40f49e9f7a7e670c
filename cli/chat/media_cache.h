/* The encoded images and audio of a conversation. They stay usable when their file is deleted or
 * replaced, as screenshots often are. */
#ifndef BZ_CLI_MEDIA_CACHE_H
#define BZ_CLI_MEDIA_CACHE_H

#include "bezel_media.h"

typedef struct cached_media {
    bz_media_kind kind;
    char *path;      /* owned; as in the conversation */
    bz_media *media; /* owned */
} cached_media;

typedef struct media_cache {
    cached_media *list; /* [n]; entries of one path are in the order of the conversation */
    size_t n;
} media_cache;

/* The nth entry (from 0) with this path; borrowed. NULL: there is none. */
const bz_media *media_cache_find(const media_cache *s, bz_media_kind kind, const char *path,
                                 size_t len, size_t nth);
/* Takes ownership of media, also if it fails; false: no memory. */
bool media_cache_add(media_cache *s, bz_media_kind kind, const char *path, size_t len,
                     bz_media *media);
void media_cache_remove(media_cache *s, bz_media_kind kind,
                        const char *path); /* the last entry with this path */
/* Moves the first entry with this path to another cache, and all entries of one cache to the front
 * of another. Without memory they are lost, and read again. */
void media_cache_move(media_cache *from, media_cache *to, bz_media_kind kind, const char *path,
                      size_t len);
void media_cache_put_back(media_cache *from, media_cache *to);
void media_cache_clear(media_cache *s);

#endif
