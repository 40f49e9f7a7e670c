/* The KV cache: one array of rows per layer and KV head. Layers with a window have a ring; the
 * others grow by doubling. Also snapshots of the rings. */
#include <stdlib.h>
#include <string.h>

#include "cpu/internal.h"

struct bz_snapshot {
    uint32_t pos;
    uint8_t bytes[];
};

static void kv_free(bz_backend *b, bz_kv *kv)
{
    (void)b;
    if (!kv) {
        return;
    }
    for (uint32_t i = 0; kv->layer && i < kv->n; i++) {
        kv_layer *l = &kv->layer[i];
        for (uint32_t h = 0; h < l->kv_heads; h++) {
            free(l->k ? l->k[h] : NULL);
            free(l->v ? l->v[h] : NULL);
        }
        free(l->k);
        free(l->v);
    }
    free(kv->layer);
    free(kv);
}

static bool resize_layer(bz_kv *kv, kv_layer *l, uint32_t rows)
{
    size_t bytes = rows * kv_row_bytes(kv, l);
    for (uint32_t h = 0; h < l->kv_heads; h++) {
        uint8_t *k = realloc(l->k[h], bytes);
        l->k[h] = k ? k : l->k[h];
        uint8_t *v = realloc(l->v[h], bytes);
        l->v[h] = v ? v : l->v[h];
        if (!k || !v) {
            return false;
        }
    }
    l->rows = rows;
    return true;
}

static bz_status kv_new(bz_backend *b, const bz_cache_info *caches, uint32_t n, bz_cache_type type,
                        uint32_t slack, const bz_kv *beside, bz_kv **out, bz_error *err)
{
    (void)beside; /* sequences share nothing */
    bz_kv *kv = calloc(1, sizeof *kv);
    bool ok = kv && (kv->layer = calloc(n ? n : 1, sizeof *kv->layer)) != NULL;
    for (uint32_t i = 0; ok && i < n; i++) {
        kv_layer *l = &kv->layer[i];
        kv->n = i + 1;
        kv->type = type;
        *l = (kv_layer){.kv_heads = caches[i].kv_heads,
                        .head_dim = caches[i].head_dim,
                        .window = caches[i].window};
        l->k = calloc(l->kv_heads, sizeof *l->k);
        l->v = calloc(l->kv_heads, sizeof *l->v);
        ok = l->k && l->v && (l->window == 0 || resize_layer(kv, l, l->window + slack));
    }
    if (!ok) {
        kv_free(b, kv);
        return bz_fail(err, BZ_OUT_OF_MEMORY,
                       "There is not enough memory for the KV cache of %u layers.", n);
    }
    *out = kv;
    return BZ_OK;
}

static bz_status kv_reserve(bz_backend *b, bz_kv *kv, uint32_t positions, bz_error *err)
{
    (void)b;
    for (uint32_t i = 0; i < kv->n; i++) {
        kv_layer *l = &kv->layer[i];
        if (l->window || l->rows >= positions) {
            continue;
        }
        uint32_t rows = l->rows ? l->rows : 256;
        while (rows < positions) {
            rows = rows > UINT32_MAX / 2 ? positions : rows * 2;
        }
        if (!resize_layer(kv, l, rows)) {
            return bz_fail(err, BZ_OUT_OF_MEMORY,
                           "There is not enough memory to grow the KV cache to %u positions; use a "
                           "shorter context.",
                           positions);
        }
    }
    return BZ_OK;
}

/* Position pos sees the window - 1 positions before it: those are saved and copied. */
static uint32_t rows_saved(const kv_layer *l, uint32_t pos)
{
    uint32_t max = l->window - 1;
    return pos < max ? pos : max;
}

static void kv_copy(bz_kv *to, const bz_kv *from, uint32_t begin, uint32_t end)
{
    for (uint32_t i = 0; i < from->n; i++) {
        const kv_layer *l = &from->layer[i], *t = &to->layer[i];
        const size_t row_bytes = kv_row_bytes(from, l);
        const uint32_t first = !l->window ? begin : end > l->window ? end - l->window : 0;
        for (uint32_t h = 0; h < l->kv_heads; h++) {
            for (uint32_t p = first; p < end; p++) {
                const size_t at = kv_row(l, p) * row_bytes, put = kv_row(t, p) * row_bytes;
                memcpy(t->k[h] + put, l->k[h] + at, row_bytes);
                memcpy(t->v[h] + put, l->v[h] + at, row_bytes);
            }
        }
    }
}

static uint64_t kv_bytes(const bz_kv *kv)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < kv->n; i++) {
        const kv_layer *l = &kv->layer[i];
        total += 2ull * l->kv_heads * l->rows * kv_row_bytes(kv, l);
    }
    return total;
}

static uint32_t kv_ring_rows(const bz_kv *kv)
{
    uint32_t min = UINT32_MAX;
    for (uint32_t i = 0; i < kv->n; i++) {
        if (kv->layer[i].window && kv->layer[i].rows < min) {
            min = kv->layer[i].rows;
        }
    }
    return min;
}

/* ---- snapshots ------------------------------------------------------------ */

