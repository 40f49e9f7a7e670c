/* Loads a saved session. The file is checked as a whole before the session changes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "session/saved.h"

typedef struct loading {
    const char *name;
    const uint8_t *at, *end;
    saved_head head;
    /* What is checked is copied first: the bytes may be those of a file that others change. */
    int32_t *tokens;
    uint16_t *pass_rows;
    float *logits;
    const uint8_t *caches; /* numbers of any value */
    session_span *spans;
    uint32_t n_spans; /* made so far */
} loading;

static bz_status damaged(const loading *l, const char *why, bz_error *err)
{
    return bz_fail(err, BZ_BAD_FILE, "%.200s is not a saved session that can be used: %s.", l->name,
                   why);
}

/* The next n values of `size` bytes; NULL: the file is too short. */
static const uint8_t *take(loading *l, uint64_t n, uint64_t size)
{
    const uint64_t left = (uint64_t)(l->end - l->at);
    if (n > left / size) {
        return NULL;
    }
    const uint8_t *bytes = l->at;
    l->at += n * size;
    return bytes;
}

/* A copy of the next n values. */
static bz_status take_copy(loading *l, uint64_t n, uint64_t size, void **copy, bz_error *err)
{
    const uint8_t *bytes = take(l, n, size);
    if (!bytes) {
        return damaged(l, "it is cut off", err);
    }
    *copy = malloc(n ? (size_t)(n * size) : 1);
    if (!*copy) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a saved session.");
    }
    memcpy(*copy, bytes, (size_t)(n * size));
    return BZ_OK;
}

static bz_status take_tokens(loading *l, bz_error *err)
{
    void *tokens = NULL, *pass_rows = NULL;
    bz_status status = take_copy(l, l->head.n, sizeof *l->tokens, &tokens, err);
    status =
        status == BZ_OK ? take_copy(l, l->head.n, sizeof *l->pass_rows, &pass_rows, err) : status;
    l->tokens = tokens;
    l->pass_rows = pass_rows;
    return status;
}

static bz_status take_logits(loading *l, bz_error *err)
{
    void *logits = NULL;
    const bz_status status = take_copy(l, l->head.vocab, sizeof *l->logits, &logits, err);
    l->logits = logits;
    return status;
}

static bz_status read_head(loading *l, const bz_session *s, bz_error *err)
{
    const saved_head *h = &l->head;
    saved_head own;
    static const uint8_t none[BZ_SHA256_BYTES];
    const uint8_t *bytes = take(l, 1, sizeof *h);
    if (!bytes) {
        return damaged(l, "it is cut off", err);
    }
    memcpy(&l->head, bytes, sizeof *h);
    if (h->version != SAVED_VERSION) {
        return damaged(l, "another version of Bezel wrote it", err);
    }
    bz_saved_model_hash(s->model, s->adapters, &own);
    const bool same_weights = memcmp(h->weights, none, sizeof none) == 0 ||
                              memcmp(own.weights, none, sizeof none) == 0 ||
                              memcmp(h->weights, own.weights, sizeof none) == 0;
    if (memcmp(h->model, own.model, sizeof none) != 0 || !same_weights ||
        h->vocab != s->model->text.config.vocab) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "%.200s was saved with another model, or with other adapters or scales.",
                       l->name);
    }
    const uint32_t kv = bz_saved_kv(s);
    if (h->kv != 0 && h->kv != BZ_CACHE_Q8 && h->kv != BZ_CACHE_Q4) {
        return damaged(l, "its type of keys and values is unknown", err);
    }
    if (h->kv != kv) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "%.200s was saved with keys and values in %s, this session keeps them in "
                       "%s; use a session of the same type.",
                       l->name, bz_cache_type_name((bz_cache_type)h->kv),
                       kv ? bz_cache_type_name((bz_cache_type)kv) : "f16");
    }
    return h->n <= s->context
               ? BZ_OK
               : bz_fail(err, BZ_CONTEXT_FULL, "%.200s has %u tokens; the context holds %u.",
                         l->name, h->n, s->context);
}

