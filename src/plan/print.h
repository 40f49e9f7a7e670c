/* A recorded plan as text and as sums: what is computed, what it reads, what it keeps. */
#ifndef BZ_PLAN_PRINT_H
#define BZ_PLAN_PRINT_H

#include "plan/plan.h"

/* Bytes of weights that one pass of the bucket's rows reads in this step. A table gives one
 * row per token. Experts: each slot of each row another one, as long as there are others,
 * which is exact for one row and the most there can be for several. */
uint64_t bz_step_weight_bytes(const bz_plan *plan, const bz_step *step);
/* Bytes of what the step writes, but for the caches. */
uint64_t bz_step_output_bytes(const bz_plan *plan, const bz_step *step);

typedef struct bz_plan_totals {
    size_t steps;          /* without cuts */
    size_t segments;       /* stretches of steps between cuts */
    uint64_t weight_bytes; /* read by one pass */
    uint64_t row_bytes;    /* of them, rows of embedding tables */
    uint64_t output_bytes; /* of all steps together */
    uint64_t arena_bytes;  /* what they need, since tensors take turns */
} bz_plan_totals;

bz_plan_totals bz_plan_count(const bz_plan *plan);

/* Gets one line at a time, terminated, without a line end. */
typedef void (*bz_line_sink)(void *user, const char *line);

void bz_plan_print(const bz_plan *plan, bz_line_sink sink, void *user);

#endif
