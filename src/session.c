#include "session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "gpu/backend.h"
#include "job.h"
#include "model/diffusion.h"
#include "model/hints.h"
#include "recover.h"

enum { DEFAULT_SNAPSHOTS = 4 };

static const uint32_t buckets[BZ_BUCKETS] = {1, BZ_FEW_ROWS, BZ_LESS_CHUNK, BZ_MAX_CHUNK, BZ_MAX_ROWS};

/* ---- making and freeing ------------------------------------------------------- */

static void add_table_use(const bz_session *s, bz_session_stats *stats)
{
    uint64_t hits = 0, misses = 0;
    if (s->backend && s->backend->table_use) {
        s->backend->table_use(s->backend, &hits, &misses);
    }
    stats->ple_hits += hits;
    stats->ple_misses += misses;
}

void bz_session_detach(bz_session *s)
{
    bz_backend *b = s->backend;
    if (!b) {
        return;
    }
    add_table_use(s, &s->stats);
    for (int i = 0; i < 2 * BZ_BUCKETS; i++) {
        session_plan *p = &s->plans[i / BZ_BUCKETS][i % BZ_BUCKETS];
        if (p->schedule) {
            b->release(b, p->schedule);
            p->schedule = NULL;
        }
    }
    for (int i = 0; i < BZ_CANVAS_PLANS; i++) {
        if (s->canvas_plans[i].schedule) {
            b->release(b, s->canvas_plans[i].schedule);
            s->canvas_plans[i].schedule = NULL;
        }
    }
    for (uint32_t i = 0; i < s->n_snapshots; i++) {
        if (s->snapshots[i].rings) {
            b->snapshot_free(s->snapshots[i].rings);
        }
        s->snapshots[i] = (session_snapshot){0};
    }
    b->kv_free(b, s->kv);
    b->free(b);
    s->kv = s->kv_list[0] = NULL;
    s->backend = NULL;
    s->device = NULL;
    s->ring_from = 0;
    s->sent = 0;
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
    for (int b = 0; b < 2 * BZ_BUCKETS; b++) {
        bz_plan_free(s->plans[b / BZ_BUCKETS][b % BZ_BUCKETS].plan);
    }
    for (int i = 0; i < BZ_CANVAS_PLANS; i++) {
        bz_plan_free(s->canvas_plans[i].plan);
    }
    bz_sampler_free(s->sampler);
    bz_spans_free(s->spans, s->n_spans);
    free(s->tokens);
    free(s->in_bulk);
    free(s->logits);
    free(s);
}

static bz_status make_sampler(bz_session *s, bz_error *err)
{
    const bz_gguf *gguf = s->model->set.main;
    const uint32_t vocab = s->model->text.config.vocab, n = bz_hints_suppressed(gguf, vocab, NULL);
    int32_t *ids = malloc((n + (size_t)1) * sizeof *ids);
    if (!ids) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a session.");
    }
    bz_hints_suppressed(gguf, vocab, ids);
    bz_status status = bz_sampler_new(&s->sampler, vocab, s->context, ids, n, err);
    free(ids);
    return status;
}

static bz_status make_backend(bz_session *s, bz_error *err)
{
    const bz_model *m = s->model;
    const bz_session_options *o = &s->options;
    if (m->gpu) {
        s->device = m->gpu->loaded;
        return bz_gpu_new(&s->backend, m->gpu->loaded, o->exact, !o->no_fuse, err);
    }
    const bz_cpu_options cpu = {.threads = o->threads, .kernels = o->kernels, .exact = o->exact};
    return bz_cpu_new(&s->backend, &m->text.weights.table, (const uint8_t *const *)m->weight_bytes, &cpu, err);
}

bz_status bz_session_attach(bz_session *s, bz_error *err)
{
    const bz_text_model *t = &s->model->text;
    uint32_t rows = t->config.canvas > s->chunk ? t->config.canvas : s->chunk; /* of the largest pass */
    rows = s->picture > rows ? s->picture : rows;
    bz_status status = make_backend(s, err);
    if (status == BZ_OK) {
        s->ahead = s->backend->send ? BZ_AHEAD : 0;
        const uint32_t most = bz_session_has_blocks(s) && rows < BZ_MAX_CHUNK ? BZ_MAX_CHUNK : rows;
        status = s->backend->kv_new(s->backend, t->caches, t->n_caches, s->options.exact, most - 1 + s->ahead, &s->kv, err);
        s->kv_list[0] = s->kv;
    }
    if (status != BZ_OK) {
        bz_session_detach(s);
    }
    return status;
}