static bz_status read_media(loading *l, const bz_session *s, bz_error *err)
{
    const uint32_t width = s->model->text.config.width;
    if (l->head.n_spans > l->head.n) { /* each has rows of its own */
        return damaged(l, "an image or audio clip in it is broken", err);
    }
    l->spans = calloc((size_t)l->head.n_spans + 1, sizeof *l->spans);
    if (!l->spans) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a saved session.");
    }
    uint64_t free_from = 0;
    for (uint32_t i = 0; i < l->head.n_spans; i++) {
        saved_media one;
        const uint8_t *bytes = take(l, 1, sizeof one);
        if (bytes) {
            memcpy(&one, bytes, sizeof one);
        }
        if (!bytes || one.width != width || one.rows == 0 || one.first < free_from ||
            one.first >= l->head.n || one.rows > s->context ||
            (one.kind != BZ_MEDIA_IMAGE && one.kind != BZ_MEDIA_AUDIO) ||
            (one.kind == BZ_MEDIA_IMAGE && bz_session_has_blocks(s) && one.rows > BZ_MAX_ROWS) ||
            !(bytes = take(l, one.rows, width * sizeof(float)))) {
            return damaged(l, "an image or audio clip in it is broken", err);
        }
        bz_media *m = bz_media_new((bz_media_kind)one.kind, one.rows, width);
        if (!m) {
            return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a saved session.");
        }
        memcpy(m->values, bytes, (size_t)one.rows * width * sizeof(float));
        m->pieces = one.pieces;
        m->content = (bz_content){one.content[0], one.content[1]};
        l->spans[l->n_spans++] = (session_span){one.first, m};
        free_from = (uint64_t)one.first + one.rows;
    }
    return BZ_OK;
}

/* Every token is of the vocabulary, or of the image or audio whose row it is. */
static bz_status check_tokens(const loading *l, bz_error *err)
{
    uint32_t span = 0;
    for (uint32_t i = 0; i < l->head.n; i++) {
        const int32_t id = l->tokens[i];
        while (span < l->n_spans && i >= l->spans[span].first + l->spans[span].media->rows) {
            span++;
        }
        const bool soft = span < l->n_spans && i >= l->spans[span].first;
        const bool known =
            soft ? id == bz_media_token(l->spans[span].media, i - l->spans[span].first)
                 : id >= 0 && (uint32_t)id < l->head.vocab;
        if (!known || l->pass_rows[i] > BZ_MAX_ROWS) {
            return damaged(l, "its tokens are broken", err);
        }
    }
    return BZ_OK;
}

static bz_status check_logits(const loading *l, bz_error *err)
{
    for (uint32_t i = 0; l->logits && i < l->head.vocab; i++) {
        if (isnan(l->logits[i])) {
            return damaged(l, "its logits are broken", err);
        }
    }
    return BZ_OK;
}

static bz_status read_all(loading *l, const bz_session *s, bz_error *err)
{
    const saved_head *h = &l->head;
    bz_status status = read_head(l, s, err);
    status = status == BZ_OK ? take_tokens(l, err) : status;
    status = status == BZ_OK ? read_media(l, s, err) : status;
    status = status == BZ_OK ? check_tokens(l, err) : status;
    if (status == BZ_OK && h->flags & SAVED_LOGITS) {
        status = take_logits(l, err);
    }
    if (status != BZ_OK) {
        return status;
    }
    if (h->flags & SAVED_CACHES && !(l->caches = take(l, h->cache_bytes, 1))) {
        return damaged(l, "it is cut off", err);
    }
    if (h->n == 0 && h->flags & (SAVED_LOGITS | SAVED_CACHES | SAVED_LAST)) {
        return damaged(l, "it has logits without tokens", err);
    }
    return check_logits(l, err);
}

/* ---- the session ---------------------------------------------------------------------- */

