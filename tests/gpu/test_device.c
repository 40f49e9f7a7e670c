/* gpu.h on a real WebGPU implementation. On machines without a GPU that is Dawn on Mesa's llvmpipe,
 * as tools/gpu-env.sh sets it up; elsewhere BEZEL_GPU_NAME says a part of the adapter's name.
 *
 *   sh tools/gpu-env.sh build/tests/gpu/test_device
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "gpu/device/gpu.h"
#include "gpu/device/test_hooks.h"
#include "support/check.h"
#include "support/gpu_wait.h"

/* ---- helpers ---------------------------------------------------------------------- */

static gpu *open_device(const gpu_options *options)
{
    bz_error err = {0};
    gpu *g = NULL;
    bz_status status = gpu_open(&g, options, &err);
    if (!CHECKF(status == BZ_OK && g, "no device: %s: %s", bz_status_name(err.code), err.text)) {
        return NULL;
    }
    uint64_t end = bz_os_now() + GPU_PATIENCE_NS;
    while (gpu_state_of(g, &err) == GPU_STARTING && bz_os_now() < end) {
        bz_os_sleep(GPU_POLL_NS);
    }
    CHECKF(gpu_state_of(g, &err) == GPU_READY, "not ready: %s", err.text);
    return g;
}

static bool wait_read(gpu *g, gpu_fence f, void *to)
{
    uint64_t end = bz_os_now() + GPU_PATIENCE_NS;
    while (!gpu_read_done(g, f, to)) {
        if (gpu_state_of(g, NULL) != GPU_READY || bz_os_now() > end) {
            return false;
        }
        bz_os_sleep(GPU_POLL_NS);
    }
    return true;
}

static bool wait_signal(gpu *g, gpu_fence f)
{
    uint64_t end = bz_os_now() + GPU_PATIENCE_NS;
    while (!gpu_signal_done(g, f)) {
        if (gpu_state_of(g, NULL) != GPU_READY || bz_os_now() > end) {
            return false;
        }
        bz_os_sleep(GPU_POLL_NS);
    }
    return true;
}

static bool read_now(gpu *g, gpu_buffer b, uint64_t offset, uint64_t n, void *to)
{
    bz_error err = {0};
    gpu_fence f = gpu_read(g, b, offset, n, &err);
    return CHECKF(f, "gpu_read: %s", err.text) &&
           CHECKF(wait_read(g, f, to), "the bytes did not come");
}

static gpu_buffer buffer(gpu *g, uint64_t bytes, gpu_usage usage)
{
    bz_error err = {0};
    gpu_buffer b = gpu_buffer_new(g, bytes, usage, &err);
    CHECKF(b, "a buffer of %" PRIu64 " bytes: %s", bytes, err.text);
    return b;
}

static gpu_pipeline_state wait_pipeline(gpu *g, gpu_pipeline p, bz_error *err)
{
    gpu_pipeline_state s;
    while ((s = gpu_pipeline_state_of(g, p, err)) == GPU_PIPELINE_COMPILING) {
        bz_os_sleep(GPU_POLL_NS);
    }
    return s;
}

static gpu_pipeline pipeline(gpu *g, const char *wgsl, const gpu_constant *constants, uint32_t n)
{
    bz_error err = {0};
    gpu_pipeline p = gpu_pipeline_new(g, "test", wgsl, strlen(wgsl), constants, n, &err);
    CHECKF(p && wait_pipeline(g, p, &err) == GPU_PIPELINE_READY, "the kernel failed: %s", err.text);
    return p;
}

static void add(gpu *g, gpu_list l, gpu_pipeline p, const gpu_binding *b, uint32_t n, uint32_t x)
{
    bz_error err = {0};
    CHECKF(gpu_list_add(g, l, p, b, n, x, 1, 1, &err) == BZ_OK, "gpu_list_add: %s", err.text);
}

/* A failure must carry the right code and a sentence. */
static void check_error(const bz_error *err, bz_status code, const char *part)
{
    size_t n = strlen(err->text);
    CHECKF(err->code == code, "code %s: %s", bz_status_name(err->code), err->text);
    CHECKF(n > 20 && err->text[n - 1] == '.', "not a sentence: %s", err->text);
    CHECKF(!part || strstr(err->text, part), "no \"%s\" in: %s", part, err->text);
}

/* x[i] = x[i] * 3 + k: the order of two of these shows in the result. */
static const char STEP[] =
    "override k: u32 = 7u;\n"
    "@group(0) @binding(0) var<storage, read_write> x: array<u32>;\n"
    "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {\n"
    "    if (id.x < arrayLength(&x)) { x[id.x] = x[id.x] * 3u + k; }\n"
    "}\n";

/* out[i] = a[i] + scale[0] * b[i] */
static const char MIX[] =
    "@group(0) @binding(0) var<storage, read> a: array<u32>;\n"
    "@group(0) @binding(1) var<storage, read> b: array<u32>;\n"
    "@group(0) @binding(2) var<storage, read_write> out: array<u32>;\n"
    "@group(0) @binding(3) var<uniform> scale: vec4u;\n"
    "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {\n"
    "    if (id.x < arrayLength(&out)) { out[id.x] = a[id.x] + scale.x * b[id.x]; }\n"
    "}\n";

