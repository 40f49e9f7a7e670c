#ifndef BZ_GPU_MATRIX_H
#define BZ_GPU_MATRIX_H

#include "gpu/builder.h"

/* A linear, or an attend_all whose dispatch would be `plain`, on subgroup matrices. False: they cannot do it, nothing was added. */
bool gpu_add_matrix_product(builder *x);
bool gpu_add_matrix_attention(builder *x, const dispatch *plain);

#endif
