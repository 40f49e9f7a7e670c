/* Base64. */
#ifndef BZ_BASE_BASE64_H
#define BZ_BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes standard or URL-safe base64 (- and _), with or without = padding; white space is skipped.
 * `out` holds at least n / 4 * 3 + 2 bytes. False: the text is not base64. */
bool bz_base64_read(const char *text, size_t n, uint8_t *out, size_t *bytes);

size_t bz_base64_size(size_t bytes); /* characters of the text of `bytes` bytes, with padding */
void bz_base64_write(const uint8_t *bytes, size_t n, char *out); /* and a 0 after it */

#endif
