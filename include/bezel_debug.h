/* bezel_debug.h: internals of a model and of this machine, for inspecting and measuring.
 *
 * UNSTABLE: any release may change or remove anything declared here, without a new SONAME. It is
 * what `bezel show`, `bezel bench` and `bezel doctor` are written with. Programs that must keep
 * working with later versions use the other headers only. */
#ifndef BEZEL_DEBUG_H
#define BEZEL_DEBUG_H

#include "bezel_adapter.h"
#include "bezel_media.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Receives the next n bytes of a text or JSON document; false ends it. */
typedef bool (*bz_debug_write)(void *user, const char *bytes, size_t n);

/* ---- files -------------------------------------------------------------- */

/* The GGUF files of a model, mapped, with their headers parsed; any GGUF file, whether Bezel runs
 * it or not. Everything returned stays valid until bz_debug_files_free. Indices must be in range.
 */
typedef struct bz_debug_files bz_debug_files;

/* Opens `path`, those other parts of a split file that lie beside it, and mmproj (may be NULL). A
 * missing part is no error here. */
BZ_API bz_status bz_debug_files_open(bz_debug_files **files, const char *path, const char *mmproj,
                                     bz_error *err);
BZ_API void bz_debug_files_free(bz_debug_files *files);

/* Fails if a file has become shorter since it was opened: what was read of it may be wrong. Without
 * a handler of SIGBUS such reads end a program. */
BZ_API bz_status bz_debug_files_check(const bz_debug_files *files, bz_error *err);

typedef struct bz_debug_text {
    const char *data; /* not terminated */
    size_t len;       /* 0: there is none */
} bz_debug_text;

typedef struct bz_debug_set {
    size_t n_files;
    size_t main;                /* index of the file whose metadata describes the model */
    uint64_t bytes;             /* of all files */
    bz_debug_text architecture; /* general.architecture of the main file */
    bool known;                 /* Bezel runs models of this architecture */
    const char *flavor; /* writer of the file: "llama.cpp" or "ollama"; NULL: not `known`, or the
                            files are not one whole model */
} bz_debug_set;
BZ_API bz_debug_set bz_debug_files_set(const bz_debug_files *files);

typedef struct bz_debug_file {
    const char *path;
    uint64_t size;
    const void *data; /* [size] the whole file, mapped */
    uint32_t version, alignment;
    uint64_t header_bytes, data_offset;
    size_t n_keys, n_tensors;
} bz_debug_file;
BZ_API bz_debug_file bz_debug_files_file(const bz_debug_files *files, size_t file);

typedef struct bz_debug_key {
    bz_debug_text name;
    const char *type; /* of the value, or of an array's elements: "u32", "str" */
    bool is_array;
    uint64_t count; /* elements; 1 unless it is an array */
} bz_debug_key;
BZ_API bz_debug_key bz_debug_files_key(const bz_debug_files *files, size_t file, size_t key);
/* False: the file has no such key. */
BZ_API bool bz_debug_files_find(const bz_debug_files *files, size_t file, const char *name,
                                size_t *key);

typedef enum bz_debug_value_kind {
    BZ_DEBUG_UINT,
    BZ_DEBUG_INT, /* below 0 */
    BZ_DEBUG_F32,
    BZ_DEBUG_F64,
    BZ_DEBUG_BOOL,
    BZ_DEBUG_TEXT,
    BZ_DEBUG_NOT_FINITE /* a NaN or an infinity */
} bz_debug_value_kind;
typedef struct bz_debug_value {
    bz_debug_value_kind kind;
    uint64_t u;         /* UINT; BOOL: 0 or 1 */
    int64_t i;          /* INT */
    double f;           /* F32, F64 */
    bz_debug_text text; /* TEXT */
} bz_debug_value;
/* index: below the key's count. In an array of strings the cost grows with the distance
 * from the index asked for last; going back starts over. One thread at a time. */
BZ_API bz_debug_value bz_debug_files_value(const bz_debug_files *files, size_t file, size_t key,
                                           uint64_t index);

typedef struct bz_debug_tensor {
    bz_debug_text name;
    uint32_t type;         /* number in the file format */
    const char *type_name; /* "Q4_K" */
    bool runs;             /* Bezel computes with this type */
    uint32_t n_dims;
    uint64_t shape[4]; /* [0] is contiguous; 1 for missing dimensions */
    uint64_t values, bytes, offset;
} bz_debug_tensor;
BZ_API bz_debug_tensor bz_debug_files_tensor(const bz_debug_files *files, size_t file,
                                             size_t tensor);

