/* The encoded images and audio of a conversation. They stay usable when their file is deleted or
 * replaced, as screenshots often are. */
#ifndef BZ_CLI_SEEN_H
#define BZ_CLI_SEEN_H

#include "bezel_media.h"

typedef struct seen_one {
    bz_media_kind kind;
    char *path;      /* owned; as in the conversation */
    bz_media *media; /* owned */
} seen_one;

typedef struct seen_list {
    seen_one *list; /* [n]; entries of one path are in the order of the conversation */
    size_t n;
} seen_list;

/* The nth entry (from 0) with this path; borrowed. NULL: there is none. */
const bz_media *seen_find(const seen_list *s, bz_media_kind kind, const char *path, size_t len,
                          size_t nth);
/* Takes ownership of media, also if it fails; false: no memory. */
bool seen_keep(seen_list *s, bz_media_kind kind, const char *path, size_t len, bz_media *media);
void seen_forget(seen_list *s, bz_media_kind kind,
                 const char *path); /* the last entry with this path */
void seen_clear(seen_list *s);

#endif
