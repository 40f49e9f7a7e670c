/* Prints a plan, and counts its steps and the bytes it reads and writes. */
#ifndef BZ_PLAN_PRINT_H
#define BZ_PLAN_PRINT_H

#include "plan/plan.h"

/* Bytes of weights that the step reads in a pass of the bucket's rows. Embedding tables: one row
 * per token. Experts: the upper bound, every slot of every row a different expert (exact for one
 * row). */
uint64_t bz_step_weight_bytes(const bz_plan *plan, const bz_step *step);
/* Bytes of the step's output tensors; cache writes are not counted. */
uint64_t bz_step_output_bytes(const bz_plan *plan, const bz_step *step);

typedef struct bz_plan_totals {
    size_t steps;          /* without cuts */
    size_t segments;       /* runs of steps between cuts */
    uint64_t weight_bytes; /* read by one pass */
    uint64_t row_bytes;    /* the part of weight_bytes that is rows of embedding tables */
    uint64_t output_bytes; /* sum over all steps */
    uint64_t arena_bytes;  /* memory they need, since tensors share it */
} bz_plan_totals;

bz_plan_totals bz_plan_count(const bz_plan *plan);

/* Called with one line at a time, NUL-terminated, without a line end. */
typedef void (*bz_line_sink)(void *user, const char *line);

void bz_plan_print(const bz_plan *plan, bz_line_sink sink, void *user);

#endif
