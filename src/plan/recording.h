/* Internals of recording, shared by plan.c, record_tower.c, check.c and place_tower.c. */
#ifndef BZ_PLAN_RECORDING_H
#define BZ_PLAN_RECORDING_H

#include "plan/plan.h"

bz_tensor bz_new_tensor(bz_plan *p, uint32_t cols, bool whole_pass);
/* A new tensor with as many rows as `like`. */
bz_tensor bz_output_like(bz_plan *p, bz_tensor like, uint32_t cols);
uint32_t bz_cols_of(const bz_plan *p, bz_tensor t);
void bz_push_step(bz_plan *p, bz_step step);
/* Checks the shapes of all steps (check.c); needs lifetimes. */
bz_status bz_plan_check(const bz_plan *p, bz_error *err);
/* Sums of an offset and a size never overflow with these limits, also with the 32-bit sizes of
 * WebAssembly. */
#define BZ_MAX_ARENA_BYTES  (SIZE_MAX / 2)
#define BZ_MAX_TENSOR_BYTES (SIZE_MAX / 4)
bz_status bz_plan_too_large(const bz_plan *p, bz_error *err);
/* bz_plan_place of a tower (place_tower.c). */
bz_status bz_plan_place_tower(const bz_plan *p, const uint32_t *group, size_t *offset,
                              size_t *arena_bytes, bz_error *err);

#endif
