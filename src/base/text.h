/* Text functions that C11 lacks. */
#ifndef BZ_BASE_TEXT_H
#define BZ_BASE_TEXT_H

#include <stdlib.h>
#include <string.h>

/* A copy of at most n bytes, up to a NUL; NULL: no memory. */
static inline char *bz_text_copy(const char *text, size_t n)
{
    const char *end = memchr(text, 0, n);
    const size_t len = end ? (size_t)(end - text) : n;
    char *copy = malloc(len + 1);
    if (copy) {
        memcpy(copy, text, len);
        copy[len] = 0;
    }
    return copy;
}

/* Where `part` begins in text[n]; NULL: nowhere. */
static inline const char *bz_text_find(const char *text, size_t n, const char *part)
{
    const size_t len = strlen(part);
    for (size_t i = 0; len <= n && i <= n - len; i++) {
        if (memcmp(text + i, part, len) == 0) {
            return text + i;
        }
    }
    return NULL;
}

#endif
