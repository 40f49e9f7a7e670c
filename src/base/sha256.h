/* SHA-256 (FIPS 180-4), incremental. */
#ifndef BZ_BASE_SHA256_H
#define BZ_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { BZ_SHA256_BYTES = 32, BZ_SHA256_TEXT = 65, BZ_SHA256_BLOCK = 64 };

/* May be copied; copies continue independently. */
typedef struct bz_sha256 {
    uint32_t state[8];
    uint64_t n; /* bytes so far */
    uint8_t block[BZ_SHA256_BLOCK];
} bz_sha256;

void bz_sha256_begin(bz_sha256 *s);
void bz_sha256_add(bz_sha256 *s, const void *bytes, size_t n);
/* Call bz_sha256_begin before using s again. */
void bz_sha256_end(bz_sha256 *s, uint8_t digest[BZ_SHA256_BYTES]);
/* 64 lower-case hexadecimal digits, NUL-terminated. */
void bz_sha256_text(const uint8_t digest[BZ_SHA256_BYTES], char out[BZ_SHA256_TEXT]);

#endif