/* Counts the values of a tensor that are NaN or infinite, and sets *first to the index of the first
 * one, for values [from, from + n); both must be multiples of 256 or reach the end. Only for a type
 * that `runs`. */
BZ_API uint64_t bz_debug_files_not_finite(const bz_debug_files *files, size_t file, size_t tensor,
                                          uint64_t from, uint64_t n, uint64_t *first);

typedef struct bz_debug_layer {
    bool sliding; /* attends to the last `window` positions only */
    uint32_t heads, kv_heads, head_dim;
    uint32_t ffn;      /* width of the dense FFN */
    bool owns_kv;      /* false: reads the cache of kv_layer */
    uint32_t kv_layer; /* whose cache it reads */
} bz_debug_layer;
typedef struct bz_debug_config {
    uint32_t layers, width, vocabulary; /* vocabulary 0: only the weights tell */
    uint32_t context, window;
    uint32_t ple_width;                         /* of per-layer embeddings; 0: none */
    uint32_t experts, experts_used, expert_ffn; /* 0: no mixture of experts */
    uint32_t canvas, canvas_steps;              /* of a diffusion model; 0: another model */
    float rms_epsilon, softcap;                 /* softcap 0: none */
    double rope_base, rope_base_sliding;
    const bz_debug_layer *layer; /* [layers] */
} bz_debug_config;
/* Reads the model's sizes from the main file; an error names the key that is wrong or missing. */
BZ_API bz_status bz_debug_files_config(bz_debug_files *files, bz_debug_config *config,
                                       bz_error *err);

/* ---- models ------------------------------------------------------------- */

BZ_API bool bz_debug_token_is_control(const bz_model *model, int32_t id);

typedef struct bz_debug_plan_options {
    uint32_t rows; /* of the pass, at most 512; 0: one token, or one canvas of a diffusion model */
    bool no_fuse;  /* gpu: one dispatch per step */
    bool json;     /* one object instead of lines of text */
    const bz_adapter_use *adapters; /* [n_adapters] of a model on the CPU */
    size_t n_adapters;
} bz_debug_plan_options;
/* Writes the steps of a forward pass and, for a model on a GPU, the dispatches they become. */
BZ_API bz_status bz_debug_plan(const bz_model *model, const bz_debug_plan_options *options,
                               bz_debug_write write, void *user, bz_error *err);

/* ---- memory ------------------------------------------------------------- */

/* What a text model needs, predicted before anything is allocated. Scratch memory of the CPU, a few
 * megabytes per thread, is not counted. */
typedef struct bz_debug_memory {
    uint32_t chunk;            /* rows of the largest pass */
    uint64_t weight_bytes;     /* all tensors of the forward pass */
    uint64_t table_bytes;      /* of them, tables of which a token needs one row */
    uint64_t token_bytes;      /* of them, read to decode one token, or by one step over a canvas */
    uint64_t activation_bytes; /* of a pass of `chunk` rows */
    uint64_t snapshot_bytes;   /* of one position that a conversation can return to */
} bz_debug_memory;
/* kv and chunk: as in bz_session_options; chunk 0: 512. */
BZ_API bz_status bz_debug_model_memory(const bz_model *model, const char *kv, uint32_t chunk,
                                       bz_debug_memory *memory, bz_error *err);
/* Bytes of keys and values. */
BZ_API uint64_t bz_debug_cache_bytes(const bz_model *model, const char *kv, uint32_t context,
                                     uint32_t chunk);

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
    char library[512];                   /* the WebGPU library's path or name */
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

/* Writes the WGSL text of a GPU kernel, in its form with subgroup operations if it has one. `type`
 * names the block type of its weights ("Q4_K"), if it reads blocks. kernel NULL: writes the names
 * of all kernels instead, one per line, each followed by its block types. Needs no GPU. */
BZ_API bz_status bz_debug_wgsl(const char *kernel, const char *type, bz_debug_write write,
                               void *user, bz_error *err);
/* Every text that a GPU may get: a JSON array of {kernel, type, subgroups, text}; type null: the
 * kernel reads no blocks; subgroups: it uses subgroup operations. */
BZ_API bz_status bz_debug_wgsl_all(bz_debug_write write, void *user, bz_error *err);

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
