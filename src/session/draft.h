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
#include "session/session.h"

enum { BZ_MAX_DRAFTS = BZ_BIT_EQUAL_ROWS - 1 };

/* What verifying costs and brings, as measured: costs are of passes, in ns. */
typedef struct draft_pace {
    double one;    /* pass over one row; below 0: not measured yet */
    double extra;  /* every further row */
    double right;  /* how likely a draft is right if those before it are */
    uint32_t idle; /* passes without drafts, since they do not pay */
} draft_pace;

/* The drafts of one answer. */
typedef struct bz_drafts {
    bool on;
    uint32_t fixed; /* drafts per pass if the caller says so; 0: as many as pay */
    bz_lookup lookup;
    draft_pace pace;
    uint64_t begun; /* when the pass in flight began; 0: there is none */
    uint32_t first; /* position of row 0 of the last verifying pass */
    uint32_t rows;  /* of it; 0: none are left */
    uint32_t used;  /* rows whose logits were taken */
} bz_drafts;

/* `kind` off: everything below does nothing. */
bz_status bz_drafts_begin(bz_drafts *d, const bz_session *s, bz_draft_kind kind, uint32_t fixed,
                          bz_error *err);
void bz_drafts_free(bz_drafts *d);

/* Finds drafts after `token`, which is to be fed next, for positions before `end`, and writes both
 * to s->tokens. Returns the rows of the pass to start at s->n: 1 without drafts. */
uint32_t bz_drafts_find(bz_drafts *d, bz_session *s, int32_t token, uint32_t end);
/* A pass over that many rows begins; it is done: the logits of its first row are s->logits. */
void bz_drafts_pass(bz_drafts *d, const bz_session *s, uint32_t rows);
void bz_drafts_passed(bz_drafts *d, bz_session *s);
/* Whether `token`, to be fed at s->n, is the next draft. Then its row is used instead of a pass
 * (bz_session_take_row), else the rows left are dropped. */
bool bz_drafts_confirm(bz_drafts *d, bz_session *s, int32_t token);
/* The rows left are lost. */
void bz_drafts_drop(bz_drafts *d);

#endif