/* Whether the file's caches fit this session's; else the tokens are computed again. */
static bool can_take_caches(const loading *l, const bz_session *s)
{
    const saved_head *h = &l->head;
    const bz_backend *b = s->backend;
    const uint32_t rows = b && b->kv_load ? b->kv_ring_rows(s->kv) : 0;
    return l->caches && rows && ((h->flags & SAVED_EXACT) != 0) == s->options.exact &&
           h->rings_from <= h->n && h->n - h->rings_from <= rows &&
           b->kv_saved_bytes(s->kv, h->rings_from, h->n) == h->cache_bytes;
}

/* Snapshots that do not fit are left out. */
static void take_snapshots(loading *l, bz_session *s)
{
    for (uint32_t i = 0; i < l->head.n_snapshots && i < s->rings.n_snapshots; i++) {
        uint32_t pos;
        uint64_t size;
        const uint8_t *bytes = take(l, 1, sizeof pos + sizeof size);
        if (!bytes) {
            return;
        }
        memcpy(&pos, bytes, sizeof pos);
        memcpy(&size, bytes + sizeof pos, sizeof size);
        bytes = take(l, size, 1);
        ring_snapshot *k = &s->rings.snapshots[i];
        k->rows = k->rows || !bytes ? k->rows : s->backend->snapshot_new(s->kv);
        if (!bytes || !k->rows || pos == 0 || pos > l->head.n) {
            return;
        }
        size_t own;
        uint8_t *to = s->backend->snapshot_bytes(k->rows, s->kv, &own);
        if (own != size) {
            return;
        }
        memcpy(to, bytes, own);
        s->backend->snapshot_set_pos(k->rows, pos);
        k->pos = pos;
        k->used = ++s->rings.clock;
    }
}

static bz_status give(loading *l, bz_session *s, bz_error *err)
{
    const saved_head *h = &l->head;
    bz_status status = BZ_OK;
    if (h->n && s->backend) { /* before anything is lost */
        status = s->backend->kv_reserve(s->backend, s->kv, h->n, err);
    }
    if (status == BZ_OK) {
        status = bz_session_reserve_blocks(s, l->spans, l->n_spans, err);
    }
    if (status != BZ_OK) {
        return status;
    }
    bz_session_take_spans(s, l->spans, l->n_spans);
    l->spans = NULL;
    bz_rings_reset(&s->rings);
    memcpy(s->tokens, l->tokens, (size_t)h->n * sizeof *s->tokens);
    memcpy(s->pass_rows, l->pass_rows, (size_t)h->n * sizeof *s->pass_rows);
    s->n = h->n;
    s->logits_on_device = h->flags & SAVED_LAST;
    s->has_logits = l->logits != NULL;
    if (l->logits) {
        memcpy(s->logits, l->logits, h->vocab * sizeof *s->logits);
    }
    s->recomputed = 0;
    s->recomputing = h->n > 0;
    if (can_take_caches(l, s) && s->backend->kv_reserve(s->backend, s->kv, h->n, NULL) == BZ_OK) {
        s->backend->kv_load(s->kv, h->rings_from, h->n, l->caches);
        s->rings.from = h->rings_from;
        s->recomputing = false;
        take_snapshots(l, s);
    }
    return BZ_OK;
}

bz_status bz_saved_read(bz_session *s, const uint8_t *bytes, size_t n, const char *name,
                        bz_error *err)
{
    loading l = {.name = name};
    uint8_t digest[BZ_SHA256_BYTES];
    bz_sha256 hash;
    if (n < sizeof SAVED_MAGIC || memcmp(bytes, SAVED_MAGIC, sizeof SAVED_MAGIC) != 0) {
        return bz_fail(err, BZ_BAD_FILE, "%.200s is not a saved session.", name);
    }
    if (n < sizeof SAVED_MAGIC + sizeof(saved_head) + sizeof digest) {
        return damaged(&l, "it is cut off", err);
    }
    bz_sha256_begin(&hash);
    bz_sha256_add(&hash, bytes, n - sizeof digest);
    bz_sha256_end(&hash, digest);
    if (memcmp(digest, bytes + n - sizeof digest, sizeof digest) != 0) {
        return damaged(&l, "it is damaged or cut off", err);
    }
    l.at = bytes + sizeof SAVED_MAGIC;
    l.end = bytes + n - sizeof digest;
    bz_status status = read_all(&l, s, err);
    if (status == BZ_OK) {
        status = give(&l, s, err);
    }
    if (l.spans) {
        bz_spans_free(l.spans, l.n_spans);
    }
    free(l.tokens);
    free(l.pass_rows);
    free(l.logits);
    return status;
}

