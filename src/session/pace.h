/* What drafts cost and bring in a session, from answer to answer. */
#ifndef BZ_SESSION_PACE_H
#define BZ_SESSION_PACE_H

#include <stdint.h>

/* What verifying costs and brings, as measured: costs are of passes, in ns; below 0: not measured
 * yet. */
typedef struct bz_draft_pace {
    double one;    /* pass over one row */
    double extra;  /* every further row */
    double draft;  /* every draft, if a drafter makes them */
    double right;  /* how likely a draft is right if those before it are */
    uint32_t idle; /* passes since the last one with drafts, if they do not pay */
    uint32_t
        started; /* bit r: a pass of r rows was begun before; a first one may compile kernels */
    uint32_t drafted; /* bit n: the same of drafting n tokens */
} bz_draft_pace;

/* Before anything is measured. */
void bz_draft_pace_init(bz_draft_pace *pace);

#endif
