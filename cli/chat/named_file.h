/* A picture or sound that a message names, as people do who know programs that look into every
 * message for such names. Here a name is a name: nothing is read that was not attached, but how to
 * attach it is told. */
#ifndef BZ_CLI_NAMED_FILE_H
#define BZ_CLI_NAMED_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "bezel_media.h"

/* The first word of `text` [n] that is the name of a file, and ends as those of pictures or sounds
 * do: as it stands there, into `name`. false: there is none. */
enum { NAMED_FILE_ROOM = 1024 };
bool named_file(const char *text, size_t n, bz_media_kind *kind, char name[NAMED_FILE_ROOM]);

#endif
