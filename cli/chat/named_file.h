/* Finds the name of an image or audio file in a message. Other programs attach such files by
 * themselves; Bezel never does, but prints how to attach them. */
#ifndef BZ_CLI_NAMED_FILE_H
#define BZ_CLI_NAMED_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "bezel_media.h"

/* Copies the first word of `text` [n] that names an existing file with an image or audio extension
 * to `name`. false: there is none. */
enum { NAMED_FILE_MAX = 1024 };
bool named_file(const char *text, size_t n, bz_media_kind *kind, char name[NAMED_FILE_MAX]);

#endif
