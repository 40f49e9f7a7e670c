/* The native device: large writes, through a pool of mapped buffers.
 *
 * wgpuQueueWriteBuffer creates a staging buffer for every large write, and its fresh memory costs
 * more than the copy. Here a few buffers are reused: filled while mapped, copied from by the GPU,
 * and mapped again after that. Nothing waits: while all are in flight, the caller uses the queue.
 */
#include "gpu/device/native.h"

#if !defined(__wasm__)

#include <string.h>

enum { LEAST_BYTES = 256 << 10 };

static void on_mapped(uint32_t status, wgpu_text message, void *a, void *b)
{
    (void)message; /* a lost device is reported by its own callback */
    gpu *g = a;
    gpu_upload_slot *s = b;
    g->callbacks--;
    s->mapped = status == WGPU_SUCCESS && !g->closing
                    ? g->fn.BufferGetMappedRange(s->object, 0, GPU_UPLOAD_BYTES)
                    : NULL;
}

/* A mapped buffer, or NULL. */
static gpu_upload_slot *free_slot(gpu *g)
{
    g->fn.InstanceProcessEvents(g->instance);
    for (uint32_t i = 0; i < GPU_UPLOADS; i++) {
        gpu_upload_slot *s = &g->uploads[i];
        if (!s->object) {
            const wgpu_buffer_desc desc = {.usage = WGPU_USAGE_MAP_WRITE | WGPU_USAGE_COPY_FROM,
                                           .bytes = GPU_UPLOAD_BYTES,
                                           .mapped = 1};
            gpu_native_catch(g);
            s->object = g->fn.DeviceCreateBuffer(g->device, &desc);
            if (gpu_native_caught(g, NULL, "A buffer for uploads") != BZ_OK || !s->object) {
                return NULL; /* no memory for another: the caller uses the queue */
            }
            s->mapped = g->fn.BufferGetMappedRange(s->object, 0, GPU_UPLOAD_BYTES);
        }
        if (s->mapped) {
            return s;
        }
    }
    return NULL;
}

bool gpu_native_upload(gpu *g, wgpu_buffer to, uint64_t offset, const void *bytes, uint64_t n)
{
    gpu_upload_slot *s = n >= LEAST_BYTES && n <= GPU_UPLOAD_BYTES ? free_slot(g) : NULL;
    if (!s) {
        return false;
    }
    memcpy(s->mapped, bytes, (size_t)n);
    s->mapped = NULL;
    g->fn.BufferUnmap(s->object);
    wgpu_encoder e = g->fn.DeviceCreateCommandEncoder(g->device, NULL);
    g->fn.CommandEncoderCopyBufferToBuffer(e, s->object, 0, to, offset, n);
    gpu_native_submit(g, e);
    g->callbacks++;
    g->fn.BufferMapAsync(
        s->object, WGPU_MAP_WRITE, 0, GPU_UPLOAD_BYTES,
        (wgpu_map_callback){
            .mode = WGPU_CALLBACK_IN_PROCESS_EVENTS, .call = on_mapped, .a = g, .b = s});
    return true;
}

static void drop(gpu *g, gpu_upload_slot *s)
{
    if (s->object) {
        g->fn.BufferDestroy(s->object);
        g->fn.BufferRelease(s->object);
        *s = (gpu_upload_slot){0};
    }
}

void gpu_free_upload_buffers(gpu *g)
{
    g->fn.InstanceProcessEvents(g->instance);
    for (uint32_t i = 0; i < GPU_UPLOADS; i++) {
        if (g->uploads[i].mapped) { /* the others have a callback outstanding */
            drop(g, &g->uploads[i]);
        }
    }
}

void gpu_native_drop_uploads(gpu *g)
{
    for (uint32_t i = 0; i < GPU_UPLOADS; i++) {
        drop(g, &g->uploads[i]);
    }
}

#endif
