/* bezel_debug.h: internals of a model and of this machine, for inspecting and measuring.
 *
 * UNSTABLE: any release may change or remove anything declared here, without a new SONAME. It is
 * what `bezel show`, `bezel bench` and `bezel doctor` are written with. Programs that must keep
 * working with later versions use the other headers only. */
#ifndef BEZEL_DEBUG_H
#define BEZEL_DEBUG_H

#include "bezel_media.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Receives the next n bytes of a text or JSON document; false ends it. */
typedef bool (*bz_debug_write)(void *user, const char *bytes, size_t n);

/* ---- memory ------------------------------------------------------------- */

/* What a text model needs, predicted before anything is allocated. Scratch memory of the CPU, a few
 * megabytes per thread, is not counted. */
typedef struct bz_debug_memory {
    uint32_t chunk;            /* rows of the largest pass */
    uint64_t weight_bytes;     /* all tensors of the forward pass */
    uint64_t table_bytes;      /* of them, tables of which a token needs one row */
    uint64_t token_bytes;      /* of them, read to decode one token, or by one step over a canvas */
    uint64_t activation_bytes; /* of a pass of `chunk` rows */
    uint64_t snapshot_bytes;   /* of one position that a conversation can return to, f16 */
} bz_debug_memory;
/* chunk: as in bz_session_options; 0: 512. */
BZ_API bz_status bz_debug_model_memory(const bz_model *model, uint32_t chunk,
                                       bz_debug_memory *memory, bz_error *err);
/* Bytes of keys and values in f16. */
BZ_API uint64_t bz_debug_cache_bytes(const bz_model *model, uint32_t context, uint32_t chunk);
BZ_API uint64_t bz_debug_model_bytes(const bz_model *model); /* of all its files */

/* ---- CPU ---------------------------------------------------------------- */

/* Name of the CPU kernels that a session with this bz_session_options.kernels runs ("avx2"); NULL:
 * this machine has none of that name. */
BZ_API const char *bz_debug_kernels(const char *name);

/* ---- GPU ---------------------------------------------------------------- */

typedef struct gpu bz_debug_gpu;

/* Opens the default GPU and waits, up to 5 seconds, until it is ready. */
BZ_API bz_status bz_debug_gpu_open(bz_debug_gpu **gpu, bz_error *err);
BZ_API void bz_debug_gpu_close(bz_debug_gpu *gpu);
/* The GPU a model is on, owned by the model; NULL: the model is on the CPU. */
BZ_API bz_debug_gpu *bz_debug_model_gpu(const bz_model *model);

typedef struct bz_debug_gpu_info {
    char adapter[128];                   /* "NVIDIA H200" */
    char kind[32];                       /* "discrete", "integrated", "cpu", "unknown" */
    uint64_t max_buffer;                 /* bytes */
    uint64_t max_binding;                /* bytes of one storage binding */
    uint32_t max_storage_buffers;        /* per stage */
    uint32_t max_workgroup_storage;      /* bytes */
    uint32_t max_invocations;            /* per workgroup */
    uint32_t max_workgroups;             /* per dimension */
    uint32_t min_storage_offset;         /* alignment of a binding's offset */
    uint32_t subgroup_min, subgroup_max; /* sizes; 0: unknown */
    bool f16, subgroups, packed_dot, timestamps;
    bool matrices; /* subgroup matrices: 16x16x16, f16 products, f32 sums */
} bz_debug_gpu_info;
BZ_API bz_debug_gpu_info bz_debug_gpu_get_info(const bz_debug_gpu *gpu);

/* Counted since the device was opened, except buffer_bytes: the buffers allocated now. */
typedef struct bz_debug_gpu_counts {
    uint64_t dispatches, submits, read_bytes, written_bytes;
    uint64_t buffer_bytes;
} bz_debug_gpu_counts;
BZ_API bz_debug_gpu_counts bz_debug_gpu_get_counts(const bz_debug_gpu *gpu);

typedef struct bz_debug_gpu_speed {
    double bytes_per_s;  /* read by a kernel that does nothing else, from more than any cache */
    double dispatch_s;   /* of each dispatch in a chain where each waits for the one before */
    double round_trip_s; /* one dispatch, submitted and waited for */
} bz_debug_gpu_speed;
/* Takes about half a second. */
BZ_API bz_status bz_debug_gpu_measure(bz_debug_gpu *gpu, bz_debug_gpu_speed *speed, bz_error *err);

/* Time of one kernel, with one type of weights, in a pass. */
typedef struct bz_debug_kernel_time {
    char kernel[48];
    uint32_t dispatches;
    double microseconds;
    uint64_t weight_bytes;
} bz_debug_kernel_time;
typedef enum bz_debug_pass {
    BZ_DEBUG_DECODE,
    BZ_DEBUG_PREFILL, /* of the largest size that the session has run */
    BZ_DEBUG_CANVAS   /* a step over a canvas */
} bz_debug_pass;
/* Runs a pass that starts at `position`, kernel by kernel, and writes up to `cap` times, slowest
 * first. Overwrites what the caches hold from there on. Returns how many were written: 0 on the
 * CPU, without timestamps, or before the session has run such a pass. */
BZ_API size_t bz_debug_profile(bz_session *session, bz_debug_pass pass, uint32_t position,
                               bz_debug_kernel_time *times, size_t cap);
/* The same for what was encoded last. */
BZ_API size_t bz_debug_profile_encoder(bz_encoder *encoder, bz_media_kind kind,
                                       bz_debug_kernel_time *times, size_t cap);

#ifdef __cplusplus
}
#endif
#endif
