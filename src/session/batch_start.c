/* Starting a sequence in the slot that has computed most of it, and ending one. */
#include <string.h>

#include "base/options.h"
#include "session/batch_internal.h"
#include "model/hints.h"

/* The free slot that can keep most of a prompt. The last token is always computed, for its logits.
 */
static batch_slot *best_slot(bz_batch *b, const int32_t *ids, uint32_t n, uint32_t *keep,
                             ring_snapshot **snapshot)
{
    batch_slot *best = NULL;
    *keep = 0;
    *snapshot = NULL;
    for (uint32_t i = 0; i < b->n_slots; i++) {
        batch_slot *s = &b->slots[i];
        if (s->state != SLOT_FREE) {
            continue;
        }
        ring_snapshot *from;
        const uint32_t same = bz_common_prefix(s->tokens, s->n, ids, n - 1),
                       can = bz_rings_reusable(&s->rings, s->n, same, &from);
        if (!best || can > *keep) {
            best = s;
            *keep = can;
            *snapshot = from;
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
    ring_snapshot *snapshot;
    batch_slot *s = best_slot(b, ids, (uint32_t)n, &keep, &snapshot);
    if (!s) {
        return bz_fail(err, BZ_BAD_REQUEST, "All %u slots are in use.", b->n_slots);
    }
    bz_sampling sampling = o.sampling;
    bz_hints_sampling(b->model->set.main, &sampling);
    status = bz_sampler_begin(s->sampler, &sampling, false, 0, err);
    if (status != BZ_OK) {
        return status;
    }
    bz_rings_rewind(&s->rings, b->backend, s->kv, keep, snapshot);
    s->n = keep;
    b->reused += keep;
    s->wanted = (uint32_t)n;
    memcpy(s->tokens + keep, ids + keep, (n - keep) * sizeof *ids);
    s->shared = bz_common_prefix(b->last, b->n_last, ids, (uint32_t)n - 1);
    memcpy(b->last, ids, n * sizeof *ids);
    b->n_last = (uint32_t)n;
    s->seed = sampling.seed;
    s->limits =
        (bz_limits){.model = b->model, .max_tokens = o.max_tokens, .ignore_end = o.ignore_end};
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
