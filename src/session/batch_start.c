/* Starting a sequence in the slot that has computed most of it, and ending one. */
#include <string.h>

#include "base/options.h"
#include "session/batch_internal.h"
#include "model/hints.h"

enum { MIN_COPIED = 16 }; /* tokens of a prefix for which copying rows is worthwhile */

/* What a slot could contribute to a prompt. */
typedef struct reuse {
    batch_slot *slot; /* NULL: none */
    uint32_t keep;    /* tokens */
    ring_snapshot *snapshot;
} reuse;

/* The last token is always computed, for its logits. */
static reuse reuse_of(batch_slot *s, const int32_t *ids, uint32_t n)
{
    reuse r = {.slot = s};
    const uint32_t same = bz_common_prefix(s->tokens, s->n, ids, n - 1);
    r.keep = bz_rings_reusable(&s->rings, s->n, same, &r.snapshot);
    return r;
}

/* A slot that is free, or was never used. The one that can keep most of the prompt; but a slot
 * that holds much more than that keeps it for the sequence it belongs to, as its rows can be
 * copied. Otherwise the least recently used one. */
static bz_status choose_slot(bz_batch *b, const int32_t *ids, uint32_t n, reuse *out, bz_error *err)
{
    reuse best = {0}, oldest = {0};
    uint32_t unused = b->n_slots;
    for (uint32_t i = 0; i < b->n_slots; i++) {
        batch_slot *s = &b->slots[i];
        if (s->state != SLOT_FREE) {
            continue;
        }
        if (!s->kv) {
            unused = i < unused ? i : unused;
            continue;
        }
        const reuse r = reuse_of(s, ids, n);
        best = !best.slot || r.keep > best.keep ? r : best;
        oldest = !oldest.slot || s->used < oldest.slot->used ? r : oldest;
    }
    const bool continues = best.slot && best.keep && best.keep >= best.slot->n / 2;
    if (!continues && unused < b->n_slots) {
        bz_lock_take(bz_model_lock(b->model));
        const bz_status status = bz_batch_make_slot(b, unused, err);
        bz_lock_give(bz_model_lock(b->model));
        if (status == BZ_OK) {
            *out = (reuse){.slot = &b->slots[unused]};
        }
        return status;
    }
    *out = continues ? best : oldest;
    return out->slot ? BZ_OK : bz_fail(err, BZ_BAD_REQUEST, "All %u slots are in use.", b->n_slots);
}

bz_status bz_batch_copy_prefix(bz_batch *b, batch_slot *s, bz_error *err)
{
    reuse best = {.keep = s->n + MIN_COPIED - 1};
    for (uint32_t i = 0; i < b->n_slots; i++) {
        batch_slot *other = &b->slots[i];
        if (other != s && other->kv) {
            const reuse r = reuse_of(other, s->tokens, s->wanted);
            best = r.keep > best.keep ? r : best;
        }
    }
    if (!best.slot) {
        return BZ_OK;
    }
    const bz_status status = b->backend->kv_reserve(b->backend, s->kv, best.keep, err);
    if (status != BZ_OK) {
        return status;
    }
    b->backend->kv_copy(s->kv, best.slot->kv, s->n, best.keep);
    if (best.snapshot) {
        b->backend->snapshot_restore(best.snapshot->rows, s->kv);
    }
    bz_rings_copied(&s->rings, best.keep);
    s->reused += best.keep - s->n;
    b->reused += best.keep - s->n;
    s->n = best.keep;
    return BZ_OK;
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
    if (o.draft > BZ_DRAFT_OFF) {
        return bz_fail(
            err, BZ_BAD_REQUEST,
            "Answers share their passes here, so none of them can draft: leave draft out.");
    }
    if (b->canvas && o.grammar) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "A diffusion model writes many tokens at once, so its answer cannot follow "
                       "a grammar or schema; use another model.");
    }
    if (b->canvas) {
        return bz_canvas_batch_start(b->canvas, ids, n, &o, index, err);
    }
    if (n == 0 || n > b->context) {
        return bz_fail(err, n ? BZ_CONTEXT_FULL : BZ_BAD_REQUEST,
                       "The prompt has %zu tokens; the context holds %u.", n, b->context);
    }
    reuse r;
    status = choose_slot(b, ids, (uint32_t)n, &r, err);
    if (status != BZ_OK) {
        return status;
    }
    batch_slot *s = r.slot;
    bz_sampling sampling = o.sampling;
    bz_hints_sampling(b->model->set.main, &sampling);
    status = bz_sampler_begin(s->sampler, &sampling, false, 0, err);
    bz_constraint_free(s->constraint);
    s->constraint = NULL;
    if (status == BZ_OK && o.grammar) {
        status = o.ignore_end ? bz_fail(err, BZ_BAD_REQUEST,
                                        "A grammar says where the answer ends, so end tokens "
                                        "cannot be ignored.")
                              : bz_constraint_new(&s->constraint, b->model, o.grammar, err);
    }
    if (status == BZ_OK && s->constraint) {
        status = bz_sampler_begin_masks(s->sampler, err);
    }
    if (status != BZ_OK) {
        return status;
    }
    bz_lock_take(bz_model_lock(b->model));
    bz_rings_rewind(&s->rings, b->backend, s->kv, r.keep, r.snapshot);
    bz_lock_give(bz_model_lock(b->model));
    s->n = s->reused = r.keep;
    b->reused += r.keep;
    s->used = ++b->clock;
    s->requested = false;
    s->wanted = (uint32_t)n;
    memcpy(s->tokens + r.keep, ids + r.keep, (n - r.keep) * sizeof *ids);
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
        return;
    }
    batch_slot *s = &b->slots[index];
    bool in_pass = false;
    for (uint32_t i = 0; b->pass != NO_PASS && i < b->n_active; i++) {
        in_pass |= b->active[i] == index;
    }
    if (in_pass) {
        s->stopped = true;
    } else {
        s->state = SLOT_FREE;
    }
}
