/* Caches in GPU buffers: keys and values of each layer, [row][kv_heads * head_dim], f16 or f32. A
 * cache larger than one binding is cut between rows into several pieces. */
#include <stdlib.h>

#include "gpu/run/internal.h"

struct bz_snapshot {
    gpu *g;
    uint32_t pos;
    uint32_t n;
    gpu_buffer k_and_v[]; /* [2 n], 0 if the layer has no ring */
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
        kv_cache *c = &kv->cache[i];
        for (uint32_t p = 0; p < c->n_pieces; p++) {
            gpu_buffer_free(kv->g, c->k[p]);
            gpu_buffer_free(kv->g, c->v[p]);
        }
        free(c->k);
        free(c->v);
    }
    free(kv->cache);
    free(kv);
}

static uint32_t rows_in_piece(const kv_cache *c, uint32_t rows, uint32_t piece)
{
    uint64_t first = (uint64_t)piece * c->piece_rows;
    return rows <= first                  ? 0
           : rows - first < c->piece_rows ? (uint32_t)(rows - first)
                                          : c->piece_rows;
}

/* Replaces a buffer, or none, by one of more rows with the same contents. */
static bz_status resize_piece(bz_kv *kv, const kv_cache *c, gpu_buffer *buffer, uint32_t had,
                              uint32_t rows, bz_error *err)
{
    bz_error why = {0};
    gpu_buffer fresh = gpu_buffer_new(kv->g, rows * row_bytes(kv, c), GPU_STORAGE, &why);
    if (!fresh) {
        return why.code != BZ_OUT_OF_MEMORY
                   ? bz_fail(err, why.code, "%s", why.text)
                   : bz_fail(err, BZ_OUT_OF_MEMORY,
                             "The GPU has no memory left for the keys and values of %u more "
                             "positions. Use a smaller context, "
                             "or close other programs that use the GPU.",
                             rows - had);
    }
    if (*buffer) {
        gpu_copy(kv->g, *buffer, 0, fresh, 0, had * row_bytes(kv, c));
        gpu_buffer_free(kv->g, *buffer);
    }
    *buffer = fresh;
    return BZ_OK;
}

static bool more_pieces(kv_cache *c, uint32_t n)
{
    gpu_buffer *k = realloc(c->k, n * sizeof *k);
    c->k = k ? k : c->k;
    gpu_buffer *v = realloc(c->v, n * sizeof *v);
    c->v = v ? v : c->v;
    for (uint32_t i = c->n_pieces; k && v && i < n; i++) {
        c->k[i] = c->v[i] = 0;
        c->n_pieces = i + 1;
    }
    return k && v;
}

/* Full pieces stay as they are; the last one grows, and more are added. */
static bz_status resize(gpu_backend *b, bz_kv *kv, kv_cache *c, uint32_t rows, bz_error *err)
{
    if (c->piece_rows == 0 || (c->window && rows > c->piece_rows)) {
        return bz_fail(err, BZ_OUT_OF_MEMORY,
                       "A cache of %u positions is larger than this GPU can bind (%.0f MB).", rows,
                       (double)gpu_limits_of(kv->g)->max_binding / 1e6);
    }
    const uint32_t pieces = (uint32_t)(((uint64_t)rows + c->piece_rows - 1) / c->piece_rows);
    if (!more_pieces(c, pieces)) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the key and value cache.");
    }
    bz_status status = BZ_OK;
    for (uint32_t p = 0; p < pieces && status == BZ_OK; p++) {
        uint32_t had = rows_in_piece(c, c->rows, p), want = rows_in_piece(c, rows, p);
        gpu_buffer *const both[2] = {&c->k[p], &c->v[p]};
        for (int i = 0; i < 2 && status == BZ_OK; i++) {
            if (want > had || !*both[i]) {
                status = resize_piece(kv, c, both[i], had, want, err);
                kv->generation = status == BZ_OK ? ++b->kv_generations
                                                 : kv->generation; /* lists bind the buffer */
            }
        }
    }
    c->rows = status == BZ_OK ? rows : c->rows;
    for (uint32_t p = c->n_pieces; status != BZ_OK && p-- > 0 && (!c->k[p] || !c->v[p]);
         c->n_pieces = p) {
        gpu_buffer_free(kv->g, c->k[p]); /* keys without values are useless */
        gpu_buffer_free(kv->g, c->v[p]);
    }
    return status;
}

