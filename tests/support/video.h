/* The videos of the golden `video`: frames computed from their numbers. */
#ifndef BZ_TEST_VIDEO_H
#define BZ_TEST_VIDEO_H

#include "session/media.h"
#include "support/media.h"
#include "text/tokenizer.h"

typedef struct video_case {
    const char *text; /* of the prompt */
    uint32_t frames, most, height, width, budget, videos;
    double rate; /* 0: unknown */
} video_case;

extern const video_case video_cases[4];

/* Frame t: red 3x + 5t, green 2y + t, blue x + y + 7t. The caller frees it. */
uint8_t *video_frame_rgb(const video_case *c, uint64_t t);
/* Chooses, encodes and joins; `first` [768], if not NULL, gets the first patch of the first frame.
 */
bz_media *encode_video_case(bz_encoder *e, const video_case *c, float *first);
/* The tokens of a text in which the k-th <|video|> is videos[k], the last one from then on, and
 * every
 * <|image|> the first frame of videos[0]. All videos have frames of one size. */
void video_prompt(const bz_model *m, const char *text, bz_media *const videos[2], bz_ids *ids);

#endif
