/* bezel bench: measures how fast this machine runs a model. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "base/units.h"
#include "bezel_debug.h"
#include "bezel_diffusion.h"
#include "bezel_batch.h"
#include "cli/adapters.h"
#include "cli/bench/bandwidth.h"
#include "cli/bench/bench_batch.h"
#include "cli/bench/bench_canvas.h"
#include "cli/bench/bench_draft.h"
#include "cli/bench/bench_media.h"
#include "cli/bench/random_ids.h"
#include "cli/device.h"
#include "cli/os.h"
#include "cli/output.h"

enum {
    WARM_UP_TOKENS = 8,
    MAX_RUNS = 1000,
    BEYOND_CACHES = 100000000 /* bytes: smaller models are not bound by memory */
};

typedef struct speeds {
    double best, median; /* tokens per second */
    double *runs;        /* [n] in the order they were measured */
} speeds;

typedef struct bench {
    const cli_options *o;
    const cli_model *m;
    bz_model *model; /* of m */
    bz_session *session;
    bz_debug_gpu *gpu; /* NULL on the CPU */
    int32_t *ids;
    double load_s, warm_up_s;
    speeds prefill, decode;
    bz_debug_gpu_counts counts; /* of the last answer, on a GPU */
    bz_debug_gpu_speed roof;    /* of the GPU; on the CPU, its bandwidth for as many threads */
    bool has_roof;
    uint64_t cache_bytes;
    bz_debug_memory memory;
    const char *kernels;
    unsigned threads;
} bench;

static bz_status run_job(bz_status started, bz_job *job, double *seconds, bz_error *err)
{
    double t0 = cli_seconds();
    bz_status status = started == BZ_OK ? bz_job_run(job, NULL, err) : started;
    *seconds = cli_seconds() - t0;
    bz_job_free(job);
    return status;
}

/* One prompt and one answer of the given lengths; seconds of each. */
static bz_status measure(bench *b, unsigned run, size_t prompt, unsigned answer, double *prefill_s,
                         double *decode_s, bz_error *err)
{
    bz_job *job = NULL;
    bench_random_ids(b->ids, prompt, run, bz_model_vocab(b->model));
    bz_status status = bz_session_prefill(b->session, b->ids, prompt, NULL, &job, err);
    status = run_job(status, job, prefill_s, err);
    *decode_s = 0;
    if (status == BZ_OK && answer) {
        const bz_generate_options go = {.size = sizeof go,
                                        .max_tokens = answer,
                                        .ignore_end = true,
                                        .sampling = {.greedy = true}};
        job = NULL;
        const bz_debug_gpu_counts before =
            b->gpu ? bz_debug_gpu_get_counts(b->gpu) : (bz_debug_gpu_counts){0};
        status = bz_session_generate(b->session, &go, &job, err);
        status = run_job(status, job, decode_s, err);
        if (b->gpu) {
            const bz_debug_gpu_counts after = bz_debug_gpu_get_counts(b->gpu);
            b->counts =
                (bz_debug_gpu_counts){.dispatches = after.dispatches - before.dispatches,
                                      .submits = after.submits - before.submits,
                                      .read_bytes = after.read_bytes - before.read_bytes,
                                      .written_bytes = after.written_bytes - before.written_bytes};
        }
    }
    return status;
}

static bool summarise(speeds *s, size_t n)
{
    double *sorted = malloc(n * sizeof *sorted);
    if (!sorted) {
        return false;
    }
    memcpy(sorted, s->runs, n * sizeof *sorted);
    cli_sort(sorted, n);
    s->best = sorted[n - 1];
    s->median = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    free(sorted);
    return true;
}

