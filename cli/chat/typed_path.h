/* File names as users type them or drop them onto the terminal. */
#ifndef BZ_CLI_TYPED_PATH_H
#define BZ_CLI_TYPED_PATH_H

#include <stddef.h>

/* The path that `text` [n] means: the text itself if such a file exists, else the text read as a
 * shell word, since terminals quote or escape a dropped file name. ~/ is the home folder. The
 * caller frees it; NULL: no memory. */
char *typed_path(const char *text, size_t n);

#endif
