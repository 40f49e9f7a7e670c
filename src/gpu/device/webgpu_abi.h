/* The part of WebGPU's C binary interface that Bezel calls: names of functions, numbers, and the
 * layout of structs, as standardized in spring 2025 and unchanged since (except feature numbers,
 * see below). Only native*.c include this.
 *
 * Nothing is linked. The functions are looked up by name in a library loaded at run time and stored
 * in a table, where wgpuDeviceCreateBuffer is DeviceCreateBuffer.
 *
 * Enumerations are 32-bit numbers and flags 64-bit ones in that interface, so they are plain
 * integers here with their values in anonymous enums.
 */
#ifndef BZ_GPU_WEBGPU_ABI_H
#define BZ_GPU_WEBGPU_ABI_H

#include <stddef.h>
#include <stdint.h>

/* ---- objects: counted references ------------------------------------------------ */

typedef struct wgpu_instance_ *wgpu_instance;
typedef struct wgpu_adapter_ *wgpu_adapter;
typedef struct wgpu_device_ *wgpu_device;
typedef struct wgpu_queue_ *wgpu_queue;
typedef struct wgpu_buffer_ *wgpu_buffer;
typedef struct wgpu_shader_ *wgpu_shader;
typedef struct wgpu_pipeline_ *wgpu_pipeline; /* a compute pipeline */
typedef struct wgpu_group_layout_ *wgpu_group_layout;
typedef struct wgpu_group_ *wgpu_group; /* a bind group */
typedef struct wgpu_encoder_ *wgpu_encoder;
typedef struct wgpu_pass_ *wgpu_pass; /* a compute pass */
typedef struct wgpu_commands_ *wgpu_commands;
typedef struct wgpu_queries_ *wgpu_queries;

/* ---- numbers --------------------------------------------------------------------- */

enum { WGPU_SUCCESS = 1, WGPU_CANCELLED = 2 }; /* of every callback's status */
enum { WGPU_CALLBACK_IN_PROCESS_EVENTS = 2 };  /* callback mode */
enum { WGPU_FEATURE_LEVEL_CORE = 2 };
enum { WGPU_POWER_HIGH = 2 };
enum {
    WGPU_BACKEND_ANY = 0,
    WGPU_BACKEND_NULL = 1,
    WGPU_BACKEND_D3D12 = 4,
    WGPU_BACKEND_METAL = 5,
    WGPU_BACKEND_VULKAN = 6
};
enum { WGPU_ADAPTER_DISCRETE = 1, WGPU_ADAPTER_INTEGRATED = 2, WGPU_ADAPTER_CPU = 3 };
enum {
    WGPU_ERROR_NONE = 1,
    WGPU_ERROR_VALIDATION = 2,
    WGPU_ERROR_MEMORY = 3,
    WGPU_ERROR_INTERNAL = 4
};
enum {
    WGPU_FILTER_VALIDATION = 1,
    WGPU_FILTER_MEMORY = 2,
    WGPU_FILTER_INTERNAL = 3
};                               /* of error scopes */
enum { WGPU_MESSAGE_ERROR = 1 }; /* of a shader's compilation */
enum { WGPU_QUERY_TIMESTAMP = 2 };
enum { WGPU_MAP_READ = 1, WGPU_MAP_WRITE = 2 };
enum {
    WGPU_USAGE_MAP_READ = 0x001,
    WGPU_USAGE_MAP_WRITE = 0x002,
    WGPU_USAGE_COPY_FROM = 0x004,
    WGPU_USAGE_COPY_TO = 0x008,
    WGPU_USAGE_UNIFORM = 0x040,
    WGPU_USAGE_STORAGE = 0x080,
    WGPU_USAGE_QUERY_RESOLVE = 0x200
};
enum {
    WGPU_CHAIN_WGSL = 2,
    WGPU_CHAIN_DAWN_TOGGLES = 0x0005000A,
    WGPU_CHAIN_MATRICES = 0x0005003B
};
enum { WGPU_COMPONENT_F32 = 1, WGPU_COMPONENT_F16 = 2, WGPU_LAST_COMPONENT = 6 }; /* of matrices */

/* Features were renumbered in June 2025, together with the arrival of wgpuGetInstanceFeatures;
 * a library that exports that function uses the second column. */
