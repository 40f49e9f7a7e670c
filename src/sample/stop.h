/* Finds stop strings in a stream of text. What could be the beginning of one is held back until
 * more text decides; a stop string itself is never returned. How the stream is split makes no
 * difference. The string that is complete first ends the text; of several that end at the same
 * byte, the longest is removed. */
#ifndef BZ_SAMPLE_STOP_H
#define BZ_SAMPLE_STOP_H

#include "base/error.h"

typedef struct bz_stop bz_stop;

/* Strings are copied; none may be empty or invalid UTF-8, so that whole characters in are whole
 * characters out. With n = 0 all text passes. */
bz_status bz_stop_new(bz_stop **out, const char *const *strings, size_t n, bz_error *err);
void bz_stop_free(bz_stop *m);

size_t bz_stop_longest(const bz_stop *m); /* of the strings, in bytes */

/* Takes `len` bytes, writes those that may be shown to `out` (capacity len + bz_stop_longest) and
 * returns how many. After a match it returns 0. */
size_t bz_stop_push(bz_stop *m, const char *text, size_t len, char *out);
size_t bz_stop_flush(bz_stop *m, char *out); /* at the end of the stream: what was held back */
bool bz_stop_matched(const bz_stop *m);

#endif
