#include "batch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "batch_canvas.h"
#include "cpu/cpu.h"
#include "model.h"
#include "model/hints.h"
#include "sample/random.h"
#include "sample/sampler.h"
#include "session.h"

enum {
    N_BUCKETS = 4,
    WORTH_KEEPING = 16,        /* tokens of a shared prefix that deserve a snapshot */
    STEP_NS = 10 * 1000 * 1000 /* work of one step */
};

static const uint32_t buckets[N_BUCKETS] = {1, 8, 64, 512};

typedef struct batch_plan {
    bz_plan *plan;
    bz_schedule *schedule;
} batch_plan;

typedef enum slot_state { FREE, PREFILL, DECODE } slot_state;

typedef struct slot {
    slot_state state;
    bz_kv *kv;
    bz_sampler *sampler;
    uint64_t seed;
    uint32_t max_tokens, made;
    bool ignore_end;

    int32_t *tokens;    /* [context] what the caches hold, then what is still to be read */
    uint32_t n, wanted; /* held; of the prompt */
    uint32_t ring_from; /* lowest position whose ring rows are still there */
    uint32_t shared;    /* of the prompt, as many tokens as the one before has too */

    bz_snapshot *rings; /* of the shared prefix; allocated on first use */
    uint32_t rings_at;  /* 0: none */
} slot;

struct bz_batch {
    const bz_model *model;
    bz_canvas_batch *canvas; /* of a diffusion model: does all of it; NULL: none */
    bz_backend *backend;
    uint32_t context, chunk, window, vocab;
    slot slots[BZ_BATCH_SLOTS];
    uint32_t n_slots;
    batch_plan one[N_BUCKETS], many; /* one row of logits; all 8 rows */
    int32_t *last;                   /* [n_last] the prompt begun last */
    uint32_t n_last;
    uint64_t reused;

    /* the pass at work */
    enum { NO_PASS, PREFILL_PASS, DECODE_PASS } pass;
    batch_plan *running;
    uint32_t active[BZ_BATCH_SLOTS], n_active; /* slots in it, in order of their rows */
    uint32_t end;                              /* of the prefilled slot, behind it */
    bz_rows rows;
    int32_t id[BZ_MAX_CHUNK], pos[BZ_MAX_CHUNK];
    uint32_t seq[BZ_MAX_CHUNK], out[BZ_MAX_CHUNK];
    void *kv[BZ_BATCH_SLOTS];
};

/* ---- making and freeing --------------------------------------------------------- */

static void free_plan(bz_batch *b, batch_plan *p)
{
    if (p->schedule) {
        b->backend->release(b->backend, p->schedule);
    }
    bz_plan_free(p->plan);
}

void bz_batch_free(bz_batch *b)
{
    if (!b) {
        return;
    }
    bz_canvas_batch_free(b->canvas);
    for (uint32_t i = 0; i < b->n_slots; i++) {
        slot *s = &b->slots[i];
        if (s->rings) {
            b->backend->snapshot_free(s->rings);
        }
        if (s->kv) {
            b->backend->kv_free(b->backend, s->kv);
        }
        bz_sampler_free(s->sampler);
        free(s->tokens);
    }
    for (int i = 0; i < N_BUCKETS; i++) {
        free_plan(b, &b->one[i]);
    }
    free_plan(b, &b->many);
    if (b->backend) {
        b->backend->free(b->backend);
    }
    free(b->last);
    free(b);
}

static bz_status make_slot(bz_batch *b, slot *s, const int32_t *suppressed, uint32_t n_suppressed,
                           bz_error *err)
{
    const bz_text_model *m = &b->model->text;
    s->tokens = malloc(b->context * sizeof *s->tokens);
    if (!s->tokens) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a sequence of %u tokens.", b->context);
    }
    bz_status status = bz_sampler_new(&s->sampler, b->vocab, b->context, suppressed, n_suppressed, err);
    if (status == BZ_OK) {
        status = b->backend->kv_new(b->backend, m->caches, m->n_caches, false, b->chunk - 1, &s->kv, err);
    }
    return status;
}

static bz_status make_slots(bz_batch *b, uint32_t slots, bz_error *err)
{
    const bz_gguf *gguf = b->model->set.main;
    const uint32_t n = bz_hints_suppressed(gguf, b->vocab, NULL);
    int32_t *ids = malloc((n + (size_t)1) * sizeof *ids);
    if (!ids) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a batch.");
    }
    bz_hints_suppressed(gguf, b->vocab, ids);
    bz_status status = BZ_OK;
    for (uint32_t i = 0; i < slots && status == BZ_OK; i++) {
        b->n_slots = i + 1;
        status = make_slot(b, &b->slots[i], ids, n, err);
        b->kv[i] = b->slots[i].kv;
    }
    free(ids);
    return status;
}