enum {
    WGPU_OLD_TIMESTAMPS = 0x03,
    WGPU_OLD_F16 = 0x0A,
    WGPU_OLD_SUBGROUPS = 0x11,
    WGPU_NEW_TIMESTAMPS = 0x09,
    WGPU_NEW_F16 = 0x0B,
    WGPU_NEW_SUBGROUPS = 0x12
};

/* Dawn's experimental extension: subgroup matrices. */
enum { WGPU_OLD_MATRICES = 0x00050037, WGPU_NEW_MATRICES = 0x00050034 };

#define WGPU_WHOLE UINT64_MAX /* to the end of the buffer */

/* ---- structs ---------------------------------------------------------------------- */

typedef struct wgpu_text { /* by length; (size_t)-1 means NUL-terminated */
    const char *data;
    size_t length;
} wgpu_text;

/* The head of a struct that extends another one. Most structs begin with a pointer to one. */
typedef struct wgpu_chain {
    const struct wgpu_chain *next;
    uint32_t type;
} wgpu_chain;

typedef struct wgpu_future {
    uint64_t id;
} wgpu_future;

typedef struct wgpu_labelled { /* descriptor of encoders, command buffers, queues and shaders */
    const wgpu_chain *next;
    wgpu_text label;
} wgpu_labelled;

typedef struct wgpu_adapter_desc {
    const wgpu_chain *next;
    uint32_t feature_level;
    uint32_t power;
    uint32_t force_fallback;
    uint32_t backend;
    void *surface;
} wgpu_adapter_desc;

typedef struct wgpu_adapter_info {
    const wgpu_chain *next;
    wgpu_text vendor, architecture, device, description;
    uint32_t backend, type;
    uint32_t vendor_id, device_id;
    uint32_t subgroup_min, subgroup_max;
} wgpu_adapter_info;

/* Dawn's extension: the adapter's configurations of subgroup matrices, chained to its info. */
typedef struct wgpu_matrix_config {
    uint32_t factors, sums; /* kinds of components */
    uint32_t m, n, k;
} wgpu_matrix_config;

typedef struct wgpu_matrix_configs {
    wgpu_chain chain;
    size_t n;
    const wgpu_matrix_config *configs;
} wgpu_matrix_configs;

typedef struct wgpu_limits {
    const wgpu_chain *next;
    uint32_t texture_1d, texture_2d, texture_3d, texture_layers;
    uint32_t bind_groups, bind_groups_and_vertex_buffers, bindings_per_group;
    uint32_t dynamic_uniform_buffers, dynamic_storage_buffers;
    uint32_t sampled_textures, samplers, storage_buffers, storage_textures,
        uniform_buffers;                           /* per stage */
    uint64_t uniform_binding, storage_binding;     /* bytes */
    uint32_t uniform_alignment, storage_alignment; /* of offsets */
    uint32_t vertex_buffers;
    uint64_t buffer; /* bytes */
    uint32_t vertex_attributes, vertex_stride, interstage;
    uint32_t color_attachments, color_bytes;
    uint32_t workgroup_storage, workgroup_invocations; /* bytes; threads */
    uint32_t workgroup_x, workgroup_y, workgroup_z;
    uint32_t workgroups; /* per dimension */
    uint32_t immediates;
    /* Dawn of spring 2025 has four more members, and other libraries may write more. */
    uint32_t spare[90];
} wgpu_limits;

typedef void (*wgpu_on_adapter)(uint32_t status, wgpu_adapter adapter, wgpu_text message, void *a,
                                void *b);
typedef void (*wgpu_on_device)(uint32_t status, wgpu_device device, wgpu_text message, void *a,
                               void *b);
typedef void (*wgpu_on_lost)(const wgpu_device *device, uint32_t reason, wgpu_text message, void *a,
                             void *b);
typedef void (*wgpu_on_error)(const wgpu_device *device, uint32_t type, wgpu_text message, void *a,
                              void *b);
typedef void (*wgpu_on_scope)(uint32_t status, uint32_t type, wgpu_text message, void *a, void *b);
typedef void (*wgpu_on_map)(uint32_t status, wgpu_text message, void *a, void *b);
typedef void (*wgpu_on_pipeline)(uint32_t status, wgpu_pipeline pipeline, wgpu_text message,
                                 void *a, void *b);