bz_status bz_session_new(bz_session **out, const bz_model *model, const bz_session_options *given, bz_error *err)
{
    const bz_session_options o = given ? *given : (bz_session_options){0};
    const bz_config *c = &model->text.config;
    if (o.context > c->context) {
        return bz_fail(err, BZ_BAD_REQUEST, "A context of %u was asked for; this model goes up to %u.", o.context,
                       c->context);
    }
    if (model->headers_only) {
        return bz_fail(err, BZ_BAD_REQUEST, "The model was opened for its header alone; open it with its weights.");
    }
    bz_session *s = calloc(1, sizeof *s);
    if (!s) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a session.");
    }
    s->model = model;
    s->options = o;
    s->context = o.context ? o.context : c->context < BZ_DEFAULT_CONTEXT ? c->context : BZ_DEFAULT_CONTEXT;
    s->chunk = o.chunk && o.chunk < BZ_MAX_CHUNK ? o.chunk : BZ_MAX_CHUNK;
    s->window = c->window;
    s->n_snapshots = o.snapshots ? o.snapshots : DEFAULT_SNAPSHOTS;
    s->n_snapshots = s->n_snapshots < BZ_MAX_SNAPSHOTS ? s->n_snapshots : BZ_MAX_SNAPSHOTS;
    s->tokens = malloc(s->context * sizeof *s->tokens);
    s->in_bulk = malloc(s->context * sizeof *s->in_bulk);
    s->logits = malloc(c->vocab * sizeof *s->logits);
    bz_status status = s->tokens && s->in_bulk && s->logits ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a session.");
    if (status == BZ_OK) {
        status = make_sampler(s, err);
    }
    bz_lock_take(bz_model_lock(model));
    if (status == BZ_OK && (!model->gpu || bz_model_is_loaded(model))) { /* else its first job finds a device */
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

bz_session_stats bz_session_get_stats(const bz_session *s)
{
    bz_session_stats stats = s->stats;
    stats.position = s->n;
    stats.cache_bytes = s->kv ? s->backend->kv_bytes(s->kv) : 0;
    add_table_use(s, &stats);
    return stats;
}

const float *bz_session_logits(const bz_session *s)
{
    return s->has_logits ? s->logits : NULL;
}

/* ---- going back ------------------------------------------------------------------ */

/* Continuing from `pos` needs the window - 1 rows before it in every ring. */
static bool rings_reach(const bz_session *s, uint32_t pos)
{
    uint32_t need = s->window - 1;
    return (pos > need ? pos - need : 0) >= s->ring_from;
}

/* The session now ends at `pos`; snapshots behind it describe a past that is gone. */
static void truncate_to(bz_session *s, uint32_t pos)
{
    if (pos < s->n) {
        s->n = pos;
        s->has_logits = s->row_left = false;
    }
    for (uint32_t i = 0; i < s->n_snapshots; i++) {
        if (s->snapshots[i].pos > pos) {
            s->snapshots[i].pos = 0;
        }
    }
}

uint32_t bz_session_rewind(bz_session *s, const int32_t *ids, uint32_t n)
{
    uint32_t common = 0;
    if (!bz_session_is_there(s)) { /* nothing of it is on a device: better told of as prefilling */
        truncate_to(s, 0);
        s->ring_from = s->returned = 0;
        return 0;
    }
    const uint32_t most = s->model->text.config.canvas ? n : n - 1; /* an encoder's last token has no logits to wait for */
    while (common < s->n && common < most && s->tokens[common] == ids[common]) {
        common++;
    }
    common = bz_session_before_block(s, common);
    if (common < s->n && !rings_reach(s, common)) {
        session_snapshot *best = NULL;
        for (uint32_t i = 0; i < s->n_snapshots; i++) {
            session_snapshot *k = &s->snapshots[i];
            if (k->pos && k->pos <= common && (!best || k->pos > best->pos)) {
                best = k;
            }
        }
        if (best) {
            s->backend->snapshot_restore(best->rings, s->kv);
            best->used = ++s->clock;
            common = best->pos;
            s->ring_from = common > s->window - 1 ? common - (s->window - 1) : 0;
            s->stats.restores++;
        } else {
            common = 0;
            s->ring_from = 0;
        }
    }
    truncate_to(s, common);
    return common;
}

void bz_session_keep_snapshot(bz_session *s)
{
    if (s->n == 0 || s->backend->kv_ring_rows(s->kv) == UINT32_MAX) {
        return; /* nothing to keep: full layers never forget */
    }
    session_snapshot *slot = NULL;
    for (uint32_t i = 0; i < s->n_snapshots; i++) {
        session_snapshot *k = &s->snapshots[i];
        if (k->pos == s->n) {
            k->used = ++s->clock; /* it is there already */
            return;
        }
        if (!slot || k->pos == 0 || (slot->pos != 0 && k->used < slot->used)) {
            slot = k;
        }
    }
    if (!slot->rings) {
        slot->rings = s->backend->snapshot_new(s->kv);
        if (!slot->rings) {
            return;
        }
    }
    s->backend->snapshot_save(slot->rings, s->kv, s->n);
    slot->pos = s->n;
    slot->used = ++s->clock;
}

/* ---- one pass ---------------------------------------------------------------------- */

static bz_status plan_for(bz_session *s, uint32_t count, bool in_bulk, bool all, session_plan **out, bz_error *err)
{
    int b = 0;
    while (buckets[b] < count || (in_bulk && buckets[b] <= BZ_FEW_ROWS)) {
        b++;
    }
    session_plan *p = &s->plans[all][b];
    if (!p->schedule) {
        bz_status status = BZ_OK;
        if (!p->plan) {
            status = s->model->text.config.canvas
                         ? bz_diffusion_record_encoder(&s->model->text, buckets[b], &p->plan, err)
                         : bz_text_record(&s->model->text, buckets[b], all ? buckets[b] : 1, &p->plan, err);
        }
        if (status == BZ_OK) {
            status = s->backend->prepare(s->backend, p->plan, &p->schedule, err);
        }
        if (status != BZ_OK) {
            return status;
        }
    }
    *out = p;
    return BZ_OK;
}

/* Rows that a pass up to `end` overwrites in the rings are lost even if it is cancelled. */
static void note_lost_rows(bz_session *s, uint32_t end)
{
    uint32_t ring = s->backend->kv_ring_rows(s->kv);
    if (end > ring && end - ring > s->ring_from) {
        s->ring_from = end - ring;
    }
}

bz_status bz_session_start_pass(bz_session *s, uint32_t first, uint32_t count, bool in_bulk, pass_logits logits,
                                bz_error *err)
{
    bz_status status = plan_for(s, count, in_bulk, logits == PASS_ALL, &s->running, err);
    if (status == BZ_OK) {
        status = s->backend->kv_reserve(s->backend, s->kv, first + count, err);
    }
    if (status != BZ_OK) {
        return status;
    }
    for (uint32_t i = 0; i < count; i++) {
        s->pos[i] = (int32_t)(first + i);
        s->in_bulk[first + i] = in_bulk;
        s->out[i] = logits == PASS_LAST ? count - 1 : i;
    }
    s->rows = (bz_rows){.n = count,
                        .n_out = logits == PASS_NONE ? 0 : logits == PASS_LAST ? 1 : count,
                        .id = s->tokens + first,
                        .pos = s->pos,
                        .seq = s->seq,
                        .out = s->out,
                        .kv = s->kv_list};
    bz_session_fill_soft(s, &s->rows, first);
    s->first = first;
    note_lost_rows(s, first + count);
    s->backend->begin(s->backend, s->running->schedule, &s->rows);
    return BZ_OK;
}

bz_status bz_session_canvas_pass(bz_session *s, canvas_pass kind, const int32_t *ids, bz_error *err)
{
    const bz_text_model *m = &s->model->text;
    session_plan *p = &s->canvas_plans[kind];
    bz_status status = BZ_OK;
    if (!p->plan) {
        status = kind == CANVAS_DENOISE  ? bz_diffusion_record_canvas(m, &p->plan, err)
                 : kind == CANVAS_LOGITS ? bz_diffusion_record_logits(m, &p->plan, err)
                                         : bz_diffusion_record_condition(m, &p->plan, err);
    }
    if (status == BZ_OK && !p->schedule) {
        status = s->backend->prepare(s->backend, p->plan, &p->schedule, err);
    }
    if (status == BZ_OK) {
        status = s->backend->kv_reserve(s->backend, s->kv, s->n + m->config.canvas, err);
    }
    if (status != BZ_OK) {
        return status;
    }
    for (uint32_t i = 0; i < p->plan->rows; i++) {
        s->pos[i] = (int32_t)(s->n + i);
    }
    s->rows.n = p->plan->rows;
    s->rows.id = ids;
    s->rows.pos = s->pos;
    s->rows.seq = s->seq;
    s->rows.kv = s->kv_list;
    s->running = p;
    note_lost_rows(s, s->n + m->config.canvas); /* the canvas lies in the rings, too, until it is settled */
    s->backend->begin(s->backend, p->schedule, &s->rows);
    return BZ_OK;
}

bool bz_session_take_less(bz_session *s, uint32_t count)
{
    if (count <= BZ_LESS_CHUNK || s->chunk <= BZ_LESS_CHUNK) { /* what is more than a chunk is a picture and stays whole */
        return false;
    }
    s->chunk = BZ_LESS_CHUNK; /* many rows still; a GPU may cut its sums otherwise, which shows in the last bits only */
    return true;
}

bz_status bz_session_pass(bz_session *s, const int32_t *ids, uint32_t count, pass_logits logits, bz_error *err)
{
    if (count > s->context - s->n) {
        return bz_fail(err, BZ_CONTEXT_FULL, "The context of %u tokens is full.", s->context);
    }
    memcpy(s->tokens + s->n, ids, count * sizeof *ids);
    return bz_session_start_pass(s, s->n, count, count > BZ_FEW_ROWS, logits, err);
}

const float *bz_session_pass_logits(const bz_session *s)
{
    return s->backend->output(s->backend, s->running->schedule);
}

/* Broken weights show as NaN in every logit; that is an error, never a token. */
static bool any_finite(const float *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (isfinite(x[i])) {
            return true;
        }
    }
    return false;
}

