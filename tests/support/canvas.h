/* DiffusionGemma's golden data, for tests on any device. */
#ifndef BZ_TEST_CANVAS_H
#define BZ_TEST_CANVAS_H

#include "bezel_diffusion.h"
#include "support/golden.h"

/* Logits of a canvas [n] after the session's tokens into out [n][vocabulary]. */
bz_status canvas_logits(bz_session *s, const int32_t *ids, const float *previous, float temperature,
                        float *out, bz_error *err);

/* Prompt, two steps, a committed canvas and one step after it: logits within `bound`. */
void check_canvas_logits(const golden *g, const bz_model *m, const bz_session_options *o,
                         double bound);

/* A prompt with an image, in chunks of any size, and a step after it. */
void check_canvas_image(const char *device, const bz_session_options *o, double bound);

/* A recorded generation ("gen", "gen_eos", "gen_stop"), replayed with its random numbers: every
 * decision is the same. */
void check_generation(const golden *g, const bz_model *m, const bz_session_options *o,
                      const char *name);

#endif