static size_t snapshot_bytes(const bz_kv *kv)
{
    size_t total = 0;
    for (uint32_t i = 0; i < kv->n; i++) {
        const kv_layer *l = &kv->layer[i];
        if (l->window) {
            total += 2 * (size_t)(l->window - 1) * l->kv_heads * kv_row_bytes(kv, l);
        }
    }
    return total;
}

static bz_snapshot *snapshot_new(const bz_kv *kv)
{
    return calloc(1, sizeof(bz_snapshot) + snapshot_bytes(kv));
}

static void snapshot_free(bz_snapshot *snapshot)
{
    free(snapshot);
}

/* Copies between ring rows and the packed snapshot, in either direction. */
static void copy_rings(const bz_kv *kv, uint32_t pos, uint8_t *packed, bool save)
{
    for (uint32_t i = 0; i < kv->n; i++) {
        const kv_layer *l = &kv->layer[i];
        if (!l->window) {
            continue;
        }
        size_t row_bytes = kv_row_bytes(kv, l);
        for (uint32_t h = 0; h < l->kv_heads; h++) {
            for (uint32_t p = pos - rows_saved(l, pos); p < pos; p++) {
                size_t at = kv_row(l, p) * row_bytes;
                uint8_t *k = l->k[h] + at, *v = l->v[h] + at;
                memcpy(save ? packed : k, save ? k : packed, row_bytes);
                packed += row_bytes;
                memcpy(save ? packed : v, save ? v : packed, row_bytes);
                packed += row_bytes;
            }
        }
    }
}

static void snapshot_save(bz_snapshot *snapshot, const bz_kv *kv, uint32_t pos)
{
    snapshot->pos = pos;
    copy_rings(kv, pos, snapshot->bytes, true);
}

static void snapshot_restore(const bz_snapshot *snapshot, bz_kv *kv)
{
    copy_rings(kv, snapshot->pos, (uint8_t *)(uintptr_t)snapshot->bytes, false);
}

static void snapshot_copy(bz_snapshot *to, const bz_snapshot *from, const bz_kv *kv)
{
    to->pos = from->pos;
    memcpy(to->bytes, from->bytes, snapshot_bytes(kv));
}

/* ---- files ---------------------------------------------------------------- */

static uint8_t *snapshot_data(bz_snapshot *snapshot, const bz_kv *kv, size_t *n)
{
    *n = snapshot_bytes(kv);
    return snapshot->bytes;
}

static void snapshot_set_pos(bz_snapshot *snapshot, uint32_t pos)
{
    snapshot->pos = pos;
}

static uint64_t kv_saved_bytes(const bz_kv *kv, uint32_t begin, uint32_t end)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < kv->n; i++) {
        const kv_layer *l = &kv->layer[i];
        total += 2ull * l->kv_heads * (end - (l->window ? begin : 0)) * kv_row_bytes(kv, l);
    }
    return total;
}

static bool kv_save(const bz_kv *kv, uint32_t begin, uint32_t end,
                    bool (*put)(void *user, const void *bytes, size_t n), void *user)
{
    bool ok = true;
    for (uint32_t i = 0; i < kv->n; i++) {
        const kv_layer *l = &kv->layer[i];
        const size_t row_bytes = kv_row_bytes(kv, l);
        for (uint32_t h = 0; h < l->kv_heads; h++) {
            for (uint32_t p = l->window ? begin : 0; p < end && ok; p++) {
                const size_t at = kv_row(l, p) * row_bytes;
                ok = put(user, l->k[h] + at, row_bytes) && put(user, l->v[h] + at, row_bytes);
            }
        }
    }
    return ok;
}

static void kv_load(bz_kv *kv, uint32_t begin, uint32_t end, const uint8_t *bytes)
{
    for (uint32_t i = 0; i < kv->n; i++) {
        const kv_layer *l = &kv->layer[i];
        const size_t row_bytes = kv_row_bytes(kv, l);
        for (uint32_t h = 0; h < l->kv_heads; h++) {
            for (uint32_t p = l->window ? begin : 0; p < end; p++, bytes += 2 * row_bytes) {
                const size_t at = kv_row(l, p) * row_bytes;
                memcpy(l->k[h] + at, bytes, row_bytes);
                memcpy(l->v[h] + at, bytes + row_bytes, row_bytes);
            }
        }
    }
}

void cpu_kv_interface(bz_backend *b)
{
    b->kv_saved_bytes = kv_saved_bytes;
    b->kv_save = kv_save;
    b->kv_load = kv_load;
    b->snapshot_bytes = snapshot_data;
    b->snapshot_set_pos = snapshot_set_pos;
    b->kv_new = kv_new;
    b->kv_free = kv_free;
    b->kv_reserve = kv_reserve;
    b->kv_copy = kv_copy;
    b->kv_bytes = kv_bytes;
    b->kv_ring_rows = kv_ring_rows;
    b->snapshot_new = snapshot_new;
    b->snapshot_free = snapshot_free;
    b->snapshot_save = snapshot_save;
    b->snapshot_restore = snapshot_restore;
    b->snapshot_copy = snapshot_copy;
}
