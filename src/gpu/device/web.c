/* The device in WebAssembly: imports of module "gpu", which web/package/src/device.ts implements
 * with a GPUDevice. Handles are its handles. Sizes and offsets are passed as doubles: exact up to
 * 2^53.
 *
 * In a browser errors are reported later. A buffer that could not be created, or bindings that do
 * not fit, show as GPU_FAILED; no fence passes before the result of everything started earlier is
 * known. */
#include "gpu/device/gpu.h"

#if defined(__wasm__)

#include <stdlib.h>
#include <string.h>

#define IMPORT(name) __attribute__((import_module("gpu"), import_name(#name))) extern

IMPORT(open) uint32_t js_open(uint32_t flags);
IMPORT(close) void js_close(uint32_t device);
/* One of gpu_state. */
IMPORT(state) uint32_t js_state(uint32_t device);
/* The bz_status of LOST or FAILED; writes the cause, one terminated line, to text. */
IMPORT(failure) uint32_t js_failure(uint32_t device, char *text, uint32_t cap);
IMPORT(describe) void js_describe(uint32_t device, double *values, char *name, uint32_t name_cap);
IMPORT(counts) void js_counts(uint32_t device, double *counts);

IMPORT(buffer) uint32_t js_buffer(uint32_t device, double bytes, uint32_t usage);
IMPORT(buffer_free) void js_buffer_free(uint32_t buffer);
IMPORT(write)
void js_write(uint32_t device, uint32_t buffer, double offset, const void *bytes, uint32_t n);
IMPORT(copy)
void js_copy(uint32_t device, uint32_t from, double from_offset, uint32_t to, double to_offset,
             double n);

IMPORT(pipeline)
uint32_t js_pipeline(uint32_t device, const char *label, const char *wgsl, uint32_t n_wgsl,
                     const gpu_constant *constants, uint32_t n_constants);
/* One of gpu_pipeline_state; if FAILED, writes the compiler's first message to text. */
IMPORT(pipeline_state) uint32_t js_pipeline_state(uint32_t pipeline, char *text, uint32_t cap);
IMPORT(pipeline_free) void js_pipeline_free(uint32_t pipeline);

IMPORT(list) uint32_t js_list(uint32_t device);
IMPORT(list_free) void js_list_free(uint32_t list);
IMPORT(list_add)
void js_list_add(uint32_t device, uint32_t list, uint32_t pipeline, const double (*bindings)[3],
                 uint32_t n, uint32_t x, uint32_t y, uint32_t z);
IMPORT(replay) void js_replay(uint32_t device, uint32_t list, uint32_t first, uint32_t count);

IMPORT(read) uint32_t js_read(uint32_t device, uint32_t buffer, double offset, uint32_t n);
IMPORT(replay_read)
uint32_t js_replay_read(uint32_t device, uint32_t list, uint32_t first, uint32_t count,
                        uint32_t buffer, double offset, uint32_t n);
IMPORT(signal) uint32_t js_signal(uint32_t device);
IMPORT(done) uint32_t js_done(uint32_t fence, void *to);
IMPORT(drop) void js_drop(uint32_t fence);

enum { OPEN_BASELINE = 1, OPEN_NO_F16 = 2, OPEN_NO_SUBGROUPS = 4 };
enum {
    FEATURE_F16 = 1,
    FEATURE_SUBGROUPS = 2,
    FEATURE_TIMESTAMPS = 4,
    FEATURE_PACKED_DOT = 8,
    IS_CPU = 16,
    FEATURE_MATRICES = 32
};

_Static_assert(sizeof(gpu_constant) == 16 && offsetof(gpu_constant, value) == 8,
               "device.ts reads these");

struct gpu {
    uint32_t device;
    bool described;
    gpu_limits limits;
    char name[128];
    const char *kind;
};

/* ---- the device ------------------------------------------------------------------------ */

bz_status gpu_open(gpu **out, const gpu_options *options, bz_error *err)
{
    static const gpu_options plain;
    options = options ? options : &plain;
    gpu *g = calloc(1, sizeof *g);
    *out = g;
    if (!g) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "There is no memory for a GPU device.");
    }
    g->kind = "unknown";
    g->device =
        js_open((options->baseline ? OPEN_BASELINE : 0u) | (options->no_f16 ? OPEN_NO_F16 : 0u) |
                (options->no_subgroups ? OPEN_NO_SUBGROUPS : 0u));
    return BZ_OK;
}

void gpu_close(gpu *g)
{
    if (g) {
        js_close(g->device);
        free(g);
    }
}

