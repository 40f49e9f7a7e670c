#include "session/batch_lists.h"

#include "sample/random.h"

bool bz_batch_can_list(const bz_batch *b)
{
    bool can = b->backend->send && b->lists;
    for (uint32_t i = 0; i < b->n_active && can; i++) {
        can = !bz_sampler_needs_rows(b->slots[b->active[i]].sampler);
    }
    return can;
}

/* Requests go to the device once, with penalties before every pass. */
static bz_status request_list(bz_batch *b, batch_slot *s, bz_error *err)
{
    if (s->requested && !bz_sampler_edits(s->sampler)->window) {
        return BZ_OK;
    }
    bz_sampler_see(s->sampler, s->tokens, s->n + 1); /* with the token that is fed now */
    const bz_topk_request request = bz_sampler_topk_request(s->sampler);
    const bz_status status =
        b->backend->set_topk(b->backend, b->running->schedule, s->kv, &request, err);
    s->requested = status == BZ_OK;
    return status;
}

static bz_pass_state send(bz_batch *b, bz_error *err)
{
    double u[BZ_BATCH_MAX_SLOTS];
    for (uint32_t i = 0; i < b->n_active; i++) {
        batch_slot *s = &b->slots[b->active[i]];
        u[i] = bz_random_unit(s->seed, s->n + 1);
        if (request_list(b, s, err) != BZ_OK) {
            return BZ_PASS_ERROR;
        }
    }
    return b->backend->send(b->backend, b->running->schedule, &b->rows, BZ_FEED_IDS, u, err);
}

/* False: a list is too short. */
static bool choose_all(bz_batch *b)
{
    for (uint32_t i = 0; i < b->n_active; i++) {
        batch_slot *s = &b->slots[b->active[i]];
        bz_choice choice = {.id = -1};
        if (bz_shortlist_check(&b->lists[i], NULL) == BZ_OK && bz_batch_allow(s, NULL) == BZ_OK &&
            !bz_sampler_choose(s->sampler, &b->lists[i], NULL, bz_random_unit(s->seed, s->n + 1),
                               &choice)) {
            return false;
        }
        b->chosen[i] = choice.id;
    }
    return true;
}

bz_pass_state bz_batch_list_step(bz_batch *b, bz_error *err)
{
    if (!b->sent) {
        const bz_pass_state state = send(b, err);
        b->sent = state == BZ_PASS_DONE;
        return b->sent ? BZ_PASS_AGAIN : state;
    }
    const bz_pass_state state = b->backend->receive(b->backend, b->lists, b->chosen, NULL, err);
    if (state == BZ_PASS_DONE && !choose_all(b)) {
        b->listed = false;
        b->backend->begin_logits(b->backend);
        return BZ_PASS_AGAIN;
    }
    return state;
}
