#include "session/draft.h"

/* How much of a mean stays: of times after a shorter one, and after a longer one, of which only so
 * much counts, since a pass may have been interrupted; and of how often drafts are right. */
#define KEEP_LESS      0.5
#define KEEP_MORE      0.9
#define MAX_MORE       2.0
#define KEEP_RIGHT     0.9
#define EXPECTED_RIGHT 0.6 /* before anything is known */
/* How often drafting is tried again where it does not pay. */
enum { TRY_AGAIN = 32 };

/* Numbers of drafts for which passes are prepared. */
static const uint32_t counts[] = {1, 2, 3, 4, BZ_MAX_DRAFTS};
enum { N_COUNTS = sizeof counts / sizeof *counts };

static bz_status find_kind(const bz_session *s, bz_draft_kind *kind, bz_error *err)
{
    const bool has_drafter = s->model->text.assistant != NULL;
    if (*kind == BZ_DRAFT_MODEL && !has_drafter) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "The model was opened without a drafter, so it cannot draft with one.");
    }
    *kind = *kind == BZ_DRAFT_DEFAULT ? has_drafter ? BZ_DRAFT_MODEL : BZ_DRAFT_OFF : *kind;
    /* Rejected rows overwrite as many rows of the rings, which are a chunk longer than needed; a
     * drafter reads one row more. */
    *kind = s->chunk > BZ_MAX_DRAFTS + 1 ? *kind : BZ_DRAFT_OFF;
    return BZ_OK;
}

void bz_draft_pace_init(bz_draft_pace *pace)
{
    *pace = (bz_draft_pace){.one = -1, .extra = -1, .draft = -1, .right = EXPECTED_RIGHT};
}

bz_status bz_drafts_begin(bz_drafts *d, bz_session *s, bz_draft_kind kind, uint32_t fixed,
                          bz_error *err)
{
    *d = (bz_drafts){.fixed = fixed, .pace = &s->draft_pace[0]};
    if (fixed > BZ_MAX_DRAFTS) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "%u drafts per pass were requested; at most %d are possible.", fixed,
                       BZ_MAX_DRAFTS);
    }
    const bz_status status = find_kind(s, &kind, err);
    if (status != BZ_OK) {
        return status;
    }
    d->kind = kind;
    d->pace = &s->draft_pace[kind == BZ_DRAFT_MODEL];
    d->pace->right = 0.5 * (d->pace->right + EXPECTED_RIGHT); /* another text */
    return kind == BZ_DRAFT_LOOKUP && !bz_lookup_init(&d->lookup, s->context)
               ? bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a generation job.")
               : BZ_OK;
}

void bz_drafts_free(bz_drafts *d)
{
    bz_lookup_free(&d->lookup);
}

/* ---- how many ------------------------------------------------------------------------- */

uint32_t bz_drafts_round_up(uint32_t n)
{
    uint32_t i = 0;
    while (i + 1 < N_COUNTS && counts[i] < n) {
        i++;
    }
    return counts[i];
}

/* With k drafts a pass brings 1 + p + .. + p^k tokens, p the probability that a draft is right.
 * What is not measured yet is taken to be cheap. */
static uint32_t best_count(const bz_drafts *d)
{
    const bz_draft_pace *p = d->pace;
    const double extra = p->extra < 0 ? 0.25 * p->one : p->extra;
    const double draft = d->kind != BZ_DRAFT_MODEL || d->on_device ? 0 /* or part of `extra` */
                         : p->draft < 0                            ? 0.1 * p->one
                                                                   : p->draft;
    double tokens = 1, chance = 1, best = 1 / p->one;
    uint32_t count = 0;
    for (uint32_t i = 0, k = 0; i < N_COUNTS; i++) {
        for (; k < counts[i]; k++) {
            chance *= p->right;
            tokens += chance;
        }
        const double speed = tokens / (p->one + k * (extra + draft));
        if (speed > best) {
            best = speed;
            count = k;
        }
    }
    return count;
}

