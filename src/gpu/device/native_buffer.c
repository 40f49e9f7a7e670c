/* The native device: buffers, writing and reading back.
 *
 * Bytes are read through staging buffers: a read queues a copy into one and requests that it be
 * mapped; once mapped, it holds the bytes. Staging buffers are kept for the next read, so that
 * decoding creates none. */
#include "gpu/device/native.h"

#if !defined(__wasm__)

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MIN_STAGING = 4096, FETCH_SECONDS = 600 };
#define MAX_IDLE_STAGING ((uint64_t)64 << 20)

/* ---- buffers ------------------------------------------------------------------------ */

static wgpu_buffer make_buffer(gpu *g, uint64_t bytes, uint64_t usage, bz_error *err)
{
    char what[80];
    snprintf(what, sizeof what, "A buffer of %" PRIu64 " bytes could not be made on the GPU",
             bytes);
    gpu_native_catch(g);
    wgpu_buffer b =
        g->fn.DeviceCreateBuffer(g->device, &(wgpu_buffer_desc){.usage = usage, .bytes = bytes});
    if (g->test_inject && g->counts.buffer_bytes + bytes > g->test_memory) {
        g->test_inject(g->device, WGPU_ERROR_MEMORY,
                       gpu_native_text("the memory that a test allows is full"));
    }
    bz_status status = gpu_native_caught(g, err, what);
    if (status == BZ_OK && !b) {
        status = bz_fail(err, BZ_OUT_OF_MEMORY, "%s.", what);
    }
    if (status != BZ_OK && b) {
        g->fn.BufferRelease(b);
        b = NULL;
    }
    return b;
}

gpu_buffer gpu_buffer_new(gpu *g, uint64_t bytes, gpu_usage usage, bz_error *err)
{
    if (!gpu_native_usable(g, err)) {
        return 0;
    }
    if (bytes > g->limits.max_buffer) {
        bz_fail(err, BZ_OUT_OF_MEMORY,
                "A buffer of %" PRIu64 " bytes is more than this GPU allows in one: %" PRIu64 ".",
                bytes, g->limits.max_buffer);
        return 0;
    }
    bytes = bytes ? (bytes + 3) & ~(uint64_t)3 : 4;
    gpu_buffer_item *item = gpu_handles_add(&g->buffers);
    if (!item) {
        bz_fail(err, BZ_OUT_OF_MEMORY, "There is no memory for another GPU buffer.");
        return 0;
    }
    gpu_buffer handle = item->slot.handle;
    uint64_t flags = WGPU_USAGE_COPY_FROM | WGPU_USAGE_COPY_TO;
    flags |= usage == GPU_STORAGE   ? WGPU_USAGE_STORAGE
             : usage == GPU_UNIFORM ? WGPU_USAGE_UNIFORM
                                    : 0;
    wgpu_buffer object = make_buffer(g, bytes, flags, err);
    if (!object) {
        gpu_handles_drop(&g->buffers, handle);
        return 0;
    }
    item->object = object;
    item->bytes = bytes;
    item->usage = usage;
    g->counts.buffer_bytes += bytes;
    return handle;
}

static void destroy(gpu *g, wgpu_buffer b)
{
    g->fn.BufferDestroy(b); /* frees the memory now: bind groups of lists may keep the object */
    g->fn.BufferRelease(b);
}

void gpu_buffer_free(gpu *g, gpu_buffer b)
{
    gpu_buffer_item *item = gpu_handles_at(&g->buffers, b);
    if (item) {
        destroy(g, item->object);
        g->counts.buffer_bytes -= item->bytes;
        gpu_handles_drop(&g->buffers, b);
    }
}

