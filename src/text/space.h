/* White space as the chat template defines it: what Python's str.strip() removes. */
#ifndef BZ_TEXT_SPACE_H
#define BZ_TEXT_SPACE_H

#include "base/error.h"

size_t bz_space_before(bz_str s); /* bytes of white space at the beginning */
size_t bz_space_after(bz_str s);  /* bytes of white space at the end */
bz_str bz_trim(bz_str s);

#endif
