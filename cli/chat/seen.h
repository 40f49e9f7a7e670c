/* What a chat has looked at and listened to. A question about a picture works on when its file is
 * gone or has become another one: a screenshot is often both. */
#ifndef BZ_CLI_SEEN_H
#define BZ_CLI_SEEN_H

#include "bezel_media.h"

typedef struct seen_one {
    bz_media_kind kind;
    char *path;      /* owned, as the conversation has it */
    bz_media *media; /* owned */
} seen_one;

typedef struct seen_list {
    seen_one *list; /* [n]; of those with one name in the order of the conversation */
    size_t n;
} seen_list;

/* The one that the conversation names so for the nth time, counted from 0; borrowed. NULL: not seen
 * yet. */
const bz_media *seen_find(const seen_list *s, bz_media_kind kind, const char *path, size_t len,
                          size_t nth);
/* Takes the media, also where it fails; false: no memory. */
bool seen_keep(seen_list *s, bz_media_kind kind, const char *path, size_t len, bz_media *media);
void seen_forget(seen_list *s, bz_media_kind kind, const char *path); /* the last of that name */
void seen_clear(seen_list *s);

#endif
