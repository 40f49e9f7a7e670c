/* What a file is that should have been a model. */
#ifndef BZ_FILE_SNIFF_H
#define BZ_FILE_SNIFF_H

#include <stddef.h>
#include <stdint.h>

/* head: the first n bytes of a file, 24 where it has so many. Returns the end of the
 * sentence "this is not a GGUF file but ...", with the way out, or NULL. */
const char *bz_sniff(const uint8_t *head, size_t n);

#endif
