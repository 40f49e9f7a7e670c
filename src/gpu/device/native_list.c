/* The native device: pipelines, lists of dispatches, timing. */
#include "gpu/device/native.h"

#if !defined(__wasm__)

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- pipelines ------------------------------------------------------------------------ */

/* Two callbacks report on a pipeline: the compiler's messages, with lines, and the result. The
 * state is COMPILING until both were made, in either order. */
static gpu_pipeline_item *count_callback(gpu *g, void *handle)
{
    g->callbacks--;
    gpu_pipeline_item *p = gpu_handles_at(&g->pipelines, (uint32_t)(uintptr_t)handle);
    if (p) {
        p->waiting--;
    }
    return p;
}

static void on_compilation(uint32_t status, const wgpu_compilation *info, void *a, void *b)
{
    gpu_pipeline_item *p = count_callback(a, b);
    if (!p || status != WGPU_SUCCESS || !info) {
        return;
    }
    for (size_t i = 0; i < info->n; i++) {
        const wgpu_message *m = &info->messages[i];
        if (m->type == WGPU_MESSAGE_ERROR) {
            char line[200];
            gpu_native_line(m->text, line, sizeof line);
            p->failed = true;
            bz_fail(&p->error, BZ_BAD_REQUEST,
                    "Kernel %s, line %" PRIu64 ", column %" PRIu64 ": %s.", p->label, m->line,
                    m->column, line);
            return;
        }
    }
}

static void on_pipeline(uint32_t status, wgpu_pipeline object, wgpu_text message, void *a, void *b)
{
    gpu *g = a;
    gpu_pipeline_item *p = count_callback(g, b);
    if (!p || status != WGPU_SUCCESS || g->closing) {
        if (object) {
            g->fn.ComputePipelineRelease(object);
        }
        if (p && !p->failed) {
            char line[220];
            gpu_native_line(message, line, sizeof line);
            p->failed = true;
            bz_fail(&p->error, BZ_BAD_REQUEST, "Kernel %s could not be compiled: %s.", p->label,
                    *line ? line : "no reason given");
        }
        return;
    }
    p->object = object;
}

gpu_pipeline gpu_pipeline_new(gpu *g, const char *label, const char *wgsl, size_t n_wgsl,
                              const gpu_constant *constants, uint32_t n_constants, bz_error *err)
{
    if (!gpu_native_usable(g, err)) {
        return 0;
    }
    gpu_pipeline_item *p = gpu_handles_add(&g->pipelines);
    wgpu_constant *values = n_constants ? calloc(n_constants, sizeof *values) : NULL;
    if (!p || (n_constants && !values)) {
        if (p) {
            gpu_handles_drop(&g->pipelines, p->slot.handle);
        }
        free(values);
        bz_fail(err, BZ_OUT_OF_MEMORY, "There is no memory for another kernel.");
        return 0;
    }
    gpu_pipeline handle = p->slot.handle;
    snprintf(p->label, sizeof p->label, "%s", label);
    for (uint32_t i = 0; i < n_constants; i++) {
        values[i] = (wgpu_constant){.name = gpu_native_text(constants[i].name),
                                    .value = constants[i].value};
    }

    wgpu_wgsl source = {.chain = {.type = WGPU_CHAIN_WGSL}, .code = {wgsl, n_wgsl}};
    if (g->test_wgsl) {
        source.code = gpu_native_text(g->test_wgsl);
    }
    gpu_native_catch(g);
    wgpu_shader shader = g->fn.DeviceCreateShaderModule(
        g->device, &(wgpu_labelled){.next = &source.chain, .label = gpu_native_text(label)});
    /* Errors in the shader are reported with their line by the messages below. */
    bz_error caught;
    bz_status status = gpu_native_caught(g, &caught, label);
    if (!shader || (status != BZ_OK && status != BZ_BAD_REQUEST)) {
        if (shader) {
            g->fn.ShaderModuleRelease(shader);
        }
        bz_fail(err, status == BZ_OK ? BZ_NO_WEBGPU : status, "Kernel %s could not be read: %.200s",
                p->label, status == BZ_OK ? "this WebGPU library gave no reason." : caught.text);
        gpu_handles_drop(&g->pipelines, handle);
        free(values);
        return 0;
    }

    p->waiting = 2;
    g->callbacks += 2;
    g->fn.ShaderModuleGetCompilationInfo(
        shader, (wgpu_compilation_callback){.mode = WGPU_CALLBACK_IN_PROCESS_EVENTS,
                                            .call = on_compilation,
                                            .a = g,
                                            .b = (void *)(uintptr_t)handle});
    wgpu_pipeline_desc desc = {
        .label = gpu_native_text(label),
        .compute = {.shader = shader,
                    .entry = gpu_native_text("main"),
                    .n_constants = n_constants,
                    .constants = values},
    };
    g->fn.DeviceCreateComputePipelineAsync(
        g->device, &desc,
        (wgpu_pipeline_callback){.mode = WGPU_CALLBACK_IN_PROCESS_EVENTS,
                                 .call = on_pipeline,
                                 .a = g,
                                 .b = (void *)(uintptr_t)handle});
    g->fn.ShaderModuleRelease(shader);
    free(values);
    return handle;
}