bz_status bz_batch_new(bz_batch **out, const bz_model *model, const bz_session_options *o, uint32_t slots,
                       bz_error *err)
{
    const bz_config *c = &model->text.config;
    if (o->context == 0 || o->context > c->context) {
        return bz_fail(err, BZ_BAD_REQUEST, "A context of %u was asked for; this model goes up to %u.",
                       o->context, c->context);
    }
    if (model->headers_only) {
        return bz_fail(err, BZ_BAD_REQUEST, "The model was opened for its header alone; open it with its weights.");
    }
    if (model->gpu) {
        return bz_fail(err, BZ_BAD_REQUEST, "Several sequences at once run on the CPU so far; open the model there.");
    }
    bz_batch *b = calloc(1, sizeof *b);
    if (!b) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a batch.");
    }
    b->model = model;
    if (c->canvas) {
        bz_status made = bz_canvas_batch_new(&b->canvas, model, o, err);
        if (made != BZ_OK) {
            bz_batch_free(b);
            return made;
        }
        *out = b;
        return BZ_OK;
    }
    b->context = o->context;
    b->chunk = o->chunk && o->chunk < BZ_MAX_CHUNK ? o->chunk : BZ_MAX_CHUNK;
    b->window = c->window;
    b->vocab = c->vocab;
    b->last = malloc(b->context * sizeof *b->last);
    const bz_cpu_options cpu = {.threads = o->threads, .kernels = o->kernels};
    bz_status status = b->last ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a batch.");
    if (status == BZ_OK) {
        status = bz_cpu_new(&b->backend, &model->text.weights.table,
                            (const uint8_t *const *)model->weight_bytes, &cpu, err);
    }
    if (status == BZ_OK) {
        status = make_slots(b, slots < BZ_BATCH_SLOTS ? slots : BZ_BATCH_SLOTS, err);
    }
    if (status != BZ_OK) {
        bz_batch_free(b);
        return status;
    }
    *out = b;
    return BZ_OK;
}

uint64_t bz_batch_reused(const bz_batch *b)
{
    return b->canvas ? bz_canvas_batch_reused(b->canvas) : b->reused;
}

/* ---- beginning a sequence ----------------------------------------------------------- */

static uint32_t common(const int32_t *a, uint32_t n_a, const int32_t *b, uint32_t n_b)
{
    uint32_t n = 0;
    while (n < n_a && n < n_b && a[n] == b[n]) {
        n++;
    }
    return n;
}

/* Continuing from `pos` needs the window - 1 rows before it in every ring. */
static bool rings_reach(const bz_batch *b, const slot *s, uint32_t pos)
{
    const uint32_t need = b->window - 1;
    return (pos > need ? pos - need : 0) >= s->ring_from;
}

/* How much of a prompt the slot can keep; the last token is always computed, for its logits. */
static uint32_t reusable(const bz_batch *b, const slot *s, const int32_t *ids, uint32_t n)
{
    const uint32_t same = common(s->tokens, s->n, ids, n - 1);
    if (same == s->n || rings_reach(b, s, same)) {
        return same;
    }
    return s->rings_at && s->rings_at <= same ? s->rings_at : 0;
}

static void go_back(bz_batch *b, slot *s, uint32_t pos)
{
    if (pos < s->n && !rings_reach(b, s, pos)) {
        b->backend->snapshot_restore(s->rings, s->kv);
        s->ring_from = pos > b->window - 1 ? pos - (b->window - 1) : 0;
    }
    if (pos == 0) {
        s->ring_from = 0;
    }
    s->n = pos;
    s->rings_at = s->rings_at <= pos ? s->rings_at : 0;
}

static slot *best_slot(bz_batch *b, const int32_t *ids, uint32_t n, uint32_t *keep)
{
    slot *best = NULL;
    *keep = 0;
    for (uint32_t i = 0; i < b->n_slots; i++) {
        slot *s = &b->slots[i];
        const uint32_t can = s->state == FREE ? reusable(b, s, ids, n) : 0;
        if (s->state == FREE && (!best || can > *keep)) {
            best = s;
            *keep = can;
        }
    }
    return best;
}

