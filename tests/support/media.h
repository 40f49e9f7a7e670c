/* Pictures and sound in tests: encode and wait, or end the program. */
#ifndef BZ_TEST_MEDIA_H
#define BZ_TEST_MEDIA_H

#include "encoder.h"
#include "support/golden.h"

bz_model *open_two_or_fail(const char *path, const char *mmproj);
bz_encoder *encoder_or_fail(const bz_model *m, const bz_encoder_options *o);
/* Image or clip i of the media goldens; image 2 is taken as it is. */
bz_media *encode_golden(bz_encoder *e, const golden *media, const char *kind, int i);
/* Logits around a picture of 700 tokens, more than a chunk, against the reference (tools/make_long_golden.py): the largest
 * difference. `name`: moe-like or unified. */
double long_picture_error(const bz_model *m, const char *name, const bz_session_options *o, bz_error *err);

#endif
