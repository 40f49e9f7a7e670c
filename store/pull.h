/* Downloads a model into Ollama's store, from Ollama's registry, from Hugging Face's mirror of its
 * protocol (hf.co/org/repo:quantization), or from any other registry that speaks it.
 *
 * Blobs are fetched first, in ranges over several connections, and checked by their SHA-256; the
 * manifest is written last, so a name never resolves to an incomplete model. An interrupted pull
 * continues where it stopped (store/pull_journal.h). Two pulls of the same blob wait for each
 * other. Without libcurl at build time, every call fails and names the package. */
#ifndef BZ_STORE_PULL_H
#define BZ_STORE_PULL_H

#include "base/json.h"

/* What a pull does at the moment, in the words of Ollama's API. */
typedef struct bz_pull_progress {
    const char *status;        /* "pulling manifest", "pulling 0123456789ab", "success", ... */
    const char *digest;        /* of the blob that is fetched, "sha256:..."; NULL: none */
    uint64_t total, completed; /* bytes of that blob, or bytes to hash; 0: not known */
} bz_pull_progress;

typedef struct bz_pull_options {
    const char *name;     /* as store/ollama_name.h; "http://" or "https://" may precede it */
    bool insecure;        /* allow http and use it; without it only for loopback addresses */
    unsigned connections; /* at the same time; 0: 8 */
    unsigned retries;     /* of a range without a new byte; 0: 7 */
    unsigned stall_s;     /* seconds without a byte until a connection is given up; 0: 30 */
    /* Called about ten times a second and at every change of status, on the caller's thread. */
    void (*on_progress)(void *user, const bz_pull_progress *progress);
    /* Called several times a second, on the same thread. True: the pull ends soon. May be NULL. */
    bool (*is_cancelled)(void *user);
    void *user;
} bz_pull_options;

/* Blocks until the model is in the store. What was fetched stays there after an error, for the
 * next pull. Errors: bad_request: not a name, or http without `insecure`; not_found: the registry
 * has no such model; unsupported_model: it has no GGUF file; network: the registry cannot be
 * reached or misbehaves; checksum: wrong bytes; bad_file: the store cannot be written; quota: the
 * disk is full; aborted: cancelled. */
bz_status bz_store_pull(const bz_pull_options *options, bz_error *err);

/* Whether this build can. */
bool bz_store_can_pull(void);

/* Writes one object as Ollama's API does: status, and digest, total and completed of a blob. */
void bz_pull_progress_json(bz_json *j, const bz_pull_progress *progress);

/* One file by its address, of at most `max` bytes, which the caller frees. */
typedef struct bz_get_options {
    const char *url; /* https, or http of this machine */
    size_t max;
    bool (*is_cancelled)(void *user); /* may be NULL */
    void *user;
} bz_get_options;
bz_status bz_store_get(const bz_get_options *options, char **bytes, size_t *n, bz_error *err);

#endif
