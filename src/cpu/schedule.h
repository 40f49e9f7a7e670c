/* Lowers a plan to jobs; used by cpu.c only. */
#ifndef BZ_CPU_SCHEDULE_H
#define BZ_CPU_SCHEDULE_H

#include "cpu/internal.h"

bz_status cpu_prepare(bz_backend *b, const bz_plan *plan, bz_schedule **out, bz_error *err);
void cpu_release(bz_backend *b, bz_schedule *s);

#endif
