/* GGUF files made in memory, whole or broken on purpose.
 *
 *   gguf_build b;
 *   gb_init(&b);
 *   gb_str(&b, "general.architecture", "gemma4");
 *   gb_u32(&b, "gemma4.block_count", 2);
 *   gb_tensor(&b, "token_embd.weight", BZ_Q8_0, 2, (uint64_t[]){64, 8}, NULL);
 *   gb_finish(&b);                       // b.bytes, b.size, b.header_size
 *   gb_set(&b, gb_spot_of(&b, "token_embd.weight")->type, 4, 99);   // break it
 *   gb_free(&b);
 *
 * Nothing is checked here: any name, type and count goes into the file. Keys and
 * tensors keep the order of the calls. Out of memory ends the program.
 */
#ifndef BZ_TEST_GGUF_BUILD_H
#define BZ_TEST_GGUF_BUILD_H

#include "file/gguf.h"

/* A growing run of bytes. */
typedef struct gb_bytes {
    uint8_t *data;
    size_t size, room;
} gb_bytes;

/* Where the fields of a key or tensor lie in the finished file. */
typedef struct gb_spot {
    char *name;
    size_t name_length; /* u64 */
    size_t name_bytes;
    size_t type;   /* u32: value type of a key, tensor type */
    size_t value;  /* key: the value; of an array: u32 element type, u64 count, elements */
    size_t n_dims; /* tensor: u32 */
    size_t dims;   /* tensor: u64 each */
    size_t offset; /* tensor: u64 */
    bool is_tensor;
} gb_spot;

typedef struct gguf_build {
    uint32_t version;   /* 3; change before gb_finish */
    uint32_t alignment; /* 32, of the data; write the key "general.alignment" yourself */
    bool header_only;   /* true: no tensor data is made, `bytes` ends with the header */

    /* after gb_finish */
    uint8_t *bytes;
    size_t size;        /* of bytes */
    size_t header_size; /* before the padding */
    uint64_t file_size; /* with all tensor data; equals size unless header_only */

    /* private */
    uint64_t n_keys, n_tensors, data_size;
    gb_bytes keys, infos, data;
    gb_spot *spots;
    size_t n_spots, room;
} gguf_build;

enum { GB_VERSION_AT = 4, GB_TENSOR_COUNT_AT = 8, GB_KEY_COUNT_AT = 16 };

void gb_init(gguf_build *b);
void gb_free(gguf_build *b);

void gb_u8(gguf_build *b, const char *key, uint8_t value);
void gb_i8(gguf_build *b, const char *key, int8_t value);
void gb_u16(gguf_build *b, const char *key, uint16_t value);
void gb_i16(gguf_build *b, const char *key, int16_t value);
void gb_u32(gguf_build *b, const char *key, uint32_t value);
void gb_i32(gguf_build *b, const char *key, int32_t value);
void gb_u64(gguf_build *b, const char *key, uint64_t value);
void gb_i64(gguf_build *b, const char *key, int64_t value);
void gb_f32(gguf_build *b, const char *key, float value);
void gb_f64(gguf_build *b, const char *key, double value);
void gb_bool(gguf_build *b, const char *key, bool value);
void gb_str(gguf_build *b, const char *key, const char *value);

/* Arrays: `values` are `count` numbers of the C type that belongs to `type` (uint8_t
 * for bool), in the machine's order, which must be little-endian. */
void gb_array(gguf_build *b, const char *key, bz_gguf_type type, const void *values,
              uint64_t count);
void gb_strings(gguf_build *b, const char *key, const char *const *values, uint64_t count);

/* Any key and any value: key_size bytes, a type id, n bytes. */
void gb_raw(gguf_build *b, const char *key, size_t key_size, uint32_t type, const void *value,
            size_t n);

/* dims[0] is contiguous. data: the tensor's bytes, or NULL for zeros. A type unknown
 * to bz_type_of takes 4 bytes per value. */
void gb_tensor(gguf_build *b, const char *name, uint32_t type, uint32_t n_dims,
               const uint64_t *dims, const void *data);
void gb_tensor_raw(gguf_build *b, const char *name, size_t name_size, uint32_t type,
                   uint32_t n_dims, const uint64_t *dims, const void *data);

/* Joins the parts. Call it once; only gb_set, gb_spot_of and gb_free may follow. */
void gb_finish(gguf_build *b);

/* The last key or tensor of that name; ends the program when there is none. */
const gb_spot *gb_spot_of(const gguf_build *b, const char *name);

/* Overwrites `width` (1, 2, 4 or 8) bytes of the finished file. */
void gb_set(gguf_build *b, size_t at, unsigned width, uint64_t value);

/* A small good file for tests that break it, not yet finished: keys
 * general.architecture, general.alignment (32), test.u32, test.numbers (3 of i32),
 * test.words (3 strings); tensors a.weight F32 [4, 3], b.weight Q4_0 [64, 2], c F16 [5]. */
void gb_sample(gguf_build *b);

/* bz_gguf_parse on a copy of exactly n bytes, so that sanitisers see any read past
 * them. The parsed file is dropped. */
bz_gguf_answer gb_parse_copy(const uint8_t *bytes, size_t n, uint64_t file_size, uint64_t *at_least,
                             bz_error *err);

#endif