static void describe(gpu *g)
{
    double f[11] = {0};
    js_describe(g->device, f, g->name, sizeof g->name);
    const uint32_t features = (uint32_t)f[10];
    g->limits = (gpu_limits){.max_buffer = (uint64_t)f[0],
                             .max_binding = (uint64_t)f[1],
                             .max_storage_buffers = (uint32_t)f[2],
                             .max_workgroup_storage = (uint32_t)f[3],
                             .max_invocations = (uint32_t)f[4],
                             .max_workgroups = (uint32_t)f[5],
                             .min_storage_offset = (uint32_t)f[6],
                             .min_uniform_offset = (uint32_t)f[7],
                             .subgroup_min = (uint32_t)f[8],
                             .subgroup_max = (uint32_t)f[9],
                             .f16 = features & FEATURE_F16,
                             .subgroups = features & FEATURE_SUBGROUPS,
                             .timestamps = features & FEATURE_TIMESTAMPS,
                             .packed_dot = features & FEATURE_PACKED_DOT,
                             .matrices = features & FEATURE_MATRICES,
                             .sequential = features & IS_CPU,
                             .direct_reads = true};
    g->kind = features & IS_CPU ? "cpu" : "unknown";
    g->described = true;
}

static void say_failure(gpu *g, bz_error *err)
{
    char cause[240];
    const bz_status code = (bz_status)js_failure(g->device, cause, sizeof cause);
    switch (code) {
    case BZ_DEVICE_LOST:
        bz_fail(err, code, "The GPU device was lost: %s. Open it again to go on.", cause);
        break;
    case BZ_OUT_OF_MEMORY: bz_fail(err, code, "The GPU ran out of memory: %s.", cause); break;
    case BZ_NO_WEBGPU:
    case BZ_NO_ADAPTER: bz_fail(err, code, "%s.", cause); break;
    default: bz_fail(err, code, "The GPU refused a command: %s.", cause); break;
    }
}

gpu_state gpu_state_of(gpu *g, bz_error *err)
{
    const gpu_state state = (gpu_state)js_state(g->device);
    if (state == GPU_READY && !g->described) {
        describe(g);
    } else if (state == GPU_LOST || state == GPU_FAILED) {
        say_failure(g, err);
    }
    return state;
}

/* After a call returned the handle 0: the device is LOST, FAILED or not ready. */
static uint32_t check(gpu *g, uint32_t handle, bz_error *err)
{
    if (!handle && gpu_state_of(g, err) == GPU_STARTING) {
        bz_fail(err, BZ_BAD_REQUEST, "The GPU device is not ready yet.");
    }
    return handle;
}

const gpu_limits *gpu_limits_of(const gpu *g)
{
    return &g->limits;
}

const char *gpu_adapter_name(const gpu *g)
{
    return g->name;
}

const char *gpu_library_name(const gpu *g)
{
    (void)g;
    return "the browser";
}

const char *gpu_adapter_kind(const gpu *g)
{
    return g->kind;
}

gpu_counts gpu_counts_of(const gpu *g)
{
    double c[5] = {0};
    js_counts(g->device, c);
    return (gpu_counts){.dispatches = (uint64_t)c[0],
                        .submits = (uint64_t)c[1],
                        .read_bytes = (uint64_t)c[2],
                        .written_bytes = (uint64_t)c[3],
                        .buffer_bytes = (uint64_t)c[4]};
}

/* ---- buffers --------------------------------------------------------------------------- */

gpu_buffer gpu_buffer_new(gpu *g, uint64_t bytes, gpu_usage usage, bz_error *err)
{
    if (g->described && bytes > g->limits.max_buffer) {
        bz_fail(err, BZ_OUT_OF_MEMORY,
                "A buffer of %llu bytes is more than this GPU allows in one: %llu.",
                (unsigned long long)bytes, (unsigned long long)g->limits.max_buffer);
        return 0;
    }
    return check(g, js_buffer(g->device, (double)(bytes ? (bytes + 3) & ~(uint64_t)3 : 4), usage),
                 err);
}

void gpu_buffer_free(gpu *g, gpu_buffer b)
{
    (void)g;
    js_buffer_free(b);
}

void gpu_write(gpu *g, gpu_buffer b, uint64_t offset, const void *bytes, uint64_t n)
{
    if (n) {
        js_write(g->device, b, (double)offset, bytes, (uint32_t)n);
    }
}

void gpu_copy(gpu *g, gpu_buffer from, uint64_t from_offset, gpu_buffer to, uint64_t to_offset,
              uint64_t n)
{
    if (n) {
        js_copy(g->device, from, (double)from_offset, to, (double)to_offset, (double)n);
    }
}

