/* bezel doctor: what this machine has, and what Bezel uses of it. */
#include <stdlib.h>
#include <string.h>

#include "cli/bench/bandwidth.h"
#include "base/os_program.h"
#include "base/units.h"
#include "bezel_debug.h"
#include "cli/chat/line.h"
#include "cli/os.h"
#include "cli/os_sandbox.h"
#include "cli/output.h"
#include "store/pull.h"

enum { NAME_MAX_BYTES = 128, FEATURES_MAX = 12 };

typedef struct facts {
    char processor[NAME_MAX_BYTES]; /* "": unknown */
    const char *features[FEATURES_MAX];
    size_t n_features;
    unsigned cores;
    const char *kernels;
    uint64_t memory, memory_limit, available; /* bytes; 0: unknown, or no limit */
    double bandwidth;
    bz_store_list store;
    bz_error store_error;
    uint64_t disk_free; /* of the store, else of the current folder */
    const char *disk_path;
    bool sandbox; /* the system has one */
    bool has_gpu;
    bz_debug_gpu_info gpu;
    bool gpu_measured;
    bz_debug_gpu_speed speed;
    bz_error gpu_error; /* why there is none, or why it could not be measured */
} facts;

/* ---- the processor ---------------------------------------------------------------- */

static void inspect_processor(facts *f)
{
    static const char *const features[] = {
        "avx2",    "fma",  "avxvnni", "avx512f", "avx512bw", "avx512vnni", "avx512bf16",
        "amxint8", "neon", "fp16",    "dotprod", "sve",      "i8mm"};
    cli_os_processor(f->processor, sizeof f->processor);
    for (size_t i = 0; i < sizeof features / sizeof *features; i++) {
        if (bz_os_cpu_has(features[i])) {
            f->features[f->n_features++] = features[i];
        }
    }
    f->cores = bz_os_cpu_count();
    f->kernels = bz_debug_kernels(NULL);
}

/* ---- memory and disk ---------------------------------------------------------------- */

static void inspect_memory(facts *f)
{
    f->memory = bz_os_memory_total();
    f->memory_limit = cli_os_memory_limit();
    f->memory_limit = f->memory_limit < f->memory ? f->memory_limit : 0;
    f->available = bz_os_memory_available();
    f->bandwidth = bandwidth_measure(f->cores);
}

static void inspect_store(facts *f)
{
    f->disk_path = ".";
    bz_store_list_all(&f->store, &f->store_error);
    for (size_t i = f->store.n_roots; i-- > 0;) {
        if (f->store.roots[i].state == BZ_STORE_THERE) {
            f->disk_path = f->store.roots[i].path;
        }
    }
    const uint64_t disk_free = bz_os_free_space(f->disk_path);
    f->disk_free = disk_free == UINT64_MAX ? 0 : disk_free;
}

/* ---- the GPU -------------------------------------------------------------------------- */

static void inspect_gpu(facts *f)
{
    bz_debug_gpu *gpu = NULL;
    f->has_gpu = bz_debug_gpu_open(&gpu, &f->gpu_error) == BZ_OK;
    if (f->has_gpu) {
        f->gpu = bz_debug_gpu_get_info(gpu);
        f->gpu_measured = bz_debug_gpu_measure(gpu, &f->speed, &f->gpu_error) == BZ_OK;
        bz_debug_gpu_close(gpu);
    }
}

/* ---- as text ----------------------------------------------------------------------------- */

static void print_store(const facts *f)
{
    bool any = false;
    if (f->store_error.code) {
        printf("  store      %s\n", f->store_error.text);
        return;
    }
    for (size_t i = 0; i < f->store.n_roots; i++) {
        const bz_store_root *r = &f->store.roots[i];
        if (r->state != BZ_STORE_MISSING) {
            printf("  store      %s%s\n", r->shown,
                   r->state == BZ_STORE_LOCKED ? " (this user may not read it)" : "");
            any = true;
        }
    }
    if (any) {
        printf("  models     %zu; 'bezel list' lists them\n", f->store.n);
    } else {
        printf("  store      no Ollama store found; GGUF files need none\n");
    }
}

