/* Sample rate conversion by a windowed sinc: keeps frequencies below half the lower of the two
 * rates and removes the others. */
#ifndef BZ_MEDIA_RESAMPLE_H
#define BZ_MEDIA_RESAMPLE_H

#include "base/error.h"

typedef struct bz_resampler bz_resampler;
bz_status bz_resampler_new(bz_resampler **resampler, uint32_t rate, uint32_t to, bz_error *err);
void bz_resampler_free(bz_resampler *resampler);
/* Number of output samples for n input samples. */
uint64_t bz_resampler_count(const bz_resampler *resampler, uint64_t n);
/* Output samples first .. first + count. pcm: [n]; out: [count]. */
void bz_resampler_run(const bz_resampler *resampler, const float *pcm, size_t n, uint64_t first,
                      size_t count, float *out);

/* The whole conversion. *out: [*n_out], the caller frees it. With equal rates it is a copy. */
bz_status bz_resample(const float *pcm, size_t n, uint32_t rate, uint32_t to, float **out,
                      size_t *n_out, bz_error *err);

/* The mean of the channels of interleaved samples [frames][channels], in place: becomes [frames].
 */
void bz_mix_to_mono(float *pcm, size_t frames, uint32_t channels);

#endif
