/* A saved session: what it holds, and where there are caches in memory also those, so that nothing
 * is computed again.
 *
 *   8 bytes   "BZSESSN" and a zero
 *   saved_head
 *   tokens    [n] int32; pass_rows [n] uint16
 *   media     [n_spans] saved_media, each with its rows [rows][width] f32
 *   logits    [vocab] f32, if SAVED_LOGITS
 *   caches    cache_bytes as the back end packs them, if SAVED_CACHES
 *   snapshots [n_snapshots] position and size, uint32 and uint64, and bytes
 *   32 bytes  SHA-256 of all before
 *
 * Numbers are little-endian, as in GGUF files. A file is read for the model that wrote it only; a
 * file from elsewhere is untrusted input all the same. */
#ifndef BZ_SAVED_H
#define BZ_SAVED_H

#include "base/sha256.h"
#include "session/session.h"

#define SAVED_MAGIC "BZSESSN"
enum { SAVED_VERSION = 1, SAVED_LOGITS = 1, SAVED_CACHES = 2, SAVED_EXACT = 4 };
enum { SAVED_LAST = 8 }; /* instead of logits: those after the last token can be computed again */

typedef struct saved_head {
    uint32_t version, flags;
    uint8_t model[BZ_SHA256_BYTES]; /* of the headers and sizes of its files, and adapters */
    uint8_t
        weights[BZ_SHA256_BYTES]; /* of samples of the weights; zeros: they were not in memory */
    uint32_t n, n_spans, vocab, rings_from, n_snapshots;
    uint32_t kv; /* bz_cache_type if it is Q8 or Q4, else 0 */
    uint64_t cache_bytes;
} saved_head;

typedef struct saved_media {
    uint32_t first, kind, rows, width, pieces, reserved;
    uint64_t content[2];
} saved_media;

/* For saved_head.kv. */
static inline uint32_t bz_saved_kv(const bz_session *s)
{
    const bz_cache_type type = s->cache_type;
    return type == BZ_CACHE_Q8 || type == BZ_CACHE_Q4 ? (uint32_t)type : 0;
}

/* Without adapters (NULL) the hash is the model's alone. */
void bz_saved_model_hash(const bz_model *m, const bz_adapter_set *adapters, saved_head *head);

/* Gives a session what a file holds; the session is unchanged after an error. `name`: for messages.
 * For bz_session_load and for fuzzing. */
bz_status bz_saved_read(bz_session *s, const uint8_t *bytes, size_t n, const char *name,
                        bz_error *err);

#endif