static void print_text(const facts *f)
{
    char a[BZ_UNITS_MAX], b[BZ_UNITS_MAX];
    printf("bezel %s\n\n", bz_version());
    printf("  processor  %s\n", f->processor[0] ? f->processor : "unknown");
    printf("  cores      %u usable\n  features  ", f->cores);
    for (size_t i = 0; i < f->n_features; i++) {
        printf(" %s", f->features[i]);
    }
    printf("%s\n  kernels    %s\n", f->n_features ? "" : " none that Bezel uses", f->kernels);
    printf("  memory     %s", bz_bytes_text(f->memory, a));
    if (f->memory_limit) {
        printf(", limited to %s", bz_bytes_text(f->memory_limit, a));
    }
    printf(", %s available\n", bz_bytes_text(f->available, b));
    if (f->bandwidth > 0) {
        printf("  bandwidth  %.1f GB/s; a model that reads 1 GB per token cannot be faster than "
               "%.1f tokens/s\n",
               f->bandwidth / 1e9, f->bandwidth / 1e9);
    }
    print_store(f);
    printf("  disk       %s free in %s\n", bz_bytes_text(f->disk_free, a), f->disk_path);
    printf("  editing    %s\n", line_editor_here()          ? "libedit"
                                : BZ_OS_BACKSLASH_SEPARATES ? "the console's"
                                                            : "plain (built without libedit)");
    printf("  sandbox    %s\n", f->sandbox
                                    ? "Landlock and seccomp, as far as the kernel has them"
                                    : "none on this system: programs keep the user's rights");
    printf("  downloads  %s\n", bz_store_can_pull() ? "libcurl" : "none (built without libcurl)");
    fflush(stdout);
}

static void print_gpu(const facts *f)
{
    char a[BZ_UNITS_MAX], b[BZ_UNITS_MAX];
    if (!f->has_gpu) {
        printf("  gpu        none: %s\n", f->gpu_error.text);
        if (f->gpu_error.code == BZ_NO_WEBGPU) {
            puts("             'bezel setup-gpu' fetches the WebGPU library that a GPU needs");
        }
        return;
    }
    printf("  gpu        %s (%s)\n", f->gpu.adapter, f->gpu.kind);
    if (strcmp(f->gpu.kind, "cpu") == 0) {
        puts("             emulated on the CPU; only '--device gpu' uses it");
    }
    printf("             library    %s\n", f->gpu.library);
    const bz_debug_gpu_info *l = &f->gpu;
    printf("             limits     buffers of %s, bindings of %s, %u storage buffers\n",
           bz_bytes_text(l->max_buffer, a), bz_bytes_text(l->max_binding, b),
           l->max_storage_buffers);
    printf("                        workgroups of %u with %s, %u in a dimension; offsets of %u\n",
           l->max_invocations, bz_bytes_text(l->max_workgroup_storage, a), l->max_workgroups,
           l->min_storage_offset);
    printf("             features  %s%s%s%s", l->f16 ? " f16" : "",
           l->packed_dot ? " packed-dot" : "", l->timestamps ? " timestamps" : "",
           l->subgroups ? " subgroups" : "");
    if (l->subgroups && l->subgroup_max) {
        printf(" of %u to %u", l->subgroup_min, l->subgroup_max);
    }
    puts(l->matrices                                                ? ", with matrices"
         : l->f16 || l->subgroups || l->packed_dot || l->timestamps ? ""
                                                                    : " none");
    if (f->gpu_measured) {
        printf("             bandwidth  %.1f GB/s; a model that reads 1 GB per token cannot be "
               "faster than %.1f tokens/s\n",
               f->speed.bytes_per_s / 1e9, f->speed.bytes_per_s / 1e9);
        printf("             dispatch   %.2f us each in a chain, %.0f us round trip\n",
               f->speed.dispatch_s * 1e6, f->speed.round_trip_s * 1e6);
    } else {
        printf("             bandwidth  not measured: %s\n", f->gpu_error.text);
    }
}

/* ---- as JSON ------------------------------------------------------------------------------- */

static void put_text(bz_json *j, const char *key, const char *text)
{
    bz_json_put_text(j, key, text && text[0] ? text : NULL);
}

