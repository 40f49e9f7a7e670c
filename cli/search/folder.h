/* The files below a folder that can be searched, and the others. */
#ifndef BZ_CLI_SEARCH_FOLDER_H
#define BZ_CLI_SEARCH_FOLDER_H

#include "base/error.h"

typedef struct folder_file {
    char *path;          /* owned; with the folder's own path */
    const char *skipped; /* why it is not searched; NULL: it is */
    bool markdown;
} folder_file;

/* Zero-initialize. */
typedef struct folder {
    folder_file *files; /* [n] by path */
    size_t n, cap;
} folder;

void folder_free(folder *f);

/* Lists all files. Names that begin with a dot are not looked at, links are not followed. */
bz_status folder_list(folder *f, const char *path, bz_error *err);

enum { FOLDER_MAX_BYTES = 64 << 20 }; /* of a file */

/* The text of a file, without a byte order mark; the caller frees *memory. Sets file->skipped if it
 * cannot be read or is no text. False: no memory. */
bool folder_read(folder_file *file, char **memory, bz_str *text);

#endif
