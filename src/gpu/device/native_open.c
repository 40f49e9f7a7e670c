/* The native device: adapter, limits, device, and which of its features work.
 *
 * Environment:
 *   BEZEL_DAWN_TOGGLES  for measuring: "name,-name", toggles of Dawn to turn on and off
 */
#include "gpu/device/native.h"

#if !defined(__wasm__)

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPEN_SECONDS = 60 };

/* ---- the adapter ------------------------------------------------------------------- */

/* Dawn's toggles, for adapter and device; other libraries get none. */
typedef struct toggles {
    char text[256];
    const char *on[8], *off[8];
    wgpu_dawn_toggles chain;
} toggles;

static void add_toggle(toggles *t, const char *name)
{
    if (*name == '-') {
        if (t->chain.n_disabled < 8) {
            t->off[t->chain.n_disabled++] = name + 1;
        }
    } else if (*name && t->chain.n_enabled < 8) {
        t->on[t->chain.n_enabled++] = name;
    }
}

static const wgpu_chain *fill_toggles(toggles *t, const gpu *g, const gpu_options *options)
{
    memset(t, 0, sizeof *t);
    if (!g->library.dawn) {
        return NULL;
    }
    t->chain.chain.type = WGPU_CHAIN_DAWN_TOGGLES;
    t->chain.enabled = t->on;
    t->chain.disabled = t->off;
    /* Timestamps are rounded to 0.1 ms by default, which is too coarse for kernels. */
    add_toggle(t, "-timestamp_quantization");
    if (!options->baseline && !options->no_f16) {
        add_toggle(t, "vulkan_enable_f16_on_nvidia"); /* unknown names are ignored */
    }
    const char *more = bz_os_env("BEZEL_DAWN_TOGGLES");
    if (more) {
        snprintf(t->text, sizeof t->text, "%s", more);
        for (char *p = t->text; p;) {
            char *comma = strchr(p, ',');
            if (comma) {
                *comma++ = 0;
            }
            add_toggle(t, p);
            p = comma;
        }
    }
    return &t->chain.chain;
}

/* The native API of each system: otherwise Dawn would also try OpenGL, and on a machine without a
 * GPU return its "null" adapter, which computes nothing. */
#if defined(__APPLE__)
enum { BACKEND = WGPU_BACKEND_METAL };
#elif defined(_WIN32)
enum { BACKEND = WGPU_BACKEND_D3D12 };
#else
enum { BACKEND = WGPU_BACKEND_VULKAN };
#endif

static void on_adapter(uint32_t status, wgpu_adapter adapter, wgpu_text message, void *a, void *b)
{
    (void)b;
    gpu *g = a;
    g->callbacks--;
    g->answers++;
    if (status == WGPU_SUCCESS) {
        g->adapter = adapter;
    }
    gpu_native_line(message, g->answer, sizeof g->answer);
}

static bz_status find_adapter(gpu *g, const wgpu_chain *chain, bz_error *err)
{
    wgpu_adapter_desc desc = {.next = chain,
                              .feature_level = WGPU_FEATURE_LEVEL_CORE,
                              .power = WGPU_POWER_HIGH,
                              .backend = BACKEND};
    g->callbacks++;
    g->fn.InstanceRequestAdapter(g->instance, &desc,
                                 (wgpu_adapter_callback){.mode = WGPU_CALLBACK_IN_PROCESS_EVENTS,
                                                         .call = on_adapter,
                                                         .a = g});
    if (!gpu_native_wait(g, &g->answers, 1, OPEN_SECONDS)) {
        return bz_fail(err, BZ_NO_ADAPTER, "The GPU driver has not named a GPU for %d seconds.",
                       OPEN_SECONDS);
    }
    if (!g->adapter) {
        return bz_fail(err, BZ_NO_ADAPTER,
                       "No GPU that WebGPU can use was found (%.150s). On Linux, a driver with "
                       "Vulkan 1.1 is needed.",
                       *g->answer ? g->answer : "no reason given");
    }
    return BZ_OK;
}

