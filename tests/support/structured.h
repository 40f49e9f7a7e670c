/* Answers that follow a schema on the GPU, where passes run ahead of the host's choice: the CPU's
 * tokens, and texts that fit. */
#ifndef BZ_TEST_STRUCTURED_H
#define BZ_TEST_STRUCTURED_H

#include "bezel.h"

/* Two models of one file; `seeds`: answers that are drawn. */
void check_structured(const bz_model *gpu, const bz_model *cpu, uint64_t seeds);

#endif
