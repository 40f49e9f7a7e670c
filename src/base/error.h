/* Errors as values: a status code and a sentence. Nothing is printed. */
#ifndef BZ_BASE_ERROR_H
#define BZ_BASE_ERROR_H

#include "bezel.h"

#if defined(__MINGW32__) /* where "printf" is that of an older C library */
#define BZ_PRINTF(a, b) __attribute__((format(gnu_printf, a, b)))
#elif defined(__GNUC__)
#define BZ_PRINTF(a, b) __attribute__((format(printf, a, b)))
#else
#define BZ_PRINTF(a, b)
#endif

/* Fills *err (which may be NULL) and returns `code`, for
 * `return bz_fail(err, BZ_BAD_FILE, "...", ...)`. */
bz_status bz_fail(bz_error *err, bz_status code, const char *format, ...) BZ_PRINTF(3, 4);

/* A borrowed range of bytes, usually inside a file's header; not NUL-terminated. */
typedef struct bz_str {
    const char *data;
    size_t len;
} bz_str;

bool bz_str_is(bz_str s, const char *text);
/* At most 60 characters of s, made printable for messages; returns buf. */
const char *bz_str_show(bz_str s, char buf[200]);

#endif