bz_status bz_session_load(bz_session *s, const char *path, bz_error *err)
{
    bz_os_map map;
    if (s->busy) {
        return bz_fail(err, BZ_BAD_REQUEST, "The session is busy with a job.");
    }
    bz_status status = bz_os_map_file(path, &map, err);
    if (status == BZ_OK) {
        bz_lock_take(bz_model_lock(s->model));
        status = bz_saved_read(s, map.data, (size_t)map.size, path, err);
        bz_lock_give(bz_model_lock(s->model));
        bz_os_unmap(&map);
    }
    return status;
}

/* ---- another one -------------------------------------------------------------------------- */

static void copy_snapshots(bz_session *to, const bz_session *from)
{
    const bz_backend *b = to->backend;
    for (uint32_t i = 0; i < from->rings.n_snapshots; i++) {
        const ring_snapshot *k = &from->rings.snapshots[i];
        ring_snapshot *t = &to->rings.snapshots[i];
        t->rows = k->pos ? b->snapshot_new(to->kv) : NULL;
        if (t->rows) {
            b->snapshot_copy(t->rows, k->rows, to->kv);
            t->pos = k->pos;
            t->used = k->used;
        }
    }
    to->rings.clock = from->rings.clock;
}

bz_status bz_session_fork(bz_session **out, const bz_session *s, bz_error *err)
{
    bz_session_options o = s->options;
    bz_session *f = NULL;
    if (s->busy) {
        return bz_fail(err, BZ_BAD_REQUEST, "The session is busy with a job.");
    }
    o.size = sizeof o;
    o.context = s->context;
    o.chunk = s->chunk;
    o.snapshots = s->rings.n_snapshots;
    bz_status status = bz_session_new(&f, s->model, &o, err);
    status = status == BZ_OK ? bz_session_share_adapters(f, s, err) : status;
    session_span *spans = status == BZ_OK ? calloc((size_t)s->n_spans + 1, sizeof *spans) : NULL;
    if (status == BZ_OK && !spans) {
        status = bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a session.");
    }
    bz_lock_take(bz_model_lock(s->model));
    if (status == BZ_OK) {
        for (uint32_t i = 0; i < s->n_spans; i++) {
            spans[i] = (session_span){s->spans[i].first, bz_media_hold(s->spans[i].media)};
        }
        status = bz_session_reserve_blocks(f, spans, s->n_spans, err);
        bz_session_take_spans(f, spans, s->n_spans);
    }
    const bool copies = f && f->backend && s->backend && f->device == s->device && !s->recomputing;
    if (status == BZ_OK && copies && s->n) {
        status = f->backend->kv_reserve(f->backend, f->kv, s->n, err);
    }
    if (status == BZ_OK) {
        memcpy(f->tokens, s->tokens, s->n * sizeof *f->tokens);
        memcpy(f->pass_rows, s->pass_rows, s->n * sizeof *f->pass_rows);
        memcpy(f->logits, s->logits, s->model->text.config.vocab * sizeof *f->logits);
        f->n = s->n;
        f->has_logits = s->has_logits;
        f->logits_on_device = s->logits_on_device; /* by feeding the last token again */
        f->recomputing = s->n && !copies;
        if (copies) {
            f->backend->kv_copy(f->kv, s->kv, 0, s->n);
            bz_rings_copied(&f->rings, s->n);
            copy_snapshots(f, s);
        }
    }
    bz_lock_give(bz_model_lock(s->model));
    if (status != BZ_OK) {
        bz_session_free(f);
        return status;
    }
    *out = f;
    return BZ_OK;
}
