/* GGUF container, versions 2 and 3.
 *
 * The parser does no I/O: it is given the first bytes of a file and returns done, error, or the
 * number of bytes it needs. Tensor data is only described, as an offset and a size in the file.
 * Keys, names and values point into the caller's bytes, which must outlive the bz_gguf.
 */
#ifndef BZ_FILE_GGUF_H
#define BZ_FILE_GGUF_H

#include "base/error.h"
#include "file/quant.h"

typedef enum bz_gguf_type {
    BZ_GGUF_U8 = 0,
    BZ_GGUF_I8 = 1,
    BZ_GGUF_U16 = 2,
    BZ_GGUF_I16 = 3,
    BZ_GGUF_U32 = 4,
    BZ_GGUF_I32 = 5,
    BZ_GGUF_F32 = 6,
    BZ_GGUF_BOOL = 7,
    BZ_GGUF_STRING = 8,
    BZ_GGUF_ARRAY = 9,
    BZ_GGUF_U64 = 10,
    BZ_GGUF_I64 = 11,
    BZ_GGUF_F64 = 12
} bz_gguf_type;

/* Bytes of one value; 0 for strings, arrays and unknown ids. */
size_t bz_gguf_type_size(uint32_t type);

typedef struct bz_gguf_kv {
    bz_str key;
    bz_gguf_type type; /* of the value, or of an array's elements */
    bool is_array;
    uint64_t count;       /* elements; 1 for a scalar */
    const uint8_t *bytes; /* first element; a string starts with its u64 length */
    size_t n_bytes;       /* all elements */
} bz_gguf_kv;

typedef struct bz_gguf_tensor {
    bz_str name;
    uint32_t type; /* file's id; known to bz_type_of */
    uint32_t n_dims;
    uint64_t ne[4];  /* ne[0] is contiguous; missing dimensions are 1 */
    uint64_t offset; /* of the data, from the start of the file */
    uint64_t size;   /* bytes */
} bz_gguf_tensor;

typedef struct bz_gguf {
    uint32_t version;
    uint32_t alignment;
    uint64_t header_size; /* bytes */
    uint64_t data_start;  /* header_size padded to the alignment, never past the file's end */
    size_t n_kv;
    bz_gguf_kv *kv;
    size_t n_tensors;
    bz_gguf_tensor *tensors;
    /* private: the same entries in bz_gguf_name_order, for the lookups. Sorted tables,
     * because a hostile file could fill a hash table with colliding names. */
    const bz_gguf_kv **kv_by_name;
    const bz_gguf_tensor **tensors_by_name;
} bz_gguf;

typedef enum bz_gguf_answer { BZ_GGUF_DONE, BZ_GGUF_MORE, BZ_GGUF_ERROR } bz_gguf_answer;

/* bytes: the first n_bytes of a file of file_size bytes. DONE fills *gguf (free it with
 * bz_gguf_free). MORE sets *at_least, with n_bytes < *at_least <= file_size: a lower bound of the
 * header's size, so reading twice as far saves calls. ERROR fills *err with a sentence that names
 * the key or tensor. Parsing starts at byte 0 in each call. Memory use is a small multiple of
 * n_bytes, whatever the counts in the file are.
 * Checked here: magic, version, counts, strings, value types, duplicate keys and
 * names, alignment, known tensor types, block sizes, offsets, overlaps, sizes,
 * and that every tensor lies inside the file. */
bz_gguf_answer bz_gguf_parse(bz_gguf *gguf, const uint8_t *bytes, uint64_t n_bytes,
                             uint64_t file_size, uint64_t *at_least, bz_error *err);
void bz_gguf_free(bz_gguf *gguf); /* NULL and all-zero structs are fine */

const bz_gguf_kv *bz_gguf_find(const bz_gguf *gguf, const char *key);             /* or NULL */
const bz_gguf_tensor *bz_gguf_find_tensor(const bz_gguf *gguf, const char *name); /* or NULL */

/* The order of the lookup tables: by length, then by bytes. */
int bz_gguf_name_order(bz_str a, bz_str b);

/* These convert between number types: the same key may be u32 in one file, i32, u64 or f32 in
 * another. False, with *out unchanged, when kv is NULL or the value does not fit: wrong kind,
 * negative, fraction, not finite, index out of range. */
bool bz_gguf_get_u64(const bz_gguf_kv *kv, uint64_t index, uint64_t *out);
bool bz_gguf_get_i64(const bz_gguf_kv *kv, uint64_t index, int64_t *out);
bool bz_gguf_get_f64(const bz_gguf_kv *kv, uint64_t index, double *out);
bool bz_gguf_get_bool(const bz_gguf_kv *kv, uint64_t index, bool *out); /* any integer type too */
bool bz_gguf_get_str(const bz_gguf_kv *kv, bz_str *out);                /* scalar strings */

/* Iterates over an array of strings: start with *cursor = 0; false at the end, or if kv is not an
 * array of strings. */
bool bz_gguf_next_str(const bz_gguf_kv *kv, size_t *cursor, bz_str *out);

#endif
