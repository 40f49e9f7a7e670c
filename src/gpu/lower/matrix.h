#ifndef BZ_GPU_MATRIX_H
#define BZ_GPU_MATRIX_H

#include "gpu/lower/builder.h"

/* A linear, or an attend_all whose dispatch would be `plain`, on subgroup matrices. False: they
 * cannot do it, nothing was added. */
bool gpu_add_matrix_product(builder *x);
bool gpu_add_matrix_attention(builder *x, const dispatch *plain);

/* Are these tensors, that a kernel is about to make, read on matrices alone? Then it makes halves
 * of them: *places[i], where made[i] would lie, becomes where its halves lie. */
bool gpu_make_halves(builder *x, const bz_tensor *made, uint32_t *const *places, uint32_t n);

#endif