typedef struct wgpu_compilation wgpu_compilation;
typedef void (*wgpu_on_compilation)(uint32_t status, const wgpu_compilation *info, void *a,
                                    void *b);

/* A callback and the two pointers that it gets, in the layout that all kinds share. */
#define WGPU_CALLBACK_STRUCT(name, function)                                                       \
    typedef struct name {                                                                          \
        const wgpu_chain *next;                                                                    \
        uint32_t mode;                                                                             \
        function call;                                                                             \
        void *a, *b;                                                                               \
    } name
WGPU_CALLBACK_STRUCT(wgpu_adapter_callback, wgpu_on_adapter);
WGPU_CALLBACK_STRUCT(wgpu_device_callback, wgpu_on_device);
WGPU_CALLBACK_STRUCT(wgpu_lost_callback, wgpu_on_lost);
WGPU_CALLBACK_STRUCT(wgpu_scope_callback, wgpu_on_scope);
WGPU_CALLBACK_STRUCT(wgpu_map_callback, wgpu_on_map);
WGPU_CALLBACK_STRUCT(wgpu_pipeline_callback, wgpu_on_pipeline);
WGPU_CALLBACK_STRUCT(wgpu_compilation_callback, wgpu_on_compilation);

typedef struct wgpu_error_callback { /* the one kind without a mode */
    const wgpu_chain *next;
    wgpu_on_error call;
    void *a, *b;
} wgpu_error_callback;

typedef struct wgpu_device_desc {
    const wgpu_chain *next;
    wgpu_text label;
    size_t n_features;
    const uint32_t *features;
    const wgpu_limits *limits;
    wgpu_labelled queue;
    wgpu_lost_callback on_lost;
    wgpu_error_callback on_error;
} wgpu_device_desc;

/* Dawn's extension: named toggles, in the descriptor of an adapter or a device. */
typedef struct wgpu_dawn_toggles {
    wgpu_chain chain;
    size_t n_enabled;
    const char *const *enabled;
    size_t n_disabled;
    const char *const *disabled;
} wgpu_dawn_toggles;

typedef struct wgpu_buffer_desc {
    const wgpu_chain *next;
    wgpu_text label;
    uint64_t usage;
    uint64_t bytes;
    uint32_t mapped;
} wgpu_buffer_desc;

typedef struct wgpu_wgsl {
    wgpu_chain chain;
    wgpu_text code;
} wgpu_wgsl;

typedef struct wgpu_message {
    const wgpu_chain *next;
    wgpu_text text;
    uint32_t type;
    uint64_t line, column; /* from 1; 0 if unknown */
    uint64_t offset, length;
} wgpu_message;

struct wgpu_compilation {
    const wgpu_chain *next;
    size_t n;
    const wgpu_message *messages;
};

typedef struct wgpu_constant {
    const wgpu_chain *next;
    wgpu_text name;
    double value;
} wgpu_constant;

typedef struct wgpu_pipeline_desc {
    const wgpu_chain *next;
    wgpu_text label;
    void *layout; /* NULL: derived from the shader */
    struct {
        const wgpu_chain *next;
        wgpu_shader shader;
        wgpu_text entry;
        size_t n_constants;
        const wgpu_constant *constants;
    } compute;
} wgpu_pipeline_desc;

typedef struct wgpu_group_entry {
    const wgpu_chain *next;
    uint32_t binding;
    wgpu_buffer buffer;
    uint64_t offset, size;
    void *sampler, *texture;
} wgpu_group_entry;

typedef struct wgpu_group_desc {
    const wgpu_chain *next;
    wgpu_text label;
    wgpu_group_layout layout;
    size_t n;
    const wgpu_group_entry *entries;
} wgpu_group_desc;

typedef struct wgpu_pass_times {
    const wgpu_chain *next;
    wgpu_queries queries;
    uint32_t begin, end; /* indices of queries */
} wgpu_pass_times;

typedef struct wgpu_pass_desc {
    const wgpu_chain *next;
    wgpu_text label;
    const wgpu_pass_times *times;
} wgpu_pass_desc;

typedef struct wgpu_queries_desc {
    const wgpu_chain *next;
    wgpu_text label;
    uint32_t type, count;
} wgpu_queries_desc;

