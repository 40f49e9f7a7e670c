/* Saves a session to a file; the format is in saved.h. */
#include <string.h>

#include "session/saved.h"

void bz_saved_model_hash(const bz_model *m, const bz_adapter_set *adapters, saved_head *head)
{
    enum { SAMPLE = 64 };
    bz_sha256 hash;
    bz_sha256_begin(&hash);
    for (size_t i = 0; i < m->n_files; i++) {
        const model_file *f = &m->files[i];
        bz_sha256_add(&hash, f->data ? f->data : f->header, (size_t)f->gguf.header_size);
        bz_sha256_add(&hash, &f->size, sizeof f->size);
    }
    if (adapters) {
        bz_sha256_add(&hash, adapters->hash, sizeof adapters->hash);
    }
    bz_sha256_end(&hash, head->model);
    memset(head->weights, 0, sizeof head->weights);
    if (!m->weight_bytes) {
        return;
    }
    bz_sha256_begin(&hash); /* models that differ in nothing but their training */
    for (uint32_t i = 0; i < m->text.weights.table.n; i++) {
        const size_t size = (size_t)m->text.weights.table.info[i].size;
        if (m->weight_bytes[i]) {
            bz_sha256_add(&hash, m->weight_bytes[i], size < SAMPLE ? size : SAMPLE);
        }
    }
    bz_sha256_end(&hash, head->weights);
}

typedef struct saving {
    bz_os_writer *file;
    bz_sha256 hash;
} saving;

static bool put(void *user, const void *bytes, size_t n)
{
    saving *w = user;
    bz_sha256_add(&w->hash, bytes, n);
    return bz_os_writer_put(w->file, bytes, n);
}

static bool put_media(const bz_session *s, saving *w)
{
    bool ok = true;
    for (uint32_t i = 0; i < s->n_spans && ok; i++) {
        const bz_media *m = s->spans[i].media;
        const saved_media one = {.first = s->spans[i].first,
                                 .kind = (uint32_t)m->kind,
                                 .rows = m->rows,
                                 .width = m->width,
                                 .pieces = m->pieces,
                                 .content = {m->content.a, m->content.b}};
        ok = put(w, &one, sizeof one) &&
             put(w, m->values, (size_t)m->rows * m->width * sizeof *m->values);
    }
    return ok;
}

static bool put_caches(const bz_session *s, const saved_head *head, saving *w)
{
    const bz_backend *b = s->backend;
    if (!(head->flags & SAVED_CACHES)) {
        return true;
    }
    bool ok = b->kv_save(s->kv, s->rings.from, s->n, put, w);
    for (uint32_t i = 0; i < s->rings.n_snapshots && ok; i++) {
        const ring_snapshot *k = &s->rings.snapshots[i];
        if (k->pos) {
            size_t size;
            const uint8_t *bytes = b->snapshot_bytes(k->rows, s->kv, &size);
            const uint64_t size64 = size;
            ok = put(w, &k->pos, sizeof k->pos) && put(w, &size64, sizeof size64) &&
                 put(w, bytes, size);
        }
    }
    return ok;
}

static bool put_all(const bz_session *s, const saved_head *head, saving *w)
{
    uint8_t digest[BZ_SHA256_BYTES];
    bool ok = put(w, SAVED_MAGIC, sizeof SAVED_MAGIC) && put(w, head, sizeof *head) &&
              put(w, s->tokens, s->n * sizeof *s->tokens) &&
              put(w, s->pass_rows, s->n * sizeof *s->pass_rows) && put_media(s, w);
    if (head->flags & SAVED_LOGITS) {
        ok = ok && put(w, s->logits, head->vocab * sizeof *s->logits);
    }
    ok = ok && put_caches(s, head, w);
    bz_sha256_end(&w->hash, digest);
    return ok && bz_os_writer_put(w->file, digest, sizeof digest);
}

bz_status bz_session_save(const bz_session *s, const char *path, bz_error *err)
{
    if (s->busy) {
        return bz_fail(err, BZ_BAD_REQUEST, "The session is busy with a job.");
    }
    saved_head head = {.version = SAVED_VERSION,
                       .n = s->n,
                       .n_spans = s->n_spans,
                       .vocab = s->model->text.config.vocab,
                       .rings_from = s->rings.from,
                       .kv = bz_saved_kv(s)};
    bz_saved_model_hash(s->model, s->adapters, &head);
    head.flags = (s->options.exact ? SAVED_EXACT : 0) | (s->has_logits ? SAVED_LOGITS : 0) |
                 (s->logits_on_device ? SAVED_LAST : 0);
    if (s->backend && s->backend->kv_save && !s->recomputing && s->n) {
        head.flags |= SAVED_CACHES;
        head.cache_bytes = s->backend->kv_saved_bytes(s->kv, s->rings.from, s->n);
        for (uint32_t i = 0; i < s->rings.n_snapshots; i++) {
            head.n_snapshots += s->rings.snapshots[i].pos != 0;
        }
    }
    saving w = {0};
    bz_sha256_begin(&w.hash);
    const bz_status status = bz_os_writer_open(&w.file, path, err);
    return status == BZ_OK ? bz_os_writer_close(w.file, put_all(s, &head, &w), err) : status;
}
