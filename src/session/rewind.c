/* Going back to the longest prefix that a prompt shares with what the session holds. */
#include "session/recover.h"

static void truncate_to(bz_session *s, uint32_t pos)
{
    if (pos < s->n) {
        s->n = pos;
        s->has_logits = s->logits_on_device = false;
    }
}

uint32_t bz_session_rewind(bz_session *s, const int32_t *ids, uint32_t n)
{
    ring_snapshot *snapshot;
    if (!bz_session_is_there(s)) { /* its caches are gone: the prompt is prefilled from the start */
        truncate_to(s, 0);
        bz_rings_reset(&s->rings);
        s->recomputed = 0;
        return 0;
    }
    /* The last token is computed again for its logits; a diffusion model's prompt has none. */
    const uint32_t most = s->model->text.config.canvas ? n : n - 1;
    const uint32_t same = bz_session_before_block(s, bz_common_prefix(s->tokens, s->n, ids, most));
    const uint32_t kept = bz_rings_reusable(&s->rings, s->n, same, &snapshot);
    s->stats.restores += snapshot != NULL;
    bz_rings_rewind(&s->rings, s->backend, s->kv, kept, snapshot);
    truncate_to(s, kept);
    return kept;
}

void bz_session_keep_snapshot(bz_session *s)
{
    bz_rings_keep(&s->rings, s->backend, s->kv, s->n);
}