static bz_status kv_new(bz_backend *backend, const bz_cache_info *caches, uint32_t n, bool f32,
                        uint32_t slack, bz_kv **out, bz_error *err)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    bz_kv *kv = calloc(1, sizeof *kv);
    bz_status status =
        kv && (kv->cache = calloc(n ? n : 1, sizeof *kv->cache)) != NULL
            ? BZ_OK
            : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the key and value cache.");
    for (uint32_t i = 0; status == BZ_OK && i < n; i++) {
        kv->g = b->g;
        kv->n = i + 1;
        kv->value_bytes = f32 ? 4 : 2;
        kv->cache[i] = (kv_cache){.row_values = caches[i].kv_heads * caches[i].head_dim,
                                  .kv_heads = caches[i].kv_heads,
                                  .window = caches[i].window};
        const gpu_limits *l = gpu_limits_of(b->g);
        uint64_t max = (l->max_binding < l->max_buffer ? l->max_binding : l->max_buffer) /
                       row_bytes(kv, &kv->cache[i]);
        kv->cache[i].piece_rows = max > 1u << 30 ? 1u << 30 : (uint32_t)max;
        status =
            resize(b, kv, &kv->cache[i], caches[i].window ? caches[i].window + slack : 256, err);
    }
    if (status != BZ_OK) {
        kv_free(backend, kv);
        return status;
    }
    *out = kv;
    return BZ_OK;
}

/* Doubles the cache; if that does not fit, makes it as large as needed. Unchanged on failure. */
static bz_status grow(gpu_backend *b, bz_kv *kv, kv_cache *c, uint32_t positions, bz_error *err)
{
    uint32_t rows = c->rows, needed = (positions + 255) / 256 * 256;
    while (rows < positions) {
        rows = rows > UINT32_MAX / 2 ? needed : rows * 2;
    }
    bz_status status = resize(b, kv, c, rows, err);
    return status == BZ_OUT_OF_MEMORY && needed < rows ? resize(b, kv, c, needed, err) : status;
}

static bz_status kv_reserve(bz_backend *backend, bz_kv *kv, uint32_t positions, bz_error *err)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    bz_status status = BZ_OK;
    for (uint32_t i = 0; status == BZ_OK && i < kv->n; i++) {
        kv_cache *c = &kv->cache[i];
        if (!c->window && c->rows < positions) {
            status = grow(b, kv, c, positions, err);
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
    uint32_t needed = UINT32_MAX;
    for (uint32_t i = 0; i < kv->n; i++) {
        if (kv->cache[i].window && kv->cache[i].rows < needed) {
            needed = kv->cache[i].rows;
        }
    }
    return needed;
}

/* ---- snapshots ---------------------------------------------------------------- */

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
            s->k_and_v[i] =
                gpu_buffer_new(kv->g, (c->window - 1) * row_bytes(kv, c), GPU_STORAGE, NULL);
            if (!s->k_and_v[i]) {
                snapshot_free(s);
                return NULL;
            }
        }
    }
    return s;
}

/* The window's rows before pos are at most two ranges of the ring. */
static void copy_rings(const bz_snapshot *s, const bz_kv *kv, uint32_t pos, bool save)
{
    for (uint32_t i = 0; i < 2 * kv->n; i++) {
        const kv_cache *c = &kv->cache[i / 2];
        if (!s->k_and_v[i]) {
            continue;
        }
        gpu_buffer ring = i % 2 ? c->v[0] : c->k[0];
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
    b->snapshot_save = snapshot_save;
    b->snapshot_restore = snapshot_restore;
}
