#include "plan/cache.h"

#include <string.h>

static const char *const names[] = {
    [BZ_CACHE_F16] = "f16", [BZ_CACHE_F32] = "f32", [BZ_CACHE_Q8] = "q8", [BZ_CACHE_Q4] = "q4"};

const char *bz_cache_type_name(bz_cache_type type)
{
    return names[type];
}

bz_status bz_cache_type_named(bz_cache_type *out, const char *name, bool exact, bz_error *err)
{
    static const bz_cache_type choice[] = {BZ_CACHE_F16, BZ_CACHE_Q8, BZ_CACHE_Q4};
    *out = exact ? BZ_CACHE_F32 : BZ_CACHE_F16;
    for (size_t i = 0; name && i < sizeof choice / sizeof *choice; i++) {
        if (strcmp(name, names[choice[i]]) == 0) {
            *out = choice[i];
            return BZ_OK;
        }
    }
    return name ? bz_fail(err, BZ_BAD_REQUEST,
                          "Keys and values can be kept as f16, q8 or q4, not as '%.40s'.", name)
                : BZ_OK;
}

uint32_t bz_cache_bytes(bz_cache_type type, uint32_t n)
{
    const uint32_t blocks = (n + BZ_CACHE_BLOCK - 1) / BZ_CACHE_BLOCK;
    switch (type) {
    case BZ_CACHE_F32: return 4 * n;
    case BZ_CACHE_Q8: return blocks * (2 + BZ_CACHE_BLOCK);
    case BZ_CACHE_Q4: return blocks * (2 + BZ_CACHE_BLOCK / 2);
    default: return 2 * n;
    }
}
