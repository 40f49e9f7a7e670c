/* What the two jobs over a canvas share: diffuse.c writes text, canvas_logits.c is for checking. */
#ifndef BZ_SESSION_CANVAS_H
#define BZ_SESSION_CANVAS_H

#include "session/session.h"

/* BZ_OK: a canvas can be computed after what the session holds. */
bz_status bz_canvas_check(const bz_session *s, bz_error *err);

/* Fills s->rows for a pass whose output is the block of rows from `first` on. */
void bz_canvas_want_block(bz_session *s, uint32_t first);

/* Starts a pass after what the session holds. The caller has filled in n_out, out and the inputs of
 * this kind of pass in s->rows; ids [canvas] stay the caller's. */
bz_status bz_session_canvas_pass(bz_session *s, canvas_pass kind, const int32_t *ids,
                                 bz_error *err);

/* A step of the pass that bz_session_canvas_pass started. */
bz_pass_state bz_canvas_work(bz_session *s, bz_error *err);

#endif
