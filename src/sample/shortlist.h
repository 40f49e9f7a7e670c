/* The interface between the two stages of sampling: the request to stage 1 and its result. A device
 * that holds the row of logits does stage 1 and returns a few kilobytes instead of a megabyte. */
#ifndef BZ_SAMPLE_SHORTLIST_H
#define BZ_SAMPLE_SHORTLIST_H

#include "sample/edits.h"
#include "sample/rank.h"
#include "sample/softmax.h"

enum { BZ_CANDIDATES = 256 };

typedef struct bz_shortlist {
    bz_candidate best[BZ_CANDIDATES]; /* of the row after bias and penalties, best first */
    float raw[BZ_CANDIDATES];         /* their logits before bias and penalties */
    uint32_t n;                       /* at least as many as requested, or all there are */
    bool whole;                       /* no other token can be sampled */
    bool finite;                      /* some logit of the model's row is finite */
    bz_exp_sum sum;                   /* of the edited row; if requested */
    bz_exp_sum raw_sum;               /* of the model's row; if requested */
} bz_shortlist;

/* The request to stage 1. It includes the options of stage 2, so that a device can sample the token
 * itself and run ahead. */
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

/* numeric: no logit is finite. bad_request: bias leaves no token to sample. */
bz_status bz_shortlist_check(const bz_shortlist *list, bz_error *err);

#endif