/* A wrong layout would silently corrupt memory. */
#if UINTPTR_MAX == UINT64_MAX
_Static_assert(sizeof(wgpu_text) == 16 && sizeof(wgpu_chain) == 16, "text, chain");
_Static_assert(sizeof(wgpu_labelled) == 24, "labelled");
_Static_assert(sizeof(wgpu_adapter_desc) == 32 && offsetof(wgpu_adapter_desc, surface) == 24,
               "adapter desc");
_Static_assert(sizeof(wgpu_adapter_info) == 96 && offsetof(wgpu_adapter_info, backend) == 72,
               "adapter info");
_Static_assert(sizeof(wgpu_matrix_config) == 20 && sizeof(wgpu_matrix_configs) == 32, "matrices");
_Static_assert(offsetof(wgpu_limits, uniform_binding) == 64, "limits");
_Static_assert(offsetof(wgpu_limits, buffer) == 96, "limits");
_Static_assert(offsetof(wgpu_limits, workgroup_storage) == 124, "limits");
_Static_assert(offsetof(wgpu_limits, spare) == 152 && sizeof(wgpu_limits) == 512, "limits");
_Static_assert(sizeof(wgpu_map_callback) == 40 && offsetof(wgpu_map_callback, call) == 16,
               "callback");
_Static_assert(sizeof(wgpu_error_callback) == 32, "error callback");
_Static_assert(sizeof(wgpu_device_desc) == 144 && offsetof(wgpu_device_desc, on_lost) == 72,
               "device desc");
_Static_assert(sizeof(wgpu_dawn_toggles) == 48, "toggles");
_Static_assert(sizeof(wgpu_buffer_desc) == 48 && offsetof(wgpu_buffer_desc, mapped) == 40,
               "buffer desc");
_Static_assert(sizeof(wgpu_wgsl) == 32, "wgsl");
_Static_assert(sizeof(wgpu_message) == 64 && offsetof(wgpu_message, line) == 32, "message");
_Static_assert(sizeof(wgpu_compilation) == 24, "compilation");
_Static_assert(sizeof(wgpu_constant) == 32, "constant");
_Static_assert(sizeof(wgpu_pipeline_desc) == 80 && offsetof(wgpu_pipeline_desc, compute) == 32,
               "pipeline desc");
_Static_assert(sizeof(wgpu_group_entry) == 56 && offsetof(wgpu_group_entry, offset) == 24,
               "group entry");
_Static_assert(sizeof(wgpu_group_desc) == 48, "group desc");
_Static_assert(sizeof(wgpu_pass_times) == 24 && sizeof(wgpu_pass_desc) == 32, "pass");
_Static_assert(sizeof(wgpu_queries_desc) == 32, "queries desc");
#endif

/* ---- functions ---------------------------------------------------------------------- */

/* F(result, name, arguments). Not among them: wgpuQueueOnSubmittedWorkDone, whose callback has
 * a message argument in some libraries of 2025 and none in others. */
