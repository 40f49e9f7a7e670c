/* Drafters in tests: the golden case, on any device. */
#ifndef BZ_TEST_DRAFTER_H
#define BZ_TEST_DRAFTER_H

#include "bezel.h"

/* The recorded drafts of the case `assistant`: every layer, logits, states and tokens. */
void check_assistant(const char *device, const bz_session_options *o, double bound);

#endif
