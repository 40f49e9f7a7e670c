/* Running a model in tests: all logits of a prompt, greedy continuations. */
#ifndef BZ_TEST_FORWARD_H
#define BZ_TEST_FORWARD_H

#include "bezel_media.h"

/* Opens a model or ends the program with a FAIL line. */
bz_model *open_or_fail(const char *path);
bz_model *open_on_or_fail(const char *path, const char *device); /* "gpu", ... */
bz_model *open_with_drafter_or_fail(const char *path, const char *drafter, const char *device);
bz_session *session_or_fail(const bz_model *m, const bz_session_options *o);

/* Prefills ids and returns the status; logits [n][vocabulary] of the rows that were computed
 * go to `out` at their position (NULL: last row only, see bz_session_logits). */
bz_status prefill(bz_session *s, const int32_t *ids, size_t n, uint32_t snapshot_at, float *out,
                  bz_error *err);
/* The same with images and audio. */
bz_status prefill_with(bz_session *s, const int32_t *ids, size_t n, bz_media **media,
                       size_t n_media, float *out, bz_error *err);

/* Generates `n` tokens greedily into ids, past end tokens. Returns their number. */
size_t generate(bz_session *s, int32_t *ids, size_t n);

/* Largest absolute difference; infinite if any value is NaN. */
double max_difference(const float *a, const float *b, size_t n);

#endif
