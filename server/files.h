/* Handlers that serve files: a folder, and models by name. */
#ifndef BZ_SERVER_FILES_H
#define BZ_SERVER_FILES_H

#include "server/server.h"

typedef struct files_folder {
    int fd; /* os_open_folder */
} files_folder;

/* "/a/b.js" is the file a/b.js of the folder, "/a/" its a/index.html. For HTTP_GET on "/". */
void files_serve_folder(void *folder, exchange *x);

typedef struct files_model {
    char *name; /* in addresses: "gemma-4-E2B-it-Q4_K_M.gguf"; no '/' */
    char *path;
    const char *of; /* the model that this is a part or the mmproj file of; NULL: a model itself */
} files_model;

typedef struct files_models {
    files_model *list; /* [n] */
    size_t n;
    size_t n_named; /* those of the command line come first; refresh replaces the others */
    /* NULL, or brings the list up to date: called when it is asked for, and for unknown names. */
    void (*refresh)(struct files_models *models);
} files_models;

/* "/models/NAME" is that file; "/models/" lists names, sizes and which files belong together, as
 * JSON. For HTTP_GET on "/models/". */
void files_serve_models(void *models, exchange *x);

#endif
