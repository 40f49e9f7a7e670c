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
void media_cache_forget(media_cache *s, bz_media_kind kind, const char *path,
                        size_t len); /* the first one */
void media_cache_clear(media_cache *s);

#endif
