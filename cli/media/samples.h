/* Decoded sound on its way to a bz_sound: blocks of interleaved samples are mixed to mono as they
 * come, so that memory does not grow with the channel count, and no further than the longest sound
 * that is read. */
#ifndef BZ_CLI_SAMPLES_H
#define BZ_CLI_SAMPLES_H

#include "cli/media/decode.h"

enum { SAMPLES_BLOCK = 16384 }; /* frames that a decoder is asked for at a time */

typedef struct samples {
    bz_sound *to;
    size_t room, max_frames;
    uint32_t channels;
} samples;

/* Refuses numbers of channels and rates that are not supported. */
bz_status samples_begin(samples *s, bz_sound *to, int64_t channels, int64_t rate, bz_error *err);
static inline bool samples_full(const samples *s)
{
    return s->to->frames >= s->max_frames;
}
/* block: [frames][channels]; it is overwritten. */
bz_status samples_add(samples *s, float *block, size_t frames, bz_error *err);

/* Is an OGG file cut off? It does not store its length, but each page does: the last one is then
 * incomplete. */
bool ogg_is_cut(const uint8_t *b, size_t n);

#endif
