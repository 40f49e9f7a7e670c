/* Names the type of a file that is not GGUF. */
#ifndef BZ_FILE_SNIFF_H
#define BZ_FILE_SNIFF_H

#include <stddef.h>
#include <stdint.h>

/* head: the first n bytes of a file, at least 24 if it has as many. Returns the end of the
 * sentence "this is not a GGUF file but ...", including what to do, or NULL. */
const char *bz_sniff(const uint8_t *head, size_t n);

#endif
