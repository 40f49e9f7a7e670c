/* Going back: as far as the rings reach, or to a snapshot of them. */
#include "session/recover.h"

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
        s->has_logits = s->logits_on_device = false;
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
        s->ring_from = s->recomputed = 0;
        return 0;
    }
    const uint32_t most = s->model->text.config.canvas
                              ? n
                              : n - 1; /* an encoder's last token has no logits to wait for */
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
