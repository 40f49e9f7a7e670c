/* Changes in Ollama's store: same layout and permissions as Ollama's own. */
#ifndef BZ_STORE_WRITE_H
#define BZ_STORE_WRITE_H

#include "store/ollama_internal.h"

/* ---- verbs ---------------------------------------------------------------------------- */

/* Removes the name, and its blobs that no other name of that store uses. not_found: no such name.
 */
bz_status bz_store_remove(const char *name, bz_error *err);

/* Makes `to` another name of the same model; replaces one that exists. */
bz_status bz_store_copy(const char *from, const char *to, bz_error *err);

/* ---- for pulling ------------------------------------------------------------------------ */

/* The store that new models are written to: OLLAMA_MODELS, else the first existing store that this
 * user may write, else ~/.ollama/models. */
bz_status bz_store_writable_root(char **root, bz_error *err);

/* Creates a root, and the folder that holds it; the one above must exist. An error shows when the
 * store is written. */
void bz_store_make_root(const char *root);

/* Paths below a root; NULL: no memory. The caller frees them. */
char *bz_store_blob_path(const char *root, const char digest[BZ_DIGEST_TEXT]);
char *bz_store_manifest_path(const char *root, const bz_store_name *name);

/* Creates the folder of a file and all folders above it. */
bz_status bz_store_make_folders(const char *path, bz_error *err);
/* Flushes the folder of a file, so that its name survives a power failure. */
bz_status bz_store_sync_parent(const char *path, bz_error *err);
/* Replaces the file in one step; readers see the old or the new text. */
bz_status bz_store_replace(const char *root, const char *path, const char *text, size_t n,
                           bz_error *err);

uint64_t bz_store_free_space(const char *root); /* bytes; UINT64_MAX: not known */

/* Held while manifests change and blobs are removed, never for longer than that: a lock on the
 * folder of blobs. Returns a descriptor, or -1 without a lock. */
int bz_store_lock(const char *root);
void bz_store_unlock(int lock);

/* Removes those blobs of `manifest` that no manifest below the root names. Needs the lock. Does
 * nothing if OLLAMA_NOPRUNE is set or if a manifest cannot be read. */
void bz_store_prune(const char *root, const bz_store_manifest *manifest);

#endif
