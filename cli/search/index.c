#include "cli/search/index.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/little.h"
#include "base/os.h"

static const char MAGIC[8] = {'B', 'Z', 'S', 'E', 'A', 'R', 'C', 'H'};

enum {
    VERSION = 1,
    HEAD = 8 + 4 + 4 + SEARCH_KEY + 8 + 8,
    ENTRY = SEARCH_KEY + 4,
    MAX_DIMENSIONS = 1 << 16
};

void search_index_free(search_index *x)
{
    for (size_t i = 0; i < x->n; i++) {
        free(x->entries[i].vectors);
    }
    free(x->entries);
    x->entries = NULL;
    x->n = x->cap = 0;
}

/* ---- entries ---------------------------------------------------------------------------- */

/* The first entry whose key is not less. */
static size_t place_of(const search_index *x, const uint8_t key[SEARCH_KEY])
{
    size_t low = 0, high = x->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (memcmp(x->entries[middle].key, key, SEARCH_KEY) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

search_entry *search_index_find(const search_index *x, const uint8_t key[SEARCH_KEY])
{
    const size_t i = place_of(x, key);
    return i < x->n && memcmp(x->entries[i].key, key, SEARCH_KEY) == 0 ? &x->entries[i] : NULL;
}

search_entry *search_index_add(search_index *x, const uint8_t key[SEARCH_KEY], uint32_t n)
{
    const size_t i = place_of(x, key);
    float *vectors = calloc((size_t)n * x->dimensions + 1, sizeof *vectors);
    if (vectors && x->n == x->cap) {
        const size_t cap = 2 * x->cap + 64;
        search_entry *more = realloc(x->entries, cap * sizeof *more);
        x->entries = more ? more : x->entries;
        x->cap = more ? cap : x->cap;
    }
    if (!vectors || x->n == x->cap) {
        free(vectors);
        return NULL;
    }
    search_entry *e = &x->entries[i];
    memmove(e + 1, e, (x->n - i) * sizeof *e);
    x->n++;
    *e = (search_entry){.vectors = vectors, .n = n};
    memcpy(e->key, key, SEARCH_KEY);
    return e;
}

/* ---- reading ---------------------------------------------------------------------------- */

static bz_status damaged(search_index *x, bz_error *err)
{
    search_index_free(x);
    return bz_fail(err, BZ_BAD_FILE, "is damaged");
}

static bz_status check_head(const search_index *x, const uint8_t *bytes, bz_error *err)
{
    if (bz_le32(bytes + 8) != VERSION) {
        return bz_fail(err, BZ_BAD_REQUEST, "is of another version of Bezel");
    }
    if (bz_le32(bytes + 12) != x->dimensions || memcmp(bytes + 16, x->model, SEARCH_KEY) != 0) {
        return bz_fail(err, BZ_BAD_REQUEST, "was made with another model");
    }
    return BZ_OK;
}

/* The checksum is right, so the file is as it was written; but by whom? */
static bz_status read_entries(search_index *x, const uint8_t *bytes, size_t n, bz_error *err)
{
    const uint64_t entries = bz_le64(bytes + 16 + SEARCH_KEY),
                   vectors = bz_le64(bytes + 24 + SEARCH_KEY);
    const size_t width = sizeof(float) * x->dimensions, body = n - HEAD - BZ_SHA256_BYTES;
    if (entries > body / ENTRY || vectors > body / width ||
        entries * ENTRY + vectors * width != body) {
        return damaged(x, err);
    }
    const uint8_t *at = bytes + HEAD, *v = at + entries * ENTRY;
    uint64_t left = vectors;
    for (uint64_t i = 0; i < entries; i++, at += ENTRY) {
        const uint32_t count = bz_le32(at + SEARCH_KEY);
        if (count > left || (i && memcmp(at - ENTRY, at, SEARCH_KEY) >= 0)) {
            return damaged(x, err);
        }
        search_entry *e = search_index_add(x, at, count);
        if (!e) {
            search_index_free(x);
            return bz_fail(err, BZ_OUT_OF_MEMORY, "is too large for the memory");
        }
        for (size_t k = 0; k < (size_t)count * x->dimensions; k++, v += sizeof(float)) {
            const uint32_t bits = bz_le32(v);
            memcpy(&e->vectors[k], &bits, sizeof bits);
            if (!isfinite(e->vectors[k])) {
                return damaged(x, err);
            }
        }
        left -= count;
    }
    return left ? damaged(x, err) : BZ_OK;
}

bz_status search_index_read(search_index *x, const uint8_t *bytes, size_t n, bz_error *err)
{
    uint8_t sum[BZ_SHA256_BYTES];
    bz_sha256 s;
    if (n < HEAD + BZ_SHA256_BYTES || memcmp(bytes, MAGIC, sizeof MAGIC) != 0 || !x->dimensions ||
        x->dimensions > MAX_DIMENSIONS) {
        return damaged(x, err);
    }
    bz_sha256_begin(&s);
    bz_sha256_add(&s, bytes, n - BZ_SHA256_BYTES);
    bz_sha256_end(&s, sum);
    if (memcmp(sum, bytes + n - BZ_SHA256_BYTES, sizeof sum) != 0) {
        return damaged(x, err);
    }
    const bz_status status = check_head(x, bytes, err);
    return status == BZ_OK ? read_entries(x, bytes, n, err) : status;
}

/* ---- writing ---------------------------------------------------------------------------- */

typedef struct writing {
    bz_os_writer *w;
    bz_sha256 sum;
} writing;

static bool put(writing *o, const void *bytes, size_t n)
{
    bz_sha256_add(&o->sum, bytes, n);
    return bz_os_writer_put(o->w, bytes, n);
}

static bool put_number(writing *o, uint64_t value, size_t bytes)
{
    uint8_t out[8];
    for (size_t i = 0; i < bytes; i++) {
        out[i] = (uint8_t)(value >> 8 * i);
    }
    return put(o, out, bytes);
}

static bool put_vectors(writing *o, const float *v, size_t n)
{
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        uint32_t bits;
        memcpy(&bits, &v[i], sizeof bits);
        ok = put_number(o, bits, sizeof bits);
    }
    return ok;
}

static bool put_all(writing *o, const search_index *x)
{
    uint64_t entries = 0, vectors = 0;
    for (size_t i = 0; i < x->n; i++) {
        entries += x->entries[i].used;
        vectors += x->entries[i].used ? x->entries[i].n : 0;
    }
    bool ok = put(o, MAGIC, sizeof MAGIC) && put_number(o, VERSION, 4) &&
              put_number(o, x->dimensions, 4) && put(o, x->model, SEARCH_KEY) &&
              put_number(o, entries, 8) && put_number(o, vectors, 8);
    for (size_t i = 0; i < x->n && ok; i++) {
        const search_entry *e = &x->entries[i];
        ok = !e->used || (put(o, e->key, SEARCH_KEY) && put_number(o, e->n, 4));
    }
    for (size_t i = 0; i < x->n && ok; i++) {
        const search_entry *e = &x->entries[i];
        ok = !e->used || put_vectors(o, e->vectors, (size_t)e->n * x->dimensions);
    }
    uint8_t sum[BZ_SHA256_BYTES];
    bz_sha256_end(&o->sum, sum);
    return ok && bz_os_writer_put(o->w, sum, sizeof sum);
}

bz_status search_index_write(const search_index *x, const char *path, bz_error *err)
{
    writing o = {0};
    bz_sha256_begin(&o.sum);
    const bz_status status = bz_os_writer_open(&o.w, path, err);
    return status == BZ_OK ? bz_os_writer_close(o.w, put_all(&o, x), err) : status;
}
