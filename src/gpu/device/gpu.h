/* A GPU device as a thin C interface: buffers, pipelines, lists of dispatches, read-back.
 *
 * Two implementations: native.c and its siblings over the C API of a WebGPU library loaded at run
 * time, and (in the browser and in Node) web.c over imports that TypeScript implements. Handles are
 * small integers, so that WebAssembly passes them unchanged; 0 is none. Nothing blocks: what takes
 * time is started here and polled for.
 *
 * A list is our own recording: a WebGPU command buffer can be submitted once only, so gpu_replay
 * encodes a range of the list again and submits it, one call per token. */
#ifndef BZ_GPU_GPU_H
#define BZ_GPU_GPU_H

#include "base/error.h"

typedef struct gpu gpu; /* one device */
typedef uint32_t gpu_buffer;
typedef uint32_t gpu_pipeline;
typedef uint32_t gpu_list;
typedef uint32_t gpu_fence;

/* ---- the device ------------------------------------------------------------ */

typedef struct gpu_limits {
    uint64_t max_buffer;            /* bytes */
    uint64_t max_binding;           /* bytes of one storage binding */
    uint32_t max_storage_buffers;   /* per stage */
    uint32_t max_workgroup_storage; /* bytes */
    uint32_t max_invocations;       /* per workgroup */
    uint32_t max_workgroups;        /* per dimension */
    uint32_t min_storage_offset;    /* alignment of a binding's offset */
    uint32_t min_uniform_offset;
    bool f16, subgroups, timestamps, packed_dot; /* features enabled on the device */
    uint32_t subgroup_min, subgroup_max;         /* sizes; 0 if unknown */
    bool matrices;   /* subgroup matrices of 16 x 16 x 16 in subgroups of 32, f16 factors, f32 sums
                        (experimental, rarely offered) */
    bool sequential; /* a software adapter: a processor of the host runs the threads of a workgroup
                        one after the other (lower/forms.h) */
    bool direct_reads; /* the host can read ranges of files directly into buffers */
} gpu_limits;

typedef enum gpu_threads {
    GPU_THREADS_OF_ADAPTER,
    GPU_THREADS_PARALLEL,
    GPU_THREADS_SEQUENTIAL
} gpu_threads;

typedef struct gpu_options {
    bool baseline; /* no features, no raised limits: as in Safari, Firefox and on phones */
    bool no_f16, no_subgroups; /* for tests of the fallbacks */
    gpu_threads threads;       /* for tests: gpu_limits.sequential */
} gpu_options;

typedef enum gpu_state { GPU_STARTING, GPU_READY, GPU_LOST, GPU_FAILED } gpu_state;

/* Starts opening a device; poll gpu_state_of until READY. Native: may already be READY. */
bz_status gpu_open(gpu **out, const gpu_options *options, bz_error *err);
void gpu_close(gpu *g);
/* Lets callbacks run. FAILED and LOST fill *err: no_webgpu, no_adapter, device_lost, ...
 * FAILED after READY: the device rejected a command (bad_request: a bug of ours) or could not run
 * it (out_of_memory), so later results are invalid. Both states are final: every call then fails
 * with the same error or does nothing; close the device and open another. */
gpu_state gpu_state_of(gpu *g, bz_error *err);
const gpu_limits *gpu_limits_of(const gpu *g);
const char *gpu_adapter_name(const gpu *g); /* "llvmpipe (LLVM 15.0.6, 256 bits)", "NVIDIA H200" */
const char *gpu_adapter_kind(const gpu *g); /* "discrete", "integrated", "cpu", "unknown" */
const char *gpu_library_name(const gpu *g); /* path or name of the WebGPU library */

/* ---- buffers ---------------------------------------------------------------- */

typedef enum gpu_usage {
    GPU_STORAGE,
    GPU_UNIFORM,
    GPU_READBACK
} gpu_usage; /* READBACK: copied to and read, never bound */

/* 0 and *err out_of_memory if the device has no memory left. Sizes are rounded up to 4. New buffers
 * hold zeros. */