gpu_pipeline_state gpu_pipeline_state_of(gpu *g, gpu_pipeline handle, bz_error *err)
{
    g->fn.InstanceProcessEvents(g->instance);
    if (!gpu_native_usable(g, err)) {
        return GPU_PIPELINE_FAILED;
    }
    const gpu_pipeline_item *p = gpu_handles_at(&g->pipelines, handle);
    if (!p) {
        bz_fail(err, BZ_BAD_REQUEST, "There is no kernel %u.", (unsigned)handle);
        return GPU_PIPELINE_FAILED;
    }
    if (p->waiting) {
        return GPU_PIPELINE_COMPILING;
    }
    if (p->failed) {
        if (err) {
            *err = p->error;
        }
        return GPU_PIPELINE_FAILED;
    }
    return GPU_PIPELINE_READY;
}

static void release_pipeline(gpu *g, gpu_pipeline_item *p)
{
    if (p->layout) {
        g->fn.BindGroupLayoutRelease(p->layout);
    }
    if (p->object) {
        g->fn.ComputePipelineRelease(p->object);
    }
}

void gpu_pipeline_free(gpu *g, gpu_pipeline handle)
{
    gpu_pipeline_item *p = gpu_handles_at(&g->pipelines, handle);
    if (p) {
        release_pipeline(g, p);
        gpu_handles_drop(&g->pipelines, handle);
    }
}

/* ---- lists ------------------------------------------------------------------------------ */

gpu_list gpu_list_new(gpu *g, bz_error *err)
{
    gpu_list_item *l = gpu_native_usable(g, err) ? gpu_handles_add(&g->lists) : NULL;
    if (!l && g->state == GPU_READY) {
        bz_fail(err, BZ_OUT_OF_MEMORY, "There is no memory for another list.");
    }
    return l ? l->slot.handle : 0;
}

static void release_list(gpu *g, gpu_list_item *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        g->fn.BindGroupRelease(l->dispatches[i].group);
        g->fn.ComputePipelineRelease(l->dispatches[i].pipeline);
    }
    free(l->dispatches);
}

void gpu_list_free(gpu *g, gpu_list handle)
{
    gpu_list_item *l = gpu_handles_at(&g->lists, handle);
    if (l) {
        release_list(g, l);
        gpu_handles_drop(&g->lists, handle);
    }
}

/* Clear messages for the most frequent mistakes; the library finds the rest. */
static bz_status fill_entry(gpu *g, const char *kernel, uint32_t i, const gpu_binding *b,
                            wgpu_group_entry *entry, bz_error *err)
{
    const gpu_buffer_item *buffer = gpu_handles_at(&g->buffers, b->buffer);
    if (!buffer) {
        return bz_fail(err, BZ_BAD_REQUEST, "Binding %u of kernel %s: there is no such buffer.", i,
                       kernel);
    }
    uint64_t size = b->size ? b->size : buffer->bytes - (b->offset < buffer->bytes ? b->offset : 0);
    if (b->offset >= buffer->bytes || size > buffer->bytes - b->offset) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "Binding %u of kernel %s: %" PRIu64 " bytes at %" PRIu64
                       " are outside a buffer of %" PRIu64 ".",
                       i, kernel, size, b->offset, buffer->bytes);
    }
    uint32_t alignment =
        buffer->usage == GPU_UNIFORM ? g->limits.min_uniform_offset : g->limits.min_storage_offset;
    if (b->offset % alignment) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "Binding %u of kernel %s: offset %" PRIu64
                       " is not a multiple of %u, as this GPU needs it.",
                       i, kernel, b->offset, (unsigned)alignment);
    }
    if (buffer->usage == GPU_STORAGE && size > g->limits.max_binding) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "Binding %u of kernel %s: %" PRIu64 " bytes are more than the %" PRIu64
                       " this GPU binds at once.",
                       i, kernel, size, g->limits.max_binding);
    }
    *entry = (wgpu_group_entry){
        .binding = i, .buffer = buffer->object, .offset = b->offset, .size = size};
    return BZ_OK;
}

