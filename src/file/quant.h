/* The tensor types (block types) of GGUF files: names, sizes, dequantization.
 *
 * Plain C, and the reference for the kernels of cpu/ and gpu/. Layouts are in file/blocks.h and
 * docs/MODEL.md.
 */
#ifndef BZ_FILE_QUANT_H
#define BZ_FILE_QUANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers are the ids stored in files. */
typedef enum bz_type {
    BZ_F32 = 0,
    BZ_F16 = 1,
    BZ_Q4_0 = 2,
    BZ_Q4_1 = 3,
    BZ_Q5_0 = 6,
    BZ_Q5_1 = 7,
    BZ_Q8_0 = 8,
    BZ_Q2_K = 10,
    BZ_Q3_K = 11,
    BZ_Q4_K = 12,
    BZ_Q5_K = 13,
    BZ_Q6_K = 14,
    BZ_IQ4_NL = 20,
    BZ_IQ4_XS = 23,
    BZ_I32 = 26, /* tables of ids */
    BZ_I64 = 27,
    BZ_BF16 = 30,
    BZ_MXFP4 = 39,
    BZ_TYPE_END = 48 /* above every known id: size of tables indexed by type */
} bz_type;

typedef struct bz_type_info {
    const char *name;      /* "Q4_K" */
    uint32_t block_values; /* values per block */
    uint32_t block_bytes;
    bool runs; /* supported; else only the name is known */
} bz_type_info;

/* NULL for an unknown id. Includes the integer types and unsupported block types (IQ1/IQ2/IQ3, TQ,
 * NVFP4, Q8_1, Q8_K, ...), so that messages can name them. */
const bz_type_info *bz_type_of(uint32_t id);

static inline bool bz_type_is_ids(bz_type type)
{
    return type == BZ_I32 || type == BZ_I64;
}

/* Bytes of a row of n values; n is a multiple of the block size. */
size_t bz_row_bytes(bz_type type, uint64_t n);

/* out[0..n) = the values of n / block_values consecutive blocks. n is a multiple of the block
 * size; `blocks` needs no alignment. Only for types that run. */
void bz_dequantize(bz_type type, const void *blocks, float *out, size_t n);

float bz_f16_to_f32(uint16_t half);
uint16_t bz_f32_to_f16(float value); /* round to nearest even; overflow to infinity */
float bz_bf16_to_f32(uint16_t word);

#endif