/* Entry i of a list whose entries have that many words: Dawn has appended words to them. */
static const wgpu_matrix_config *config_at(const wgpu_matrix_configs *list, size_t words, size_t i)
{
    return (
        const wgpu_matrix_config *)(const void *)((const uint32_t *)(const void *)list->configs +
                                                  words * i);
}

/* Can the list have entries of that many words? With a wrong number, other fields take the place of
 * the kinds of components, and sizes are larger than those. */
static bool has_entries_of(const wgpu_matrix_configs *list, size_t words)
{
    for (size_t i = 0; i < list->n; i++) {
        const wgpu_matrix_config *c = config_at(list, words, i);
        if (c->factors > WGPU_LAST_COMPONENT || c->sums > WGPU_LAST_COMPONENT || c->m < 4 ||
            c->n < 4 || c->k < 4) {
            return false;
        }
    }
    return true;
}

/* The configuration that the kernels are written for. */
static bool is_known(const wgpu_matrix_config *c)
{
    return c->factors == WGPU_COMPONENT_F16 && c->sums == WGPU_COMPONENT_F32 && c->m == 16 &&
           c->n == 16 && c->k == 16;
}

static uint32_t matrix_feature(const gpu *g)
{
    return g->library.new_numbers ? WGPU_NEW_MATRICES : WGPU_OLD_MATRICES;
}

/* Only Dawn has them, and it rejects the query if the adapter has none. */
static bool has_matrices(gpu *g)
{
    wgpu_matrix_configs list = {.chain = {.type = WGPU_CHAIN_MATRICES}};
    wgpu_adapter_info info = {.next = &list.chain};
    bool found = false;
    if (!g->library.dawn || !g->fn.AdapterHasFeature(g->adapter, matrix_feature(g)) ||
        g->fn.AdapterGetInfo(g->adapter, &info) != WGPU_SUCCESS) {
        return false;
    }
    /* since 2026 with the smallest and the largest subgroup */
    const size_t old_words = sizeof(wgpu_matrix_config) / 4,
                 words = has_entries_of(&list, old_words) ? old_words : old_words + 2;
    for (size_t i = 0; i < list.n && has_entries_of(&list, words); i++) {
        found = found || is_known(config_at(&list, words, i));
    }
    info.next = NULL;
    g->fn.AdapterInfoFreeMembers(info);
    void (*release)(wgpu_matrix_configs) = (void (*)(wgpu_matrix_configs))bz_os_library_symbol(
        g->library.file, "wgpuAdapterPropertiesSubgroupMatrixConfigsFreeMembers");
    if (release) {
        release(list);
    }
    return found && g->limits.subgroup_min == 32 && g->limits.subgroup_max == 32;
}

static bz_status describe_adapter(gpu *g, const gpu_options *options, bz_error *err)
{
    wgpu_adapter_info info = {0};
    if (g->fn.AdapterGetInfo(g->adapter, &info) == WGPU_SUCCESS) {
        const wgpu_text *names[] = {&info.device, &info.description, &info.vendor};
        for (int i = 0; i < 3 && !*g->name; i++) {
            gpu_native_line(*names[i], g->name, sizeof g->name);
        }
        g->kind = info.type == WGPU_ADAPTER_DISCRETE     ? "discrete"
                  : info.type == WGPU_ADAPTER_INTEGRATED ? "integrated"
                  : info.type == WGPU_ADAPTER_CPU        ? "cpu"
                                                         : "unknown";
        g->limits.sequential = options->threads == GPU_THREADS_OF_ADAPTER
                                   ? info.type == WGPU_ADAPTER_CPU
                                   : options->threads == GPU_THREADS_SEQUENTIAL;
        g->limits.subgroup_min = info.subgroup_min;
        g->limits.subgroup_max = info.subgroup_max;
        g->fn.AdapterInfoFreeMembers(info);
    }
    if (!*g->name) {
        snprintf(g->name, sizeof g->name, "unknown GPU");
    }
    if (info.backend == WGPU_BACKEND_NULL) {
        return bz_fail(err, BZ_NO_ADAPTER,
                       "No GPU was found, only an adapter that computes nothing.");
    }
    return BZ_OK;
}

