/* Between the two stages of sampling: what stage 1 is asked for and what it leaves. A device that
 * holds the row of logits can do stage 1 and read back a few kilobytes instead of a megabyte. */
#ifndef BZ_SAMPLE_SHORTLIST_H
#define BZ_SAMPLE_SHORTLIST_H

#include "sample/edits.h"
#include "sample/rank.h"
#include "sample/softmax.h"

enum { BZ_CANDIDATES = 256 };

typedef struct bz_shortlist {
    bz_candidate best[BZ_CANDIDATES]; /* of the row after bias and penalties, best first */
    float raw[BZ_CANDIDATES]; /* their logits as the model gave them; for log-probabilities with
                                 edits */
    uint32_t n;               /* as many as were wanted or more, or all there are */
    bool whole;               /* there are no others that could be chosen */
    bool finite;              /* some logit of the model's row is */
    bz_exp_sum sum;           /* of the same row; where asked for */
    bz_exp_sum raw_sum;       /* of the model's row; where asked for */
} bz_shortlist;

/* Stage 1, and how stage 2 will choose: enough for a device to guess the token and go on with it.
 */
typedef struct bz_topk_request {
    const bz_edits *edits;
    uint32_t wanted; /* candidates, 1 to BZ_CANDIDATES */
    bool sum, raw_sum;
    bool greedy;
    float temperature;
    uint32_t top_k; /* 0: off */
    float top_p;    /* 1: off */
    float min_p;    /* 0: off */
} bz_topk_request;

/* numeric: the model computed nothing finite. bad_request: bias leaves no token to choose. */
bz_status bz_shortlist_check(const bz_shortlist *list, bz_error *err);

#endif