static bz_status measure_all(bench *b, bz_error *err)
{
    const cli_options *o = b->o;
    const bool watched = cli_os_is_terminal(CLI_STDERR);
    double p, d;
    /* Starts threads and loads the file's pages before measuring. */
    size_t warm_up = o->prompt_tokens < WARM_UP_TOKENS ? o->prompt_tokens : WARM_UP_TOKENS;
    warm_up = b->gpu ? o->prompt_tokens : warm_up; /* compiles the kernels that the runs use */
    bz_status status = measure(b, 0, warm_up, o->max_tokens ? 1 : 0, &p, &d, err);
    b->warm_up_s = p + d;
    for (unsigned i = 0; status == BZ_OK && i < o->repeat; i++) {
        if (watched) {
            fprintf(stderr, "\rrun %u of %u ", i + 1, o->repeat);
        }
        status = measure(b, i + 1, o->prompt_tokens, o->max_tokens, &p, &d, err);
        b->prefill.runs[i] = o->prompt_tokens / (p + 1e-9);
        b->decode.runs[i] = o->max_tokens / (d + 1e-9);
    }
    if (watched) {
        fputs("\r                    \r", stderr);
    }
    b->cache_bytes = bz_session_get_stats(b->session).cache_bytes;
    if (status == BZ_OK &&
        (!summarise(&b->prefill, o->repeat) || !summarise(&b->decode, o->repeat))) {
        status = bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the results.");
    }
    return status;
}

/* ---- reports ------------------------------------------------------------------------ */

static double gigabytes_per_second(const bench *b)
{
    return (double)b->memory.token_bytes * b->decode.best / 1e9;
}

static uint64_t model_bytes(const bench *b)
{
    return cli_model_bytes(b->model);
}

/* Tokens per second if reading the weights took all the time. */
static double roof(const bench *b)
{
    return b->roof.bytes_per_s / (double)b->memory.token_bytes;
}

enum { MAX_KERNELS = 48 };

static void print_profile(const bench *b, const char *what, bz_debug_pass pass, uint32_t position)
{
    bz_debug_kernel_time lines[MAX_KERNELS];
    size_t n = bz_debug_profile(b->session, pass, position, lines, MAX_KERNELS);
    double total = 0;
    for (size_t i = 0; i < n; i++) {
        total += lines[i].microseconds;
    }
    if (n) {
        printf("\n  %s pass: %.0f us in kernels\n", what, total);
    }
    for (size_t i = 0; i < n; i++) {
        printf("    %-24s %5u  %9.1f us %5.1f%%", lines[i].kernel, lines[i].dispatches,
               lines[i].microseconds, 100 * lines[i].microseconds / total);
        if (lines[i].weight_bytes) {
            printf("  %7.1f GB/s", (double)lines[i].weight_bytes / lines[i].microseconds / 1e3);
        }
        putchar('\n');
    }
}

static void print_text(const bench *b)
{
    const cli_options *o = b->o;
    char size[BZ_UNITS_MAX];
    printf("%s, %s\n", o->model, bz_bytes_text(model_bytes(b), size));
    if (b->gpu) {
        printf("bezel %s on gpu, %s; ", bz_version(), bz_debug_gpu_get_info(b->gpu).adapter);
    } else {
        printf("bezel %s on cpu, %s kernels, %u thread%s; ", bz_version(), b->kernels, b->threads,
               b->threads == 1 ? "" : "s");
    }
    printf("%u run%s after a warm-up\n\n", o->repeat, o->repeat == 1 ? "" : "s");
    printf("           tokens       best     median\n");
    printf("  prefill  %6u  %9.2f  %9.2f  tokens/s\n", o->prompt_tokens, b->prefill.best,
           b->prefill.median);
    if (o->max_tokens) {
        printf("  decode   %6u  %9.2f  %9.2f  tokens/s\n", o->max_tokens, b->decode.best,
               b->decode.median);
    }
    printf("\n  load     %.3f s, warm-up %.3f s\n", b->load_s, b->warm_up_s);
    printf("  weights  %s read per token", bz_bytes_text(b->memory.token_bytes, size));
    if (o->max_tokens) {
        printf(", %.2f GB/s at best", gigabytes_per_second(b));
    }
    printf("\n  cache    %s for %u positions\n", bz_bytes_text(b->cache_bytes, size),
           o->prompt_tokens + o->max_tokens);
    if (b->gpu && o->max_tokens) {
        printf("  token    %.1f dispatches in %.2f submits, %s read back",
               (double)b->counts.dispatches / o->max_tokens,
               (double)b->counts.submits / o->max_tokens,
               bz_bytes_text(b->counts.read_bytes / o->max_tokens, size));
        printf(", %s written\n", bz_bytes_text(b->counts.written_bytes / o->max_tokens, size));
    }
    if (b->has_roof) {
        printf("  limit    %.1f GB/s memory bandwidth", b->roof.bytes_per_s / 1e9);
        if (b->gpu) {
            printf(", %.2f us per dispatch", b->roof.dispatch_s * 1e6);
        }
        putchar('\n');
        printf("           %.1f tokens/s by bandwidth alone", roof(b));
        if (o->max_tokens) {
            printf("; decode reaches %.1f%% of it", 100 * b->decode.best / roof(b));
        }
        putchar('\n');
    }
    if (b->gpu) {
        print_profile(b, "decode", BZ_DEBUG_DECODE, o->prompt_tokens);
        print_profile(b, "prefill", BZ_DEBUG_PREFILL, 0);
    }
}

