#include "gpu/run/pipelines.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/kernels/link.h"

typedef struct entry {
    gpu_kernel kernel;
    bz_type type;
    gpu_overrides overrides;
    gpu_pipeline pipeline;
    bool ready;
} entry;

struct gpu_pipelines {
    gpu *g;
    entry *entries; /* [capacity], about a hundred for a model and its encoders */
    uint32_t n, capacity;
};

gpu_pipelines *gpu_pipelines_new(gpu *g)
{
    gpu_pipelines *ps = calloc(1, sizeof *ps);
    if (ps) {
        ps->g = g;
    }
    return ps;
}

void gpu_pipelines_free(gpu_pipelines *ps)
{
    for (uint32_t i = 0; ps && i < ps->n; i++) {
        gpu_pipeline_free(ps->g, ps->entries[i].pipeline);
    }
    if (ps) {
        free(ps->entries);
    }
    free(ps);
}

/* Makes room for one more entry. */
static bool reserve(gpu_pipelines *ps)
{
    if (ps->n < ps->capacity) {
        return true;
    }
    const uint32_t capacity = ps->capacity ? 2 * ps->capacity : 64;
    entry *entries = realloc(ps->entries, capacity * sizeof *entries);
    if (entries) {
        ps->entries = entries;
        ps->capacity = capacity;
    }
    return entries != NULL;
}

gpu_pipeline gpu_pipelines_get(gpu_pipelines *ps, gpu_kernel kernel, bz_type type,
                               gpu_overrides overrides, bz_error *err)
{
    const gpu_kernel_info *info = gpu_kernel_info_of(kernel);
    type = info->types ? type : BZ_F32;
    for (uint32_t i = 0; i < ps->n; i++) {
        const entry *e = &ps->entries[i];
        if (e->kernel == kernel && e->type == type &&
            memcmp(&e->overrides, &overrides, sizeof overrides) == 0) {
            return e->pipeline;
        }
    }
    if (!reserve(ps)) {
        bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to compile the kernel %s.", info->name);
        return 0;
    }
    const uint32_t subgroup_at = gpu_kernel_subgroup_override(kernel);
    const bool subgroups = subgroup_at < GPU_MAX_OVERRIDES && overrides.value[subgroup_at];
    size_t n;
    char *text = gpu_link(kernel, type, subgroups, &n, err);
    if (!text) {
        return 0;
    }
    char label[64];
    gpu_kernel_name(kernel, type, label, sizeof label);
    gpu_constant constants[GPU_MAX_OVERRIDES];
    uint32_t n_constants = 0;
    for (uint32_t i = 0; i < GPU_MAX_OVERRIDES && info->overrides[i]; i++) {
        if (subgroups || i != subgroup_at) { /* the plain text does not declare SUBGROUP */
            constants[n_constants++] = (gpu_constant){info->overrides[i], overrides.value[i]};
        }
    }
    gpu_pipeline p = gpu_pipeline_new(ps->g, label, text, n, constants, n_constants, err);
    free(text);
    if (p) {
        ps->entries[ps->n++] = (entry){kernel, type, overrides, p, false};
    }
    return p;
}

gpu_pipeline_state gpu_pipelines_state(gpu_pipelines *ps, bz_error *err)
{
    for (uint32_t i = 0; i < ps->n; i++) {
        entry *e = &ps->entries[i];
        if (!e->ready) {
            gpu_pipeline_state state = gpu_pipeline_state_of(ps->g, e->pipeline, err);
            if (state != GPU_PIPELINE_READY) {
                return state;
            }
            e->ready = true;
        }
    }
    return GPU_PIPELINE_READY;
}