/* ---- the device ------------------------------------------------------------------------ */

static void test_open(gpu *g)
{
    const char *wanted = getenv("BEZEL_GPU_NAME") ? getenv("BEZEL_GPU_NAME") : "llvmpipe";
    const gpu_limits *l = gpu_limits_of(g);
    begin("the adapter is %s", wanted);
    CHECKF(strstr(gpu_adapter_name(g), wanted), "it is %s", gpu_adapter_name(g));
    printf("  %s (%s): buffers to %" PRIu64 " MiB, bindings to %" PRIu64
           " MiB, %u storage buffers, %u bytes of workgroup "
           "storage, %u invocations, offsets of %u, f16 %d, subgroups %d (%u to %u), timestamps "
           "%d, packed "
           "dot %d\n",
           gpu_adapter_name(g), gpu_adapter_kind(g), l->max_buffer >> 20, l->max_binding >> 20,
           l->max_storage_buffers, l->max_workgroup_storage, l->max_invocations,
           l->min_storage_offset, l->f16, l->subgroups, l->subgroup_min, l->subgroup_max,
           l->timestamps, l->packed_dot);

    begin("limits are those of the adapter");
    CHECK(l->max_buffer >= 1u << 28 && l->max_binding >= 1u << 27 && l->max_storage_buffers >= 8);
    CHECK(l->max_workgroup_storage >= 16384 && l->max_invocations >= 256 &&
          l->max_workgroups >= 65535);
    CHECK(l->min_storage_offset >= 4 && l->min_storage_offset <= 256 &&
          l->min_uniform_offset <= 256);
    if (strcmp(wanted, "llvmpipe") == 0) {
        CHECK(strcmp(gpu_adapter_kind(g), "cpu") == 0);
        CHECK(l->max_binding == 128 << 20 && l->max_buffer > (uint64_t)2 << 30);
        CHECK(l->max_invocations == 1024 && l->max_workgroup_storage == 32768 &&
              l->max_storage_buffers >= 10);
        CHECK(l->f16 && l->subgroups && l->timestamps && l->packed_dot);
        CHECK(l->subgroup_min >= 4 && l->subgroup_max <= 64);
    }
}

static void test_options(void)
{
    begin("a baseline device has the standard's limits and no features");
    gpu *g = open_device(&(gpu_options){.baseline = true});
    if (g) {
        const gpu_limits *l = gpu_limits_of(g);
        CHECKF(l->max_buffer == 256 << 20, "%" PRIu64, l->max_buffer);
        CHECKF(l->max_binding == 128 << 20, "%" PRIu64, l->max_binding);
        CHECKF(l->max_storage_buffers == 8, "%u", l->max_storage_buffers);
        CHECKF(l->max_workgroup_storage == 16384, "%u", l->max_workgroup_storage);
        CHECKF(l->max_invocations == 256, "%u", l->max_invocations);
        CHECKF(l->max_workgroups == 65535, "%u", l->max_workgroups);
        CHECKF(l->min_storage_offset == 256 && l->min_uniform_offset == 256, "%u",
               l->min_storage_offset);
        CHECK(!l->f16 && !l->subgroups && !l->timestamps && !l->packed_dot && !l->matrices);
        CHECK(l->subgroup_min == 0 && l->subgroup_max == 0);

        bz_error err = {0};
        const char *f16 = "enable f16;\n@compute @workgroup_size(1) fn main() { }\n";
        gpu_pipeline p = gpu_pipeline_new(g, "half", f16, strlen(f16), NULL, 0, &err);
        CHECK(p && wait_pipeline(g, p, &err) == GPU_PIPELINE_FAILED);
        check_error(&err, BZ_BAD_REQUEST, "half");
        CHECK(gpu_buffer_new(g, (256 << 20) + 4, GPU_STORAGE, &err) == 0);
        check_error(&err, BZ_OUT_OF_MEMORY, "268435456");
        double ns;
        gpu_list list = gpu_list_new(g, &err);
        CHECK(!gpu_time_list(g, list, 0, 0, &ns));
        CHECK(gpu_state_of(g, &err) == GPU_READY);
    }
    gpu_close(g);

    begin("f16 and subgroups can be switched off one by one");
    g = open_device(&(gpu_options){.no_f16 = true});
    if (g) {
        CHECK(!gpu_limits_of(g)->f16 && !gpu_limits_of(g)->matrices &&
              gpu_limits_of(g)->subgroups && gpu_limits_of(g)->max_invocations > 256);
    }
    gpu_close(g);
    g = open_device(&(gpu_options){.no_subgroups = true});
    if (g) {
        CHECK(!gpu_limits_of(g)->subgroups && !gpu_limits_of(g)->matrices &&
              gpu_limits_of(g)->subgroup_max == 0);
    }
    gpu_close(g);
}

/* ---- buffers ----------------------------------------------------------------------------- */