static void put_speeds(bz_json *j, const char *key, const speeds *s, unsigned tokens, unsigned runs)
{
    bz_json_key(j, key);
    if (!tokens) {
        bz_json_null(j);
        return;
    }
    bz_json_object(j);
    bz_json_put_uint(j, "tokens", tokens);
    bz_json_put_float(j, "best", s->best);
    bz_json_put_float(j, "median", s->median);
    bz_json_key(j, "runs");
    bz_json_array(j);
    for (unsigned i = 0; i < runs; i++) {
        bz_json_float(j, (float)s->runs[i]);
    }
    bz_json_end(j);
    bz_json_end(j);
}

static void put_profile(bz_json *j, const char *key, const bench *b, bz_debug_pass pass,
                        uint32_t position)
{
    bz_debug_kernel_time lines[MAX_KERNELS];
    size_t n = bz_debug_profile(b->session, pass, position, lines, MAX_KERNELS);
    bz_json_key(j, key);
    bz_json_array(j);
    for (size_t i = 0; i < n; i++) {
        bz_json_object(j);
        bz_json_put_text(j, "kernel", lines[i].kernel);
        bz_json_put_uint(j, "dispatches", lines[i].dispatches);
        bz_json_put_float(j, "us", lines[i].microseconds);
        bz_json_put_uint(j, "weight_bytes", lines[i].weight_bytes);
        bz_json_end(j);
    }
    bz_json_end(j);
}

static void put_gpu(bz_json *j, const bench *b)
{
    const unsigned tokens = b->o->max_tokens ? b->o->max_tokens : 1;
    bz_json_put_text(j, "adapter", bz_debug_gpu_get_info(b->gpu).adapter);
    bz_json_put_float(j, "dispatches_per_token", (double)b->counts.dispatches / tokens);
    bz_json_put_float(j, "submits_per_token", (double)b->counts.submits / tokens);
    bz_json_put_uint(j, "read_bytes_per_token", b->counts.read_bytes / tokens);
    bz_json_put_uint(j, "written_bytes_per_token", b->counts.written_bytes / tokens);
    if (b->has_roof) {
        bz_json_put_float(j, "memory_gigabytes_per_s", b->roof.bytes_per_s / 1e9);
        bz_json_put_float(j, "dispatch_us", b->roof.dispatch_s * 1e6);
        bz_json_put_float(j, "roof_tokens_per_s", roof(b));
        bz_json_put_float(j, "roof_share", b->o->max_tokens ? b->decode.best / roof(b) : 0);
    }
    put_profile(j, "decode_kernels", b, BZ_DEBUG_DECODE, b->o->prompt_tokens);
    put_profile(j, "prefill_kernels", b, BZ_DEBUG_PREFILL, 0);
}