static uint32_t paying(bz_drafts *d)
{
    bz_draft_pace *p = d->pace;
    if (d->fixed) {
        return d->fixed;
    }
    if (p->one <= 0) { /* the first pass measures what a row costs */
        return 0;
    }
    const uint32_t count = best_count(d);
    return count ? count : ++p->idle >= TRY_AGAIN ? 1 : 0;
}

/* The mean of measured times; below 0: there is none yet. */
static void keep_time(double *mean, double value, double one)
{
    const double most = MAX_MORE * *mean + 0.1 * one;
    value = value > 0 ? value : 0;
    if (*mean < 0) {
        *mean = value;
    } else if (value < *mean) {
        *mean = KEEP_LESS * *mean + (1 - KEEP_LESS) * value;
    } else {
        *mean = KEEP_MORE * *mean + (1 - KEEP_MORE) * (value < most ? value : most);
    }
}

/* ---- rounds --------------------------------------------------------------------------- */

uint32_t bz_drafts_wanted(bz_drafts *d, const bz_session *s, uint32_t end)
{
    if (d->kind <= BZ_DRAFT_OFF || s->n + 1 >= end ||
        (d->kind == BZ_DRAFT_MODEL && !bz_session_can_draft(s))) {
        return 0;
    }
    const uint32_t most = end - s->n - 1, wanted = paying(d);
    return wanted < most ? wanted : most;
}

/* Nothing follows an end token. */
static uint32_t rows_of(const bz_session *s, uint32_t drafts)
{
    for (uint32_t i = 0; i < drafts; i++) {
        if (bz_token_ends(s->model, s->tokens[s->n + 1 + i])) {
            return 1 + i;
        }
    }
    return 1 + drafts;
}

uint32_t bz_drafts_look_up(bz_drafts *d, bz_session *s, uint32_t wanted)
{
    return rows_of(s, wanted ? bz_lookup_find(&d->lookup, s->tokens, s->n + 1, wanted) : 0);
}

/* Whether a pass is not the first of its kind: bit `bit` of *seen, which is set. */
static bool seen_before(uint32_t *seen, uint32_t bit)
{
    const bool before = (*seen >> bit & 1) != 0;
    *seen |= 1u << bit;
    return before;
}

bz_status bz_drafts_start(bz_drafts *d, bz_session *s, uint32_t wanted, bz_error *err)
{
    d->wanted = wanted;
    d->timed = seen_before(&d->pace->drafted, wanted);
    d->begun = bz_os_now();
    return bz_session_start_draft(s, wanted, err);
}

bz_pass_state bz_drafts_step(bz_drafts *d, bz_session *s, uint32_t *rows, bz_error *err)
{
    const bz_pass_state state = bz_session_draft_step(s, err);
    if (state == BZ_PASS_DONE) {
        if (d->timed) {
            keep_time(&d->pace->draft, (double)(bz_os_now() - d->begun) / d->wanted, d->pace->one);
        }
        *rows = rows_of(s, d->wanted);
    }
    return state;
}

void bz_drafts_pass(bz_drafts *d, const bz_session *s, uint32_t rows)
{
    d->begun = d->kind > BZ_DRAFT_OFF ? bz_os_now() : 0;
    d->timed = rows == 1 || seen_before(&d->pace->started, rows);
    d->pace->idle = rows > 1 ? 0 : d->pace->idle;
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
    bz_draft_pace *p = d->pace;
    if (d->timed && d->rows == 1) {
        keep_time(&p->one, took, p->one);
    } else if (d->timed && p->one > 0) {
        keep_time(&p->extra, (took - p->one) / (d->rows - 1), p->one);
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
    d->pace->right = KEEP_RIGHT * d->pace->right + (1 - KEEP_RIGHT) * (right ? 1 : 0);
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