static uint32_t noise(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void test_buffers(gpu *g)
{
    enum { BYTES = 1 << 20 };
    uint8_t *have = calloc(1, BYTES), *got = malloc(BYTES);
    uint32_t seed = 1;

    begin("new buffers hold zeros, and sizes are rounded up to 4");
    uint64_t before = gpu_counts_of(g).buffer_bytes;
    static const uint64_t sizes[] = {0, 1, 3, 4, 5, 4095, 4096, BYTES};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int usage = GPU_STORAGE; usage <= GPU_READBACK; usage++) {
            gpu_buffer b = buffer(g, sizes[i], (gpu_usage)usage);
            uint64_t n = sizes[i] ? (sizes[i] + 3) / 4 * 4 : 4;
            CHECK(gpu_counts_of(g).buffer_bytes == before + n);
            memset(got, 0xEE, n);
            CHECKF(read_now(g, b, 0, n, got) && memcmp(got, have, n) == 0,
                   "size %" PRIu64 " is not zero", sizes[i]);
            gpu_buffer_free(g, b);
            CHECK(gpu_counts_of(g).buffer_bytes == before);
        }
    }

    begin("writes and reads of many sizes and offsets");
    gpu_buffer b = buffer(g, BYTES, GPU_STORAGE);
    uint64_t read = gpu_counts_of(g).read_bytes, written = gpu_counts_of(g).written_bytes,
             n_read = 0, n_written = 0;
    for (int i = 0; i < 200; i++) {
        uint32_t limit = i % 4 == 0 ? BYTES : i % 4 == 1 ? 70000 : 300;
        uint32_t n = noise(&seed) % limit & ~3u, at = noise(&seed) % (BYTES - n) & ~3u;
        for (uint32_t k = 0; k < n; k++) {
            have[at + k] = (uint8_t)noise(&seed);
        }
        gpu_write(g, b, at, have + at, n);
        memset(got, 0xEE, n); /* what we hand over may be reused at once */
        n_written += n;
        uint32_t m = noise(&seed) % limit + 1, from = noise(&seed) % (BYTES - m + 1);
        CHECKF(read_now(g, b, from, m, got) && memcmp(got, have + from, m) == 0,
               "read %u bytes at %u", m, from);
        n_read += m;
    }
    CHECK(gpu_counts_of(g).read_bytes == read + n_read &&
          gpu_counts_of(g).written_bytes == written + n_written);

    begin("overlapping large and small writes, more than can be in flight");
    for (int i = 0; i < 60; i++) {
        uint32_t n = i % 3 == 2 ? 64 : (300000 + noise(&seed) % 600000) & ~3u,
                 at = noise(&seed) % (BYTES - n) & ~3u;
        memset(have + at, i + 1, n);
        gpu_write(g, b, at, have + at, n);
    }
    CHECK(read_now(g, b, 0, BYTES, got) && memcmp(got, have, BYTES) == 0);

    begin("copies between buffers");
    gpu_buffer c = buffer(g, BYTES, GPU_UNIFORM);
    gpu_copy(g, b, 4096, c, 256, 8000);
    CHECK(read_now(g, c, 252, 8008, got) && memcmp(got + 4, have + 4096, 8000) == 0);
    CHECK(got[0] == 0 && got[3] == 0 && got[8004] == 0 && got[8007] == 0);
    gpu_buffer_free(g, c);

    begin("several reads in flight, taken in any order");
    enum { READS = 24 };
    gpu_fence f[READS] = {0};
    bz_error err = {0};
    for (uint32_t i = 0; i < READS; i++) {
        uint32_t value = i * 1000003u;
        gpu_write(g, b, 0, &value, 4); /* each read sees the write before it, not the one after */
        f[i] = gpu_read(g, b, 0, i % 3 ? 4 : 100000, &err);
        CHECKF(f[i], "%s", err.text);
    }
    for (uint32_t k = 0; k < READS; k++) {
        uint32_t i = (k * 7 + 5) % READS, value = 0;
        CHECK(wait_read(g, f[i], i % 3 ? (void *)&value : (void *)got));
        memcpy(&value, i % 3 ? (void *)&value : (void *)got, 4);
        CHECKF(value == i * 1000003u, "read %u gave %u", i, value);
        CHECK(!gpu_read_done(g, f[i], got)); /* its fence has ended */
    }
    f[0] = gpu_read(g, b, 0, 64, &err);
    CHECK(wait_read(g, f[0], NULL));

    begin("reads outside a buffer, of nothing, or too long are refused");
    CHECK(gpu_read(g, b, BYTES - 4, 8, &err) == 0);
    check_error(&err, BZ_BAD_REQUEST, "1048576");
    CHECK(gpu_read(g, b, 0, 0, &err) == 0);
    CHECK(gpu_read(g, b, UINT64_MAX - 3, 8, &err) == 0);
    CHECK(gpu_read(g, 0, 0, 4, &err) == 0);
    check_error(&err, BZ_BAD_REQUEST, NULL);
    gpu_buffer_free(g, b);
    CHECK(gpu_read(g, b, 0, 4, &err) == 0); /* a handle kept too long */
    gpu_buffer d = buffer(g, 16, GPU_STORAGE);
    CHECK(d != b && gpu_read(g, b, 0, 4, &err) == 0);
    gpu_buffer_free(g, d);
    gpu_buffer_free(g, d);
    gpu_buffer_free(g, 0);
    CHECK(gpu_state_of(g, &err) == GPU_READY);

    begin("the longest read");
    uint8_t *big = malloc(GPU_MAX_READ);
    gpu_buffer e = buffer(g, GPU_MAX_READ + 4, GPU_STORAGE);
    CHECK(gpu_read(g, e, 0, GPU_MAX_READ + 1, &err) == 0);
    gpu_write(g, e, GPU_MAX_READ - 8, "end", 4);
    CHECK(read_now(g, e, 4, GPU_MAX_READ, big) && memcmp(big + GPU_MAX_READ - 12, "end", 4) == 0);
    gpu_buffer_free(g, e);
    free(big);
    free(have);
    free(got);
}