static void put_gpu(bz_json *j, const facts *f)
{
    bz_json_key(j, "gpu");
    bz_json_object(j);
    put_text(j, "adapter", f->gpu.adapter);
    put_text(j, "kind", f->gpu.kind);
    put_text(j, "library", f->gpu.library);
    put_text(j, "reason", f->has_gpu ? NULL : f->gpu_error.text);
    if (f->has_gpu) {
        bz_json_put_uint(j, "max_buffer_bytes", f->gpu.max_buffer);
        bz_json_put_uint(j, "max_binding_bytes", f->gpu.max_binding);
        bz_json_put_uint(j, "max_storage_buffers", f->gpu.max_storage_buffers);
        bz_json_put_uint(j, "max_workgroup_storage_bytes", f->gpu.max_workgroup_storage);
        bz_json_put_uint(j, "max_invocations", f->gpu.max_invocations);
        bz_json_put_uint(j, "max_workgroups", f->gpu.max_workgroups);
        bz_json_put_uint(j, "min_storage_offset", f->gpu.min_storage_offset);
        bz_json_put_bool(j, "f16", f->gpu.f16);
        bz_json_put_bool(j, "subgroups", f->gpu.subgroups);
        bz_json_put_uint(j, "subgroup_min", f->gpu.subgroup_min);
        bz_json_put_uint(j, "subgroup_max", f->gpu.subgroup_max);
        bz_json_put_bool(j, "packed_dot", f->gpu.packed_dot);
        bz_json_put_bool(j, "matrices", f->gpu.matrices);
        bz_json_put_bool(j, "timestamps", f->gpu.timestamps);
        if (f->gpu_measured) {
            bz_json_put_uint(j, "bytes_per_s", (uint64_t)f->speed.bytes_per_s);
            bz_json_put_float(j, "dispatch_us", f->speed.dispatch_s * 1e6);
            bz_json_put_float(j, "round_trip_us", f->speed.round_trip_s * 1e6);
        }
    }
    bz_json_end(j);
}

static int print_json(const facts *f)
{
    static const char *const states[] = {"missing", "not readable", "found"};
    bz_json j;
    cli_json_begin(&j);
    bz_json_object(&j);
    put_text(&j, "version", bz_version());
    put_text(&j, "processor", f->processor);
    bz_json_put_uint(&j, "cores", f->cores);
    bz_json_key(&j, "features");
    bz_json_array(&j);
    for (size_t i = 0; i < f->n_features; i++) {
        bz_json_text(&j, f->features[i]);
    }
    bz_json_end(&j);
    put_text(&j, "kernels", f->kernels);
    bz_json_put_uint(&j, "memory_bytes", f->memory);
    bz_json_key(&j, "memory_limit_bytes");
    if (f->memory_limit) {
        bz_json_uint(&j, f->memory_limit);
    } else {
        bz_json_null(&j);
    }
    bz_json_put_uint(&j, "memory_available_bytes", f->available);
    bz_json_put_uint(&j, "memory_bytes_per_s", (uint64_t)f->bandwidth);
    bz_json_key(&j, "stores");
    bz_json_array(&j);
    for (size_t i = 0; i < f->store.n_roots; i++) {
        bz_json_object(&j);
        put_text(&j, "path", f->store.roots[i].path);
        put_text(&j, "state", states[f->store.roots[i].state]);
        bz_json_end(&j);
    }
    bz_json_end(&j);
    bz_json_put_uint(&j, "models", f->store.n);
    put_text(&j, "disk", f->disk_path);
    bz_json_put_uint(&j, "disk_free_bytes", f->disk_free);
    bz_json_put_bool(&j, "sandbox", f->sandbox);
    bz_json_put_bool(&j, "downloads", bz_store_can_pull());
    put_text(&j, "line_editing", line_editor_here() ? "libedit" : NULL);
    put_gpu(&j, f);
    bz_json_end(&j);
    return cli_json_end(&j);
}

/* ---- the verb ---------------------------------------------------------------------------------
 */

static int run(int argc, char **argv)
{
    cli_options o = {.model = ""}; /* no positional model */
    int code = cli_parse(&cli_doctor_verb, argc, argv, "j", 0, &o);
    if (code != EXIT_OK || o.help) {
        return code;
    }
    facts *f = calloc(1, sizeof *f);
    if (!f) {
        fprintf(stderr, "bezel: not enough memory.\n");
        return EXIT_CANNOT;
    }
    inspect_processor(f);
    inspect_memory(f);
    inspect_store(f);
    f->sandbox = sandbox_exists;
    if (!o.json) {
        print_text(f); /* before the GPU driver is loaded, which may crash */
    }
    inspect_gpu(f);
    if (o.json) {
        code = print_json(f);
    } else {
        print_gpu(f);
        code = cli_flush();
    }
    bz_store_list_free(&f->store);
    free(f);
    return code;
}

const cli_verb cli_doctor_verb = {
    "doctor", run, "report what this machine has and what Bezel uses of it",
    "Usage: bezel doctor [--json]\n\n"
    "  bezel doctor\n\n"
    "Reports the processor and its kernels, memory and its bandwidth, the GPU with its limits,\n"
    "bandwidth and dispatch time, Ollama's store, and free disk space. Measuring takes about a\n"
    "second. It changes nothing and sends nothing.\n\n"
    "      --json   print one JSON object\n"};