/* NULL, and the device has failed, if the range is not inside the buffer. */
static const gpu_buffer_item *range_of(gpu *g, gpu_buffer b, uint64_t offset, uint64_t n,
                                       const char *verb)
{
    const gpu_buffer_item *item = gpu_handles_at(&g->buffers, b);
    if (!item) {
        gpu_native_break(g, BZ_BAD_REQUEST, "There is no GPU buffer %u to %s.", (unsigned)b, verb);
    } else if (offset > item->bytes || n > item->bytes - offset) {
        gpu_native_break(g, BZ_BAD_REQUEST,
                         "%" PRIu64 " bytes at %" PRIu64
                         " to %s are outside a GPU buffer of %" PRIu64 ".",
                         n, offset, verb, item->bytes);
    } else if ((offset | n) & 3) {
        gpu_native_break(g, BZ_BAD_REQUEST,
                         "%" PRIu64 " bytes at %" PRIu64
                         " to %s in a GPU buffer are not multiples of 4.",
                         n, offset, verb);
    } else {
        return item;
    }
    return NULL;
}

void gpu_write(gpu *g, gpu_buffer b, uint64_t offset, const void *bytes, uint64_t n)
{
    const gpu_buffer_item *item =
        gpu_native_usable(g, NULL) ? range_of(g, b, offset, n, "write") : NULL;
    g->counts.written_bytes += item ? n : 0;
    for (const uint8_t *p = bytes; item && n;) { /* split over several upload buffers */
        const uint64_t some = n < GPU_UPLOAD_BYTES ? n : GPU_UPLOAD_BYTES;
        if (!gpu_native_upload(g, item->object, offset, p, some)) {
            g->fn.QueueWriteBuffer(g->queue, item->object, offset, p, (size_t)some);
        }
        p += some;
        offset += some;
        n -= some;
    }
}

void gpu_copy(gpu *g, gpu_buffer from, uint64_t from_offset, gpu_buffer to, uint64_t to_offset,
              uint64_t n)
{
    if (!gpu_native_usable(g, NULL)) {
        return;
    }
    const gpu_buffer_item *source = range_of(g, from, from_offset, n, "copy from");
    const gpu_buffer_item *target = range_of(g, to, to_offset, n, "copy to");
    if (source && source == target) {
        gpu_native_break(g, BZ_BAD_REQUEST, "WebGPU cannot copy within one buffer.");
    } else if (source && target && n) {
        wgpu_encoder e = g->fn.DeviceCreateCommandEncoder(g->device, NULL);
        g->fn.CommandEncoderCopyBufferToBuffer(e, source->object, from_offset, target->object,
                                               to_offset, n);
        gpu_native_submit(g, e);
    }
}

/* ---- reading back --------------------------------------------------------------------- */

/* The smallest unused staging buffer of at least n bytes, or a new one. */
static gpu_staging_item *take_staging(gpu *g, uint64_t n, bz_error *err)
{
    gpu_staging_item *best = NULL;
    for (gpu_staging_item *s = gpu_handles_next(&g->stagings, NULL); s;
         s = gpu_handles_next(&g->stagings, s)) {
        if (!s->busy && s->bytes >= n && (!best || s->bytes < best->bytes)) {
            best = s;
        }
    }
    if (best) {
        g->idle_staging -= best->bytes;
    } else {
        uint64_t bytes = MIN_STAGING;
        while (bytes < n) {
            bytes *= 2;
        }
        wgpu_buffer object = make_buffer(g, bytes, WGPU_USAGE_MAP_READ | WGPU_USAGE_COPY_TO, err);
        if (!object) {
            return NULL;
        }
        best = gpu_handles_add(&g->stagings);
        if (!best) {
            destroy(g, object);
            bz_fail(err, BZ_OUT_OF_MEMORY, "There is no memory to read from the GPU.");
            return NULL;
        }
        best->object = object;
        best->bytes = bytes;
    }
    best->busy = true;
    return best;
}

static void rest_staging(gpu *g, gpu_staging_item *s)
{
    s->busy = false;
    if (g->idle_staging + s->bytes > MAX_IDLE_STAGING) {
        destroy(g, s->object);
        gpu_handles_drop(&g->stagings, s->slot.handle);
    } else {
        g->idle_staging += s->bytes;
    }
}

