/* A JSON writer that sends its bytes to a callback.
 *
 *   bz_json j;
 *   bz_json_init(&j, sink, user);
 *   bz_json_object(&j);
 *   bz_json_put_int(&j, "layers", 35);
 *   bz_json_end(&j);
 *   ok = bz_json_finish(&j);
 *
 * The output is one compact value without a line end; commas and colons are inserted.
 * After a misuse (a value without a key, one end too many) or a failing sink, nothing more is
 * written and bz_json_finish returns false, so that no other call needs a check.
 */
#ifndef BZ_BASE_JSON_H
#define BZ_BASE_JSON_H

#include "base/error.h"

/* Receives the next n bytes; false stops the writing. */
typedef bool (*bz_json_sink)(void *user, const char *bytes, size_t n);

enum { BZ_JSON_DEPTH = 64 }; /* maximum nesting of objects and arrays */

typedef struct bz_json {
    bz_json_sink sink;
    void *user;
    bool failed;
    unsigned depth;
    uint8_t level[BZ_JSON_DEPTH + 1]; /* private: state of each open object or array */
} bz_json;

void bz_json_init(bz_json *j, bz_json_sink sink, void *user);
bool bz_json_finish(bz_json *j); /* true: exactly one complete value was written */

void bz_json_object(bz_json *j);
void bz_json_array(bz_json *j);
void bz_json_end(bz_json *j); /* closes the innermost object or array */

void bz_json_key(bz_json *j, const char *key);
void bz_json_key_str(bz_json *j, bz_str key);

/* Any bytes: each byte that is not valid UTF-8 becomes U+FFFD. */
void bz_json_text(bz_json *j, const char *text); /* NULL is written as null */
void bz_json_str(bz_json *j, bz_str text);

void bz_json_int(bz_json *j, int64_t value);
void bz_json_uint(bz_json *j, uint64_t value);
/* The fewest digits that read back as the same number; infinities and NaN are written as null. */
void bz_json_double(bz_json *j, double value);
void bz_json_float(bz_json *j, float value);
void bz_json_number(bz_json *j, bz_str digits); /* a number in JSON syntax, written unchanged */
void bz_json_bool(bz_json *j, bool value);
void bz_json_null(bz_json *j);

/* A key with its value. */
void bz_json_put_text(bz_json *j, const char *key, const char *value); /* NULL is written as null */
void bz_json_put_str(bz_json *j, const char *key, bz_str value);
void bz_json_put_int(bz_json *j, const char *key, int64_t value);
void bz_json_put_uint(bz_json *j, const char *key, uint64_t value);
void bz_json_put_float(bz_json *j, const char *key, double value); /* rounded to f32 */
void bz_json_put_bool(bz_json *j, const char *key, bool value);

/* A sink that appends to a growing buffer. Zero-initialize; free(text) when done. */
typedef struct bz_json_buffer {
    char *text; /* NUL-terminated; NULL until something is written */
    size_t n, cap;
} bz_json_buffer;

bool bz_json_to_buffer(void *buffer, const char *bytes, size_t n);

#endif
