/* Caches in GPU buffers: keys and values of each layer, [row][kv_heads], each as lower/lower.h
 * says, with the rows of all sequences of a pool. A cache larger than one binding is cut between
 * rows into several pieces.
 *
 * Each sequence has a ring in the caches of sliding layers, and a range of rows of the others. A
 * range grows by doubling: in place if the rows after it are free, else it moves. */
#include <stdlib.h>

#include "gpu/run/internal.h"

enum { FIRST_ROWS = 256, SPARE_BYTES = 4 << 20 };

struct bz_snapshot {
    gpu *g;
    uint32_t pos;
    uint32_t n;
    gpu_buffer k_and_v[]; /* [2 n], 0 if the layer has no ring */
};

static void free_pool(kv_pool *pool)
{
    for (uint32_t i = 0; i < pool->n; i++) {
        kv_cache *c = &pool->cache[i];
        for (uint32_t p = 0; p < c->n_pieces; p++) {
            gpu_buffer_free(pool->g, c->k[p]);
            gpu_buffer_free(pool->g, c->v[p]);
        }
        free(c->k);
        free(c->v);
    }
    if (pool->spare) {
        gpu_buffer_free(pool->g, pool->spare);
    }
    free(pool->cache);
    free(pool->sequence);
    free(pool);
}

static void kv_free(bz_backend *b, bz_kv *kv)
{
    (void)b;
    if (!kv) {
        return;
    }
    kv_pool *pool = kv->pool;
    pool->sequence[kv->index] = NULL;
    free(kv);
    for (uint32_t i = 0; i < pool->capacity; i++) {
        if (pool->sequence[i]) {
            return;
        }
    }
    free_pool(pool);
}

/* ---- buffers ------------------------------------------------------------------- */

static uint32_t rows_in_piece(const kv_cache *c, uint32_t rows, uint32_t piece)
{
    uint64_t first = (uint64_t)piece * c->piece_rows;
    return rows <= first                  ? 0
           : rows - first < c->piece_rows ? (uint32_t)(rows - first)
                                          : c->piece_rows;
}

/* Replaces a buffer, or none, by one of more rows with the same contents. */
static bz_status resize_piece(kv_pool *pool, const kv_cache *c, gpu_buffer *buffer, uint32_t had,
                              uint32_t rows, bz_error *err)
{
    bz_error why = {0};
    gpu_buffer fresh = gpu_buffer_new(pool->g, rows * c->row_bytes, GPU_STORAGE, &why);
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
        gpu_copy(pool->g, *buffer, 0, fresh, 0, had * c->row_bytes);
        gpu_buffer_free(pool->g, *buffer);
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

/* Lists bind the old buffers, or have splits for shorter sequences. */
static void lists_are_stale(gpu_backend *b, kv_pool *pool)
{
    pool->generation = ++b->kv_generations;
}

/* Full pieces stay as they are; the last one grows, and more are added. */
static bz_status resize(gpu_backend *b, kv_pool *pool, kv_cache *c, uint64_t rows, bz_error *err)
{
    if (c->piece_rows == 0 || rows > UINT32_MAX / 2) {
        return bz_fail(err, BZ_OUT_OF_MEMORY,
                       "A cache of %llu positions is larger than this GPU can bind (%.0f MB).",
                       (unsigned long long)(c->ring ? c->ring : rows),
                       (double)gpu_limits_of(pool->g)->max_binding / 1e6);
    }
    const uint32_t pieces = (uint32_t)((rows + c->piece_rows - 1) / c->piece_rows);
    if (!more_pieces(c, pieces)) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the key and value cache.");
    }
    bz_status status = BZ_OK;
    for (uint32_t p = 0; p < pieces && status == BZ_OK; p++) {
        uint32_t had = rows_in_piece(c, c->rows, p), want = rows_in_piece(c, (uint32_t)rows, p);
        gpu_buffer *const both[2] = {&c->k[p], &c->v[p]};
        for (int i = 0; i < 2 && status == BZ_OK; i++) {
            if (want > had || !*both[i]) {
                status = resize_piece(pool, c, both[i], had, want, err);
                if (status == BZ_OK) {
                    lists_are_stale(b, pool);
                }
            }
        }
    }
    c->rows = status == BZ_OK ? (uint32_t)rows : c->rows;
    for (uint32_t p = c->n_pieces; status != BZ_OK && p-- > 0 && (!c->k[p] || !c->v[p]);
         c->n_pieces = p) {
        gpu_buffer_free(pool->g, c->k[p]); /* keys without values are useless */
        gpu_buffer_free(pool->g, c->v[p]);
    }
    return status;
}

