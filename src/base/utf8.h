/* UTF-8 as the Unicode standard defines it (table 3-7 of the core specification):
 * overlong forms, surrogates and anything above U+10FFFF are not characters.
 * Text is counted in bytes; NUL is a character like any other.
 */
#ifndef BZ_BASE_UTF8_H
#define BZ_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BZ_UTF8_REPLACEMENT = 0xFFFD };

/* The character at the start of text[0..len), len > 0. Returns its length, 1 to 4.
 * Where no whole character starts, *cp is U+FFFD and the length is 1, so that a
 * caller's loop turns every bad byte into one U+FFFD. (A real U+FFFD has length 3.) */
size_t bz_utf8_decode(const char *text, size_t len, uint32_t *cp);

/* Writes cp and returns its length; an invalid code point is written as U+FFFD. */
size_t bz_utf8_encode(uint32_t cp, char out[4]);

/* The number of bytes that form complete characters: all of them, unless the text ends inside a
 * character that more bytes could complete. At most 3 bytes are excluded. */
size_t bz_utf8_complete(const char *text, size_t len);

bool bz_utf8_valid(const char *text, size_t len);

#endif
