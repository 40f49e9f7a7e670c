/* Caches in GPU buffers: per layer keys and values, [row][kv_heads * head_dim], f16 pairs or f32. */
#include <stdlib.h>

#include "gpu/internal.h"

struct bz_snapshot {
    gpu *g;
    uint32_t pos;
    uint32_t n;
    gpu_buffer k_and_v[]; /* [2 n], 0 where the layer has no ring */
};

static uint64_t row_bytes(const bz_kv *kv, const kv_cache *c)
{
    return (uint64_t)c->row_values * kv->value_bytes;
}

static void kv_free(bz_backend *b, bz_kv *kv)
{
    (void)b;
    if (!kv) {
        return;
    }
    for (uint32_t i = 0; i < kv->n; i++) {
        if (kv->cache[i].k) {
            gpu_buffer_free(kv->g, kv->cache[i].k);
        }
        if (kv->cache[i].v) {
            gpu_buffer_free(kv->g, kv->cache[i].v);
        }
    }
    free(kv->cache);
    free(kv);
}

static bz_status resize(bz_kv *kv, kv_cache *c, uint32_t rows, bz_error *err)
{
    gpu_buffer *const both[2] = {&c->k, &c->v};
    const gpu_limits *l = gpu_limits_of(kv->g);
    const uint64_t bytes = rows * row_bytes(kv, c);
    if (bytes > l->max_binding) {
        return bz_fail(err, BZ_OUT_OF_MEMORY,
                       "A cache of %u positions is larger than this GPU can bind (%.0f MB). Use a smaller context.", rows,
                       (double)l->max_binding / 1e6);
    }
    for (int i = 0; i < 2; i++) {
        bz_error why = {0};
        gpu_buffer fresh = gpu_buffer_new(kv->g, bytes, GPU_STORAGE, &why);
        if (!fresh) {
            return why.code != BZ_OUT_OF_MEMORY
                       ? bz_fail(err, why.code, "%s", why.text)
                       : bz_fail(err, BZ_OUT_OF_MEMORY,
                                 "The GPU has no memory left for the keys and values of %u positions. Use a smaller "
                                 "context, or close other programs that use the GPU.",
                                 rows);
        }
        if (*both[i]) {
            gpu_copy(kv->g, *both[i], 0, fresh, 0, c->rows * row_bytes(kv, c));
            gpu_buffer_free(kv->g, *both[i]);
        }
        *both[i] = fresh;
        kv->generation++;
    }
    c->rows = rows;
    return BZ_OK;
}

static bz_status kv_new(bz_backend *backend, const bz_cache_info *caches, uint32_t n, bool f32, uint32_t slack, bz_kv **out,
                        bz_error *err)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    bz_kv *kv = calloc(1, sizeof *kv);
    bz_status status = kv && (kv->cache = calloc(n ? n : 1, sizeof *kv->cache)) != NULL
                           ? BZ_OK
                           : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the key and value cache.");
    for (uint32_t i = 0; status == BZ_OK && i < n; i++) {
        kv->g = b->g;
        kv->n = i + 1;
        kv->value_bytes = f32 ? 4 : 2;
        kv->cache[i] = (kv_cache){.row_values = caches[i].kv_heads * caches[i].head_dim,
                                  .kv_heads = caches[i].kv_heads,
                                  .window = caches[i].window};
        status = resize(kv, &kv->cache[i], caches[i].window ? caches[i].window + slack : 256, err);
    }
    if (status != BZ_OK) {
        kv_free(backend, kv);
        return status;
    }
    *out = kv;
    return BZ_OK;
}

/* Twice as large each time; where that does not fit, as large as it must be. What there is stays as it is when
 * even that is too much. */
static bz_status grow(bz_kv *kv, kv_cache *c, uint32_t positions, bz_error *err)
{
    uint32_t rows = c->rows, least = (positions + 255) / 256 * 256;
    while (rows < positions) {
        rows = rows > UINT32_MAX / 2 ? least : rows * 2;
    }
    bz_status status = resize(kv, c, rows, err);
    return status == BZ_OUT_OF_MEMORY && least < rows ? resize(kv, c, least, err) : status;
}