bz_pass_state bz_session_pass_step(bz_session *s, bz_error *err)
{
    bz_pass_state state = s->backend->step(s->backend, bz_os_now() + BZ_STEP_NS, err);
    if (state != BZ_PASS_DONE) {
        return state;
    }
    s->n = s->first + s->rows.n;
    s->row_left = false;
    s->has_logits = s->rows.n_out > 0;
    if (s->has_logits) {
        uint32_t vocab = s->model->text.config.vocab;
        const float *last = bz_session_pass_logits(s) + (size_t)(s->rows.n_out - 1) * vocab;
        memcpy(s->logits, last, vocab * sizeof *last);
        if (!any_finite(s->logits, vocab)) {
            s->has_logits = false;
            bz_fail(err, BZ_NUMERIC, "The model computed no finite number after token %u; the file is probably damaged.", s->n);
            return BZ_PASS_ERROR;
        }
    }
    return BZ_PASS_DONE;
}

bz_progress bz_session_progress(bz_session *s, bz_pass_state state, bz_need *need)
{
    switch (state) {
    case BZ_PASS_AGAIN:
    case BZ_PASS_DONE: return BZ_JOB_AGAIN;
    case BZ_PASS_WAIT: return BZ_JOB_NEED_GPU;
    case BZ_PASS_BYTES: need->n_reads = s->backend->reads(s->backend, need->reads); return BZ_JOB_NEED_BYTES;
    case BZ_PASS_ERROR: break;
    }
    return BZ_JOB_ERROR;
}

