/* Towers on a GPU. */
#ifndef BZ_GPU_TOWER_H
#define BZ_GPU_TOWER_H

#include "gpu/lower/builder.h"

void gpu_add_tower_step(builder *x);
void gpu_add_tower_group(builder *x, const gpu_group *group);
/* Instead of the parameter block of tokens; and the rows that come from outside. */
void gpu_write_tower(gpu_backend *b, const bz_schedule *s, const bz_rows *rows);

#endif