static void test_memory(gpu *g)
{
    begin("a buffer that does not fit returns out_of_memory and has no other effect");
    bz_error err = {0};
    uint64_t limit = gpu_limits_of(g)->max_buffer, before = gpu_counts_of(g).buffer_bytes;
    CHECK(gpu_buffer_new(g, limit + 1, GPU_STORAGE, &err) == 0);
    check_error(&err, BZ_OUT_OF_MEMORY, NULL);
    err = (bz_error){0};
    CHECK(gpu_buffer_new(g, UINT64_MAX, GPU_STORAGE, &err) == 0);
    check_error(&err, BZ_OUT_OF_MEMORY, NULL);
    /* llvmpipe allocates memory only when it is touched, so a full GPU has to be simulated. */
    CHECK(gpu_test_limit_memory(g, before + 1000000));
    gpu_buffer half = buffer(g, 600000, GPU_STORAGE);
    err = (bz_error){0};
    CHECK(gpu_buffer_new(g, 600000, GPU_STORAGE, &err) == 0);
    check_error(&err, BZ_OUT_OF_MEMORY, "600000");
    printf("  %s\n", err.text);
    gpu_buffer_free(g, half);
    half = buffer(g, 600000, GPU_STORAGE);
    gpu_buffer_free(g, half);
    gpu_test_limit_memory(g, UINT64_MAX);
    CHECK(gpu_counts_of(g).buffer_bytes == before);
    CHECKF(gpu_state_of(g, &err) == GPU_READY, "%s", err.text);
    gpu_buffer b = buffer(g, 64, GPU_STORAGE);
    gpu_buffer_free(g, b);
}

/* ---- pipelines and lists -------------------------------------------------------------------- */

static void test_pipelines(gpu *g)
{
    bz_error err = {0};
    begin("overrides");
    gpu_buffer b = buffer(g, 256, GPU_STORAGE);
    gpu_pipeline plain = pipeline(g, STEP, NULL, 0);
    gpu_pipeline with = pipeline(g, STEP, &(gpu_constant){"k", 1234}, 1);
    gpu_list l = gpu_list_new(g, &err);
    add(g, l, plain, &(gpu_binding){b, 0, 0}, 1, 1);
    add(g, l, with, &(gpu_binding){b, 0, 0}, 1, 1);
    uint32_t x[64];
    gpu_replay(g, l, 0, 1);
    CHECKF(read_now(g, b, 0, 256, x) && x[0] == 7 && x[63] == 7, "%u", x[0]);
    gpu_replay(g, l, 1, 1);
    CHECKF(read_now(g, b, 0, 256, x) && x[0] == 7 * 3 + 1234, "%u", x[0]);
    /* A list keeps its kernels alive. */
    gpu_pipeline_free(g, plain);
    gpu_pipeline_free(g, with);
    gpu_replay(g, l, 0, 2);
    CHECKF(read_now(g, b, 0, 256, x) && x[0] == ((7 * 3 + 1234) * 3 + 7) * 3 + 1234, "%u", x[0]);
    CHECK(gpu_pipeline_state_of(g, plain, &err) == GPU_PIPELINE_FAILED);
    gpu_list_free(g, l);
    gpu_list_free(g, l);

    begin("a kernel that does not compile reports the line");
    const char *broken = "@group(0) @binding(0) var<storage, read_write> x: array<u32>;\n"
                         "@compute @workgroup_size(1)\n"
                         "fn main() { x[0] = y; }\n";
    gpu_pipeline p = gpu_pipeline_new(g, "broken kernel", broken, strlen(broken), NULL, 0, &err);
    CHECK(p && wait_pipeline(g, p, &err) == GPU_PIPELINE_FAILED);
    check_error(&err, BZ_BAD_REQUEST, "broken kernel, line 3, column ");
    printf("  %s\n", err.text);
    l = gpu_list_new(g, &err);
    CHECK(gpu_list_add(g, l, p, &(gpu_binding){b, 0, 0}, 1, 1, 1, 1, &err) == BZ_BAD_REQUEST);
    check_error(&err, BZ_BAD_REQUEST, "did not compile");
    gpu_pipeline_free(g, p);

    begin("unknown overrides, a missing main, too large a workgroup: an error message each");
    p = gpu_pipeline_new(g, "step", STEP, strlen(STEP), &(gpu_constant){"q", 1}, 1, &err);
    CHECK(p && wait_pipeline(g, p, &err) == GPU_PIPELINE_FAILED);
    check_error(&err, BZ_BAD_REQUEST, "\"q\"");
    printf("  %s\n", err.text);
    const char *other = "@compute @workgroup_size(1) fn other() { }\n";
    p = gpu_pipeline_new(g, "nameless", other, strlen(other), NULL, 0, &err);
    CHECK(p && wait_pipeline(g, p, &err) == GPU_PIPELINE_FAILED);
    check_error(&err, BZ_BAD_REQUEST, "nameless");
    const char *wide = "@compute @workgroup_size(1000000) fn main() { }\n";
    p = gpu_pipeline_new(g, "wide", wide, strlen(wide), NULL, 0, &err);
    CHECK(p && wait_pipeline(g, p, &err) == GPU_PIPELINE_FAILED);
    check_error(&err, BZ_BAD_REQUEST, "wide");
    CHECKF(gpu_state_of(g, &err) == GPU_READY, "%s", err.text);

    begin("a kernel can be freed while it is being compiled, and many compile at once");
    gpu_pipeline many[40];
    for (uint32_t i = 0; i < 40; i++) {
        many[i] = gpu_pipeline_new(g, "many", STEP, strlen(STEP), &(gpu_constant){"k", i}, 1, &err);
        CHECK(many[i]);
    }
    for (uint32_t i = 0; i < 40; i += 2) {
        gpu_pipeline_free(g, many[i]);
    }
    for (uint32_t i = 1; i < 40; i += 2) {
        CHECK(wait_pipeline(g, many[i], &err) == GPU_PIPELINE_READY);
        gpu_pipeline_free(g, many[i]);
    }
    gpu_list_free(g, l);
    gpu_buffer_free(g, b);
}

