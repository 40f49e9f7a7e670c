/* Creating and freeing sessions, and attaching them to a device. */
#include "session/session.h"

#include <stdlib.h>

#include "base/options.h"
#include "model/hints.h"

enum { DEFAULT_SNAPSHOTS = 4 };

static void add_table_use(const bz_session *s, bz_session_stats *stats)
{
    uint64_t hits = 0, misses = 0;
    if (s->backend && s->backend->table_use) {
        s->backend->table_use(s->backend, &hits, &misses);
    }
    stats->ple_hits += hits;
    stats->ple_misses += misses;
}

static void each_plan(bz_session *s, void (*act)(bz_session *s, session_plan *plan))
{
    for (int i = 0; i < 2 * BZ_BUCKETS; i++) {
        act(s, &s->plans[i / BZ_BUCKETS][i % BZ_BUCKETS]);
    }
    for (int i = 0; i < BZ_CANVAS_PLANS; i++) {
        act(s, &s->canvas_plans[i]);
    }
    for (int i = 0; i < BZ_MAX_DRAFTS; i++) {
        act(s, &s->draft_plans[i]);
        act(s, &s->verify_plans[i]);
    }
}

static void release_schedule(bz_session *s, session_plan *p)
{
    if (p->schedule) {
        s->backend->release(s->backend, p->schedule);
        p->schedule = NULL;
    }
}

static void free_plan(bz_session *s, session_plan *p)
{
    (void)s;
    bz_plan_free(p->plan);
    p->plan = NULL;
}

void bz_session_detach(bz_session *s)
{
    bz_backend *b = s->backend;
    if (!b) {
        return;
    }
    add_table_use(s, &s->stats);
    each_plan(s, release_schedule);
    bz_rings_free(&s->rings, b);
    b->kv_free(b, s->kv);
    b->free(b);
    s->kv = s->kv_list[0] = NULL;
    s->backend = NULL;
    s->device = NULL;
    s->sent = 0;
    s->state_rows = 0;
}

static void free_plans(bz_session *s)
{
    each_plan(s, free_plan);
}

void bz_session_free(bz_session *s)
{
    if (!s) {
        return;
    }
    bz_lock *lock = bz_model_lock(s->model);
    bz_lock_take(lock);
    bz_session_detach(s);
    bz_lock_give(lock);
    free_plans(s);
    bz_adapter_set_free(s->adapters);
    bz_sampler_free(s->sampler);
    bz_spans_free(s->spans, s->n_spans);
    free(s->tokens);
    free(s->pass_rows);
    free(s->logits);
    free(s);
}

bz_status bz_model_sampler(const bz_model *model, uint32_t context, bz_sampler **out, bz_error *err)
{
    const bz_gguf *gguf = model->set.main;
    const uint32_t vocab = model->text.config.vocab, n = bz_hints_suppressed(gguf, vocab, NULL);
    int32_t *ids = malloc((n + (size_t)1) * sizeof *ids);
    if (!ids) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a sampler.");
    }
    bz_hints_suppressed(gguf, vocab, ids);
    bz_status status = bz_sampler_new(out, vocab, context, ids, n, err);
    free(ids);
    return status;
}

static bz_status make_backend(bz_session *s, bz_error *err)
{
    const bz_session_options *o = &s->options;
    s->device = s->model->gpu ? s->model->gpu->loaded : NULL;
    return bz_adapter_set_backend(&s->backend, s->model, s->adapters,
                                  &(bz_backend_options){.threads = o->threads,
                                                        .kernels = o->kernels,
                                                        .exact = o->exact,
                                                        .no_fuse = o->no_fuse,
                                                        .cache = s->cache_type},
                                  err);
}

bz_status bz_session_attach(bz_session *s, bz_error *err)
{
    const bz_text_model *t = &s->model->text;
    uint32_t rows =
        t->config.canvas > s->chunk ? t->config.canvas : s->chunk; /* of the largest pass */
    rows = s->image_rows > rows ? s->image_rows : rows;
    bz_draft_pace_init(&s->draft_pace[0]); /* another device has other costs */
    bz_draft_pace_init(&s->draft_pace[1]);
    bz_status status = make_backend(s, err);
    if (status == BZ_OK) {
        s->ahead = s->backend->send ? BZ_AHEAD : 0;
        const uint32_t most = bz_session_has_blocks(s) && rows < BZ_MAX_CHUNK ? BZ_MAX_CHUNK : rows;
        status = s->backend->kv_new(s->backend, t->caches, t->n_caches, s->cache_type,
                                    most - 1 + s->ahead, NULL, &s->kv, err);
        s->kv_list[0] = s->kv;
    }
    if (status != BZ_OK) {
        bz_session_detach(s);
    }
    return status;
}

