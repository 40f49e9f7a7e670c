/* A JSON parser that builds a tree.
 *
 *   bz_arena arena = {0};
 *   const bz_json_node *root;
 *   if (bz_json_read(&root, text, len, &arena, &err) == BZ_OK) {
 *       bz_str model = bz_json_string(bz_json_get(root, "model"));
 *   }
 *   bz_arena_free(&arena);      // frees the tree
 *
 * The tree keeps the members' order and the numbers' digits (1.0 stays 1.0, a large integer
 * stays exact). The text must be exactly one value, in UTF-8, at most BZ_JSON_DEPTH levels deep;
 * anything else is refused with the offset of the error.
 */
#ifndef BZ_BASE_JSON_READ_H
#define BZ_BASE_JSON_READ_H

#include "base/arena.h"
#include "base/json.h"

typedef enum bz_json_kind {
    BZ_JSON_NULL,
    BZ_JSON_FALSE,
    BZ_JSON_TRUE,
    BZ_JSON_NUMBER,
    BZ_JSON_STRING,
    BZ_JSON_ARRAY,
    BZ_JSON_OBJECT
} bz_json_kind;

typedef struct bz_json_node {
    const struct bz_json_node *next; /* in the same array or object */
    bz_str key;                      /* in an object */
    union {
        bz_str text;                      /* a string's characters; a number as it was written */
        const struct bz_json_node *first; /* of an array or object */
    } of;
    uint32_t n; /* items of an array or object */
    uint8_t kind;
} bz_json_node;

/* The text may be freed afterwards: the tree is in the arena. A string may contain NUL; an
 * unpaired surrogate is read as U+FFFD. */
bz_status bz_json_read(const bz_json_node **root, const char *text, size_t len, bz_arena *arena,
                       bz_error *err);

/* All of these accept NULL for a missing value, so that calls can be nested. */
bool bz_json_is(const bz_json_node *node, bz_json_kind kind);
const bz_json_node *bz_json_first(const bz_json_node *node); /* of an array or object, else NULL */
/* Of members with the same key the last one is returned. */
const bz_json_node *bz_json_get(const bz_json_node *object, const char *key);
bz_str bz_json_string(const bz_json_node *node); /* empty if it is not a string */
/* False: not a number, not an integer, or out of range. */
bool bz_json_to_int(const bz_json_node *node, int64_t *value);
/* False: not a number, or too large for a double. */
bool bz_json_to_double(const bz_json_node *node, double *value);

/* The members sorted by the bytes of their keys, the last one of equal keys; NULL: out of
 * memory. */
const bz_json_node **bz_json_sorted(const bz_json_node *object, bz_arena *arena, size_t *n);

void bz_json_node_write(bz_json *j,
                        const bz_json_node *node); /* compact; NULL is written as null */

/* Unescapes one JSON string, given with its quotes. out: at least quoted.len bytes; may be the
 * string itself. False if it is not a JSON string. */
bool bz_json_unquote(bz_str quoted, char *out, size_t *n);

#endif