static void test_bindings(gpu *g)
{
    enum { N = 100, AT = 2048 };
    bz_error err = {0};
    begin("bindings with offsets and sizes");
    uint32_t a[N], b[N], out[N + 2], scale[4] = {5, 0, 0, 0};
    for (uint32_t i = 0; i < N; i++) {
        a[i] = i + 1;
        b[i] = 1000 * i;
    }
    gpu_buffer in = buffer(g, 16384, GPU_STORAGE), result = buffer(g, 16384, GPU_STORAGE);
    gpu_buffer uniform = buffer(g, 1024, GPU_UNIFORM);
    gpu_write(g, in, 256, a, sizeof a);
    gpu_write(g, in, 8192, b, sizeof b);
    gpu_write(g, uniform, 512, scale, sizeof scale);
    gpu_pipeline mix = pipeline(g, MIX, NULL, 0);
    gpu_list l = gpu_list_new(g, &err);
    gpu_binding all[4] = {
        {in, 256, sizeof a}, {in, 8192, 0}, {result, AT, N * 4}, {uniform, 512, 16}};
    add(g, l, mix, all, 4, 2);
    gpu_replay(g, l, 0, 1);
    CHECK(read_now(g, result, AT - 4, sizeof out, out));
    CHECK(out[0] == 0 && out[N + 1] == 0);
    for (uint32_t i = 0; i < N; i++) {
        CHECKF(out[i + 1] == a[i] + 5 * b[i], "%u: %u", i, out[i + 1]);
    }

    begin("bindings that do not fit are refused with the kernel's name");
    uint32_t step = gpu_limits_of(g)->min_storage_offset;
    const struct {
        gpu_binding bad;
        uint32_t at;
        const char *part;
    } cases[] = {
        {{in, step / 2, 4}, 0, "multiple of"},     {{in, 16384, 0}, 0, "outside a buffer of 16384"},
        {{in, 256, 16384}, 1, "outside a buffer"}, {{0, 0, 0}, 2, "no such buffer"},
        {{uniform, 0, 0}, 2, "do not fit"}, /* no storage buffer */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gpu_binding bad[4];
        memcpy(bad, all, sizeof bad);
        bad[cases[i].at] = cases[i].bad;
        err = (bz_error){0};
        CHECK(gpu_list_add(g, l, mix, bad, 4, 1, 1, 1, &err) == BZ_BAD_REQUEST);
        check_error(&err, BZ_BAD_REQUEST, cases[i].part);
        check_error(&err, BZ_BAD_REQUEST, "test");
    }
    CHECK(gpu_list_add(g, l, mix, all, 3, 1, 1, 1, &err) == BZ_BAD_REQUEST);
    check_error(&err, BZ_BAD_REQUEST, "do not fit");
    CHECK(gpu_list_add(g, l, mix, all, 4, 0, 1, 1, &err) == BZ_BAD_REQUEST);
    CHECK(gpu_list_add(g, l, mix, all, 4, 1, 70000, 1, &err) == BZ_BAD_REQUEST);
    check_error(&err, BZ_BAD_REQUEST, "workgroups");
    CHECK(gpu_list_add(g, l, mix, all, GPU_MAX_BINDINGS + 1, 1, 1, 1, &err) == BZ_BAD_REQUEST);
    CHECK(gpu_list_add(g, 0, mix, all, 4, 1, 1, 1, &err) == BZ_BAD_REQUEST);
    CHECK(gpu_list_add(g, l, 0, all, 4, 1, 1, 1, &err) == BZ_BAD_REQUEST);
    check_error(&err, BZ_BAD_REQUEST, NULL);
    CHECKF(gpu_state_of(g, &err) == GPU_READY, "%s", err.text);
    gpu_replay(g, l, 0, 1); /* none of the refused ones is in the list */
    CHECK(read_now(g, result, AT, 4, out) && out[0] == 1);
    gpu_list_free(g, l);
    gpu_pipeline_free(g, mix);
    gpu_buffer_free(g, in);
    gpu_buffer_free(g, result);
    gpu_buffer_free(g, uniform);
}