/* Releases the staging buffer of a fence that has arrived. */
static void end_read(gpu *g, gpu_fence_item *f)
{
    gpu_staging_item *s = gpu_handles_at(&g->stagings, f->staging);
    g->fn.BufferUnmap(s->object);
    rest_staging(g, s);
    gpu_handles_drop(&g->fences, f->slot.handle);
}

static void on_map(uint32_t status, wgpu_text message, void *a, void *b)
{
    (void)message;
    gpu *g = a;
    g->callbacks--;
    gpu_fence_item *f = gpu_handles_at(&g->fences, (uint32_t)(uintptr_t)b);
    if (f && status == WGPU_SUCCESS) {
        f->arrived = true;
        if (f->dropped) {
            end_read(g, f);
        }
    } else if (f) {
        /* A lost device is reported by its own callback; any other failure must end the wait. */
        char line[200];
        gpu_native_line(message, line, sizeof line);
        gpu_native_break(g, BZ_DEVICE_LOST, "Bytes did not come back from the GPU: %s.", line);
    }
}

/* Appends a read to `e`: n bytes at a multiple of 4, of which the first `skip` are not wanted.
 * Submits e, or releases it on failure. */
static gpu_fence start_read(gpu *g, wgpu_encoder e, wgpu_buffer from, uint64_t offset, uint64_t n,
                            uint64_t skip, bz_error *err)
{
    gpu_staging_item *s = take_staging(g, n, err);
    gpu_fence_item *f = s ? gpu_handles_add(&g->fences) : NULL;
    if (s && !f) {
        rest_staging(g, s);
        bz_fail(err, BZ_OUT_OF_MEMORY, "There is no memory to read from the GPU.");
    }
    if (!f) {
        g->fn.CommandEncoderRelease(e);
        return 0;
    }
    f->staging = s->slot.handle;
    f->skip = skip;
    g->fn.CommandEncoderCopyBufferToBuffer(e, from, offset, s->object, 0, n);
    gpu_native_submit(g, e);
    g->callbacks++;
    g->fn.BufferMapAsync(s->object, WGPU_MAP_READ, 0, (size_t)n,
                         (wgpu_map_callback){.mode = WGPU_CALLBACK_IN_PROCESS_EVENTS,
                                             .call = on_map,
                                             .a = g,
                                             .b = (void *)(uintptr_t)f->slot.handle});
    return f->slot.handle;
}

static wgpu_encoder new_encoder(gpu *g)
{
    return g->fn.DeviceCreateCommandEncoder(g->device, NULL);
}

static bool finish_read(gpu *g, gpu_fence handle, void *to)
{
    g->fn.InstanceProcessEvents(g->instance);
    gpu_fence_item *f = gpu_handles_at(&g->fences, handle);
    if (!f || !f->arrived || f->dropped || !gpu_native_usable(g, NULL)) {
        return false;
    }
    gpu_staging_item *s = gpu_handles_at(&g->stagings, f->staging);
    if (to && f->n) {
        const char *bytes = g->fn.BufferGetConstMappedRange(
            s->object, 0, (size_t)((f->skip + f->n + 3) & ~(uint64_t)3));
        if (!bytes) {
            gpu_native_break(g, BZ_DEVICE_LOST, "Bytes did not come back from the GPU.");
            return false;
        }
        memcpy(to, bytes + f->skip, (size_t)f->n);
    }
    end_read(g, f);
    return true;
}

void gpu_read_drop(gpu *g, gpu_fence handle)
{
    gpu_fence_item *f = gpu_handles_at(&g->fences, handle);
    if (f && f->arrived) {
        end_read(g, f);
    } else if (f) {
        f->dropped = true;
    }
}

