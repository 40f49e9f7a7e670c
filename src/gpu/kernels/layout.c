#include "gpu/kernels/layout.h"

static const gpu_layout repacked[BZ_TYPE_END] = {
    [BZ_Q6_K] = {224, true}, /* padded from 210, so that everything in a block is aligned */
};

gpu_layout gpu_layout_of(bz_type type)
{
    return repacked[type].repacked ? repacked[type]
                                   : (gpu_layout){bz_type_of((uint32_t)type)->block_bytes, false};
}

size_t gpu_row_bytes(bz_type type, uint64_t n)
{
    return (size_t)(n / bz_type_of((uint32_t)type)->block_values * gpu_layout_of(type).block_bytes);
}