static int print_json(const bench *b)
{
    const cli_options *o = b->o;
    bz_json j;
    cli_json_begin(&j);
    bz_json_object(&j);
    bz_json_put_text(&j, "version", bz_version());
    bz_json_put_text(&j, "model", o->model);
    bz_json_put_uint(&j, "model_bytes", model_bytes(b));
    bz_json_put_text(&j, "device", b->gpu ? "gpu" : "cpu");
    if (b->gpu) {
        put_gpu(&j, b);
    }
    bz_json_put_text(&j, "kernels", b->kernels);
    bz_json_put_uint(&j, "threads", b->threads);
    bz_json_put_float(&j, "load_s", b->load_s);
    bz_json_put_float(&j, "warm_up_s", b->warm_up_s);
    put_speeds(&j, "prefill", &b->prefill, o->prompt_tokens, o->repeat); /* tokens per second */
    put_speeds(&j, "decode", &b->decode, o->max_tokens, o->repeat);
    bz_json_put_uint(&j, "weight_bytes_per_token", b->memory.token_bytes);
    bz_json_key(&j, "gigabytes_per_s");
    if (o->max_tokens) {
        bz_json_float(&j, (float)gigabytes_per_second(b));
    } else {
        bz_json_null(&j);
    }
    bz_json_put_uint(&j, "cache_bytes", b->cache_bytes);
    if (b->has_roof && !b->gpu) {
        bz_json_put_uint(&j, "memory_bytes_per_s", (uint64_t)b->roof.bytes_per_s);
    }
    bz_json_end(&j);
    return cli_json_end(&j);
}

/* ---- the verb -------------------------------------------------------------------------- */

static int bench_model(bench *b)
{
    const cli_options *o = b->o;
    bz_error err = {0};
    const bz_session_options so = {.size = sizeof so,
                                   .context = o->prompt_tokens + o->max_tokens,
                                   .chunk = o->chunk,
                                   .threads = o->threads,
                                   .kernels = o->kernels,
                                   .no_fuse = o->no_fuse,
                                   .exact = o->exact,
                                   .kv = o->kv};
    if (so.context > bz_model_context(b->model)) {
        return cli_usage_error(
            "bench", "%u tokens exceed this model's context of %u; give smaller '-p' and '-n'.",
            so.context, bz_model_context(b->model));
    }
    b->ids = calloc(o->prompt_tokens, sizeof *b->ids);
    b->prefill.runs = calloc(o->repeat, sizeof *b->prefill.runs);
    b->decode.runs = calloc(o->repeat, sizeof *b->decode.runs);
    if (!b->ids || !b->prefill.runs || !b->decode.runs) {
        bz_fail(&err, BZ_OUT_OF_MEMORY, "No memory for a prompt of %u tokens.", o->prompt_tokens);
        return cli_error(&err);
    }
    if (bz_session_new(&b->session, b->model, &so, &err) != BZ_OK ||
        adapters_use(b->m, b->session, &err) != BZ_OK ||
        bz_debug_model_memory(b->model, o->kv, 1, &b->memory, &err) != BZ_OK) {
        return cli_error(&err);
    }
    b->kernels = bz_debug_kernels(o->kernels);
    b->threads = o->threads ? o->threads : bz_os_cpu_count();
    if (measure_all(b, &err) != BZ_OK) {
        return cli_error(&err);
    }
    if (b->gpu) {
        b->has_roof = bz_debug_gpu_measure(b->gpu, &b->roof, &err) == BZ_OK;
    } else if (b->memory.token_bytes >= BEYOND_CACHES) {
        b->roof.bytes_per_s = bandwidth_measure(b->threads);
        b->has_roof = b->roof.bytes_per_s > 0;
    }
    if (o->json) {
        return print_json(b);
    }
    print_text(b);
    return cli_flush();
}

