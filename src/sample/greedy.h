/* The most likely token; the first of equals. */
#ifndef BZ_SAMPLE_GREEDY_H
#define BZ_SAMPLE_GREEDY_H

#include <stdint.h>

int32_t bz_sample_greedy(const float *logits, uint32_t n);

#endif
