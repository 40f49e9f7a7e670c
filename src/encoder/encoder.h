/* Functions of an encoder for the library itself, tests and benchmarks. */
#ifndef BZ_ENCODER_H
#define BZ_ENCODER_H

#include "bezel_media.h"
#include "plan/backend.h"

bz_backend *bz_encoder_backend(bz_encoder *encoder, bz_media_kind kind);
/* Of the last encoding of this kind; NULL: none yet. */
const bz_schedule *bz_encoder_schedule(const bz_encoder *encoder, bz_media_kind kind);
void bz_encoder_no_fuse(bz_encoder *encoder); /* one kernel per step; before the first job */

/* Sets the most tokens of an image, unless 0; returns the value before. */
uint32_t bz_encoder_set_budget(bz_encoder *encoder, uint32_t budget);

#endif