/* ---- pipelines ------------------------------------------------------------------------- */

gpu_pipeline gpu_pipeline_new(gpu *g, const char *label, const char *wgsl, size_t n_wgsl,
                              const gpu_constant *constants, uint32_t n_constants, bz_error *err)
{
    return check(g, js_pipeline(g->device, label, wgsl, (uint32_t)n_wgsl, constants, n_constants),
                 err);
}

gpu_pipeline_state gpu_pipeline_state_of(gpu *g, gpu_pipeline p, bz_error *err)
{
    char message[300];
    const gpu_pipeline_state state =
        (gpu_pipeline_state)js_pipeline_state(p, message, sizeof message);
    const gpu_state device = gpu_state_of(g, err);
    if (device == GPU_LOST || device == GPU_FAILED) {
        return GPU_PIPELINE_FAILED;
    }
    if (state == GPU_PIPELINE_FAILED) {
        bz_fail(err, BZ_BAD_REQUEST, "%s.", message);
    }
    return state;
}

void gpu_pipeline_free(gpu *g, gpu_pipeline p)
{
    (void)g;
    js_pipeline_free(p);
}

/* ---- lists ----------------------------------------------------------------------------- */

gpu_list gpu_list_new(gpu *g, bz_error *err)
{
    return check(g, js_list(g->device), err);
}

void gpu_list_free(gpu *g, gpu_list l)
{
    (void)g;
    js_list_free(l);
}

bz_status gpu_list_add(gpu *g, gpu_list l, gpu_pipeline p, const gpu_binding *bindings, uint32_t n,
                       uint32_t x, uint32_t y, uint32_t z, bz_error *err)
{
    double places[GPU_MAX_BINDINGS][3];
    if (n > GPU_MAX_BINDINGS) {
        return bz_fail(err, BZ_BAD_REQUEST, "A kernel has %u bindings; allowed are %d.", n,
                       GPU_MAX_BINDINGS);
    }
    for (uint32_t i = 0; i < n; i++) {
        places[i][0] = bindings[i].buffer;
        places[i][1] = (double)bindings[i].offset;
        places[i][2] = (double)bindings[i].size;
    }
    js_list_add(g->device, l, p, places, n, x, y, z);
    const gpu_state state = gpu_state_of(g, err);
    return state == GPU_READY ? BZ_OK : err ? err->code : BZ_BAD_REQUEST;
}

void gpu_replay(gpu *g, gpu_list l, uint32_t first, uint32_t count)
{
    if (count) {
        js_replay(g->device, l, first, count);
    }
}

/* ---- reading back ------------------------------------------------------------------------ */

static bool readable(uint64_t n, bz_error *err)
{
    if (n == 0 || n > GPU_MAX_READ) {
        bz_fail(err, BZ_BAD_REQUEST, "%llu bytes cannot be read from a GPU buffer at once.",
                (unsigned long long)n);
        return false;
    }
    return true;
}

gpu_fence gpu_read(gpu *g, gpu_buffer b, uint64_t offset, uint64_t n, bz_error *err)
{
    return readable(n, err) ? check(g, js_read(g->device, b, (double)offset, (uint32_t)n), err) : 0;
}

gpu_fence gpu_replay_read(gpu *g, gpu_list l, uint32_t first, uint32_t count, gpu_buffer b,
                          uint64_t offset, uint64_t n, bz_error *err)
{
    return readable(n, err)
               ? check(g,
                       js_replay_read(g->device, l, first, count, b, (double)offset, (uint32_t)n),
                       err)
               : 0;
}

bool gpu_read_done(gpu *g, gpu_fence f, void *to)
{
    (void)g;
    return js_done(f, to);
}

void gpu_read_drop(gpu *g, gpu_fence f)
{
    (void)g;
    js_drop(f);
}

gpu_fence gpu_signal(gpu *g, bz_error *err)
{
    return check(g, js_signal(g->device), err);
}

void gpu_free_upload_buffers(gpu *g)
{
    (void)g; /* the browser manages its own upload buffers */
}

bool gpu_signal_done(gpu *g, gpu_fence f)
{
    (void)g;
    return js_done(f, NULL);
}

/* ---- measuring --------------------------------------------------------------------------- */

/* It would have to block. In JavaScript, device.ts measures instead. */
bool gpu_time_list(gpu *g, gpu_list l, uint32_t first, uint32_t count, double *ns)
{
    (void)g, (void)l, (void)first, (void)count, (void)ns;
    return false;
}

#endif
