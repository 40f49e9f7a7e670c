/* Shared by parse_call.c (valid calls) and parse_call_repair.c (invalid calls). */
#ifndef BZ_TEXT_PARSE_CALL_INTERNAL_H
#define BZ_TEXT_PARSE_CALL_INTERNAL_H

#include "text/parse_call.h"

size_t bz_call_skip_space(bz_str s, size_t at);
/* These return the offset after the item that begins at s[at]. */
size_t bz_call_quoted_end(bz_str s, size_t at); /* quoted text; 0: no closing quote; \ escapes */
size_t bz_call_number_end(bz_str s, size_t at); /* a JSON number; `at`: there is none */
size_t bz_call_word_end(bz_str s, size_t at);   /* true, false or null; `at`: there is none */

/* Converts valid arguments {...} to JSON; never returns REPAIRED. */
bz_call_answer bz_call_convert(bz_str arguments, bz_json_buffer *out);

#endif