/* ---- the device ---------------------------------------------------------------------- */

static void on_device(uint32_t status, wgpu_device device, wgpu_text message, void *a, void *b)
{
    (void)b;
    gpu *g = a;
    g->callbacks--;
    g->answers++;
    if (status == WGPU_SUCCESS) {
        g->device = device;
    }
    gpu_native_line(message, g->answer, sizeof g->answer);
}

/* The standard's minimum for every device. Other values mean that the library's structs have a
 * different layout. */
static bool plausible(const wgpu_limits *l)
{
    uint32_t s = l->storage_alignment, u = l->uniform_alignment;
    return l->bind_groups >= 4 && l->bind_groups <= 1024 && l->storage_buffers >= 4 &&
           l->storage_buffers <= 1u << 24 && l->storage_binding >= 1u << 27 &&
           l->buffer >= 1u << 28 && l->workgroup_storage >= 16384 &&
           l->workgroup_invocations >= 128 && l->workgroups >= 65535 && s >= 4 && s <= 256 &&
           !(s & (s - 1)) && u >= 4 && u <= 256 && !(u & (u - 1));
}

static bz_status make_device(gpu *g, const gpu_options *options, const wgpu_chain *chain,
                             bz_error *err)
{
    wgpu_limits adapter_limits = {0};
    if (g->fn.AdapterGetLimits(g->adapter, &adapter_limits) != WGPU_SUCCESS ||
        !plausible(&adapter_limits)) {
        return bz_fail(err, BZ_NO_WEBGPU,
                       "%.150s speaks another version of the WebGPU interface than Bezel. Set "
                       "BEZEL_WEBGPU_LIB to "
                       "another library.",
                       g->library.name);
    }
    adapter_limits.next = NULL;

    bool new_numbers = g->library.new_numbers;
    const struct {
        uint32_t number;
        bool wanted;
    } choices[] = {
        {new_numbers ? WGPU_NEW_F16 : WGPU_OLD_F16, !options->no_f16},
        {new_numbers ? WGPU_NEW_SUBGROUPS : WGPU_OLD_SUBGROUPS, !options->no_subgroups},
        {new_numbers ? WGPU_NEW_TIMESTAMPS : WGPU_OLD_TIMESTAMPS, true},
        {matrix_feature(g), !options->no_f16 && !options->no_subgroups && has_matrices(g)},
    };
    uint32_t features[4];
    size_t n_features = 0;
    for (size_t i = 0; i < 4 && !options->baseline; i++) {
        if (choices[i].wanted && g->fn.AdapterHasFeature(g->adapter, choices[i].number)) {
            features[n_features++] = choices[i].number;
        }
    }

    wgpu_device_desc desc = {
        .next = chain,
        .n_features = n_features,
        .features = features,
        .limits = options->baseline ? NULL : &adapter_limits,
        .on_lost = {.mode = WGPU_CALLBACK_IN_PROCESS_EVENTS, .call = gpu_native_on_lost, .a = g},
        .on_error = {.call = gpu_native_on_error, .a = g},
    };
    g->callbacks += 2; /* the new device, and later its loss */
    g->fn.AdapterRequestDevice(
        g->adapter, &desc,
        (wgpu_device_callback){.mode = WGPU_CALLBACK_IN_PROCESS_EVENTS, .call = on_device, .a = g});
    if (!gpu_native_wait(g, &g->answers, 2, OPEN_SECONDS) || !g->device) {
        return bz_fail(err, BZ_NO_ADAPTER, "%s gave no device: %.180s.", g->name,
                       *g->answer ? g->answer : "no reason given");
    }
    g->queue = g->fn.DeviceGetQueue(g->device);

    wgpu_limits l = {0};
    if (g->fn.DeviceGetLimits(g->device, &l) != WGPU_SUCCESS || !plausible(&l)) {
        return bz_fail(err, BZ_NO_ADAPTER, "%s did not tell its limits.", g->name);
    }
    g->limits.max_buffer = l.buffer;
    g->limits.max_binding = l.storage_binding;
    g->limits.max_storage_buffers = l.storage_buffers;
    g->limits.max_workgroup_storage = l.workgroup_storage;
    g->limits.max_invocations = l.workgroup_invocations;
    g->limits.max_workgroups = l.workgroups;
    g->limits.min_storage_offset = l.storage_alignment;
    g->limits.min_uniform_offset = l.uniform_alignment;
    return BZ_OK;
}

