/* SHA-256 of a file while it is being written, on a thread of its own: it follows the bytes that
 * are complete from the beginning, so that little is left to hash after the last byte has arrived.
 */
#ifndef BZ_STORE_PULL_HASH_H
#define BZ_STORE_PULL_HASH_H

#include "base/error.h"
#include "base/sha256.h"

typedef struct bz_pull_hash bz_pull_hash;

bz_pull_hash *bz_pull_hash_start(int file); /* NULL: no memory, or no thread */
/* Bytes 0..limit are complete. It never decreases. */
void bz_pull_hash_limit(bz_pull_hash *h, uint64_t limit);
uint64_t bz_pull_hash_done(const bz_pull_hash *h); /* bytes so far */
bool bz_pull_hash_failed(const bz_pull_hash *h);   /* the file cannot be read */
/* Of bz_pull_hash_done bytes; the thread must be idle: all bytes below the limit are hashed. */
void bz_pull_hash_text(const bz_pull_hash *h, char text[BZ_SHA256_TEXT]);
void bz_pull_hash_stop(bz_pull_hash *h); /* NULL is allowed */

#endif
