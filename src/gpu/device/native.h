/* Internals of the native device, for native*.c only.
 *
 *   native.c         opening, closing, errors
 *   native_load.c    the WebGPU library
 *   native_open.c    adapter, device, features
 *   native_buffer.c  buffers, writing, reading back
 *   native_list.c    pipelines, lists, timing
 *   native_upload.c  large writes
 *
 * Callbacks are made only inside wgpuInstanceProcessEvents, on the caller's thread. They get the
 * device and a number, never a pointer to an object that may have been freed. */
#ifndef BZ_GPU_NATIVE_H
#define BZ_GPU_NATIVE_H

#include "base/os.h"
#include "gpu/device/gpu.h"
#include "gpu/device/handles.h"
#include "gpu/device/webgpu_abi.h"

typedef struct gpu_library {
    bz_os_library *file;
    char name[512];   /* its path */
    bool dawn;        /* supports Dawn's toggles */
    bool new_numbers; /* feature numbers: see webgpu_abi.h */
} gpu_library;

/* native_upload.c */
enum { GPU_UPLOADS = 16, GPU_UPLOAD_BYTES = 4 << 20 };

typedef struct gpu_upload_slot {
    wgpu_buffer object;
    void *mapped; /* NULL while the GPU uses it */
} gpu_upload_slot;

struct gpu {
    wgpu_functions fn;
    gpu_library library;
    wgpu_instance instance;
    wgpu_adapter adapter; /* while opening */
    wgpu_device device;
    wgpu_queue queue;

    gpu_state state;
    bz_error error; /* why it is LOST or FAILED: the first cause */
    bool closing;
    uint32_t callbacks; /* requested and not yet made */
    uint32_t answers;   /* while opening: first the adapter's, then the device's */
    char answer[300];

    struct { /* the error scope being closed */
        uint32_t number, waiting;
        uint32_t type;
        char text[300];
    } scope;

    gpu_limits limits;
    char name[128];
    const char *kind;
    gpu_counts counts;

    bool test_changed;    /* by a function of test_hooks.h */
    uint64_t test_memory; /* gpu_test_limit_memory */
    void (*test_inject)(wgpu_device, uint32_t error_type, wgpu_text message);
    const char *test_wgsl; /* gpu_test_wgsl */

    gpu_handles buffers, pipelines, lists, fences, stagings;
    uint64_t idle_staging;     /* bytes of staging buffers that are not in use */
    wgpu_buffer signal_source; /* four bytes for gpu_signal to read */
    gpu_upload_slot uploads[GPU_UPLOADS];
};

typedef struct gpu_buffer_item {
    gpu_slot slot;
    wgpu_buffer object;
    uint64_t bytes;
    gpu_usage usage;
} gpu_buffer_item;

typedef struct gpu_pipeline_item {
    gpu_slot slot;
    wgpu_pipeline object;
    wgpu_group_layout layout;
    uint32_t waiting; /* callbacks */
    bool failed;
    char label[48];
    bz_error error;
} gpu_pipeline_item;

typedef struct gpu_dispatch {
    wgpu_pipeline pipeline;
    wgpu_group group;
    uint32_t x, y, z;
} gpu_dispatch;

typedef struct gpu_list_item {
    gpu_slot slot;
    gpu_dispatch *dispatches;
    uint32_t n, room;
} gpu_list_item;

typedef struct gpu_staging_item { /* receives read bytes; mapped during one read */
    gpu_slot slot;
    wgpu_buffer object;
    uint64_t bytes;
    bool busy;
} gpu_staging_item;

typedef struct gpu_fence_item {
    gpu_slot slot;
    uint32_t staging;
    uint64_t skip, n; /* bytes before the requested ones; their number */
    bool arrived, dropped;
} gpu_fence_item;

/* native_load.c: finds the library and fills g->fn and g->library; no_webgpu otherwise. */
bz_status gpu_native_load(gpu *g, bz_error *err);

/* native_open.c: an adapter of g->instance, and its device with all features that `options` allow.
 */
bz_status gpu_native_open(gpu *g, const gpu_options *options, bz_error *err);

/* native.c */

/* False and *err if the device is lost or has rejected a command. */
bool gpu_native_usable(const gpu *g, bz_error *err);
/* Marks the device as failed. The first cause is kept. */
void gpu_native_break(gpu *g, bz_status code, const char *format, ...) BZ_PRINTF(3, 4);
/* Runs callbacks until *flag is `wanted`; false after `seconds`. */
bool gpu_native_wait(gpu *g, const uint32_t *flag, uint32_t wanted, unsigned seconds);
/* An error scope for all kinds of errors. what: "A buffer of 4 bytes" ... */
void gpu_native_catch(gpu *g);
bz_status gpu_native_caught(gpu *g, bz_error *err, const char *what);
/* The first line of a library's message, shortened to fit. */
const char *gpu_native_line(wgpu_text message, char *buf, size_t n);
wgpu_text gpu_native_text(const char *text);
/* Callbacks of the device: a rejected command, a lost device; a: the gpu. */
void gpu_native_on_error(const wgpu_device *device, uint32_t type, wgpu_text message, void *a,
                         void *b);
void gpu_native_on_lost(const wgpu_device *device, uint32_t reason, wgpu_text message, void *a,
                        void *b);
/* Finishes and submits the encoder. */
void gpu_native_submit(gpu *g, wgpu_encoder e);

/* native_list.c: encodes the dispatches as one pass of `e`; false, and the device has failed, if
 * they are not in the list. */
bool gpu_native_encode(gpu *g, wgpu_encoder e, gpu_list list, uint32_t first, uint32_t count);

/* native_upload.c: a large write; false: the caller must use the queue. */
bool gpu_native_upload(gpu *g, wgpu_buffer to, uint64_t offset, const void *bytes, uint64_t n);

/* Free everything, for closing. */
void gpu_native_drop_uploads(gpu *g);
void gpu_native_drop_buffers(gpu *g);
void gpu_native_drop_lists(gpu *g);
/* Reads the first n bytes of a buffer, blocking; false on failure. */
bool gpu_native_fetch(gpu *g, wgpu_buffer from, uint64_t n, void *to);

#endif