#define WGPU_FUNCTIONS(F)                                                                          \
    F(wgpu_instance, CreateInstance, (const void *desc))                                           \
    F(void, InstanceProcessEvents, (wgpu_instance))                                                \
    F(wgpu_future, InstanceRequestAdapter,                                                         \
      (wgpu_instance, const wgpu_adapter_desc *, wgpu_adapter_callback))                           \
    F(void, InstanceRelease, (wgpu_instance))                                                      \
    F(uint32_t, AdapterGetInfo, (wgpu_adapter, wgpu_adapter_info *))                               \
    F(void, AdapterInfoFreeMembers, (wgpu_adapter_info))                                           \
    F(uint32_t, AdapterGetLimits, (wgpu_adapter, wgpu_limits *))                                   \
    F(uint32_t, AdapterHasFeature, (wgpu_adapter, uint32_t feature))                               \
    F(wgpu_future, AdapterRequestDevice,                                                           \
      (wgpu_adapter, const wgpu_device_desc *, wgpu_device_callback))                              \
    F(void, AdapterRelease, (wgpu_adapter))                                                        \
    F(uint32_t, DeviceGetLimits, (wgpu_device, wgpu_limits *))                                     \
    F(wgpu_queue, DeviceGetQueue, (wgpu_device))                                                   \
    F(wgpu_buffer, DeviceCreateBuffer, (wgpu_device, const wgpu_buffer_desc *))                    \
    F(wgpu_shader, DeviceCreateShaderModule, (wgpu_device, const wgpu_labelled *))                 \
    F(wgpu_future, DeviceCreateComputePipelineAsync,                                               \
      (wgpu_device, const wgpu_pipeline_desc *, wgpu_pipeline_callback))                           \
    F(wgpu_group, DeviceCreateBindGroup, (wgpu_device, const wgpu_group_desc *))                   \
    F(wgpu_encoder, DeviceCreateCommandEncoder, (wgpu_device, const wgpu_labelled *))              \
    F(wgpu_queries, DeviceCreateQuerySet, (wgpu_device, const wgpu_queries_desc *))                \
    F(void, DevicePushErrorScope, (wgpu_device, uint32_t filter))                                  \
    F(wgpu_future, DevicePopErrorScope, (wgpu_device, wgpu_scope_callback))                        \
    F(void, DeviceDestroy, (wgpu_device))                                                          \
    F(void, DeviceRelease, (wgpu_device))                                                          \
    F(void, QueueSubmit, (wgpu_queue, size_t n, const wgpu_commands *))                            \
    F(void, QueueWriteBuffer, (wgpu_queue, wgpu_buffer, uint64_t offset, const void *, size_t n))  \
    F(void, QueueRelease, (wgpu_queue))                                                            \
    F(wgpu_future, BufferMapAsync,                                                                 \
      (wgpu_buffer, uint64_t mode, size_t offset, size_t n, wgpu_map_callback))                    \
    F(void *, BufferGetMappedRange, (wgpu_buffer, size_t offset, size_t n))                        \
    F(const void *, BufferGetConstMappedRange, (wgpu_buffer, size_t offset, size_t n))             \
    F(void, BufferUnmap, (wgpu_buffer))                                                            \
    F(void, BufferDestroy, (wgpu_buffer))                                                          \
    F(void, BufferRelease, (wgpu_buffer))                                                          \
    F(wgpu_future, ShaderModuleGetCompilationInfo, (wgpu_shader, wgpu_compilation_callback))       \
    F(void, ShaderModuleRelease, (wgpu_shader))                                                    \
    F(wgpu_group_layout, ComputePipelineGetBindGroupLayout, (wgpu_pipeline, uint32_t group))       \
    F(void, ComputePipelineAddRef, (wgpu_pipeline))                                                \
    F(void, ComputePipelineRelease, (wgpu_pipeline))                                               \
    F(void, BindGroupLayoutRelease, (wgpu_group_layout))                                           \
    F(void, BindGroupRelease, (wgpu_group))                                                        \
    F(wgpu_pass, CommandEncoderBeginComputePass, (wgpu_encoder, const wgpu_pass_desc *))           \
    F(void, CommandEncoderCopyBufferToBuffer,                                                      \
      (wgpu_encoder, wgpu_buffer from, uint64_t, wgpu_buffer to, uint64_t, uint64_t n))            \
    F(void, CommandEncoderResolveQuerySet,                                                         \
      (wgpu_encoder, wgpu_queries, uint32_t first, uint32_t n, wgpu_buffer, uint64_t offset))      \
    F(wgpu_commands, CommandEncoderFinish, (wgpu_encoder, const wgpu_labelled *))                  \
    F(void, CommandEncoderRelease, (wgpu_encoder))                                                 \
    F(void, CommandBufferRelease, (wgpu_commands))                                                 \
    F(void, ComputePassEncoderSetPipeline, (wgpu_pass, wgpu_pipeline))                             \
    F(void, ComputePassEncoderSetBindGroup,                                                        \
      (wgpu_pass, uint32_t index, wgpu_group, size_t, const uint32_t *))                           \
    F(void, ComputePassEncoderDispatchWorkgroups, (wgpu_pass, uint32_t x, uint32_t y, uint32_t z)) \
    F(void, ComputePassEncoderEnd, (wgpu_pass))                                                    \
    F(void, ComputePassEncoderRelease, (wgpu_pass))                                                \
    F(void, QuerySetDestroy, (wgpu_queries))                                                       \
    F(void, QuerySetRelease, (wgpu_queries))

typedef struct wgpu_functions {
#define WGPU_MEMBER(result, name, arguments) result(*name) arguments;
    WGPU_FUNCTIONS(WGPU_MEMBER)
#undef WGPU_MEMBER
} wgpu_functions;

#endif