/* Caches of no sequence yet. */
static bz_status new_pool(gpu_backend *b, const bz_cache_info *caches, uint32_t n,
                          bz_cache_type type, uint32_t slack, kv_pool **out, bz_error *err)
{
    kv_pool *pool = calloc(1, sizeof *pool);
    if (!pool || !(pool->cache = calloc(n ? n : 1, sizeof *pool->cache))) {
        free(pool);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the key and value cache.");
    }
    pool->g = b->g;
    pool->n = n;
    const gpu_limits *l = gpu_limits_of(b->g);
    const uint64_t binding = l->max_binding < l->max_buffer ? l->max_binding : l->max_buffer;
    for (uint32_t i = 0; i < n; i++) {
        kv_cache *c = &pool->cache[i];
        *c = (kv_cache){.row_bytes =
                            caches[i].kv_heads * gpu_cache_head_bytes(type, caches[i].head_dim),
                        .kv_heads = caches[i].kv_heads,
                        .window = caches[i].window,
                        .ring = caches[i].window ? caches[i].window + slack : 0};
        const uint64_t max = binding / c->row_bytes;
        c->piece_rows = max > 1u << 30 ? 1u << 30 : (uint32_t)max;
        c->piece_rows -= c->ring ? c->piece_rows % c->ring : 0;
    }
    *out = pool;
    return BZ_OK;
}

/* Makes space for the rings of `capacity` sequences. */
static bz_status grow_rings(gpu_backend *b, kv_pool *pool, uint32_t capacity, bz_error *err)
{
    bz_kv **sequence = realloc(pool->sequence, capacity * sizeof *sequence);
    if (!sequence) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the key and value cache.");
    }
    pool->sequence = sequence;
    if (capacity > 1 && !pool->spare) {
        pool->spare = gpu_buffer_new(pool->g, SPARE_BYTES, GPU_STORAGE, err);
        if (!pool->spare) {
            return err ? err->code : BZ_OUT_OF_MEMORY;
        }
    }
    bz_status status = BZ_OK;
    for (uint32_t i = 0; i < pool->n && status == BZ_OK; i++) {
        kv_cache *c = &pool->cache[i];
        const uint64_t rows = (uint64_t)c->ring * capacity;
        status = rows > c->rows ? resize(b, pool, c, rows, err) : BZ_OK;
    }
    for (uint32_t i = pool->capacity; i < capacity && status == BZ_OK; i++) {
        sequence[i] = NULL;
    }
    pool->capacity = status == BZ_OK ? capacity : pool->capacity;
    return status;
}

/* ---- ranges of rows -------------------------------------------------------------- */

/* Is first .. end free of all sequences but `self`? */
static bool is_free(const kv_pool *pool, const bz_kv *self, uint64_t first, uint64_t end)
{
    for (uint32_t i = 0; i < pool->capacity; i++) {
        const bz_kv *kv = pool->sequence[i];
        if (kv && kv != self && kv->rows && first < (uint64_t)kv->first + kv->rows &&
            kv->first < end) {
            return false;
        }
    }
    return true;
}

/* The first row from which `rows` rows are free: 0, or just after a sequence. */
static uint64_t find_rows(const kv_pool *pool, uint32_t rows)
{
    uint64_t best = is_free(pool, NULL, 0, rows) ? 0 : UINT64_MAX;
    for (uint32_t i = 0; best && i < pool->capacity; i++) {
        const bz_kv *kv = pool->sequence[i];
        const uint64_t after = kv && kv->rows ? (uint64_t)kv->first + kv->rows : UINT64_MAX;
        if (after < best && is_free(pool, NULL, after, after + rows)) {
            best = after;
        }
    }
    return best;
}

/* Rows of every cache that is not a ring: doubled, or as many as needed where memory is short. */
static bz_status grow_pool(gpu_backend *b, kv_pool *pool, uint64_t rows, bz_error *err)
{
    if (rows <= pool->rows) {
        return BZ_OK;
    }
    const uint64_t twice = 2ull * pool->rows,
                   wanted = pool->capacity > 1 && twice > rows ? twice : rows;
    bz_status status = BZ_OK;
    for (uint32_t i = 0; i < pool->n && status == BZ_OK; i++) {
        kv_cache *c = &pool->cache[i];
        if (!c->ring && c->rows < rows) {
            status = resize(b, pool, c, wanted, err);
            if (status == BZ_OUT_OF_MEMORY && rows < wanted) {
                status = resize(b, pool, c, rows, err);
            }
        }
    }
    if (status == BZ_OK) {
        pool->rows = (uint32_t)wanted;
        for (uint32_t i = 0; i < pool->n; i++) {
            const kv_cache *c = &pool->cache[i];
            pool->rows = !c->ring && c->rows < pool->rows ? c->rows : pool->rows;
        }
    }
    return status;
}

