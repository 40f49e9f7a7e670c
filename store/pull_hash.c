#include "store/pull_hash.h"

#include <stdlib.h>

#include "base/os_program.h"

enum { PIECE = 1 << 20 };

struct bz_pull_hash {
    bz_os_thread *thread;
    int file;
    bz_sha256 sha;
    char *piece; /* [PIECE] */
    _Atomic uint64_t limit, done;
    atomic_bool stop, failed;
    atomic_uint changed; /* counts changes of limit and stop */
};

static void hash_next(bz_pull_hash *h, uint64_t at, uint64_t limit)
{
    const size_t want = limit - at < PIECE ? (size_t)(limit - at) : PIECE;
    const long n = bz_os_read_at(h->file, h->piece, want, at);
    if (n > 0) {
        bz_sha256_add(&h->sha, h->piece, (size_t)n);
        atomic_store(&h->done, at + (uint64_t)n);
    } else {
        atomic_store(&h->failed, true);
    }
}

static void run(void *user)
{
    bz_pull_hash *h = user;
    while (!atomic_load(&h->stop)) {
        const unsigned seen = atomic_load(&h->changed);
        const uint64_t at = atomic_load(&h->done), limit = atomic_load(&h->limit);
        if (at < limit && !atomic_load(&h->failed)) {
            hash_next(h, at, limit);
        } else if (!atomic_load(&h->stop)) {
            bz_os_wait(&h->changed, seen);
        }
    }
}

static void wake(bz_pull_hash *h)
{
    atomic_fetch_add(&h->changed, 1);
    bz_os_wake_all(&h->changed);
}

bz_pull_hash *bz_pull_hash_start(int file)
{
    bz_pull_hash *h = calloc(1, sizeof *h);
    if (h) {
        h->file = file;
        h->piece = malloc(PIECE);
        bz_sha256_begin(&h->sha);
        h->thread = h->piece ? bz_os_thread_start(run, h) : NULL;
    }
    if (h && !h->thread) {
        free(h->piece);
        free(h);
        return NULL;
    }
    return h;
}

void bz_pull_hash_limit(bz_pull_hash *h, uint64_t limit)
{
    if (limit > atomic_load(&h->limit)) {
        atomic_store(&h->limit, limit);
        wake(h);
    }
}

uint64_t bz_pull_hash_done(const bz_pull_hash *h)
{
    return atomic_load(&h->done);
}

bool bz_pull_hash_failed(const bz_pull_hash *h)
{
    return atomic_load(&h->failed);
}

void bz_pull_hash_text(const bz_pull_hash *h, char text[BZ_SHA256_TEXT])
{
    bz_sha256 copy = h->sha;
    uint8_t digest[BZ_SHA256_BYTES];
    bz_sha256_end(&copy, digest);
    bz_sha256_text(digest, text);
}

void bz_pull_hash_stop(bz_pull_hash *h)
{
    if (h) {
        atomic_store(&h->stop, true);
        wake(h);
        bz_os_thread_join(h->thread);
        free(h->piece);
        free(h);
    }
}
