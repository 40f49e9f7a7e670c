/* Converts the path of a request to a file name below a folder. */
#ifndef BZ_SERVER_PATH_H
#define BZ_SERVER_PATH_H

#include "base/error.h"

enum { PATH_SIZE = 4096 };

typedef enum path_answer {
    PATH_OK,
    PATH_BAD,   /* 400: malformed, or with encoded separators (%2F, %5C, %00) */
    PATH_HIDDEN /* 404: never served: "..", ".git", "a//b", names that are too long */
} path_answer;

/* "/a/b%20c.js" becomes "a/b c.js", "/" becomes "", "/a/" becomes "a" with *folder true. No part of
 * the result is empty or begins with a dot, and none has '/', '\\' or a control character. */
path_answer path_decode(bz_str path, char out[PATH_SIZE], bool *folder);

#endif
