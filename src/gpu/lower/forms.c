#include "gpu/lower/forms.h"

enum {
    MIN_THREADS = 16,
    MAX_EACH = 32 /* values of a row per thread */
};

gpu_lower_input gpu_suited(const gpu_lower_input *in)
{
    gpu_lower_input suited = *in;
    suited.packed = in->packed && !in->limits->sequential;
    suited.matrices = in->matrices && !in->limits->sequential;
    return suited;
}

bool gpu_has_each(const gpu_limits *limits)
{
    return limits->sequential;
}

uint32_t gpu_row_threads(const gpu_limits *limits, uint32_t values)
{
    uint32_t threads = MIN_THREADS;
    while (threads < GPU_ROW_THREADS && (!limits->sequential || values > MAX_EACH * threads)) {
        threads *= 2;
    }
    return threads;
}

uint32_t gpu_split_threads(const gpu_limits *limits, uint32_t vectors)
{
    uint32_t threads = 2 * MIN_THREADS;
    while (threads < GPU_ROW_THREADS && (!limits->sequential || threads < vectors)) {
        threads *= 2;
    }
    return threads;
}

bool gpu_splits_positions(const gpu_limits *limits)
{
    return !limits->sequential;
}

bool gpu_keeps_loops(const gpu_limits *limits)
{
    return limits->sequential;
}

bool gpu_joins_norms(const gpu_limits *limits)
{
    return limits->sequential;
}