static void test_replay(gpu *g)
{
    enum { KINDS = 5, N = 1000 };
    bz_error err = {0};
    gpu_pipeline p[KINDS];
    gpu_buffer b = buffer(g, 256, GPU_STORAGE);

    begin("dispatches of a list run in order, each seeing what the one before it wrote");
    for (uint32_t i = 0; i < KINDS; i++) {
        p[i] = pipeline(g, STEP, &(gpu_constant){"k", i * i + 1}, 1);
    }
    gpu_list l = gpu_list_new(g, &err);
    uint32_t want[N + 1] = {0}, x[64];
    for (uint32_t i = 0; i < N; i++) {
        uint32_t kind = i * 7 % 11 % KINDS;
        add(g, l, p[kind], &(gpu_binding){b, 0, 0}, 1, 1);
        want[i + 1] = want[i] * 3 + kind * kind + 1;
    }
    gpu_counts before = gpu_counts_of(g);
    gpu_replay(g, l, 0, N); /* a thousand in one pass */
    CHECK(gpu_counts_of(g).dispatches == before.dispatches + N &&
          gpu_counts_of(g).submits == before.submits + 1);
    CHECKF(read_now(g, b, 0, 256, x) && x[0] == want[N] && x[63] == want[N], "%u instead of %u",
           x[0], want[N]);
    CHECK(gpu_counts_of(g).submits == before.submits + 2);

    begin("ranges of a list, with writes between them");
    uint32_t start[64];
    for (uint32_t first = 0; first < 900; first += 97) {
        for (uint32_t i = 0; i < 64; i++) {
            start[i] = want[first];
        }
        gpu_write(g, b, 0, start, sizeof start); /* after the previous replay */
        gpu_replay(g, l, first, 97);
        gpu_replay(g, l, first + 97, 3);
        gpu_replay(g, l, 0, 0);
        CHECK(read_now(g, b, 0, 256, x) && x[17] == want[first + 100]);
    }

    begin("replayed and read in one submit, several in flight");
    gpu_fence ahead[5];
    for (uint32_t i = 0; i < 64; i++) {
        start[i] = 0;
    }
    gpu_write(g, b, 0, start, sizeof start);
    before = gpu_counts_of(g);
    for (uint32_t i = 0; i < 5; i++) {
        ahead[i] = gpu_replay_read(g, l, i * 200, 200, b, i, 9,
                                   &err); /* any bytes: copies are of whole words */
    }
    CHECK(gpu_counts_of(g).submits == before.submits + 5 &&
          gpu_counts_of(g).dispatches == before.dispatches + N);
    CHECK(gpu_counts_of(g).read_bytes == before.read_bytes + 45);
    for (uint32_t i = 0; i < 5; i++) { /* each as it was at that time */
        unsigned char got[9], words[16];
        for (int k = 0; k < 4; k++) {
            memcpy(words + 4 * k, &want[(i + 1) * 200], 4);
        }
        CHECK(ahead[i] && wait_read(g, ahead[i], got) && memcmp(got, words + i, 9) == 0);
    }
    CHECK(gpu_replay_read(g, l, 0, 1, b, 252, 8, &err) == 0);
    check_error(&err, BZ_BAD_REQUEST, "cannot be read");
    CHECK(gpu_counts_of(g).submits == before.submits + 5 && gpu_state_of(g, &err) == GPU_READY);

    begin("discarded reads");
    uint64_t bytes = gpu_counts_of(g).buffer_bytes;
    for (int i = 0; i < 200; i++) {
        gpu_fence dropped = gpu_replay_read(g, l, 0, 1, b, 0, 256, &err);
        if (i % 10 == 0) {
            CHECK(read_now(g, b, 0, 256, x)); /* arrived by now */
        }
        gpu_read_drop(g, dropped);
        CHECK(!gpu_read_done(g, dropped, x)); /* it may run on, but it is not handed out */
    }
    gpu_read_drop(g, 0);
    CHECK(read_now(g, b, 0, 256, x) && gpu_counts_of(g).buffer_bytes == bytes &&
          gpu_state_of(g, &err) == GPU_READY);

    begin("a fence without bytes");
    gpu_replay(g, l, 0, N);
    gpu_fence f = gpu_signal(g, &err), f2 = gpu_signal(g, &err);
    CHECK(f && f2 && wait_signal(g, f2) && wait_signal(g, f) && !gpu_signal_done(g, f));

    begin("times of dispatches");
    double ns[N];
    if (gpu_limits_of(g)->timestamps) {
        memset(ns, 0xFF, sizeof ns);
        CHECK(gpu_time_list(g, l, 0, N, ns));
        double sum = 0;
        for (uint32_t i = 0; i < N; i++) {
            CHECKF(ns[i] >= 0 && ns[i] < 1e10, "%u: %g", i, ns[i]);
            sum += ns[i];
        }
        CHECKF(sum > 0, "no time passed");
        printf("  a small dispatch by timestamps: %.2f us\n", sum / N / 1000);
    }
    gpu_list_free(g, l);
    for (uint32_t i = 0; i < KINDS; i++) {
        gpu_pipeline_free(g, p[i]);
    }
    gpu_buffer_free(g, b);
}