bz_status bz_session_new(bz_session **out, const bz_model *model, const bz_session_options *given,
                         bz_error *err)
{
    const bz_config *c = &model->text.config;
    bz_session_options o;
    bz_cache_type type = BZ_CACHE_F16;
    bz_status read = BZ_READ_SESSION(&o, given, err);
    if (read == BZ_OK) {
        read = bz_cache_type_named(&type, o.kv, o.exact, err);
    }
    if (read != BZ_OK) {
        return read;
    }
    if (bz_model_check_writes(model, err) != BZ_OK) {
        return BZ_UNSUPPORTED_MODEL;
    }
    if (o.context > c->context) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "A context of %u was requested; this model goes up to %u.", o.context,
                       c->context);
    }
    if (model->headers_only) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "The model was opened for its header alone; open it with its weights.");
    }
    bz_session *s = calloc(1, sizeof *s);
    if (!s) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a session.");
    }
    s->model = model;
    s->options = o;
    s->cache_type = type;
    s->options.kv = o.kv ? bz_cache_type_name(type) : NULL; /* the caller's memory */
    s->context = o.context ? o.context : bz_model_default_context(model);
    s->chunk = o.chunk && o.chunk < BZ_MAX_CHUNK ? o.chunk : BZ_MAX_CHUNK;
    s->rings.window = c->window;
    s->rings.n_snapshots = !o.snapshots                     ? DEFAULT_SNAPSHOTS
                           : o.snapshots < BZ_MAX_SNAPSHOTS ? o.snapshots
                                                            : BZ_MAX_SNAPSHOTS;
    s->tokens = malloc(s->context * sizeof *s->tokens);
    s->pass_rows = malloc(s->context * sizeof *s->pass_rows);
    s->logits = malloc(c->vocab * sizeof *s->logits);
    bz_status status = s->tokens && s->pass_rows && s->logits
                           ? BZ_OK
                           : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a session.");
    if (status == BZ_OK) {
        status = bz_model_sampler(model, s->context, &s->sampler, err);
    }
    bz_lock_take(bz_model_lock(model));
    if (status == BZ_OK &&
        (!model->gpu || bz_model_is_loaded(model))) { /* else its first job attaches it */
        status = bz_session_attach(s, err);
        status = status == BZ_DEVICE_LOST ? BZ_OK : status;
    }
    bz_lock_give(bz_model_lock(model));
    if (status != BZ_OK) {
        bz_session_free(s);
        return status;
    }
    s->options.kernels = NULL; /* the caller's memory */
    *out = s;
    return BZ_OK;
}

/* Exchanges the set with *set, which is freed by the caller, without the model's lock: freeing an
 * adapter takes it. Caches and plans belong to the adapters that the session had. */
static bz_status change_adapters(bz_session *s, bz_adapter_set **set, bz_error *err)
{
    bz_adapter_set *before = s->adapters;
    bz_session_detach(s);
    free_plans(s);
    bz_session_take_spans(s, NULL, 0);
    s->n = 0;
    s->has_logits = s->logits_on_device = s->recomputing = false;
    s->adapters = *set;
    const bz_status status =
        s->model->gpu ? BZ_OK : bz_session_attach(s, err); /* on a GPU the next job attaches it */
    if (status == BZ_OK) {
        *set = before;
    } else {
        s->adapters = before;
        bz_session_attach(s, NULL);
    }
    return status;
}

bz_status bz_session_share_adapters(bz_session *s, const bz_session *from, bz_error *err)
{
    bz_adapter_set *set = NULL;
    if (bz_adapter_sets_equal(s->adapters, from->adapters)) {
        return BZ_OK;
    }
    set = bz_adapter_set_hold(from->adapters);
    bz_lock_take(bz_model_lock(s->model));
    const bz_status status = change_adapters(s, &set, err);
    bz_lock_give(bz_model_lock(s->model));
    bz_adapter_set_free(set);
    return status;
}

bz_status bz_session_set_adapters(bz_session *s, const bz_adapter_use *uses, size_t n,
                                  bz_error *err)
{
    bz_adapter_set *set = NULL;
    if (s->busy) {
        return bz_fail(err, BZ_BAD_REQUEST, "The session is busy with a job.");
    }
    bz_status status = bz_adapter_set_new(&set, s->adapters, s->model, uses, n, err);
    if (status == BZ_OK && !bz_adapter_sets_equal(set, s->adapters)) {
        bz_lock_take(bz_model_lock(s->model));
        status = change_adapters(s, &set, err);
        bz_lock_give(bz_model_lock(s->model));
    }
    bz_adapter_set_free(set);
    return status;
}

bz_session_stats bz_session_get_stats(const bz_session *s)
{
    bz_session_stats stats = s->stats;
    stats.position = s->n;
    stats.cache_bytes = s->kv ? s->backend->kv_bytes(s->kv) : 0;
    add_table_use(s, &stats);
    return stats;
}

bz_draft_stats bz_session_get_draft_stats(const bz_session *s)
{
    return s->draft_stats;
}

const float *bz_session_logits(const bz_session *s)
{
    return s->has_logits ? s->logits : NULL;
}
