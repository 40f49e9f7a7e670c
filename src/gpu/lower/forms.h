/* Which forms of kernels an adapter gets: the only place that decides by what its threads are.
 *
 * A GPU runs the threads of many workgroups at once; what a workgroup repeats for itself is then
 * cheaper than another dispatch, and a barrier costs little. A software adapter runs the threads
 * of a workgroup one after the other on a processor of the host (gpu_limits.sequential): a barrier
 * saves and restores all of them, and repeated work costs what it is. It gets
 * - f32 products in which a thread computes whole outputs (linear_each): without barriers,
 *   workgroup memory and int8 activations;
 * - norms and attention with as few threads as keep a row's loops short;
 * - everything between two products in one dispatch also for few rows, and nothing split. */
#ifndef BZ_GPU_FORMS_H
#define BZ_GPU_FORMS_H

#include "gpu/lower/lower.h"

enum { GPU_ROW_THREADS = 256 }; /* of a workgroup that has a row, on a GPU */

/* The input, without what does not suit the adapter. */
gpu_lower_input gpu_suited(const gpu_lower_input *in);
/* Is a product computed by linear_each, if its shape allows? */
bool gpu_has_each(const gpu_limits *limits);
/* Threads of a workgroup that has a row, or head, of that many values. */
uint32_t gpu_row_threads(const gpu_limits *limits, uint32_t values);
/* Threads of a workgroup of attend_split, whose heads have that many vectors. */
uint32_t gpu_split_threads(const gpu_limits *limits, uint32_t vectors);
/* Does attention split the positions that a row sees, to have more workgroups? */
bool gpu_splits_positions(const gpu_limits *limits);
/* May a kernel of up to GPU_MAX_VECTOR_ROWS rows compute everything between two products? */
bool gpu_joins_norms(const gpu_limits *limits);
/* Do loops with barriers stay loops, which compile faster? */
bool gpu_keeps_loops(const gpu_limits *limits);

#endif
