/* Sound of any rate as 16,000 samples a second: a windowed sinc, which keeps what lies below half
 * the lower of the two rates and removes what lies above. */
#ifndef BZ_MEDIA_RESAMPLE_H
#define BZ_MEDIA_RESAMPLE_H

#include "base/error.h"

typedef struct bz_resampler bz_resampler;
bz_status bz_resampler_new(bz_resampler **resampler, uint32_t rate, uint32_t to, bz_error *err);
void bz_resampler_free(bz_resampler *resampler);
uint64_t bz_resampler_count(const bz_resampler *resampler,
                            uint64_t n); /* samples that n samples become */
/* Samples [first, first + count) of the result. */
void bz_resampler_run(const bz_resampler *resampler, const float *pcm, size_t n, uint64_t first,
                      size_t count, float *out);

/* All at once. *out: *n_out samples, the caller frees it. Equal rates give a copy. */
bz_status bz_resample(const float *pcm, size_t n, uint32_t rate, uint32_t to, float **out,
                      size_t *n_out, bz_error *err);

/* The mean of the channels of interleaved samples, in place: frames samples are left. */
void bz_mix_to_mono(float *pcm, size_t frames, uint32_t channels);

#endif
