/* Images and audio in tests: encode and wait, or end the program. */
#ifndef BZ_TEST_MEDIA_H
#define BZ_TEST_MEDIA_H

#include "encoder/encoder.h"
#include "support/golden.h"

bz_model *open_two_or_fail(const char *path, const char *mmproj);
bz_model *open_two_on_or_fail(const char *path, const char *mmproj, const char *device);
/* A small model of the goldens (e-like, moe-like, unified) with its towers and their reference
 * data. */
bz_model *open_golden_or_fail(const char *name, const char *device);
void open_media_golden(golden *g, const char *name);
bz_encoder *encoder_or_fail(const bz_model *m, const bz_encoder_options *o);
/* Image or clip i of the media goldens; image 2 is taken as it is. */
bz_media *encode_golden(bz_encoder *e, const golden *media, const char *kind, int i);
/* The reference's embeddings as media, and the largest difference of other media from them. */
bz_media *golden_soft_tokens(const bz_model *m, const golden *g, const char *kind, int i);
double soft_tokens_error(const golden *g, const bz_media *m, const char *kind, int i);

/* The three prompts of a model's goldens: what they hold, in order, and how far the logits of
 * prompt k are from theirs. */
typedef struct prompt_case {
    const char *kind[2];
    int number[2];
    size_t n;
} prompt_case;

const prompt_case *golden_prompts(const char *name);
double prompt_error(const golden *g, int k, const float *logits, uint32_t vocab);

/* Logits around an image of 700 tokens, more than a chunk, against the reference
 * (tools/make_long_golden.py): the largest difference. `name`: moe-like or unified. */
double long_image_error(const bz_model *m, const char *name, const bz_session_options *o,
                        bz_error *err);

#endif
