/* Drafters in tests: the golden case, on any device. */
#ifndef BZ_TEST_DRAFTER_H
#define BZ_TEST_DRAFTER_H

#include "bezel.h"

/* Drafts after the token s->tokens[s->n], which must be set; they follow it there. */
bz_status run_draft(bz_session *s, uint32_t count, bz_error *err);

/* The recorded drafts of the case `assistant`: every layer, logits, states and tokens. */
void check_assistant(const char *device, const bz_session_options *o, double bound);

#endif