static bz_status make_group(gpu *g, gpu_pipeline_item *p, const gpu_binding *bindings, uint32_t n,
                            wgpu_group *out, bz_error *err)
{
    wgpu_group_entry entries[GPU_MAX_BINDINGS];
    for (uint32_t i = 0; i < n; i++) {
        bz_status status = fill_entry(g, p->label, i, &bindings[i], &entries[i], err);
        if (status != BZ_OK) {
            return status;
        }
    }
    char what[90];
    snprintf(what, sizeof what, "The bindings of kernel %s do not fit", p->label);
    gpu_native_catch(g);
    if (!p->layout) {
        p->layout = g->fn.ComputePipelineGetBindGroupLayout(p->object, 0);
    }
    wgpu_group group = g->fn.DeviceCreateBindGroup(
        g->device, &(wgpu_group_desc){.layout = p->layout, .n = n, .entries = entries});
    bz_status status = gpu_native_caught(g, err, what);
    if (status != BZ_OK && group) {
        g->fn.BindGroupRelease(group);
    } else if (status == BZ_OK && !group) {
        status = bz_fail(err, BZ_OUT_OF_MEMORY, "%s: no memory.", what);
    }
    *out = group;
    return status;
}

bz_status gpu_list_add(gpu *g, gpu_list list, gpu_pipeline pipeline, const gpu_binding *bindings,
                       uint32_t n, uint32_t x, uint32_t y, uint32_t z, bz_error *err)
{
    if (!gpu_native_usable(g, err)) {
        return g->error.code;
    }
    gpu_list_item *l = gpu_handles_at(&g->lists, list);
    gpu_pipeline_item *p = gpu_handles_at(&g->pipelines, pipeline);
    if (!l || !p) {
        return bz_fail(err, BZ_BAD_REQUEST, "There is no such %s.", l ? "kernel" : "list");
    }
    if (!p->object) {
        return bz_fail(err, BZ_BAD_REQUEST, "Kernel %s %s.", p->label,
                       p->failed ? "did not compile" : "is still being compiled");
    }
    uint32_t most = g->limits.max_workgroups;
    if (n > GPU_MAX_BINDINGS || x == 0 || y == 0 || z == 0 || x > most || y > most || z > most) {
        return bz_fail(
            err, BZ_BAD_REQUEST,
            "Kernel %s: %u bindings and %u x %u x %u workgroups; allowed are %d and 1 to %u each.",
            p->label, n, x, y, z, GPU_MAX_BINDINGS, most);
    }
    if (l->n == l->room) {
        uint32_t room = l->room ? l->room * 2 : 64;
        gpu_dispatch *more = realloc(l->dispatches, room * sizeof *more);
        if (!more) {
            return bz_fail(err, BZ_OUT_OF_MEMORY, "There is no memory for a longer list.");
        }
        l->dispatches = more;
        l->room = room;
    }
    wgpu_group group;
    bz_status status = make_group(g, p, bindings, n, &group, err);
    if (status == BZ_OK) {
        g->fn.ComputePipelineAddRef(p->object); /* the list may outlive the pipeline's handle */
        l->dispatches[l->n++] = (gpu_dispatch){p->object, group, x, y, z};
    }
    return status;
}

static const gpu_list_item *range_of(gpu *g, gpu_list list, uint32_t first, uint32_t count)
{
    const gpu_list_item *l = gpu_handles_at(&g->lists, list);
    if (!l || first > l->n || count > l->n - first) {
        gpu_native_break(g, BZ_BAD_REQUEST, "Dispatches %u to %u are not in a list of %u.", first,
                         first + count, l ? l->n : 0);
        return NULL;
    }
    return l;
}

bool gpu_native_encode(gpu *g, wgpu_encoder e, gpu_list list, uint32_t first, uint32_t count)
{
    const gpu_list_item *l = range_of(g, list, first, count);
    if (!l) {
        return false;
    }
    const wgpu_functions *fn = &g->fn;
    wgpu_pass pass = fn->CommandEncoderBeginComputePass(e, NULL);
    wgpu_pipeline current = NULL;
    for (uint32_t i = first; i < first + count; i++) {
        const gpu_dispatch *d = &l->dispatches[i];
        if (d->pipeline != current) {
            current = d->pipeline;
            fn->ComputePassEncoderSetPipeline(pass, current);
        }
        fn->ComputePassEncoderSetBindGroup(pass, 0, d->group, 0, NULL);
        fn->ComputePassEncoderDispatchWorkgroups(pass, d->x, d->y, d->z);
    }
    fn->ComputePassEncoderEnd(pass);
    fn->ComputePassEncoderRelease(pass);
    return true;
}

