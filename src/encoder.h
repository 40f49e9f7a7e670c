/* Inside an encoder, for tests and for measuring. */
#ifndef BZ_ENCODER_H
#define BZ_ENCODER_H

#include "bezel_media.h"
#include "plan/backend.h"

bz_backend *bz_encoder_backend(bz_encoder *encoder);

#endif
