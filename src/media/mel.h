/* Sound as the audio tower wants it: 16,000 samples a second in [-1, 1] become 100 rows of 128
 * log-mel values a second. Frame i covers samples [160 i - 160, 160 i + 160), zeros before the
 * first.
 */
#ifndef BZ_MEDIA_MEL_H
#define BZ_MEDIA_MEL_H

#include "base/error.h"

enum {
    BZ_SAMPLE_RATE = 16000,
    BZ_MEL_BINS = 128,
    BZ_CLIP_SAMPLES = 480000, /* 30 s: the longest stretch the tower was made for */
    BZ_RAW_FRAME = 640        /* samples of a soft token where there is no tower */
};

typedef struct bz_mel bz_mel; /* window, angles and filters */

bz_mel *bz_mel_new(void); /* NULL: out of memory */
void bz_mel_free(bz_mel *mel);

uint32_t
bz_mel_frames(size_t samples); /* rows that so many samples give; below 161 there is none */
/* Rows [first, first + count), each BZ_MEL_BINS values. */
void bz_mel_run(const bz_mel *mel, const float *pcm, size_t samples, uint32_t first, uint32_t count,
                float *out);

#endif
