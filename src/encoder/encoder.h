/* What the library itself, its tests and measurements do with an encoder besides bezel_media.h. */
#ifndef BZ_ENCODER_H
#define BZ_ENCODER_H

#include "bezel_media.h"
#include "plan/backend.h"

bz_backend *bz_encoder_backend(bz_encoder *encoder, bz_media_kind kind);
/* Of what was encoded last of this kind; NULL: nothing yet. */
const bz_schedule *bz_encoder_schedule(const bz_encoder *encoder, bz_media_kind kind);
void bz_encoder_no_fuse(
    bz_encoder *encoder); /* every step a kernel of its own; before the first job */

/* Tokens of pictures from now on, at most; 0: as before. What they were. */
uint32_t bz_encoder_set_budget(bz_encoder *encoder, uint32_t budget);

#endif
