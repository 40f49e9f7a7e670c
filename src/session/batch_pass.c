/* Passes of a batch: prompts go first, one chunk at a time; otherwise all sequences get their next
 * token in one pass. */
#include "session/batch_internal.h"
#include "session/job.h"
#include "sample/random.h"

enum { MIN_SHARED = 16 }; /* tokens of a shared prefix that get a snapshot */

static const uint32_t buckets[BZ_BATCH_BUCKETS] = {1, 8, 64, 512};

static bz_status ready(bz_batch *b, session_plan *p, uint32_t rows, uint32_t out_rows,
                       bz_error *err)
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

/* Appends one token of a slot to the pass. */
static void add_row(bz_batch *b, uint32_t index, uint32_t position)
{
    const uint32_t i = b->rows.n++;
    b->id[i] = b->slots[index].tokens[position];
    b->pos[i] = (int32_t)position;
    b->seq[i] = index;
}

static bz_status reserve(bz_batch *b, batch_slot *s, uint32_t end, bz_error *err)
{
    bz_status status = b->backend->kv_reserve(b->backend, s->kv, end, err);
    if (status == BZ_OK) {
        bz_rings_overwrite(&s->rings, b->backend, s->kv, end);
    }
    return status;
}

static void begin_pass(bz_batch *b, session_plan *p, uint32_t n_out)
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

static void fail(batch_slot *s, bz_batch_event *e)
{
    s->state = SLOT_FREE;
    s->n = 0; /* what its caches hold is unknown */
    bz_rings_reset(&s->rings);
    e->token = -1;
}

/* The next token of a slot, from its row of logits. */
static void choose(bz_batch *b, uint32_t index, const float *row, bz_batch_event *e)
{
    batch_slot *s = &b->slots[index];
    bz_shortlist list;
    bz_choice choice;
    bz_sampler_see(s->sampler, s->tokens, s->n);
    if (bz_sampler_shortlist(s->sampler, row, &list, &e->error) != BZ_OK) {
        fail(s, e);
        return;
    }
    bz_sampler_choose(s->sampler, &list, row, bz_random_unit(s->seed, s->n), &choice);
    e->token = choice.id;
    e->finish = bz_limits_push(&s->limits, choice.id, s->n + 1 >= b->context);
    if (e->finish == BZ_FINISH_NONE) {
        s->tokens[s->n] = choice.id;
        s->state = SLOT_DECODE;
    } else {
        s->state = SLOT_FREE;
    }
}

/* A sequence that is full before its first token ends without one. */
static bool full(const bz_batch *b, batch_slot *s, bz_batch_event *e)
{
    if (s->n < b->context) {
        return false;
    }
    e->token = -1;
    e->finish = BZ_FINISH_CONTEXT;
    s->state = SLOT_FREE;
    return true;
}

/* A snapshot where the prompt begins to differ from the one before: the next may share it too. */
static void keep_shared(bz_batch *b, batch_slot *s)
{
    if (s->n == s->shared && s->n >= MIN_SHARED) {
        bz_rings_keep(&s->rings, b->backend, s->kv, s->n);
    }
}

static bz_status begin_prefill(bz_batch *b, uint32_t index, bz_error *err)
{
    batch_slot *s = &b->slots[index];
    keep_shared(b, s); /* all of it was reused */
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
        if (b->slots[i].state == SLOT_DECODE) {
            b->active[b->n_active++] = i;
        }
    }
    const uint32_t n = b->n_active, rows = n == 1 ? 1 : BZ_BATCH_MAX_SLOTS;
    if (n == 0) {
        return BZ_OK;
    }
    session_plan *p = n == 1 ? &b->one[0] : &b->many;
    bz_status status = ready(b, p, rows, rows, err);
    b->rows.n = 0;
    for (uint32_t i = 0; i < n && status == BZ_OK; i++) {
        batch_slot *s = &b->slots[b->active[i]];
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
        if (b->slots[i].state == SLOT_PREFILL) {
            return begin_prefill(b, i, err);
        }
    }
    return begin_decode(b, err);
}

static void end_pass(bz_batch *b, bz_batch_callback on_event, void *user)
{
    const float *logits = b->backend->output(b->backend, b->running->schedule);
    const bool prompt = b->pass == PREFILL_PASS;
    b->pass = NO_PASS;
    for (uint32_t i = 0; i < b->n_active; i++) {
        batch_slot *s = &b->slots[b->active[i]];
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
        on_event(user, &e);
    }
}

bz_status bz_batch_step(bz_batch *b, bz_batch_callback on_event, void *user, bz_error *err)
{
    if (b->canvas) {
        return bz_canvas_batch_step(b->canvas, on_event, user, err);
    }
    bz_status status = b->pass == NO_PASS ? begin(b, err) : BZ_OK;
    if (status != BZ_OK || b->pass == NO_PASS) {
        return status;
    }
    switch (b->backend->step(b->backend, bz_os_now() + BZ_STEP_NS, err)) {
    case BZ_PASS_AGAIN:
    case BZ_PASS_BYTES: /* never on a CPU */
    case BZ_PASS_WAIT: return BZ_OK;
    case BZ_PASS_ERROR: return err->code;
    case BZ_PASS_DONE: break;
    }
    status = bz_model_check_files(b->model, err);
    if (status != BZ_OK) {
        return status;
    }
    end_pass(b, on_event, user);
    return BZ_OK;
}
