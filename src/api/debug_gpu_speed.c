/* bezel_debug.h: how fast a GPU reads its memory, and the cost of one dispatch after another: the
 * two upper bounds on the speed of generating. */
#include <string.h>

#include "base/error.h"
#include "base/os.h"
#include "bezel_debug.h"
#include "gpu/device/gpu.h"

/* Threads of a workgroup read neighboring vectors; all workgroups together walk through the
 * buffer. The sum is stored, so that no compiler drops the reads. */
static const char READ[] = "override GROUPS: u32;\n"
                           "@group(0) @binding(0) var<storage, read> data: array<vec4<u32>>;\n"
                           "@group(0) @binding(1) var<storage, read_write> sums: array<u32>;\n"
                           "@compute @workgroup_size(256)\n"
                           "fn main(@builtin(global_invocation_id) id: vec3<u32>) {\n"
                           "    let n = arrayLength(&data);\n"
                           "    let step = GROUPS * 256u;\n"
                           "    var a = vec4<u32>();\n"
                           "    var b = vec4<u32>();\n"
                           "    for (var i = id.x; i + 3u * step < n; i += 4u * step) {\n"
                           "        a += data[i] ^ data[i + step];\n"
                           "        b += data[i + 2u * step] ^ data[i + 3u * step];\n"
                           "    }\n"
                           "    let c = a ^ b;\n"
                           "    sums[id.x] = c.x ^ c.y ^ c.z ^ c.w;\n"
                           "}\n";

/* Values that no memory compression shrinks. */
static const char FILL[] =
    "@group(0) @binding(0) var<storage, read_write> data: array<vec4<u32>>;\n"
    "@compute @workgroup_size(256)\n"
    "fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: "
    "vec3<u32>) {\n"
    "    for (var i = id.x; i < arrayLength(&data); i += groups.x * 256u) {\n"
    "        let x = i * 2654435761u;\n"
    "        data[i] = vec4<u32>(x, x ^ (x >> 15u), x * 747796405u, x * 2891336453u);\n"
    "    }\n"
    "}\n";

static const char STEP[] = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;\n"
                           "@compute @workgroup_size(64)\n"
                           "fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] = "
                           "data[id.x] * 3u + 1u; }\n";

enum {
    GROUPS = 4096,
    THREADS = GROUPS * 256,
    ITERATION_BYTES = THREADS * 16 * 4, /* four vec4<u32> per thread */
    CHAIN = 500,                        /* dispatches that each wait for the one before */
    ROUNDS = 5,
    WAIT_S = 60
};

typedef struct measuring {
    gpu *g;
    bz_error *err;
    bool failed;
} measuring;

static gpu_pipeline compile(measuring *m, const char *name, const char *wgsl,
                            const gpu_constant *constants, uint32_t n)
{
    gpu_pipeline p =
        m->failed ? 0 : gpu_pipeline_new(m->g, name, wgsl, strlen(wgsl), constants, n, m->err);
    gpu_pipeline_state state = p ? GPU_PIPELINE_COMPILING : GPU_PIPELINE_FAILED;
    while (state == GPU_PIPELINE_COMPILING) {
        bz_os_sleep(100000);
        state = gpu_pipeline_state_of(m->g, p, m->err);
    }
    m->failed |= state != GPU_PIPELINE_READY;
    return p;
}

static gpu_list list_of(measuring *m, gpu_pipeline p, const gpu_binding *bindings, uint32_t n,
                        uint32_t groups, uint32_t count)
{
    gpu_list l = m->failed ? 0 : gpu_list_new(m->g, m->err);
    m->failed |= !l;
    for (uint32_t i = 0; i < count && !m->failed; i++) {
        m->failed = gpu_list_add(m->g, l, p, bindings, n, groups, 1, 1, m->err) != BZ_OK;
    }
    return l;
}

/* Seconds until the first `count` dispatches of a list have run `times` times; 0 after a failure.
 */
