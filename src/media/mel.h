/* Log-mel features for the audio tower: 16,000 samples per second in [-1, 1] become 100 frames of
 * 128 values per second. Frame i covers samples [160 i - 160, 160 i + 160); samples before the
 * first are zero.
 */
#ifndef BZ_MEDIA_MEL_H
#define BZ_MEDIA_MEL_H

#include "base/error.h"

enum {
    BZ_SAMPLE_RATE = 16000,
    BZ_MEL_BINS = 128,
    BZ_CLIP_SAMPLES = 480000, /* 30 s: the longest clip the tower was trained for */
    BZ_RAW_FRAME = 640        /* samples per soft token in models without audio layers */
};

typedef struct bz_mel bz_mel; /* tables: window, twiddle factors, filters */

bz_mel *bz_mel_new(void); /* NULL: out of memory */
void bz_mel_free(bz_mel *mel);

uint32_t bz_mel_frames(size_t samples); /* number of frames; 0 below 161 samples */
/* Frames first .. first + count. pcm: [samples]; out: [count][BZ_MEL_BINS]. */
void bz_mel_run(const bz_mel *mel, const float *pcm, size_t samples, uint32_t first, uint32_t count,
                float *out);

#endif
