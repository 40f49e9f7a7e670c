#include "grammar/vocabulary.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"

enum { MAX_KEPT = 512 };

typedef struct kept_value {
    void *key, *value;
    size_t n;
    uint64_t hash;
    void (*release)(void *value);
} kept_value;

struct bz_vocabulary {
    bz_trie *trie;
    bz_safe safe;
    bz_lock lock; /* of what follows */
    kept_value kept[MAX_KEPT];
    uint32_t n_kept;
};

bz_status bz_vocabulary_new(bz_vocabulary **out, const bz_str *text, uint32_t n, bz_error *err)
{
    bz_vocabulary *v = calloc(1, sizeof *v);
    if (!v) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the vocabulary's tree.");
    }
    bz_status status = bz_trie_new(&v->trie, text, n, err);
    if (status == BZ_OK) {
        status = bz_safe_new(&v->safe, text, n, err);
    }
    if (status != BZ_OK) {
        bz_vocabulary_free(v);
        return status;
    }
    *out = v;
    return BZ_OK;
}

void bz_vocabulary_free(bz_vocabulary *v)
{
    if (!v) {
        return;
    }
    for (uint32_t i = 0; i < v->n_kept; i++) {
        v->kept[i].release(v->kept[i].value);
        free(v->kept[i].key);
    }
    bz_trie_free(v->trie);
    bz_safe_free(&v->safe);
    free(v);
}

const bz_trie *bz_vocabulary_trie(const bz_vocabulary *v)
{
    return v->trie;
}

const bz_safe *bz_vocabulary_safe(const bz_vocabulary *v)
{
    return &v->safe;
}

static uint64_t hash_of(const void *key, size_t n)
{
    const unsigned char *bytes = key;
    uint64_t h = n;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ bytes[i]) * 0x100000001B3u;
    }
    return h;
}

static const void *find(const bz_vocabulary *v, const void *key, size_t n, uint64_t hash)
{
    for (uint32_t i = 0; i < v->n_kept; i++) {
        if (v->kept[i].hash == hash && v->kept[i].n == n && memcmp(v->kept[i].key, key, n) == 0) {
            return v->kept[i].value;
        }
    }
    return NULL;
}

const void *bz_vocabulary_get(bz_vocabulary *v, const void *key, size_t n)
{
    const uint64_t hash = hash_of(key, n);
    bz_lock_take(&v->lock);
    const void *value = find(v, key, n, hash);
    bz_lock_give(&v->lock);
    return value;
}

const void *bz_vocabulary_put(bz_vocabulary *v, const void *key, size_t n, void *value,
                              void (*release)(void *value), bool *taken)
{
    void *copy = malloc(n);
    const uint64_t hash = hash_of(key, n);
    bz_lock_take(&v->lock);
    const void *there = find(v, key, n, hash);
    *taken = !there && copy && v->n_kept < MAX_KEPT;
    if (*taken) {
        memcpy(copy, key, n);
        v->kept[v->n_kept++] = (kept_value){copy, value, n, hash, release};
    }
    bz_lock_give(&v->lock);
    if (!*taken) {
        free(copy);
    }
    return there ? there : value;
}