void gpu_replay(gpu *g, gpu_list list, uint32_t first, uint32_t count)
{
    if (!gpu_native_usable(g, NULL) || !range_of(g, list, first, count) || count == 0) {
        return;
    }
    wgpu_encoder e = g->fn.DeviceCreateCommandEncoder(g->device, NULL);
    gpu_native_encode(g, e, list, first, count);
    gpu_native_submit(g, e);
    g->counts.dispatches += count;
}

/* ---- measuring ---------------------------------------------------------------------------- */

enum { TIMES_AT_ONCE = 1024 }; /* WebGPU allows 4096 queries in a set, two per dispatch */

static bool time_some(gpu *g, const gpu_dispatch *d, uint32_t n, wgpu_queries queries,
                      wgpu_buffer resolved, double *ns)
{
    const wgpu_functions *fn = &g->fn;
    wgpu_encoder e = fn->DeviceCreateCommandEncoder(g->device, NULL);
    for (uint32_t i = 0; i < n; i++) {
        wgpu_pass_times times = {.queries = queries, .begin = 2 * i, .end = 2 * i + 1};
        wgpu_pass pass = fn->CommandEncoderBeginComputePass(e, &(wgpu_pass_desc){.times = &times});
        fn->ComputePassEncoderSetPipeline(pass, d[i].pipeline);
        fn->ComputePassEncoderSetBindGroup(pass, 0, d[i].group, 0, NULL);
        fn->ComputePassEncoderDispatchWorkgroups(pass, d[i].x, d[i].y, d[i].z);
        fn->ComputePassEncoderEnd(pass);
        fn->ComputePassEncoderRelease(pass);
    }
    fn->CommandEncoderResolveQuerySet(e, queries, 0, 2 * n, resolved, 0);
    gpu_native_submit(g, e);
    g->counts.dispatches += n;

    uint64_t *ticks = malloc(2 * n * sizeof *ticks); /* in nanoseconds already */
    bool good = ticks && gpu_native_fetch(g, resolved, 2 * n * sizeof *ticks, ticks);
    for (uint32_t i = 0; good && i < n; i++) {
        ns[i] = ticks[2 * i + 1] > ticks[2 * i] ? (double)(ticks[2 * i + 1] - ticks[2 * i]) : 0;
    }
    free(ticks);
    return good;
}

bool gpu_time_list(gpu *g, gpu_list list, uint32_t first, uint32_t count, double *ns)
{
    const gpu_list_item *l = gpu_native_usable(g, NULL) ? range_of(g, list, first, count) : NULL;
    if (!l || !g->limits.timestamps) {
        return false;
    }
    gpu_native_catch(g);
    wgpu_queries queries = g->fn.DeviceCreateQuerySet(
        g->device, &(wgpu_queries_desc){.type = WGPU_QUERY_TIMESTAMP, .count = 2 * TIMES_AT_ONCE});
    wgpu_buffer resolved = g->fn.DeviceCreateBuffer(
        g->device, &(wgpu_buffer_desc){.usage = WGPU_USAGE_QUERY_RESOLVE | WGPU_USAGE_COPY_FROM,
                                       .bytes = 2 * TIMES_AT_ONCE * sizeof(uint64_t)});
    bool good = gpu_native_caught(g, NULL, "") == BZ_OK && queries && resolved;
    for (uint32_t done = 0; good && done < count; done += TIMES_AT_ONCE) {
        uint32_t n = count - done < TIMES_AT_ONCE ? count - done : TIMES_AT_ONCE;
        good = time_some(g, l->dispatches + first + done, n, queries, resolved, ns + done);
    }
    if (queries) {
        g->fn.QuerySetDestroy(queries);
        g->fn.QuerySetRelease(queries);
    }
    if (resolved) {
        g->fn.BufferDestroy(resolved);
        g->fn.BufferRelease(resolved);
    }
    return good;
}

void gpu_native_drop_lists(gpu *g)
{
    for (gpu_list_item *l = gpu_handles_next(&g->lists, NULL); l;
         l = gpu_handles_next(&g->lists, l)) {
        release_list(g, l);
        l->n = 0;
    }
    for (gpu_pipeline_item *p = gpu_handles_next(&g->pipelines, NULL); p;
         p = gpu_handles_next(&g->pipelines, p)) {
        release_pipeline(g, p);
        p->object = NULL;
        p->layout = NULL;
    }
}

#endif