static bz_status kv_reserve(bz_backend *b, bz_kv *kv, uint32_t positions, bz_error *err)
{
    (void)b;
    bz_status status = BZ_OK;
    for (uint32_t i = 0; status == BZ_OK && i < kv->n; i++) {
        kv_cache *c = &kv->cache[i];
        if (!c->window && c->rows < positions) {
            status = grow(kv, c, positions, err);
        }
    }
    return status;
}

static uint64_t kv_bytes(const bz_kv *kv)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < kv->n; i++) {
        total += 2 * kv->cache[i].rows * row_bytes(kv, &kv->cache[i]);
    }
    return total;
}

static uint32_t kv_ring_rows(const bz_kv *kv)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < kv->n; i++) {
        if (kv->cache[i].window && kv->cache[i].rows < least) {
            least = kv->cache[i].rows;
        }
    }
    return least;
}

/* ---- snapshots ---------------------------------------------------------------- */

static size_t snapshot_bytes(const bz_kv *kv)
{
    size_t total = 0;
    for (uint32_t i = 0; i < kv->n; i++) {
        if (kv->cache[i].window) {
            total += 2 * (size_t)(kv->cache[i].window - 1) * row_bytes(kv, &kv->cache[i]);
        }
    }
    return total;
}

static void snapshot_free(bz_snapshot *s)
{
    for (uint32_t i = 0; s && i < 2 * s->n; i++) {
        if (s->k_and_v[i]) {
            gpu_buffer_free(s->g, s->k_and_v[i]);
        }
    }
    free(s);
}

static bz_snapshot *snapshot_new(const bz_kv *kv)
{
    bz_snapshot *s = calloc(1, sizeof *s + 2 * kv->n * sizeof *s->k_and_v);
    if (!s) {
        return NULL;
    }
    s->g = kv->g;
    s->n = kv->n;
    for (uint32_t i = 0; i < 2 * kv->n; i++) {
        const kv_cache *c = &kv->cache[i / 2];
        if (c->window > 1) {
            s->k_and_v[i] = gpu_buffer_new(kv->g, (c->window - 1) * row_bytes(kv, c), GPU_STORAGE, NULL);
            if (!s->k_and_v[i]) {
                snapshot_free(s);
                return NULL;
            }
        }
    }
    return s;
}

/* The window's rows before pos lie in the ring in at most two stretches. */
static void copy_rings(const bz_snapshot *s, const bz_kv *kv, uint32_t pos, bool save)
{
    for (uint32_t i = 0; i < 2 * kv->n; i++) {
        const kv_cache *c = &kv->cache[i / 2];
        if (!s->k_and_v[i]) {
            continue;
        }
        gpu_buffer ring = i % 2 ? c->v : c->k;
        uint64_t row = row_bytes(kv, c);
        uint32_t keep = pos < c->window - 1 ? pos : c->window - 1;
        for (uint32_t done = 0; done < keep;) {
            uint32_t at = (pos - keep + done) % c->rows;
            uint32_t n = keep - done < c->rows - at ? keep - done : c->rows - at;
            if (save) {
                gpu_copy(s->g, ring, at * row, s->k_and_v[i], done * row, n * row);
            } else {
                gpu_copy(s->g, s->k_and_v[i], done * row, ring, at * row, n * row);
            }
            done += n;
        }
    }
}

static void snapshot_save(bz_snapshot *s, const bz_kv *kv, uint32_t pos)
{
    s->pos = pos;
    copy_rings(s, kv, pos, true);
}

static void snapshot_restore(const bz_snapshot *s, bz_kv *kv)
{
    copy_rings(s, kv, s->pos, false);
}

void gpu_kv_interface(bz_backend *b)
{
    b->kv_new = kv_new;
    b->kv_free = kv_free;
    b->kv_reserve = kv_reserve;
    b->kv_bytes = kv_bytes;
    b->kv_ring_rows = kv_ring_rows;
    b->snapshot_new = snapshot_new;
    b->snapshot_free = snapshot_free;
    b->snapshot_bytes = snapshot_bytes;
    b->snapshot_save = snapshot_save;
    b->snapshot_restore = snapshot_restore;
}
