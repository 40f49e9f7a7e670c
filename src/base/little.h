/* Little-endian numbers at any address; compilers turn these into one load. */
#ifndef BZ_BASE_LITTLE_H
#define BZ_BASE_LITTLE_H

#include <stdint.h>

static inline uint16_t bz_le16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t bz_le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t bz_le64(const uint8_t *p)
{
    return (uint64_t)bz_le32(p) | (uint64_t)bz_le32(p + 4) << 32;
}

#endif
