/* Vectors of passages that were computed before, by the content of the files that they are from.
 *
 *   "BZSEARCH"  version u32, dimensions u32, model [32], entries u64, vectors u64
 *   entries     SHA-256 of the content [32], vectors u32; ascending, each once
 *   vectors     f32 [dimensions] each, in the order of the entries
 *   SHA-256 of all before
 *
 * Little-endian. There are no names and no texts in it: files are read anyway to see whether they
 * have changed, and a file that was moved keeps its vectors. */
#ifndef BZ_CLI_SEARCH_INDEX_H
#define BZ_CLI_SEARCH_INDEX_H

#include "base/sha256.h"
#include "base/error.h"

enum { SEARCH_KEY = BZ_SHA256_BYTES };

typedef struct search_entry {
    uint8_t key[SEARCH_KEY];
    float *vectors; /* [n][dimensions] owned */
    uint32_t n;
    bool used; /* a file has this content */
} search_entry;

/* Zero-initialize with `dimensions` and `model`, which says what computed the vectors. */
typedef struct search_index {
    uint32_t dimensions;
    uint8_t model[SEARCH_KEY];
    search_entry *entries; /* [n] ascending by key */
    size_t n, cap;
} search_index;

void search_index_free(search_index *x); /* keeps dimensions and model */

/* Fills an empty index from the bytes of a file. bad_file: damaged; bad_request: of another model
 * or of another version. *err has the reason only, in words that follow "The index ". After an
 * error it is empty. */
bz_status search_index_read(search_index *x, const uint8_t *bytes, size_t n, bz_error *err);

/* The entry with this key; NULL: there is none. */
search_entry *search_index_find(const search_index *x, const uint8_t key[SEARCH_KEY]);
/* A new entry with room for n vectors; NULL: no memory. Moves the others. */
search_entry *search_index_add(search_index *x, const uint8_t key[SEARCH_KEY], uint32_t n);

/* Puts the entries that are used in the place of the file, when all of it is written. */
bz_status search_index_write(const search_index *x, const char *path, bz_error *err);

#endif
