/* bezel_debug.h: GPUs, their limits and counters. */
#include <stdio.h>

#include "base/error.h"
#include "base/os.h"
#include "bezel_debug.h"
#include "gpu/device/gpu.h"
#include "session/model.h"

enum { OPEN_WAIT_MS = 5000, OPEN_POLL_MS = 10, NS_PER_MS = 1000000 };

bz_status bz_debug_gpu_open(bz_debug_gpu **out, bz_error *err)
{
    bz_error why = {0};
    gpu *g = NULL;
    *out = NULL;
    bz_status status = gpu_open(&g, &(gpu_options){0}, err);
    if (status != BZ_OK) {
        return status;
    }
    gpu_state state = gpu_state_of(g, &why);
    for (int ms = 0; state == GPU_STARTING && ms < OPEN_WAIT_MS; ms += OPEN_POLL_MS) {
        bz_os_sleep((uint64_t)OPEN_POLL_MS * NS_PER_MS);
        state = gpu_state_of(g, &why);
    }
    if (state == GPU_READY) {
        *out = g;
        return BZ_OK;
    }
    gpu_close(g);
    return why.code ? bz_fail(err, why.code, "%s", why.text)
                    : bz_fail(err, BZ_NO_ADAPTER, "The GPU did not answer within %d seconds.",
                              OPEN_WAIT_MS / 1000);
}

void bz_debug_gpu_close(bz_debug_gpu *g)
{
    gpu_close(g);
}

bz_debug_gpu *bz_debug_model_gpu(const bz_model *model)
{
    return bz_model_device(model);
}

bz_debug_gpu_info bz_debug_gpu_get_info(const bz_debug_gpu *g)
{
    const gpu_limits *l = gpu_limits_of(g);
    bz_debug_gpu_info info = {.max_buffer = l->max_buffer,
                              .max_binding = l->max_binding,
                              .max_storage_buffers = l->max_storage_buffers,
                              .max_workgroup_storage = l->max_workgroup_storage,
                              .max_invocations = l->max_invocations,
                              .max_workgroups = l->max_workgroups,
                              .min_storage_offset = l->min_storage_offset,
                              .subgroup_min = l->subgroup_min,
                              .subgroup_max = l->subgroup_max,
                              .f16 = l->f16,
                              .subgroups = l->subgroups,
                              .packed_dot = l->packed_dot,
                              .timestamps = l->timestamps,
                              .matrices = l->matrices};
    snprintf(info.adapter, sizeof info.adapter, "%s", gpu_adapter_name(g));
    snprintf(info.kind, sizeof info.kind, "%s", gpu_adapter_kind(g));
    snprintf(info.library, sizeof info.library, "%s", gpu_library_name(g));
    return info;
}

bz_debug_gpu_counts bz_debug_gpu_get_counts(const bz_debug_gpu *g)
{
    const gpu_counts c = gpu_counts_of(g);
    return (bz_debug_gpu_counts){c.dispatches, c.submits, c.read_bytes, c.written_bytes,
                                 c.buffer_bytes};
}
