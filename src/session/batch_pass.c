/* Passes of a batch: a chunk of a prompt, or the next token of all sequences in one pass. The two
 * alternate. Prompts take turns. */
#include "session/batch_device.h"
#include "session/batch_lists.h"
#include "session/job.h"
#include "sample/random.h"

enum {
    MIN_SHARED = 16,  /* tokens of a shared prefix that get a snapshot */
    SHORT_CHUNK = 64, /* tokens of a prompt per pass while other sequences are decoded, */
    GPU_CHUNK = 256,  /* and on a GPU: about 25 ms on a large one */
    NO_SLOT = BZ_BATCH_MAX_SLOTS
};

static const uint32_t buckets[BZ_BATCH_BUCKETS] = {1, 8, 64, 256, BZ_MAX_CHUNK};
static const uint32_t decode_sizes[BZ_BATCH_DECODE_SIZES] = {1, 8, 16, 32, BZ_BATCH_MAX_SLOTS};

/* The index of the smallest size of at least `rows`. */
static int size_of(const uint32_t *sizes, uint32_t rows)
{
    int k = 0;
    while (sizes[k] < rows) {
        k++;
    }
    return k;
}

static bz_status ready(bz_batch *b, session_plan *p, uint32_t rows, uint32_t out_rows,
                       bool many_sequences, bz_error *err)
{
    bz_status status = BZ_OK;
    if (!p->plan) {
        status =
            bz_text_record(bz_adapted_text(b->model, b->adapters), rows, out_rows, &p->plan, err);
        if (status == BZ_OK) {
            p->plan->many_sequences = many_sequences;
        }
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
    b->sent = false;
    if (!b->listed) {
        b->backend->begin(b->backend, p->schedule, &b->rows);
    }
}

static void fail(batch_slot *s, bz_batch_event *e)
{
    s->state = SLOT_FREE;
    s->n = 0; /* what its caches hold is unknown */
    bz_rings_reset(&s->rings);
    e->token = -1;
}

bz_status bz_batch_allow(batch_slot *s, bz_error *err)
{
    const uint64_t *bits = NULL;
    uint32_t n = 0;
    bz_status status = BZ_OK;
    if (s->constraint) {
        const int32_t forced = bz_constraint_forced(s->constraint);
        if (forced >= 0) {
            bits = bz_constraint_only(s->constraint, forced);
            n = 1;
        } else {
            status = bz_constraint_allowed(s->constraint, &bits, &n, err);
        }
        bz_sampler_allow(s->sampler, bits, n);
    }
    return status;
}

/* The next token of a slot, from its row of logits; -1: e->error. */
static int32_t choose(batch_slot *s, const float *row, bz_batch_event *e)
{
    bz_shortlist list;
    bz_choice choice;
    bz_sampler_see(s->sampler, s->tokens, s->n);
    if (bz_batch_allow(s, &e->error) != BZ_OK ||
        bz_sampler_shortlist(s->sampler, row, &list, &e->error) != BZ_OK) {
        return -1;
    }
    bz_sampler_choose(s->sampler, &list, row, bz_random_unit(s->seed, s->n), &choice);
    return choice.id;
}

static void push(bz_batch *b, batch_slot *s, int32_t token, bz_batch_event *e)
{
    if (token < 0) {
        fail(s, e);
        return;
    }
    e->token = token;
    e->finish = bz_limits_push(&s->limits, token, s->n + 1 >= b->context);
    if (s->constraint && e->finish != BZ_FINISH_END &&
        bz_constraint_take(s->constraint, token, &e->error) != BZ_OK) {
        fail(s, e);
        return;
    }
    if (e->finish == BZ_FINISH_NONE) {
        s->tokens[s->n] = token;
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

static bz_status begin_prefill(bz_batch *b, uint32_t index, uint32_t chunk, bz_error *err)
{
    batch_slot *s = &b->slots[index];
    bz_status status = bz_batch_copy_prefix(b, s, err);
    if (status != BZ_OK) {
        return status;
    }
    keep_shared(b, s); /* all of it was reused */
    uint32_t end = s->shared > s->n && s->shared < s->wanted ? s->shared : s->wanted;
    end = end - s->n > chunk ? s->n + chunk : end;
    const int k = size_of(buckets, end - s->n);
    status = ready(b, &b->one[k], buckets[k], 1, false, err);
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
    b->listed = false;
    b->prompt_was_last = true;
    b->last_prefill = index;
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
    const uint32_t n = b->n_active;
    const int k = size_of(decode_sizes, n);
    session_plan *p = &b->many[k];
    bz_status status = ready(b, p, decode_sizes[k], decode_sizes[k], true, err);
    b->rows.n = 0;
    for (uint32_t i = 0; i < n && status == BZ_OK; i++) {
        batch_slot *s = &b->slots[b->active[i]];
        status = reserve(b, s, s->n + 1, err);
        b->out[i] = i;
        add_row(b, b->active[i], s->n);
    }
    if (status == BZ_OK) {
        b->pass = DECODE_PASS;
        b->listed = bz_batch_can_list(b);
        b->prompt_was_last = false;
        begin_pass(b, p, n);
    }
    return status;
}

static bz_status begin(bz_batch *b, bz_error *err)
{
    uint32_t prompt = NO_SLOT;
    bool decoding = false;
    for (uint32_t i = 1; i <= b->n_slots; i++) { /* the slot after the last one is first */
        const uint32_t index = (b->last_prefill + i) % b->n_slots;
        decoding |= b->slots[index].state == SLOT_DECODE;
        prompt = prompt == NO_SLOT && b->slots[index].state == SLOT_PREFILL ? index : prompt;
    }
    if (prompt != NO_SLOT && !(decoding && b->prompt_was_last)) {
        const uint32_t short_chunk = b->model->gpu ? GPU_CHUNK : SHORT_CHUNK,
                       chunk = decoding && b->chunk > short_chunk ? short_chunk : b->chunk;
        return begin_prefill(b, prompt, chunk, err);
    }
    return decoding ? begin_decode(b, err) : BZ_OK;
}

static void end_pass(bz_batch *b, bz_batch_callback on_event, void *user)
{
    const float *logits = b->backend->output(b->backend, b->running->schedule);
    const bool prompt = b->pass == PREFILL_PASS;
    bz_lock *lock = bz_model_lock(b->model);
    b->pass = NO_PASS;
    for (uint32_t i = 0; i < b->n_active; i++) {
        batch_slot *s = &b->slots[b->active[i]];
        bz_batch_event e = {.slot = b->active[i]};
        s->n = prompt ? b->end : s->n + 1;
        if (s->stopped) {
            s->stopped = false;
            s->state = SLOT_FREE;
            continue;
        }
        if (prompt) {
            bz_lock_take(lock);
            keep_shared(b, s);
            bz_lock_give(lock);
        }
        if (prompt && s->n < s->wanted) {
            continue;
        }
        if (!full(b, s, &e)) {
            int32_t token;
            if (b->listed) {
                token = b->chosen[i];
                if (bz_shortlist_check(&b->lists[i], &e.error) == BZ_OK && token < 0) {
                    bz_batch_allow(s, &e.error);
                }
            } else {
                token = choose(s, logits + (size_t)i * b->vocab, &e);
            }
            push(b, s, token, &e);
        }
        on_event(user, &e);
    }
}

/* After an error: was the device lost, and is there hope that another one takes over? */
static bool lost(bz_batch *b, const bz_error *why)
{
    uint64_t held = 0;
    for (uint32_t i = 0; i < b->n_slots; i++) {
        held += b->slots[i].n;
    }
    if (why->code != BZ_DEVICE_LOST || (b->was_lost && b->lost_at == held)) {
        return false;
    }
    b->was_lost = true;
    b->lost_at = held;
    bz_lock_take(bz_model_lock(b->model));
    bz_batch_detach(b);
    bz_lock_give(bz_model_lock(b->model));
    return true;
}

/* A step of the current pass, or of the next. BZ_PASS_DONE: it has ended, or there is nothing to
 * do. */
static bz_pass_state step(bz_batch *b, bz_error *err)
{
    if (!bz_batch_is_attached(b)) {
        return bz_batch_recover(b, err) == BZ_OK ? BZ_PASS_WAIT : BZ_PASS_ERROR;
    }
    if (b->pass == NO_PASS && begin(b, err) != BZ_OK) {
        return BZ_PASS_ERROR;
    }
    return b->pass == NO_PASS ? BZ_PASS_DONE
           : b->listed        ? bz_batch_list_step(b, err)
                              : b->backend->step(b->backend, bz_os_now() + BZ_STEP_NS, err);
}

bz_status bz_batch_step(bz_batch *b, bz_batch_callback on_event, void *user, bz_error *err)
{
    if (b->canvas) {
        return bz_canvas_batch_step(b->canvas, on_event, user, err);
    }
    const uint64_t deadline = bz_os_now() + BZ_STEP_NS;
    bz_error local = {0};
    bz_pass_state state;
    for (;;) {
        bz_lock_take(bz_model_lock(b->model));
        state = step(b, &local);
        bz_lock_give(bz_model_lock(b->model));
        b->waiting_since = state == BZ_PASS_WAIT ? b->waiting_since : 0;
        if ((state != BZ_PASS_AGAIN && state != BZ_PASS_WAIT) || bz_os_now() >= deadline) {
            break;
        }
        if (state == BZ_PASS_WAIT) {
            bz_gpu_pause(&b->waiting_since);
        }
    }
    switch (state) {
    case BZ_PASS_AGAIN:
    case BZ_PASS_WAIT: return BZ_OK;
    case BZ_PASS_BYTES: return bz_fail(err, BZ_BAD_FILE, "The model's file is not in memory.");
    case BZ_PASS_ERROR: return lost(b, &local) ? BZ_OK : bz_fail(err, local.code, "%s", local.text);
    case BZ_PASS_DONE: break;
    }
    bz_status status = bz_model_check_files(b->model, err);
    if (status != BZ_OK || b->pass == NO_PASS) {
        return status;
    }
    end_pass(b, on_event, user);
    return BZ_OK;
}
