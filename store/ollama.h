/* Models by name from Ollama's store on this machine. store/write.h and store/pull.h change it.
 *
 *   <root>/manifests/<host>/<namespace>/<model>/<tag>    JSON: the layers of a model
 *   <root>/blobs/sha256-<64 digits>                      the layers, and a config in JSON
 *
 * The root is OLLAMA_MODELS; without it <home>/.ollama/models, then the folders of a system
 * service: /usr/share/ollama/.ollama/models and /var/lib/ollama/.ollama/models. A name is
 * searched in each of them in turn. */
#ifndef BZ_STORE_OLLAMA_H
#define BZ_STORE_OLLAMA_H

#include "store/ollama_manifest.h"
#include "store/ollama_name.h"

/* ---- one model ------------------------------------------------------------------ */

/* What MODEL resolves to. All strings are owned. */
typedef struct bz_store_model {
    char *name;        /* "gemma4:e2b"; NULL: it was the path of a file */
    char *path;        /* of the GGUF */
    char **projectors; /* [n_projectors] paths of mmproj files, usually none or one */
    size_t n_projectors;
    char *draft;     /* path of the drafter, or NULL */
    char **adapters; /* [n_adapters] paths of LoRA adapters; all are applied */
    size_t n_adapters;
    char *system;               /* default system prompt, or NULL */
    bz_store_messages messages; /* with which every conversation begins */
    bz_store_params params;
    bz_store_config config;
} bz_store_model;

/* Resolves a path or, if there is no such file, a name in the store. Opens no model file, but
 * checks that all files of a name exist with the sizes in its manifest. Errors: not_found: no such
 * file or name (with similar names), a missing blob bad_file:           a folder; a broken or
 * unreadable manifest, config, params or blob unsupported_model:  safetensors, models that run
 * on a remote server */
bz_status bz_store_resolve(const char *model, bz_store_model *out, bz_error *err);
void bz_store_model_free(bz_store_model *m); /* may be all zero */

/* A file of the store that a model consists of. */
typedef struct bz_store_blob {
    char *path;                  /* owned */
    char digest[BZ_DIGEST_TEXT]; /* "sha256:" and the digits that the manifest names */
    uint64_t size;               /* as the manifest says */
    const char *what;            /* "model file" */
} bz_store_blob;

/* All files of the name of a bz_store_model: the config and every layer, also those that Bezel does
 * not use. They may be missing. *blobs: [*n], freed by bz_store_blobs_free. */
bz_status bz_store_blobs(const char *name, bz_store_blob **blobs, size_t *n, bz_error *err);
void bz_store_blobs_free(bz_store_blob *blobs, size_t n);

/* ---- all models ----------------------------------------------------------------- */

typedef struct bz_store_entry {
    char *name;                  /* as bz_store_resolve takes it */
    char *path;                  /* of the GGUF file, not opened yet; NULL: see problem */
    uint64_t size;               /* bytes of all layers */
    int64_t modified;            /* seconds since 1970 */
    char digest[BZ_DIGEST_TEXT]; /* of the GGUF; "" without one */
    bz_store_config config;
    bz_error problem; /* code 0: bz_store_resolve would find all its files */
} bz_store_entry;

typedef enum bz_store_state { BZ_STORE_MISSING, BZ_STORE_LOCKED, BZ_STORE_THERE } bz_store_state;

typedef struct bz_store_root {
    char *path;
    char *shown;          /* for messages: "~/.ollama/models" */
    bz_store_state state; /* locked: the folder exists, but this user may not read it */
} bz_store_root;

enum { BZ_STORE_ROOTS = 3 };

typedef struct bz_store_list {
    bz_store_entry *entries; /* [n], the newest first */
    size_t n;
    bz_store_root roots[BZ_STORE_ROOTS]; /* searched folders */
    size_t n_roots;
} bz_store_list;

/* An empty or missing store is an empty list. */
bz_status bz_store_list_all(bz_store_list *list, bz_error *err);
void bz_store_list_free(bz_store_list *list);

#endif