/* Copies rows of a cache to others, of the same cache (which do not overlap) or of another pool's.
 * WebGPU does not copy within a buffer, so the former pass through the spare one. */
static void copy_rows(const kv_pool *pool, const kv_cache *c, uint32_t from, const kv_cache *other,
                      uint32_t to, uint32_t rows)
{
    const uint64_t bytes = c->row_bytes;
    for (uint32_t done = 0, n; done < rows; done += n) {
        const uint32_t a = (from + done) / c->piece_rows, a_row = (from + done) % c->piece_rows,
                       d = (to + done) / other->piece_rows, d_row = (to + done) % other->piece_rows;
        n = rows - done;
        n = n < c->piece_rows - a_row ? n : c->piece_rows - a_row;
        n = n < other->piece_rows - d_row ? n : other->piece_rows - d_row;
        if (other == c) {
            n = n * bytes < SPARE_BYTES ? n : (uint32_t)(SPARE_BYTES / bytes);
        }
        for (int v = 0; v < 2; v++) {
            const gpu_buffer source = v ? c->v[a] : c->k[a], target = v ? other->v[d] : other->k[d];
            if (other != c) {
                gpu_copy(pool->g, source, a_row * bytes, target, d_row * bytes, n * bytes);
                continue;
            }
            gpu_copy(pool->g, source, a_row * bytes, pool->spare, 0, n * bytes);
            gpu_copy(pool->g, pool->spare, 0, target, d_row * bytes, n * bytes);
        }
    }
}

/* Moves a sequence's range of rows. */
static void move_sequence(bz_kv *kv, uint32_t to)
{
    for (uint32_t i = 0; i < kv->pool->n && kv->rows; i++) {
        const kv_cache *c = &kv->pool->cache[i];
        if (!c->ring) {
            copy_rows(kv->pool, c, kv->first, c, to, kv->rows);
        }
    }
    kv->first = to;
}

static void kv_copy(bz_kv *to, const bz_kv *from, uint32_t begin, uint32_t end)
{
    for (uint32_t i = 0; i < from->pool->n; i++) {
        const kv_cache *c = &from->pool->cache[i], *t = &to->pool->cache[i];
        if (!c->ring) {
            copy_rows(from->pool, c, from->first + begin, t, to->first + begin, end - begin);
            continue;
        }
        const uint32_t keep = end < c->window ? end : c->window;
        for (uint32_t done = 0, n; done < keep; done += n) {
            const uint32_t pos = end - keep + done, at = pos % c->ring, put = pos % t->ring;
            n = keep - done < c->ring - at ? keep - done : c->ring - at;
            n = n < t->ring - put ? n : t->ring - put;
            copy_rows(from->pool, c, from->index * c->ring + at, t, to->index * t->ring + put, n);
        }
    }
}

/* Gives a sequence `rows` rows, which is more than it has. Unchanged on failure. */
static bz_status take_rows(gpu_backend *b, bz_kv *kv, uint32_t rows, bz_error *err)
{
    kv_pool *pool = kv->pool;
    const bool stays = is_free(pool, kv, kv->first, (uint64_t)kv->first + rows);
    const uint64_t first = stays ? kv->first : find_rows(pool, rows);
    bz_status status = grow_pool(b, pool, first + rows, err);
    if (status != BZ_OK) {
        return status;
    }
    if (!stays) {
        move_sequence(kv, (uint32_t)first);
    }
    kv->rows = rows;
    if (rows > pool->positions) {
        pool->positions = rows;
        lists_are_stale(b, pool);
    }
    return BZ_OK;
}

static bool all_rings(const kv_pool *pool)
{
    for (uint32_t i = 0; i < pool->n; i++) {
        if (!pool->cache[i].ring) {
            return false;
        }
    }
    return true;
}

/* Doubles the range; if that does not fit, makes it as large as needed. Unchanged on failure. */
static bz_status kv_reserve(bz_backend *backend, bz_kv *kv, uint32_t positions, bz_error *err)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    if (positions <= kv->rows || all_rings(kv->pool)) {
        return BZ_OK;
    }
    const uint32_t needed = (positions + FIRST_ROWS - 1) / FIRST_ROWS * FIRST_ROWS;
    uint32_t rows = kv->rows ? kv->rows : FIRST_ROWS;
    while (rows < positions) {
        rows = rows > UINT32_MAX / 2 ? needed : rows * 2;
    }
    bz_status status = take_rows(b, kv, rows, err);
    return status == BZ_OUT_OF_MEMORY && needed < rows ? take_rows(b, kv, needed, err) : status;
}