/* ---- passes that end in a short list -------------------------------------------------- */

bz_pass_state bz_session_send(bz_session *s, int32_t id, const bz_wish *wish, double u, bz_error *err)
{
    const uint32_t at = s->n + s->sent;
    if (at >= s->context) {
        bz_fail(err, BZ_CONTEXT_FULL, "The context of %u tokens is full.", s->context);
        return BZ_PASS_ERROR;
    }
    if (plan_for(s, 1, false, false, &s->running, err) != BZ_OK ||
        s->backend->kv_reserve(s->backend, s->kv, at + 1, err) != BZ_OK) {
        return BZ_PASS_ERROR;
    }
    bz_wish told = wish ? *wish : (bz_wish){0};
    if (s->mislead) {
        s->mislead(&told, &u);
    }
    if (wish && s->backend->choose(s->backend, s->running->schedule, &told, err) != BZ_OK) {
        return BZ_PASS_ERROR;
    }
    const int32_t pos = (int32_t)at;
    const uint32_t zero = 0;
    const bz_rows rows = {.n = 1, .n_out = 1, .id = &id, .pos = &pos, .seq = &zero, .out = &zero, .kv = s->kv_list};
    bz_pass_state state = s->backend->send(s->backend, s->running->schedule, &rows, id < 0, u, err);
    if (state == BZ_PASS_DONE) {
        note_lost_rows(s, at + 1);
        s->in_bulk[at] = false;
        s->sent_id = s->sent++ ? s->sent_id : id;
    }
    return state;
}

bz_pass_state bz_session_receive(bz_session *s, bz_shortlist *list, int32_t *guess, bz_error *err)
{
    bz_pass_state state = s->backend->receive(s->backend, list, guess, err);
    if (state == BZ_PASS_DONE) {
        s->tokens[s->n++] = s->sent_id;
        s->sent_id = *guess;
        s->sent--;
        s->has_logits = false;
        s->row_left = true;
    }
    return state;
}

void bz_session_forget(bz_session *s)
{
    if (s->sent) {
        s->backend->forget(s->backend);
        s->sent = 0;
    }
}

bz_status bz_session_row(bz_session *s, bool there, bz_error *err)
{
    if (!there) {
        return bz_session_start_pass(s, s->n - 1, 1, false, PASS_LAST, err);
    }
    s->rows = (bz_rows){.n = 1, .n_out = 1};
    s->first = s->n - 1;
    s->backend->begin_row(s->backend);
    return BZ_OK;
}
