/* The native device: opening, closing, errors. */
#include "gpu/device/native.h"
#include "gpu/device/test_hooks.h"

#if !defined(__wasm__)

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCOPE_SECONDS = 60, CLOSE_SECONDS = 10 };

/* ---- messages ---------------------------------------------------------------------- */

wgpu_text gpu_native_text(const char *text)
{
    return (wgpu_text){text, text ? strlen(text) : 0};
}

const char *gpu_native_line(wgpu_text message, char *buf, size_t n)
{
    size_t length =
        message.data ? (message.length == SIZE_MAX ? strlen(message.data) : message.length) : 0;
    size_t out = 0;
    for (size_t i = 0; i < length && out + 1 < n; i++) {
        unsigned char c = (unsigned char)message.data[i];
        if (c == '\n' && length - i > 8 && memcmp(message.data + i, "\n    at ", 8) == 0) {
            break; /* the rest is the location in Dawn's source */
        }
        if (c > 0x20) {
            buf[out++] = (char)c;
        } else if (out > 0 && buf[out - 1] != ' ') {
            buf[out++] = ' ';
        }
    }
    /* Our sentences add the full stop. */
    while (out > 0 && (buf[out - 1] == ' ' || buf[out - 1] == '.')) {
        out--;
    }
    buf[out] = 0;
    return buf;
}

/* ---- errors --------------------------------------------------------------------- */

bool gpu_native_usable(const gpu *g, bz_error *err)
{
    if (g->state == GPU_READY) {
        return true;
    }
    if (err) {
        *err = g->error;
    }
    return false;
}

void gpu_native_break(gpu *g, bz_status code, const char *format, ...)
{
    if (g->state == GPU_LOST || g->state == GPU_FAILED || g->closing) {
        return;
    }
    g->state = code == BZ_DEVICE_LOST ? GPU_LOST : GPU_FAILED;
    char text[sizeof g->error.text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    bz_fail(&g->error, code, "%s", text);
}

/* bad_request: a command that WebGPU forbids, hence a bug of ours. no_webgpu: a valid command that
 * this implementation could not run. */
static bz_status status_of(uint32_t error_type)
{
    return error_type == WGPU_ERROR_MEMORY       ? BZ_OUT_OF_MEMORY
           : error_type == WGPU_ERROR_VALIDATION ? BZ_BAD_REQUEST
                                                 : BZ_NO_WEBGPU;
}

void gpu_native_on_error(const wgpu_device *device, uint32_t type, wgpu_text message, void *a,
                         void *b)
{
    (void)device, (void)b;
    gpu *g = a;
    char line[240];
    gpu_native_line(message, line, sizeof line);
    if (type == WGPU_ERROR_MEMORY) {
        gpu_native_break(g, BZ_OUT_OF_MEMORY, "The GPU ran out of memory: %s.", line);
    } else {
        gpu_native_break(g, status_of(type), "The GPU refused a command: %s.", line);
    }
}

void gpu_native_on_lost(const wgpu_device *device, uint32_t reason, wgpu_text message, void *a,
                        void *b)
{
    (void)device, (void)reason, (void)b;
    gpu *g = a;
    char line[200];
    g->callbacks--;
    gpu_native_line(message, line, sizeof line);
    /* Report the loss rather than the failures it caused before it was known. */
    if (!g->closing) {
        g->state = GPU_LOST;
        bz_fail(&g->error, BZ_DEVICE_LOST, "The GPU device was lost: %s. Open it again to go on.",
                line);
    }
}

bool gpu_native_wait(gpu *g, const uint32_t *flag, uint32_t wanted, unsigned seconds)
{
    uint64_t end = bz_os_now() + seconds * 1000000000ull, pause = 0;
    for (;;) {
        g->fn.InstanceProcessEvents(g->instance);
        if (*flag == wanted) {
            return true;
        }
        if (bz_os_now() > end) {
            return false;
        }
        /* Sleep: software devices compute on the cores that would spin. */
        if (pause) {
            bz_os_sleep(pause);
        }
        pause = pause < 500000 ? pause + 10000 : pause;
    }
}

static const uint32_t scope_filters[] = {WGPU_FILTER_INTERNAL, WGPU_FILTER_MEMORY,
                                         WGPU_FILTER_VALIDATION};
enum { N_SCOPES = sizeof scope_filters / sizeof *scope_filters };

void gpu_native_catch(gpu *g)
{
    for (int i = 0; i < N_SCOPES; i++) {
        g->fn.DevicePushErrorScope(g->device, scope_filters[i]);
    }
}

static void on_scope(uint32_t status, uint32_t type, wgpu_text message, void *a, void *b)
{
    gpu *g = a;
    g->callbacks--;
    if ((uintptr_t)b != g->scope.number) {
        return; /* the waiting call has timed out */
    }
    g->scope.waiting--;
    if (status == WGPU_SUCCESS && type != WGPU_ERROR_NONE && g->scope.type == WGPU_ERROR_NONE) {
        g->scope.type = type;
        gpu_native_line(message, g->scope.text, sizeof g->scope.text);
    }
}

bz_status gpu_native_caught(gpu *g, bz_error *err, const char *what)
{
    g->scope.number++;
    g->scope.waiting = N_SCOPES;
    g->scope.type = WGPU_ERROR_NONE;
    for (int i = 0; i < N_SCOPES; i++) {
        g->callbacks++;
        g->fn.DevicePopErrorScope(g->device,
                                  (wgpu_scope_callback){.mode = WGPU_CALLBACK_IN_PROCESS_EVENTS,
                                                        .call = on_scope,
                                                        .a = g,
                                                        .b = (void *)(uintptr_t)g->scope.number});
    }
    if (!gpu_native_wait(g, &g->scope.waiting, 0, SCOPE_SECONDS)) {
        gpu_native_break(g, BZ_DEVICE_LOST, "The GPU device has not answered for %d seconds.",
                         SCOPE_SECONDS);
    }
    if (!gpu_native_usable(g, err) && g->state != GPU_STARTING) {
        return g->error.code;
    }
    if (g->scope.type == WGPU_ERROR_NONE) {
        return BZ_OK;
    }
    return bz_fail(err, status_of(g->scope.type), "%.90s: %.220s.", what, g->scope.text);
}

/* ---- the device ------------------------------------------------------------------------ */

bz_status gpu_open(gpu **out, const gpu_options *options, bz_error *err)
{
    static const gpu_options plain;
    options = options ? options : &plain;
    *out = NULL;
    gpu *g = calloc(1, sizeof *g);
    if (!g) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "There is no memory for a GPU device.");
    }
    g->state = GPU_STARTING;
    g->kind = "unknown";
    g->buffers.item_size = sizeof(gpu_buffer_item);
    g->pipelines.item_size = sizeof(gpu_pipeline_item);
    g->lists.item_size = sizeof(gpu_list_item);
    g->fences.item_size = sizeof(gpu_fence_item);
    g->stagings.item_size = sizeof(gpu_staging_item);

    bz_status status = gpu_native_load(g, err);
    if (status == BZ_OK) {
        /* The layout of its descriptor changed during 2025; all libraries accept none. */
        g->instance = g->fn.CreateInstance(NULL);
        if (!g->instance) {
            status = bz_fail(err, BZ_NO_WEBGPU, "%.150s could not be started.", g->library.name);
        }
    }
    if (status == BZ_OK) {
        status = gpu_native_open(g, options, err);
    }
    if (status == BZ_OK) {
        g->fn.AdapterRelease(g->adapter);
        g->adapter = NULL;
        g->state = GPU_READY;
        *out = g;
    } else {
        gpu_close(g);
    }
    return status;
}

