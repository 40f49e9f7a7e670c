/* Bytes written as text. */
#ifndef BZ_BASE_BASE64_H
#define BZ_BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads standard base64 or the variant of addresses (- and _), with or without = at the end; line
 * breaks and blanks are passed over. `out` has room for n / 4 * 3 + 2 bytes. False: it is something
 * else. */
bool bz_base64_read(const char *text, size_t n, uint8_t *out, size_t *bytes);

#endif
