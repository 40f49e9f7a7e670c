/* Sums of exponentials, with an exponential of our own: a vector of them at a time, and draws
 * that do not depend on how exact a platform's expf is. */
#ifndef BZ_SAMPLE_SOFTMAX_H
#define BZ_SAMPLE_SOFTMAX_H

#include <stdbool.h>
#include <stdint.h>

/* e to the x for x <= 0 in f32, within 2 units in the last place; 0 below -87 and for NaN, 1 above
 * 0. */
float bz_exp_f32(float x);

/* The sum over a row of e to the (x - max), where max is the greatest x: apart, because the
 * logarithm of a sum has no digits left for it beside a great max. */
typedef struct bz_exp_sum {
    float max;  /* -inf: nothing counts */
    double sum; /* 1 or more */
} bz_exp_sum;

/* Terms in f32, added in double, in an order that depends on n only. NaN and -inf count for
 * nothing, +inf as the largest float. */
bz_exp_sum bz_sum_exp(const float *row, uint32_t n);

bool bz_any_finite(const float *row, uint32_t n); /* broken weights show as NaN in every logit */

#endif
