/* Stateless random numbers: number i of a seed is a pure function of both, so that a device, a
 * thread or a resumed session can compute any of them at any time.
 *
 * Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011):
 * 32-bit integers only, the same bits everywhere.
 */
#ifndef BZ_SAMPLE_RANDOM_H
#define BZ_SAMPLE_RANDOM_H

#include <stdint.h>

void bz_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

uint64_t bz_random_bits(uint64_t seed, uint64_t i);
double bz_random_unit(uint64_t seed, uint64_t i); /* in [0, 1), a multiple of 2^-53 */

#endif