/* Figures, not checks: the cost of a chain of small dependent dispatches. */
static void measure(gpu *g)
{
    enum { N = 1000, ROUNDS = 10 };
    bz_error err = {0};
    begin("measuring a chain of small dispatches");
    gpu_buffer b = buffer(g, 4096, GPU_STORAGE);
    gpu_pipeline p[2] = {pipeline(g, STEP, NULL, 0), pipeline(g, STEP, &(gpu_constant){"k", 9}, 1)};
    gpu_list l = gpu_list_new(g, &err);
    uint64_t t0 = bz_os_now();
    for (uint32_t i = 0; i < N; i++) {
        add(g, l, p[i % 2], &(gpu_binding){b, 0, 0}, 1, 1);
    }
    double build = (double)(bz_os_now() - t0) / N / 1000, encode = 1e30, whole = 1e30, trip = 1e30;
    uint32_t x;
    for (int r = 0; r < ROUNDS; r++) {
        t0 = bz_os_now();
        gpu_replay(g, l, 0, N);
        double t = (double)(bz_os_now() - t0) / N / 1000;
        encode = t < encode ? t : encode;
        CHECK(read_now(g, b, 0, 4, &x));
        t = (double)(bz_os_now() - t0) / N / 1000;
        whole = t < whole ? t : whole;
        t0 = bz_os_now();
        CHECK(read_now(g, b, 0, 4, &x));
        t = (double)(bz_os_now() - t0) / 1000;
        trip = t < trip ? t : trip;
    }
    printf("  best of %d, microseconds: %.2f to add a dispatch to a list, %.2f to encode it, %.2f "
           "until it "
           "has run; "
           "%.0f to read 4 bytes\n",
           ROUNDS, build, encode, whole, trip);
    gpu_list_free(g, l);
    gpu_pipeline_free(g, p[0]);
    gpu_pipeline_free(g, p[1]);
    gpu_buffer_free(g, b);
}

/* ---- when things go wrong ---------------------------------------------------------------------
 */

static void test_mistakes(void)
{
    bz_error err = {0};
    begin("a command the device refuses makes it FAILED, with a sentence");
    gpu *g = open_device(NULL);
    if (g) {
        gpu_buffer b = buffer(g, 256, GPU_STORAGE);
        gpu_pipeline p = pipeline(g, STEP, NULL, 0);
        gpu_list l = gpu_list_new(g, &err);
        add(g, l, p, &(gpu_binding){b, 0, 0}, 1, 1);
        gpu_buffer_free(g, b);
        gpu_replay(g, l, 0, 1); /* its buffer is gone */
        CHECK(gpu_state_of(g, &err) == GPU_FAILED);
        check_error(&err, BZ_BAD_REQUEST, NULL);
        printf("  %s\n", err.text);
        err = (bz_error){0};
        CHECK(gpu_buffer_new(g, 16, GPU_STORAGE, &err) == 0);
        check_error(&err, BZ_BAD_REQUEST, NULL);
    }
    gpu_close(g);

    static const struct {
        const char *name;
        uint64_t at, n;
    } writes[] = {{"a write past the end", 252, 8},
                  {"an offset not a multiple of 4", 2, 4},
                  {"a size not a multiple of 4", 0, 6}};
    for (size_t i = 0; i < 3; i++) {
        begin("refused: %s", writes[i].name);
        g = open_device(NULL);
        if (g) {
            gpu_buffer b = buffer(g, 256, GPU_STORAGE);
            gpu_write(g, b, writes[i].at, "12345678", writes[i].n);
            CHECK(gpu_state_of(g, &err) == GPU_FAILED);
            check_error(&err, BZ_BAD_REQUEST, NULL);
        }
        gpu_close(g);
    }

    begin("refused: dispatches past the end of a list");
    g = open_device(NULL);
    if (g) {
        gpu_list l = gpu_list_new(g, &err);
        gpu_replay(g, l, 0, 1);
        CHECK(gpu_state_of(g, &err) == GPU_FAILED);
        check_error(&err, BZ_BAD_REQUEST, "list of 0");
    }
    gpu_close(g);
    g = open_device(NULL);
    if (g) {
        gpu_list l = gpu_list_new(g, &err);
        CHECK(gpu_replay_read(g, l, 0, 1, buffer(g, 256, GPU_STORAGE), 0, 4, &err) == 0);
        check_error(&err, BZ_BAD_REQUEST, "list of 0");
        CHECK(gpu_state_of(g, &err) == GPU_FAILED && gpu_counts_of(g).submits == 0);
    }
    gpu_close(g);
}

