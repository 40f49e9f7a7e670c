/* What parse_call.c (the rules) and parse_call_repair.c (texts that break them) share. */
#ifndef BZ_TEXT_PARSE_CALL_INSIDE_H
#define BZ_TEXT_PARSE_CALL_INSIDE_H

#include "text/parse_call.h"

size_t bz_call_skip_space(bz_str s, size_t at);
/* Behind the quote that closes the one at s[at], or 0. A backslash guards what follows it. */
size_t bz_call_quoted_end(bz_str s, size_t at);
size_t bz_call_number_end(bz_str s, size_t at); /* behind a number as JSON has it, or `at` */
size_t bz_call_word_end(bz_str s, size_t at);   /* behind true, false or null, or `at` */

/* Arguments by the rules, {...}, to JSON; never REPAIRED. */
bz_call_answer bz_call_convert(bz_str arguments, bz_json_buffer *out);

#endif
