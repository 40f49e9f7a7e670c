/* Sums of exponentials. exp is our own: it vectorises, and samples do not depend on the accuracy of
 * a platform's expf. */
#ifndef BZ_SAMPLE_SOFTMAX_H
#define BZ_SAMPLE_SOFTMAX_H

#include <stdbool.h>
#include <stdint.h>

/* exp(x) for x <= 0 in f32, within 2 ulp; 0 below -87 and for NaN, 1 above 0. */
float bz_exp_f32(float x);

/* The sum over a row of exp(x - max). max and sum are kept apart, because max + log(sum) would lose
 * digits of the logarithm. */
typedef struct bz_exp_sum {
    float max;  /* -inf: the row has no terms */
    double sum; /* 1 or more */
} bz_exp_sum;

/* Terms in f32, added in double, in an order that depends on n only. NaN and -inf are skipped, +inf
 * counts as the largest float. */
bz_exp_sum bz_sum_exp(const float *row, uint32_t n);

bool bz_any_finite(const float *row, uint32_t n); /* damaged weights make every logit NaN */

#endif