void gpu_close(gpu *g)
{
    if (!g) {
        return;
    }
    g->closing = true;
    if (g->device) {
        gpu_native_drop_lists(g);
        gpu_native_drop_buffers(g);
        gpu_native_drop_uploads(g);
        g->fn.DeviceDestroy(g->device);
        gpu_native_wait(g, &g->callbacks, 0, CLOSE_SECONDS);
        g->fn.QueueRelease(g->queue);
        g->fn.DeviceRelease(g->device);
    }
    if (g->adapter) {
        g->fn.AdapterRelease(g->adapter);
    }
    if (g->instance) {
        g->fn.InstanceProcessEvents(g->instance);
        g->fn.InstanceRelease(g->instance);
    }
    bz_os_library_close(g->library.file);
    gpu_handles_free(&g->buffers);
    gpu_handles_free(&g->pipelines);
    gpu_handles_free(&g->lists);
    gpu_handles_free(&g->fences);
    gpu_handles_free(&g->stagings);
    /* A library with a callback outstanding would call it on freed memory: leak the rest instead.
     */
    if (g->callbacks == 0) {
        free(g);
    }
}

gpu_state gpu_state_of(gpu *g, bz_error *err)
{
    g->fn.InstanceProcessEvents(g->instance);
    gpu_native_usable(g, err);
    return g->state;
}

const gpu_limits *gpu_limits_of(const gpu *g)
{
    return &g->limits;
}

bool gpu_test_changed(const gpu *g)
{
    return g->test_changed;
}

void gpu_test_limits(gpu *g, const gpu_limits *limits)
{
    g->test_changed = true;
    g->limits = *limits;
}

const char *gpu_adapter_name(const gpu *g)
{
    return g->name;
}

const char *gpu_library_name(const gpu *g)
{
    return g->library.name;
}

const char *gpu_adapter_kind(const gpu *g)
{
    return g->kind;
}

gpu_counts gpu_counts_of(const gpu *g)
{
    return g->counts;
}

void gpu_test_lose(gpu *g)
{
    g->test_changed = true;
    g->fn.DeviceDestroy(g->device);
}

bool gpu_test_limit_memory(gpu *g, uint64_t bytes)
{
    g->test_changed = true;
    g->test_memory = bytes;
    g->test_inject = (void (*)(wgpu_device, uint32_t, wgpu_text))bz_os_library_symbol(
        g->library.file, "wgpuDeviceInjectError");
    return g->test_inject != NULL;
}

void gpu_test_wgsl(gpu *g, const char *wgsl)
{
    g->test_changed = true;
    g->test_wgsl = wgsl;
}

void gpu_test_direct_reads(gpu *g, bool on)
{
    g->test_changed = true;
    g->limits.direct_reads = on;
}

void gpu_native_submit(gpu *g, wgpu_encoder e)
{
    wgpu_commands commands = g->fn.CommandEncoderFinish(e, NULL);
    g->fn.CommandEncoderRelease(e);
    if (commands) {
        g->fn.QueueSubmit(g->queue, 1, &commands);
        g->fn.CommandBufferRelease(commands);
        g->counts.submits++;
    }
}

#endif