bz_status bz_batch_start(bz_batch *b, const int32_t *ids, size_t n, const bz_generate_options *o,
                         uint32_t *index, bz_error *err)
{
    if (b->canvas) {
        return bz_canvas_batch_start(b->canvas, ids, n, o, index, err);
    }
    if (n == 0 || n > b->context) {
        return bz_fail(err, n ? BZ_CONTEXT_FULL : BZ_BAD_REQUEST,
                       "The prompt has %zu tokens; the context holds %u.", n, b->context);
    }
    uint32_t keep;
    slot *s = best_slot(b, ids, (uint32_t)n, &keep);
    if (!s) {
        return bz_fail(err, BZ_BAD_REQUEST, "All %u sequences are at work.", b->n_slots);
    }
    bz_sampling sampling = o->sampling;
    bz_hints_sampling(b->model->set.main, &sampling);
    bz_status status = bz_sampler_begin(s->sampler, &sampling, false, 0, err);
    if (status != BZ_OK) {
        return status;
    }
    if (keep == 0 && s->n) {
        s->n = s->ring_from = s->rings_at = 0;
    } else {
        go_back(b, s, keep);
    }
    b->reused += keep;
    s->wanted = (uint32_t)n;
    memcpy(s->tokens + keep, ids + keep, (n - keep) * sizeof *ids);
    s->shared = common(b->last, b->n_last, ids, (uint32_t)n - 1);
    memcpy(b->last, ids, n * sizeof *ids);
    b->n_last = (uint32_t)n;
    s->seed = sampling.seed;
    s->max_tokens = o->max_tokens;
    s->ignore_end = o->ignore_end;
    s->made = 0;
    s->state = PREFILL;
    *index = (uint32_t)(s - b->slots);
    return BZ_OK;
}

void bz_batch_stop(bz_batch *b, uint32_t index)
{
    if (b->canvas) {
        bz_canvas_batch_stop(b->canvas);
    } else {
        b->slots[index].state = FREE;
    }
}

/* ---- passes ----------------------------------------------------------------------------- */

static bz_status ready(bz_batch *b, batch_plan *p, uint32_t rows, uint32_t out_rows, bz_error *err)
{
    bz_status status = BZ_OK;
    if (!p->plan) {
        status = bz_text_record(&b->model->text, rows, out_rows, &p->plan, err);
    }
    if (status == BZ_OK && !p->schedule) {
        status = b->backend->prepare(b->backend, p->plan, &p->schedule, err);
    }
    return status;
}

/* Appends the token that comes next in a slot to the pass. */
static void add_row(bz_batch *b, uint32_t index, uint32_t position)
{
    const uint32_t i = b->rows.n++;
    b->id[i] = b->slots[index].tokens[position];
    b->pos[i] = (int32_t)position;
    b->seq[i] = index;
}

static bz_status reserve(bz_batch *b, slot *s, uint32_t end, bz_error *err)
{
    bz_status status = b->backend->kv_reserve(b->backend, s->kv, end, err);
    const uint32_t ring = b->backend->kv_ring_rows(s->kv);
    if (status == BZ_OK && end > ring && end - ring > s->ring_from) {
        s->ring_from = end - ring; /* rows that the pass overwrites */
    }
    return status;
}

static void begin_pass(bz_batch *b, batch_plan *p, uint32_t n_out)
{
    b->rows.n_out = n_out;
    b->rows.id = b->id;
    b->rows.pos = b->pos;
    b->rows.seq = b->seq;
    b->rows.out = b->out;
    b->rows.kv = b->kv;
    b->running = p;
    b->backend->begin(b->backend, p->schedule, &b->rows);
}

static bool any_finite(const float *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (isfinite(x[i])) {
            return true;
        }
    }
    return false;
}

static void fail(slot *s, bz_batch_event *e)
{
    s->state = FREE;
    s->n = s->ring_from = s->rings_at = 0; /* nobody knows what its caches hold now */
    e->token = -1;
}

/* The next token of a slot, from its row of logits. */
static void choose(bz_batch *b, uint32_t index, const float *row, bz_batch_event *e)
{
    slot *s = &b->slots[index];
    bz_shortlist list;
    bz_choice choice;
    if (!any_finite(row, b->vocab)) {
        bz_fail(&e->error, BZ_NUMERIC, "The model computed no finite number after token %u.", s->n);
        fail(s, e);
        return;
    }
    bz_sampler_see(s->sampler, s->tokens, s->n);
    if (bz_sampler_shortlist(s->sampler, row, &list, &e->error) != BZ_OK) {
        fail(s, e);
        return;
    }
    bz_sampler_choose(s->sampler, &list, row, bz_random_unit(s->seed, s->n), &choice);
    e->token = choice.id;
    s->made++;
    if (!s->ignore_end && bz_token_ends(b->model, choice.id)) {
        e->finish = BZ_FINISH_END;
    } else if (s->max_tokens && s->made >= s->max_tokens) {
        e->finish = BZ_FINISH_LENGTH;
    } else if (s->n + 1 >= b->context) {
        e->finish = BZ_FINISH_CONTEXT;
    }
    if (e->finish == BZ_FINISH_NONE) {
        s->tokens[s->n] = choice.id;
        s->state = DECODE;
    } else {
        s->state = FREE;
    }
}

