#include "session/draft.h"

/* How fast measurements are forgotten, and how often drafting is tried again where it does not
 * pay. */
#define KEEP_TIME  0.8
#define KEEP_RIGHT 0.9
enum { TRY_AGAIN = 32 };

bz_status bz_drafts_begin(bz_drafts *d, const bz_session *s, bz_draft_kind kind, uint32_t fixed,
                          bz_error *err)
{
    *d = (bz_drafts){.fixed = fixed, .pace = {.one = -1, .extra = -1, .right = 0.6}};
    if (fixed > BZ_MAX_DRAFTS) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "%u drafts per pass were requested; at most %d are possible.", fixed,
                       BZ_MAX_DRAFTS);
    }
    /* Rejected rows overwrite as many rows of the rings, which are a chunk longer than needed. */
    d->on = kind == BZ_DRAFT_LOOKUP && s->chunk > BZ_MAX_DRAFTS;
    return d->on && !bz_lookup_init(&d->lookup, s->context)
               ? bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a generation job.")
               : BZ_OK;
}

void bz_drafts_free(bz_drafts *d)
{
    bz_lookup_free(&d->lookup);
}

/* ---- how many ------------------------------------------------------------------------- */

/* With k drafts a pass brings 1 + p + .. + p^k tokens, p the probability that a draft is right. */
static uint32_t best_count(const draft_pace *p)
{
    const double extra = p->extra < 0 ? 0.25 * p->one : p->extra;
    double tokens = 1, chance = 1, best = 1 / p->one;
    uint32_t count = 0;
    for (uint32_t k = 1; k <= BZ_MAX_DRAFTS; k++) {
        chance *= p->right;
        tokens += chance;
        const double speed = tokens / (p->one + k * extra);
        if (speed > best) {
            best = speed;
            count = k;
        }
    }
    return count;
}

static uint32_t wanted(bz_drafts *d)
{
    draft_pace *p = &d->pace;
    if (d->fixed) {
        return d->fixed;
    }
    if (p->one <= 0) { /* the first pass measures what a row costs */
        return 0;
    }
    const uint32_t count = best_count(p);
    if (count || ++p->idle % TRY_AGAIN) {
        return count;
    }
    return 1;
}

/* The mean of measured times; below 0: there is none yet. */
static void keep_time(double *mean, double value)
{
    value = value > 0 ? value : 0;
    *mean = *mean < 0 ? value : KEEP_TIME * *mean + (1 - KEEP_TIME) * value;
}

/* ---- rounds --------------------------------------------------------------------------- */

uint32_t bz_drafts_find(bz_drafts *d, bz_session *s, int32_t token, uint32_t end)
{
    uint32_t most = d->on && s->n + 1 < end ? wanted(d) : 0;
    most = most < end - s->n - 1 ? most : end - s->n - 1;
    s->tokens[s->n] = token;
    uint32_t n = most ? bz_lookup_find(&d->lookup, s->tokens, s->n + 1, most) : 0;
    for (uint32_t i = 0; i < n; i++) {
        if (bz_token_ends(s->model, s->tokens[s->n + 1 + i])) {
            n = i; /* nothing follows it */
        }
    }
    return 1 + n;
}

void bz_drafts_pass(bz_drafts *d, const bz_session *s, uint32_t rows)
{
    d->begun = d->on ? bz_os_now() : 0;
    d->first = s->n;
    d->rows = rows;
    d->used = 0;
}

void bz_drafts_passed(bz_drafts *d, bz_session *s)
{
    if (!d->begun) { /* drafts are off, or it was a pass over tokens that a grammar prescribes */
        return;
    }
    const double took = (double)(bz_os_now() - d->begun);
    draft_pace *p = &d->pace;
    if (d->rows == 1) {
        keep_time(&p->one, took);
    } else if (p->one > 0) {
        keep_time(&p->extra, (took - p->one) / (d->rows - 1));
    }
    s->draft_stats.passes++;
    s->draft_stats.drafted += d->rows - 1;
    d->used = 1;
    d->begun = 0;
}

bool bz_drafts_confirm(bz_drafts *d, bz_session *s, int32_t token)
{
    if (!d->used || d->used >= d->rows) {
        return false;
    }
    const bool right = s->tokens[d->first + d->used] == token && s->n == d->first + d->used;
    d->pace.right = KEEP_RIGHT * d->pace.right + (1 - KEEP_RIGHT) * (right ? 1 : 0);
    s->draft_stats.accepted += right;
    d->used += right;
    d->rows = right ? d->rows : 0;
    return right;
}

void bz_drafts_drop(bz_drafts *d)
{
    d->rows = d->used = 0;
    d->begun = 0;
}
