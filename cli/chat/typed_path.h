/* File names as people type or drop them into a chat. */
#ifndef BZ_CLI_TYPED_PATH_H
#define BZ_CLI_TYPED_PATH_H

#include <stddef.h>

/* The file that `text` [n] names: as it stands if there is one of that name, else as a shell would
 * read it, for terminals put quotation marks around a file that is dropped on them, or backslashes
 * into its name. ~/ is the home folder. To be freed; NULL: no memory. */
char *typed_path(const char *text, size_t n);

#endif
