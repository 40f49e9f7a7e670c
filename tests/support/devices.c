#include "support/devices.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/device/test_hooks.h"
#include "gpu/run/load.h"

enum { MAX_KEPT = 8 };

static struct {
    gpu_options options;
    gpu *g;
    gpu_pipelines *pipelines;
} kept[MAX_KEPT];
static uint32_t n_kept;
static devices_kind chosen = DEVICES_PARALLEL;

static void choose(gpu_options *options)
{
    static const gpu_threads threads[] = {[DEVICES_PARALLEL] = GPU_THREADS_PARALLEL,
                                          [DEVICES_SEQUENTIAL] = GPU_THREADS_SEQUENTIAL,
                                          [DEVICES_AS_THEY_ARE] = GPU_THREADS_OF_ADAPTER};
    if (options->threads == GPU_THREADS_OF_ADAPTER) {
        options->threads = threads[chosen];
    }
}

static bool take(const gpu_options *options, gpu **g, gpu_pipelines **pipelines)
{
    for (uint32_t i = 0; i < n_kept; i++) {
        if (memcmp(&kept[i].options, options, sizeof *options) == 0) {
            *g = kept[i].g;
            *pipelines = kept[i].pipelines;
            kept[i] = kept[--n_kept];
            return true;
        }
    }
    return false;
}

static bool keep(const gpu_options *options, gpu *g, gpu_pipelines *pipelines)
{
    if (n_kept == MAX_KEPT || gpu_test_changed(g) || gpu_state_of(g, NULL) != GPU_READY) {
        return false;
    }
    kept[n_kept].options = *options;
    kept[n_kept].g = g;
    kept[n_kept++].pipelines = pipelines;
    return true;
}

static void close_kept(void)
{
    while (n_kept > 0) {
        n_kept--;
        gpu_pipelines_free(kept[n_kept].pipelines);
        gpu_close(kept[n_kept].g);
    }
}

void devices_count_as(devices_kind kind)
{
    chosen = kind;
}

void devices_keep(void)
{
    static const gpu_test_pool pool = {choose, take, keep};
    gpu_test_devices = &pool;
    atexit(close_kept);
}
