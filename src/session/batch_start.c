/* A sequence begins where most of it is computed already, and ends. */
#include <string.h>

#include "base/options.h"
#include "session/batch_internal.h"
#include "model/hints.h"

static uint32_t common(const int32_t *a, uint32_t n_a, const int32_t *b, uint32_t n_b)
{
    uint32_t n = 0;
    while (n < n_a && n < n_b && a[n] == b[n]) {
        n++;
    }
    return n;
}

/* Continuing from `pos` needs the window - 1 rows before it in every ring. */
static bool rings_reach(const bz_batch *b, const batch_slot *s, uint32_t pos)
{
    const uint32_t need = b->window - 1;
    return (pos > need ? pos - need : 0) >= s->ring_from;
}

/* How much of a prompt the slot can keep; the last token is always computed, for its logits. */
static uint32_t reusable(const bz_batch *b, const batch_slot *s, const int32_t *ids, uint32_t n)
{
    const uint32_t same = common(s->tokens, s->n, ids, n - 1);
    if (same == s->n || rings_reach(b, s, same)) {
        return same;
    }
    return s->rings_at && s->rings_at <= same ? s->rings_at : 0;
}

static void go_back(bz_batch *b, batch_slot *s, uint32_t pos)
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

static batch_slot *best_slot(bz_batch *b, const int32_t *ids, uint32_t n, uint32_t *keep)
{
    batch_slot *best = NULL;
    *keep = 0;
    for (uint32_t i = 0; i < b->n_slots; i++) {
        batch_slot *s = &b->slots[i];
        const uint32_t can = s->state == SLOT_FREE ? reusable(b, s, ids, n) : 0;
        if (s->state == SLOT_FREE && (!best || can > *keep)) {
            best = s;
            *keep = can;
        }
    }
    return best;
}

bz_status bz_batch_start(bz_batch *b, const int32_t *ids, size_t n,
                         const bz_generate_options *options, uint32_t *index, bz_error *err)
{
    bz_generate_options o;
    bz_status status = BZ_READ_GENERATE(&o, options, err);
    if (status != BZ_OK) {
        return status;
    }
    if (o.n_stop || o.n_stop_ids || o.log_probs || o.top_log_probs || o.show_control) {
        return bz_fail(
            err, BZ_BAD_REQUEST,
            "A batch takes no stop strings, stop ids, log-probabilities or control text.");
    }
    if (b->canvas) {
        return bz_canvas_batch_start(b->canvas, ids, n, &o, index, err);
    }
    if (n == 0 || n > b->context) {
        return bz_fail(err, n ? BZ_CONTEXT_FULL : BZ_BAD_REQUEST,
                       "The prompt has %zu tokens; the context holds %u.", n, b->context);
    }
    uint32_t keep;
    batch_slot *s = best_slot(b, ids, (uint32_t)n, &keep);
    if (!s) {
        return bz_fail(err, BZ_BAD_REQUEST, "All %u sequences are at work.", b->n_slots);
    }
    bz_sampling sampling = o.sampling;
    bz_hints_sampling(b->model->set.main, &sampling);
    status = bz_sampler_begin(s->sampler, &sampling, false, 0, err);
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
    s->max_tokens = o.max_tokens;
    s->ignore_end = o.ignore_end;
    s->made = 0;
    s->state = SLOT_PREFILL;
    *index = (uint32_t)(s - b->slots);
    return BZ_OK;
}

void bz_batch_stop(bz_batch *b, uint32_t index)
{
    if (b->canvas) {
        bz_canvas_batch_stop(b->canvas);
    } else {
        b->slots[index].state = SLOT_FREE;
    }
}
