/* Inside the lookup: what its files share. Everybody else includes file/ollama.h. */
#ifndef BZ_FILE_OLLAMA_INSIDE_H
#define BZ_FILE_OLLAMA_INSIDE_H

#include "store/ollama.h"

enum {
    BZ_SHOWN_NAME = 80, /* most characters of a name in a sentence */
    BZ_SHOWN_PATH = 120,
    BZ_SUGGESTIONS = 3
};

/* A string of its own; NULL without memory. */
char *bz_store_text(const char *format, ...) BZ_PRINTF(1, 2);
bz_status bz_store_no_memory(bz_error *err);
void bz_store_roots_free(bz_store_root *roots, size_t n);

/* ---- every name there is ------------------------------------------------------- */

typedef struct bz_found {
    bz_store_name name;
    size_t root;
} bz_found;

typedef struct bz_catalogue {
    bz_store_root roots[BZ_STORE_ROOTS];
    size_t n_roots;
    bz_found *names; /* [n] by root, then by name */
    size_t n, cap;
    bool no_memory;
} bz_catalogue;

bz_status bz_catalogue_read(bz_catalogue *c, bz_error *err); /* a zeroed one; free it either way */
void bz_catalogue_free(bz_catalogue *c);

/* Exactly that name if there is one, else one that differs in case only, else NULL. */
const bz_found *bz_catalogue_find(const bz_catalogue *c, const bz_store_name *name);

/* Up to three other names, the nearest to what was asked for first. True: they are near enough
 * to be what was meant. */
bool bz_catalogue_nearest(const bz_catalogue *c, const bz_store_name *asked,
                          const bz_found *best[BZ_SUGGESTIONS], size_t *n);

/* ---- one model ------------------------------------------------------------------ */

/* Fills the model (free it either way), and of the entry what there is to know even of a model
 * that is refused. The sentence of a refusal ends without a full stop: it may go on. */
bz_status bz_store_load(const bz_catalogue *c, const bz_found *f, bz_store_model *model,
                        bz_store_entry *entry, bz_error *err);

#endif
