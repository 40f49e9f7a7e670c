/* Decoding where the device ranks the logits itself: a pass ends in a short list for each row, a
 * few kilobytes instead of a megabyte. Used by batch_pass.c. */
#ifndef BZ_BATCH_LISTS_H
#define BZ_BATCH_LISTS_H

#include "session/batch_internal.h"

/* Can the next tokens of the active slots be chosen from short lists? */
bool bz_batch_can_list(const bz_batch *b);
/* A step of the pass, which is sent first. DONE: every active slot has its token in b->chosen, or
 * an error in its list; or, if !b->listed, a list was too short and the rows of logits have been
 * read instead. */
bz_pass_state bz_batch_list_step(bz_batch *b, bz_error *err);

#endif
