/* Shared by the files of the store. Others include store/ollama.h. */
#ifndef BZ_STORE_OLLAMA_INTERNAL_H
#define BZ_STORE_OLLAMA_INTERNAL_H

#include "store/ollama.h"

enum {
    BZ_SHOWN_NAME = 80, /* maximum characters of a name in a message */
    BZ_SHOWN_PATH = 120,
    BZ_SUGGESTIONS = 3
};

/* An allocated string; NULL: no memory. */
char *bz_store_text(const char *format, ...) BZ_PRINTF(1, 2);
bz_status bz_store_no_memory(bz_error *err);
/* The folders to search, in their order. roots: [BZ_STORE_ROOTS]. Free them in any case. */
bz_status bz_store_find_roots(bz_store_root *roots, size_t *n, bz_error *err);
void bz_store_roots_free(bz_store_root *roots, size_t n);

/* ---- all names ----------------------------------------------------------------- */

typedef struct bz_found {
    bz_store_name name;
    size_t root;
} bz_found;

typedef struct bz_catalog {
    bz_store_root roots[BZ_STORE_ROOTS];
    size_t n_roots;
    bz_found *names; /* [n] by root, then by name */
    size_t n, cap;
    bool no_memory;
} bz_catalog;

bz_status bz_catalog_read(bz_catalog *c, bz_error *err); /* zero-initialize; free it in any case */
void bz_catalog_free(bz_catalog *c);

/* The exact name, else one that differs only in case, else NULL. */
const bz_found *bz_catalog_find(const bz_catalog *c, const bz_store_name *name);

/* Up to three other names, the most similar first. True: they are similar enough for a suggestion.
 */
bool bz_catalog_nearest(const bz_catalog *c, const bz_store_name *asked,
                        const bz_found *best[BZ_SUGGESTIONS], size_t *n);

/* The error for a name that is not in the catalog: similar names, or what the store has. */
bz_status bz_store_no_such_name(const bz_catalog *c, const char *model, const bz_store_name *asked,
                                bz_error *err);

/* ---- one model ------------------------------------------------------------------ */

/* Fills the model (free it in any case) and the entry, as far as possible also for a model that is
 * refused. The error has no full stop, so that callers can extend it. */
bz_status bz_store_load(const bz_catalog *c, const bz_found *f, bz_store_model *model,
                        bz_store_entry *entry, bz_error *err);
/* As bz_store_blobs. */
bz_status bz_store_load_blobs(const bz_catalog *c, const bz_found *f, bz_store_blob **blobs,
                              size_t *n, bz_error *err);

#endif