static void test_loss(void)
{
    bz_error err = {0};
    for (int round = 0; round < 3; round++) {
        begin("a lost device, round %d: device_lost everywhere, and nothing hangs", round + 1);
        gpu *g = open_device(NULL);
        if (!g) {
            continue;
        }
        gpu_buffer b = buffer(g, 1 << 20, GPU_STORAGE);
        gpu_pipeline p = pipeline(g, STEP, NULL, 0);
        gpu_list l = gpu_list_new(g, &err);
        add(g, l, p, &(gpu_binding){b, 0, 0}, 1, 64);
        gpu_replay(g, l, 0, 1);
        gpu_fence f = gpu_read(g, b, 0, 1 << 20, &err);
        gpu_pipeline late = gpu_pipeline_new(g, "late", STEP, strlen(STEP), NULL, 0, &err);
        CHECK(f && late);
        gpu_test_lose(g);
        uint64_t end = bz_os_now() + GPU_PATIENCE_NS;
        while (gpu_state_of(g, &err) == GPU_READY && bz_os_now() < end) {
            bz_os_sleep(GPU_POLL_NS);
        }
        CHECK(gpu_state_of(g, &err) == GPU_LOST);
        check_error(&err, BZ_DEVICE_LOST, "lost");
        if (round == 0) {
            printf("  %s\n", err.text);
        }
        uint32_t x;
        CHECK(!gpu_read_done(g, f, NULL));
        err = (bz_error){0};
        CHECK(gpu_pipeline_state_of(g, late, &err) == GPU_PIPELINE_FAILED);
        check_error(&err, BZ_DEVICE_LOST, NULL);
        gpu_write(g, b, 0, &round, 4);
        gpu_copy(g, b, 0, b, 4, 4);
        gpu_replay(g, l, 0, 1);
        CHECK(gpu_buffer_new(g, 4, GPU_STORAGE, &err) == 0 && gpu_list_new(g, &err) == 0);
        CHECK(gpu_pipeline_new(g, "new", STEP, strlen(STEP), NULL, 0, &err) == 0);
        CHECK(gpu_list_add(g, l, p, &(gpu_binding){b, 0, 0}, 1, 1, 1, 1, &err) == BZ_DEVICE_LOST);
        CHECK(gpu_read(g, b, 0, 4, &err) == 0 && gpu_signal(g, &err) == 0);
        CHECK(gpu_replay_read(g, l, 0, 1, b, 0, 4, &err) == 0);
        check_error(&err, BZ_DEVICE_LOST, NULL);
        double ns;
        CHECK(!gpu_time_list(g, l, 0, 1, &ns));
        if (round == 1) { /* freeing things first must work, too */
            gpu_list_free(g, l);
            gpu_pipeline_free(g, late);
            gpu_pipeline_free(g, p);
            gpu_buffer_free(g, b);
        }
        gpu_close(g);

        g = open_device(NULL);
        if (g) {
            gpu_buffer c = buffer(g, 4, GPU_STORAGE);
            gpu_write(g, c, 0, "back", 4);
            CHECK(read_now(g, c, 0, 4, &x) && memcmp(&x, "back", 4) == 0);
        }
        gpu_close(g);
    }

    begin("a device can be closed with everything in flight, and two live side by side");
    gpu *one = open_device(NULL), *two = open_device(&(gpu_options){.baseline = true});
    if (one && two) {
        gpu_buffer b1 = buffer(one, 1 << 20, GPU_STORAGE), b2 = buffer(two, 4, GPU_STORAGE);
        gpu_write(one, b1, 0, "one!", 4);
        gpu_write(two, b2, 0, "two!", 4);
        CHECK(gpu_read(one, b1, 0, 1 << 20, &err) && gpu_signal(one, &err));
        CHECK(gpu_pipeline_new(one, "unfinished", STEP, strlen(STEP), NULL, 0, &err));
        gpu_close(one);
        one = NULL;
        uint32_t x = 0;
        CHECK(read_now(two, b2, 0, 4, &x) && memcmp(&x, "two!", 4) == 0);
    }
    gpu_close(one);
    gpu_close(two);
    gpu_close(NULL);
}

/* With another value of an environment variable, opening must fail. */
static void test_refused(const char *name, const char *variable, const char *value, bz_status code,
                         const char *part)
{
    bz_error err = {0};
    gpu *g = NULL;
    const char *old = getenv(variable);
    char *kept = old ? strdup(old) : NULL;
    begin("%s", name);
    setenv(variable, value, 1);
    CHECK(gpu_open(&g, NULL, &err) == code && !g);
    check_error(&err, code, part);
    printf("  %s\n", err.text);
    if (kept) {
        setenv(variable, kept, 1);
    } else {
        unsetenv(variable);
    }
    free(kept);
    gpu_close(g);
}

int main(void)
{
    begin("a device opens");
    gpu *g = open_device(NULL);
    if (g) {
        test_open(g);
        test_buffers(g);
        test_memory(g);
        test_pipelines(g);
        test_bindings(g);
        test_replay(g);
        measure(g);
        begin("nothing is leaked");
        bz_error err = {0};
        CHECK(gpu_counts_of(g).buffer_bytes == 0);
        CHECKF(gpu_state_of(g, &err) == GPU_READY, "%s", err.text);
        gpu_close(g);
        test_options();
        test_mistakes();
        test_loss();
        test_refused("no library: no_webgpu", "BEZEL_WEBGPU_LIB", "/nowhere/libwebgpu.so",
                     BZ_NO_WEBGPU, "BEZEL_WEBGPU_LIB");
        test_refused("no driver: no_adapter", "VK_DRIVER_FILES", "/nowhere.json", BZ_NO_ADAPTER,
                     "Vulkan");
        test_refused("a library without WebGPU: no_webgpu", "BEZEL_WEBGPU_LIB", "libm.so.6",
                     BZ_NO_WEBGPU, "lacks wgpu");
    }
    return finish();
}
