/* More than one token per pass: drafts, the pass that verifies them, and how many are worth it.
 *
 * A verifying pass has a row for the token chosen last and one for every draft after it, with
 * logits for each. The sampler chooses from row 0 as always. If its choice is the first draft, the
 * logits of row 1 are those of a pass over that token, so it chooses again without another pass,
 * and so on until a choice differs or no row is left. So the text does not depend on the drafts.
 * Rows after a choice that differs stay in the caches and are overwritten. */
#ifndef BZ_SESSION_DRAFT_H
#define BZ_SESSION_DRAFT_H

#include "session/lookup.h"
#include "session/pace.h"
#include "session/session.h"

/* The drafts of one answer. */
typedef struct bz_drafts {
    bz_draft_kind kind; /* OFF: everything below does nothing */
    uint32_t fixed;     /* drafts per pass if the caller says so; 0: as many as pay */
    bz_lookup lookup;
    bz_draft_pace *pace; /* the session's, of this kind */
    bool on_device;      /* the drafter's drafts are not known before they are verified */
    bool timed;          /* the pass in flight is measured */
    uint64_t begun;      /* when it began; 0: there is none */
    uint32_t wanted;     /* drafts that the drafter is making */
    uint32_t first;      /* position of row 0 of the last verifying pass */
    uint32_t rows;       /* of it; 0: none are left */
    uint32_t used;       /* rows whose logits were taken */
} bz_drafts;

bz_status bz_drafts_begin(bz_drafts *d, bz_session *s, bz_draft_kind kind, uint32_t fixed,
                          bz_error *err);
void bz_drafts_free(bz_drafts *d);
/* On a GPU, passes are prepared for some numbers of drafts: the smallest of at least n. */
uint32_t bz_drafts_round_up(uint32_t n);

/* The token to be fed at s->n is in s->tokens. How many drafts after it a pass should verify, for
 * positions before `end`. */
uint32_t bz_drafts_wanted(bz_drafts *d, const bz_session *s, uint32_t end);
/* Looks up to that many drafts up and writes them after the token; returns the rows of the pass. */
uint32_t bz_drafts_look_up(bz_drafts *d, bz_session *s, uint32_t wanted);
/* Lets the model's drafter write them. step: when DONE, *rows are those of the pass. */
bz_status bz_drafts_start(bz_drafts *d, bz_session *s, uint32_t wanted, bz_error *err);
bz_pass_state bz_drafts_step(bz_drafts *d, bz_session *s, uint32_t *rows, bz_error *err);
/* A pass over that many rows begins; it is done: the logits of its first row are taken. */
void bz_drafts_pass(bz_drafts *d, const bz_session *s, uint32_t rows);
void bz_drafts_passed(bz_drafts *d, bz_session *s);
/* Whether `token`, to be fed at s->n, is the next draft. Then its row is used instead of a pass
 * (row d->used - 1 of the last), else the rows left are dropped. */
bool bz_drafts_confirm(bz_drafts *d, bz_session *s, int32_t token);
/* The rows left are lost. */
void bz_drafts_drop(bz_drafts *d);

#endif