/* The pool has a sequence more: the first free index, or twice as many. */
static bz_status add_sequence(gpu_backend *b, kv_pool *pool, bz_kv **out, bz_error *err)
{
    uint32_t index = 0;
    while (index < pool->capacity && pool->sequence[index]) {
        index++;
    }
    bz_status status = BZ_OK;
    if (index == pool->capacity) {
        status = grow_rings(b, pool, index ? 2 * index : 1, err);
    }
    bz_kv *kv = status == BZ_OK ? calloc(1, sizeof *kv) : NULL;
    if (!kv) {
        return status != BZ_OK
                   ? status
                   : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the key and value cache.");
    }
    *kv = (bz_kv){.pool = pool, .index = index};
    pool->sequence[index] = kv;
    *out = kv;
    return BZ_OK;
}

static bz_status kv_new(bz_backend *backend, const bz_cache_info *caches, uint32_t n,
                        bz_cache_type type, uint32_t slack, const bz_kv *beside, bz_kv **out,
                        bz_error *err)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    kv_pool *pool = beside ? beside->pool : NULL;
    bz_kv *kv = NULL;
    bz_status status = pool ? BZ_OK : new_pool(b, caches, n, type, slack, &pool, err);
    if (status == BZ_OK) {
        status = add_sequence(b, pool, &kv, err);
        if (status != BZ_OK && !beside) {
            free_pool(pool);
        }
    }
    if (status == BZ_OK) {
        status = kv_reserve(backend, kv, FIRST_ROWS, err);
    }
    if (status != BZ_OK) {
        kv_free(backend, kv);
        return status;
    }
    *out = kv;
    return BZ_OK;
}

static uint64_t kv_bytes(const bz_kv *kv)
{
    const kv_pool *pool = kv->pool;
    uint64_t total = 0;
    for (uint32_t i = 0; i < pool->n; i++) {
        const kv_cache *c = &pool->cache[i];
        total += 2 * c->row_bytes * (c->ring ? c->ring : kv->rows);
    }
    return total;
}

static uint32_t kv_ring_rows(const bz_kv *kv)
{
    uint32_t needed = UINT32_MAX;
    for (uint32_t i = 0; i < kv->pool->n; i++) {
        const uint32_t ring = kv->pool->cache[i].ring;
        needed = ring && ring < needed ? ring : needed;
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
    const kv_pool *pool = kv->pool;
    bz_snapshot *s = calloc(1, sizeof *s + 2 * pool->n * sizeof *s->k_and_v);
    if (!s) {
        return NULL;
    }
    s->g = pool->g;
    s->n = pool->n;
    for (uint32_t i = 0; i < 2 * pool->n; i++) {
        const kv_cache *c = &pool->cache[i / 2];
        if (c->window > 1) {
            s->k_and_v[i] =
                gpu_buffer_new(pool->g, (c->window - 1) * c->row_bytes, GPU_STORAGE, NULL);
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
    const kv_pool *pool = kv->pool;
    for (uint32_t i = 0; i < 2 * pool->n; i++) {
        const kv_cache *c = &pool->cache[i / 2];
        if (!s->k_and_v[i]) {
            continue;
        }
        const uint32_t first = kv->index * c->ring, piece = first / c->piece_rows;
        const gpu_buffer ring = i % 2 ? c->v[piece] : c->k[piece];
        const uint64_t row = c->row_bytes, base = first % c->piece_rows * row;
        uint32_t keep = pos < c->window - 1 ? pos : c->window - 1;
        for (uint32_t done = 0; done < keep;) {
            uint32_t at = (pos - keep + done) % c->ring;
            uint32_t n = keep - done < c->ring - at ? keep - done : c->ring - at;
            if (save) {
                gpu_copy(s->g, ring, base + at * row, s->k_and_v[i], done * row, n * row);
            } else {
                gpu_copy(s->g, s->k_and_v[i], done * row, ring, base + at * row, n * row);
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

static void snapshot_copy(bz_snapshot *to, const bz_snapshot *from, const bz_kv *kv)
{
    to->pos = from->pos;
    for (uint32_t i = 0; i < 2 * from->n; i++) {
        const kv_cache *c = &kv->pool->cache[i / 2];
        if (from->k_and_v[i]) {
            gpu_copy(from->g, from->k_and_v[i], 0, to->k_and_v[i], 0,
                     (c->window - 1) * c->row_bytes);
        }
    }
}

void gpu_kv_interface(bz_backend *b)
{
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