/* ---- features -------------------------------------------------------------------------- */

/* Feature numbers differ between libraries, so features are tested. */
static bool compiles(gpu *g, const char *wgsl)
{
    wgpu_wgsl source = {.chain = {.type = WGPU_CHAIN_WGSL}, .code = gpu_native_text(wgsl)};
    gpu_native_catch(g);
    wgpu_shader shader =
        g->fn.DeviceCreateShaderModule(g->device, &(wgpu_labelled){.next = &source.chain});
    bool good = gpu_native_caught(g, NULL, "") == BZ_OK;
    if (shader) {
        g->fn.ShaderModuleRelease(shader);
    }
    return good;
}

static bool has_timestamps(gpu *g)
{
    gpu_native_catch(g);
    wgpu_queries queries = g->fn.DeviceCreateQuerySet(
        g->device, &(wgpu_queries_desc){.type = WGPU_QUERY_TIMESTAMP, .count = 2});
    bool good = gpu_native_caught(g, NULL, "") == BZ_OK;
    if (queries) {
        g->fn.QuerySetRelease(queries);
    }
    return good;
}

static void find_features(gpu *g, const gpu_options *options)
{
    if (!options->baseline) {
        g->limits.f16 =
            !options->no_f16 &&
            compiles(g,
                     "enable f16;\n@group(0) @binding(0) var<storage, read_write> x: array<f16>;\n"
                     "@compute @workgroup_size(1) fn main() { x[0] = x[1] * 2.0h; }\n");
        g->limits.subgroups =
            !options->no_subgroups &&
            compiles(
                g,
                "enable subgroups;\n@group(0) @binding(0) var<storage, read_write> x: array<u32>;\n"
                "@compute @workgroup_size(64) fn main() { x[0] = subgroupAdd(x[1]); }\n");
        g->limits.packed_dot =
            compiles(g, "@group(0) @binding(0) var<storage, read_write> x: array<i32>;\n"
                        "@compute @workgroup_size(1) fn main() { x[0] = dot4I8Packed(1u, 2u); }\n");
        g->limits.timestamps = has_timestamps(g);
        /* Only Dawn knows the directive, and accepts it only if the device has the feature. */
        g->limits.matrices =
            g->limits.f16 && g->limits.subgroups &&
            compiles(g,
                     "enable f16;\nenable chromium_experimental_subgroup_matrix;\nvar<workgroup> "
                     "x: array<f16, 256>;\n"
                     "@compute @workgroup_size(32) fn main() {\n"
                     "    let a = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>>(&x, 0u, "
                     "false, 16u);\n"
                     "    let b = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>>(&x, 0u, "
                     "true, 16u);\n"
                     "    _ = subgroupMatrixMultiplyAccumulate(a, b, subgroup_matrix_result<f32, "
                     "16, 16>());\n"
                     "}\n");
    }
    if (!g->limits.subgroups) {
        g->limits.subgroup_min = g->limits.subgroup_max = 0;
    }
}

bz_status gpu_native_open(gpu *g, const gpu_options *options, bz_error *err)
{
    toggles t;
    const wgpu_chain *chain = fill_toggles(&t, g, options);
    bz_status status = find_adapter(g, chain, err);
    if (status == BZ_OK) {
        status = describe_adapter(g, options, err);
    }
    if (status == BZ_OK) {
        status = make_device(g, options, chain, err);
    }
    if (status == BZ_OK) {
        find_features(g, options);
        if (g->state != GPU_STARTING) {
            gpu_native_usable(g, err);
            status = g->error.code;
        }
    }
    return status;
}

#endif
