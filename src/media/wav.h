/* WAV files from memory: PCM of 8, 16, 24 and 32 bits and floats of 32 and 64, any number of
 * channels. */
#ifndef BZ_MEDIA_WAV_H
#define BZ_MEDIA_WAV_H

#include "base/error.h"

typedef struct bz_sound {
    float *pcm; /* [frames], mono, in [-1, 1]; the caller frees it */
    size_t frames;
    uint32_t rate;
    bool cut; /* the file ends before its data does: what was there is here */
} bz_sound;

bool bz_wav_is(const uint8_t *bytes, size_t n);
bz_status bz_wav_read(bz_sound *sound, const uint8_t *bytes, size_t n, bz_error *err);

#endif