gpu_buffer gpu_buffer_new(gpu *g, uint64_t bytes, gpu_usage usage, bz_error *err);
void gpu_buffer_free(gpu *g, gpu_buffer b);
/* Queues a copy of the bytes, which may be reused on return. Offset and size are multiples of 4. */
void gpu_write(gpu *g, gpu_buffer b, uint64_t offset, const void *bytes, uint64_t n);
/* Frees buffers kept for large writes: none are expected soon. */
void gpu_free_upload_buffers(gpu *g);
void gpu_copy(gpu *g, gpu_buffer from, uint64_t from_offset, gpu_buffer to, uint64_t to_offset,
              uint64_t n);

/* ---- pipelines --------------------------------------------------------------- */

typedef struct gpu_constant {
    const char *name; /* of a WGSL override */
    double value;
} gpu_constant;

/* Compiles the entry point `main`, in the background if the device can; constants set overrides.
 * Compile errors show as GPU_PIPELINE_FAILED with the compiler's first message. */
gpu_pipeline gpu_pipeline_new(gpu *g, const char *label, const char *wgsl, size_t n_wgsl,
                              const gpu_constant *constants, uint32_t n_constants, bz_error *err);
typedef enum gpu_pipeline_state {
    GPU_PIPELINE_COMPILING,
    GPU_PIPELINE_READY,
    GPU_PIPELINE_FAILED
} gpu_pipeline_state;
gpu_pipeline_state gpu_pipeline_state_of(gpu *g, gpu_pipeline p, bz_error *err);
void gpu_pipeline_free(gpu *g, gpu_pipeline p);

/* ---- lists -------------------------------------------------------------------- */

/* One entry per @binding of group 0, in order. size 0: to the end of the buffer. */
typedef struct gpu_binding {
    gpu_buffer buffer;
    uint64_t offset, size;
} gpu_binding;

enum { GPU_MAX_BINDINGS = 8 }; /* of the baseline device */

gpu_list gpu_list_new(gpu *g, bz_error *err);
void gpu_list_free(gpu *g, gpu_list l);
/* Appends a dispatch of x * y * z workgroups. Bind groups are built once, here; hence the
 * pipeline must be READY. A list keeps its pipelines, not its buffers. */
bz_status gpu_list_add(gpu *g, gpu_list l, gpu_pipeline p, const gpu_binding *bindings, uint32_t n,
                       uint32_t x, uint32_t y, uint32_t z, bz_error *err);
/* Encodes dispatches first .. first + count into one pass and submits it. */
void gpu_replay(gpu *g, gpu_list l, uint32_t first, uint32_t count);

/* ---- reading back --------------------------------------------------------------- */

/* Starts reading n bytes (<= GPU_MAX_READ) after everything submitted so far; 0 on failure. */
enum { GPU_MAX_READ = 64 << 20 };
gpu_fence gpu_read(gpu *g, gpu_buffer b, uint64_t offset, uint64_t n, bz_error *err);
/* gpu_replay, then gpu_read, in one submit; 0 on failure, and then nothing was submitted. */
gpu_fence gpu_replay_read(gpu *g, gpu_list l, uint32_t first, uint32_t count, gpu_buffer b,
                          uint64_t offset, uint64_t n, bz_error *err);
/* True when the bytes have arrived: copies them to `to`, or drops them if NULL, and ends the fence.
 * On a lost or failed device they never arrive: check gpu_state_of while waiting. */
bool gpu_read_done(gpu *g, gpu_fence f, void *to);
/* The caller does not wait for this fence (of a read or a signal) any more: it ends by itself. */
void gpu_read_drop(gpu *g, gpu_fence f);
/* A fence without bytes: true once everything submitted before it has run. */
gpu_fence gpu_signal(gpu *g, bz_error *err);
bool gpu_signal_done(gpu *g, gpu_fence f);

/* ---- measuring -------------------------------------------------------------------- */

typedef struct gpu_counts {
    uint64_t dispatches, submits, read_bytes, written_bytes;
    uint64_t buffer_bytes; /* of the existing buffers */
} gpu_counts;
gpu_counts gpu_counts_of(const gpu *g);

/* The time of each dispatch of a replay in nanoseconds. For measuring only: slow, and it blocks.
 * False without the timestamps feature. */
bool gpu_time_list(gpu *g, gpu_list l, uint32_t first, uint32_t count, double *ns);

#endif