/* NULL and *err if the bytes cannot be read. */
static const gpu_buffer_item *readable(gpu *g, gpu_buffer b, uint64_t offset, uint64_t n,
                                       bz_error *err)
{
    const gpu_buffer_item *item = gpu_handles_at(&g->buffers, b);
    if (!item || n == 0 || n > GPU_MAX_READ || offset > item->bytes || n > item->bytes - offset) {
        bz_fail(err, BZ_BAD_REQUEST,
                "%" PRIu64 " bytes at %" PRIu64 " cannot be read from a GPU buffer of %" PRIu64 ".",
                n, offset, item ? item->bytes : 0);
        return NULL;
    }
    return item;
}

static gpu_fence read_after(gpu *g, wgpu_encoder e, const gpu_buffer_item *item, uint64_t offset,
                            uint64_t n, bz_error *err)
{
    uint64_t begin = offset & ~(uint64_t)3, end = (offset + n + 3) & ~(uint64_t)3;
    gpu_fence handle = start_read(g, e, item->object, begin, end - begin, offset - begin, err);
    if (handle) {
        ((gpu_fence_item *)gpu_handles_at(&g->fences, handle))->n = n;
        g->counts.read_bytes += n;
    }
    return handle;
}

gpu_fence gpu_read(gpu *g, gpu_buffer b, uint64_t offset, uint64_t n, bz_error *err)
{
    const gpu_buffer_item *item = gpu_native_usable(g, err) ? readable(g, b, offset, n, err) : NULL;
    return item ? read_after(g, new_encoder(g), item, offset, n, err) : 0;
}

gpu_fence gpu_replay_read(gpu *g, gpu_list list, uint32_t first, uint32_t count, gpu_buffer b,
                          uint64_t offset, uint64_t n, bz_error *err)
{
    const gpu_buffer_item *item = gpu_native_usable(g, err) ? readable(g, b, offset, n, err) : NULL;
    if (!item) {
        return 0;
    }
    wgpu_encoder e = new_encoder(g);
    if (!gpu_native_encode(g, e, list, first, count)) {
        g->fn.CommandEncoderRelease(e);
        gpu_native_usable(g, err);
        return 0;
    }
    gpu_fence handle = read_after(g, e, item, offset, n, err);
    g->counts.dispatches += handle ? count : 0;
    return handle;
}

bool gpu_read_done(gpu *g, gpu_fence f, void *to)
{
    return finish_read(g, f, to);
}

/* A read of four unused bytes: it arrives when everything before it has run. (WebGPU has a call for
 * this; see WGPU_FUNCTIONS for why it is not used.) */
gpu_fence gpu_signal(gpu *g, bz_error *err)
{
    if (!gpu_native_usable(g, err)) {
        return 0;
    }
    if (!g->signal_source) {
        g->signal_source = make_buffer(g, 4, WGPU_USAGE_COPY_FROM, err);
        if (!g->signal_source) {
            return 0;
        }
    }
    return start_read(g, new_encoder(g), g->signal_source, 0, 4, 0, err);
}

bool gpu_signal_done(gpu *g, gpu_fence f)
{
    return finish_read(g, f, NULL);
}

bool gpu_native_fetch(gpu *g, wgpu_buffer from, uint64_t n, void *to)
{
    gpu_fence handle = start_read(g, new_encoder(g), from, 0, n, 0, NULL);
    gpu_fence_item *f = gpu_handles_at(&g->fences, handle);
    if (!f) {
        return false;
    }
    f->n = n;
    uint64_t end = bz_os_now() + FETCH_SECONDS * 1000000000ull;
    while (!finish_read(g, handle, to)) {
        if (g->state != GPU_READY || bz_os_now() > end) {
            return false;
        }
        bz_os_sleep(50000);
    }
    return true;
}

void gpu_native_drop_buffers(gpu *g)
{
    for (gpu_buffer_item *b = gpu_handles_next(&g->buffers, NULL); b;
         b = gpu_handles_next(&g->buffers, b)) {
        destroy(g, b->object);
    }
    for (gpu_staging_item *s = gpu_handles_next(&g->stagings, NULL); s;
         s = gpu_handles_next(&g->stagings, s)) {
        destroy(g, s->object);
    }
    if (g->signal_source) {
        destroy(g, g->signal_source);
    }
}

#endif
