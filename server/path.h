/* From the path of a request to the name of a file below a folder. */
#ifndef BZ_SERVER_PATH_H
#define BZ_SERVER_PATH_H

#include "base/error.h"

enum { PATH_ROOM = 4096 };

typedef enum path_answer {
    PATH_OK,
    PATH_BAD,   /* 400: no path at all, or one that hides what it names (%2F, %5C, %00) */
    PATH_HIDDEN /* 404: a name this server never serves: "..", ".git", "a//b", names too long */
} path_answer;

/* "/a/b%20c.js" becomes "a/b c.js", "/" becomes "", "/a/" becomes "a" with *folder true. No part of
 * the result is empty or begins with a dot, and none holds '/', '\\' or a control character. */
path_answer path_decode(bz_str path, char out[PATH_ROOM], bool *folder);

#endif