/* A sequence that is full before its first token ends without one. */
static bool full(const bz_batch *b, slot *s, bz_batch_event *e)
{
    if (s->n < b->context) {
        return false;
    }
    e->token = -1;
    e->finish = BZ_FINISH_CONTEXT;
    s->state = FREE;
    return true;
}

static void keep_shared(bz_batch *b, slot *s)
{
    if (s->n != s->shared || s->n < WORTH_KEEPING || s->rings_at == s->n ||
        b->backend->kv_ring_rows(s->kv) == UINT32_MAX) {
        return;
    }
    s->rings = s->rings ? s->rings : b->backend->snapshot_new(s->kv);
    if (s->rings) {
        b->backend->snapshot_save(s->rings, s->kv, s->n);
        s->rings_at = s->n;
    }
}

static bz_status begin_prefill(bz_batch *b, uint32_t index, bz_error *err)
{
    slot *s = &b->slots[index];
    keep_shared(b, s); /* where reuse has brought us there at once */
    uint32_t end = s->shared > s->n && s->shared < s->wanted ? s->shared : s->wanted;
    end = end - s->n > b->chunk ? s->n + b->chunk : end;
    int k = 0;
    while (buckets[k] < end - s->n) {
        k++;
    }
    bz_status status = ready(b, &b->one[k], buckets[k], 1, err);
    if (status == BZ_OK) {
        status = reserve(b, s, end, err);
    }
    if (status != BZ_OK) {
        return status;
    }
    b->rows.n = 0;
    for (uint32_t p = s->n; p < end; p++) {
        add_row(b, index, p);
    }
    b->out[0] = b->rows.n - 1;
    b->active[0] = index;
    b->n_active = 1;
    b->end = end;
    b->pass = PREFILL_PASS;
    begin_pass(b, &b->one[k], end == s->wanted);
    return BZ_OK;
}

static bz_status begin_decode(bz_batch *b, bz_error *err)
{
    b->n_active = 0;
    for (uint32_t i = 0; i < b->n_slots; i++) {
        if (b->slots[i].state == DECODE) {
            b->active[b->n_active++] = i;
        }
    }
    const uint32_t n = b->n_active, rows = n == 1 ? 1 : BZ_BATCH_SLOTS;
    if (n == 0) {
        return BZ_OK;
    }
    batch_plan *p = n == 1 ? &b->one[0] : &b->many;
    bz_status status = ready(b, p, rows, rows, err);
    b->rows.n = 0;
    for (uint32_t i = 0; i < n && status == BZ_OK; i++) {
        slot *s = &b->slots[b->active[i]];
        status = reserve(b, s, s->n + 1, err);
        b->out[i] = i;
        add_row(b, b->active[i], s->n);
    }
    if (status == BZ_OK) {
        b->pass = DECODE_PASS;
        begin_pass(b, p, n);
    }
    return status;
}

static bz_status begin(bz_batch *b, bz_error *err)
{
    for (uint32_t i = 0; i < b->n_slots; i++) {
        if (b->slots[i].state == PREFILL) {
            return begin_prefill(b, i, err);
        }
    }
    return begin_decode(b, err);
}

static void end_pass(bz_batch *b, bz_batch_told told, void *user)
{
    const float *logits = b->backend->output(b->backend, b->running->schedule);
    const bool prompt = b->pass == PREFILL_PASS;
    b->pass = NO_PASS;
    for (uint32_t i = 0; i < b->n_active; i++) {
        slot *s = &b->slots[b->active[i]];
        bz_batch_event e = {.slot = b->active[i]};
        s->n = prompt ? b->end : s->n + 1;
        if (prompt) {
            keep_shared(b, s);
        }
        if (prompt && s->n < s->wanted) {
            continue;
        }
        if (!full(b, s, &e)) {
            choose(b, b->active[i], logits + (size_t)i * b->vocab, &e);
        }
        told(user, &e);
    }
}

bz_status bz_batch_step(bz_batch *b, bz_batch_told told, void *user, bz_error *err)
{
    if (b->canvas) {
        return bz_canvas_batch_step(b->canvas, told, user, err);
    }
    bz_status status = b->pass == NO_PASS ? begin(b, err) : BZ_OK;
    if (status != BZ_OK || b->pass == NO_PASS) {
        return status;
    }
    switch (b->backend->step(b->backend, bz_os_now() + STEP_NS, err)) {
    case BZ_PASS_AGAIN:
    case BZ_PASS_BYTES: /* never on a CPU */
    case BZ_PASS_WAIT: return BZ_OK;
    case BZ_PASS_ERROR: return err->code;
    case BZ_PASS_DONE: break;
    }
    end_pass(b, told, user);
    return BZ_OK;
}