static int run(int argc, char **argv)
{
    cli_options o = {.prompt_tokens = UINT_MAX, .max_tokens = 64, .repeat = 3};
    int code = cli_parse(&cli_bench_verb, argc, argv, "PnrTCkdEmjFXGaZQl3H", 1, &o);
    if (code != EXIT_OK || o.help) {
        return code;
    }
    o.device = device_default(&o);
    const bool length_given = o.prompt_tokens != UINT_MAX;
    const bool drafts = cli_draft(&o) > BZ_DRAFT_OFF;
    o.prompt_tokens = length_given ? o.prompt_tokens : drafts ? 64 : 512;
    if (!o.prompt_tokens || !o.repeat || o.repeat > MAX_RUNS) {
        return cli_usage_error("bench", !o.prompt_tokens ? "'-p' must be at least 1."
                                                         : "'--repeat' must be from 1 to 1000.");
    }
    if (o.sequences > BZ_BATCH_MAX_SLOTS || (o.sequences && !o.max_tokens)) {
        return cli_usage_error("bench",
                               o.max_tokens ? "'--sequences' must be from 1 to %d."
                                            : "'--sequences' needs '-n' of at least 1.",
                               BZ_BATCH_MAX_SLOTS);
    }
    if (drafts && (o.media || o.sequences || !o.max_tokens)) {
        return cli_usage_error("bench",
                               "'--draft' measures answers of one sequence: it needs '-n' of "
                               "at least 1, and neither '--media' nor '--sequences'.");
    }
    bench b = {.o = &o};
    cli_model m;
    double t0 = cli_seconds();
    if (o.media && o.lora[0]) {
        return cli_usage_error("bench", "'--lora' does not work with '--media': adapters change "
                                        "the text model only.");
    }
    if (!cli_open_model(&o, &m, &code)) {
        return code;
    }
    b.m = &m;
    b.model = m.model;
    b.gpu = bz_debug_model_gpu(b.model);
    b.load_s = cli_seconds() - t0;
    code = o.media                    ? bench_media(&o, b.model, b.load_s)
           : o.sequences              ? bench_batch(&o, &m, b.load_s)
           : drafts                   ? bench_draft(&o, &m, b.load_s)
           : bz_model_canvas(b.model) ? bench_canvas(&o, length_given, &m, b.load_s)
                                      : bench_model(&b);
    bz_session_free(b.session);
    cli_close_model(&m);
    free(b.ids);
    free(b.prefill.runs);
    free(b.decode.runs);
    return code;
}

const cli_verb cli_bench_verb = {
    "bench", run, "measure the speed of reading prompts and generating",
    "Usage: bezel bench MODEL [options]\n\n"
    "  bezel bench model.gguf -p 2048 -n 128\n\n"
    "Runs random tokens through the model, after a short warm-up. For a diffusion model it "
    "measures steps\n"
    "over a canvas after prompts of 256 and 2048 tokens, or of -p tokens.\n\n"
    "  -p, --prompt-tokens N   tokens of the prompt (512)\n"
    "  -n, --max-tokens N      tokens to generate (64); 0: measure only the prompt\n"
    "      --repeat N          number of runs (3)\n"
    "      --sequences N       measure N sequences that decode together, 1 to 64\n"
    "      --draft FILE|lookup   measure drafts: what a round of 1 to 7 costs after a prompt of "
    "64\n"
    "                          tokens, and answers to a few questions with and without\n"
    "      --threads N         threads (default: every processor)\n"
    "      --chunk N           prompt tokens per pass\n"
    "      --kernels NAME      amx, avx512bf16, avx512, avxvnni, avx2, i8mm, dotprod, neon or "
    "plain\n"
    "      --device NAME       auto (default: the GPU, where there is one), cpu or gpu\n"
    "      --ple PLACE         gpu: where per-layer embeddings are kept: resident, file or auto\n"
    "      --gpu-memory SIZE   gpu: limit for the weights, such as 8GB; layers beyond it are "
    "streamed\n"
    "      --no-fuse           gpu: one kernel per step\n"
    "      --lora FILE[:SCALE]   apply a LoRA adapter; may be repeated\n"
    "      --kv f16|q8|q4      KV cache in 16, 8 or 4 bits\n"
    "      --exact             float32 activations instead of int8\n"
    "      --media             measure an image of 960 x 672 pixels and 30 seconds of audio "
    "instead\n"
    "      --sandbox MODE      auto, on or off: confine the program to its files\n"
    "      --mmproj FILE       vision and audio file of a two-file model\n"
    "      --json              print one JSON object; speeds in tokens per second\n"};