static double time_of(measuring *m, gpu_list l, uint32_t count, uint32_t times)
{
    if (m->failed) {
        return 0;
    }
    const uint64_t start = bz_os_now(), end = start + WAIT_S * 1000000000ull;
    for (uint32_t i = 0; i < times; i++) {
        gpu_replay(m->g, l, 0, count);
    }
    gpu_fence f = gpu_signal(m->g, m->err);
    m->failed = !f;
    while (!m->failed && !gpu_signal_done(m->g, f)) {
        if (gpu_state_of(m->g, m->err) != GPU_READY || bz_os_now() > end) {
            m->failed = true;
        }
        bz_os_sleep(2000);
    }
    return m->failed ? 0 : (double)(bz_os_now() - start) / 1e9;
}

static double best_of(measuring *m, gpu_list l, uint32_t count, uint32_t times)
{
    double best = time_of(m, l, count, times); /* the first round warms up */
    for (int i = 0; i < ROUNDS; i++) {
        double t = time_of(m, l, count, times);
        best = t < best ? t : best;
    }
    return best;
}

/* The largest binding, up to 1 GB, which exceeds any cache; 64 MB on a software adapter. A multiple
 * of what READ's loop reads in one iteration. */
static uint64_t stream_bytes(const gpu *g)
{
    const gpu_limits *l = gpu_limits_of(g);
    uint64_t bytes = strcmp(gpu_adapter_kind(g), "cpu") == 0 ? 64ull << 20 : 1ull << 30;
    bytes = l->max_binding < bytes ? l->max_binding : bytes;
    bytes = l->max_buffer < bytes ? l->max_buffer : bytes;
    return bytes / ITERATION_BYTES * ITERATION_BYTES;
}

bz_status bz_debug_gpu_measure(bz_debug_gpu *g, bz_debug_gpu_speed *speed, bz_error *err)
{
    bz_error why = {0};
    measuring m = {.g = g, .err = &why};
    uint64_t bytes = stream_bytes(g);
    gpu_buffer data = 0, sums = gpu_buffer_new(g, THREADS * 4, GPU_STORAGE, &why);
    while (sums && bytes >= ITERATION_BYTES &&
           !(data = gpu_buffer_new(g, bytes, GPU_STORAGE, &why))) {
        bytes /= 2; /* little memory is free */
    }
    m.failed = !data;
    gpu_pipeline fill = compile(&m, "fill", FILL, NULL, 0),
                 step = compile(&m, "step", STEP, NULL, 0);
    gpu_pipeline read = compile(&m, "read", READ, &(gpu_constant){"GROUPS", GROUPS}, 1);
    gpu_list filling = list_of(&m, fill, &(gpu_binding){data, 0, 0}, 1, GROUPS, 1);
    gpu_list reading = list_of(&m, read, (gpu_binding[]){{data, 0, 0}, {sums, 0, 0}}, 2, GROUPS, 1);
    gpu_list chain = list_of(&m, step, &(gpu_binding){sums, 0, 0}, 1, 1, CHAIN);
    time_of(&m, filling, 1, 1);
    speed->round_trip_s = best_of(&m, chain, 1, 1);
    double once = best_of(&m, reading, 1, 1);
    /* Several passes, so that the round trip matters little; it is subtracted as well. */
    uint32_t times = once < 0.002 ? 16 : once < 0.02 ? 4 : 1;
    double t = best_of(&m, reading, 1, times) - speed->round_trip_s;
    speed->bytes_per_s = (double)bytes * times / (t > 1e-9 ? t : 1e-9);
    t = best_of(&m, chain, CHAIN, 1) - speed->round_trip_s;
    speed->dispatch_s = (t > 0 ? t : 0) / (CHAIN - 1);
    gpu_list_free(g, filling);
    gpu_list_free(g, reading);
    gpu_list_free(g, chain);
    gpu_pipeline_free(g, fill);
    gpu_pipeline_free(g, step);
    gpu_pipeline_free(g, read);
    gpu_buffer_free(g, data);
    gpu_buffer_free(g, sums);
    if (!m.failed) {
        return BZ_OK;
    }
    return bz_fail(err, why.code ? why.code : BZ_DEVICE_LOST, "%s",
                   why.code ? why.text : "The GPU did not finish measuring in time.");
}
