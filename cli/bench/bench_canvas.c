#include "cli/bench/bench_canvas.h"

#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "base/units.h"
#include "bezel_debug.h"
#include "bezel_diffusion.h"
#include "cli/adapters.h"
#include "cli/output.h"

enum { MAX_PROMPTS = 2, MAX_STEPS = 1000, STEPS_PER_RUN = 4, MAX_KERNELS = 48 };

/* After one prompt. */
typedef struct canvas_speed {
    uint32_t prompt;
    double encode;          /* tokens per second */
    double step[MAX_STEPS]; /* seconds, sorted */
    uint32_t n;
    bz_debug_gpu_counts counts; /* of the last step */
    bz_debug_kernel_time lines[MAX_KERNELS];
    size_t n_lines;
} canvas_speed;

typedef struct canvas_bench {
    const cli_options *o;
    const cli_model *m;
    bz_model *model;   /* of m */
    bz_debug_gpu *gpu; /* NULL on the CPU */
    bz_session *session;
    double load_s, warm_up_s;
    bz_debug_memory memory;
    uint64_t gpu_bytes; /* all buffers */
    canvas_speed at[MAX_PROMPTS];
    uint32_t n;
    canvas_speed *now; /* currently measured */
    double last;
    bool warm; /* steps are recorded */
    bz_debug_gpu_counts before;
} canvas_bench;

static int on_step(void *user, const bz_event *e)
{
    canvas_bench *b = user;
    if (e->kind != BZ_EVENT_CANVAS) {
        return 0;
    }
    const double now = cli_seconds();
    canvas_speed *s = b->now;
    if (b->warm && e->done > 1 &&
        s->n < MAX_STEPS) { /* the first step of a canvas includes other work */
        s->step[s->n++] = now - b->last;
    }
    if (b->gpu) {
        const bz_debug_gpu_counts counts = bz_debug_gpu_get_counts(b->gpu);
        s->counts =
            (bz_debug_gpu_counts){.dispatches = counts.dispatches - b->before.dispatches,
                                  .submits = counts.submits - b->before.submits,
                                  .read_bytes = counts.read_bytes - b->before.read_bytes,
                                  .written_bytes = counts.written_bytes - b->before.written_bytes};
        b->before = counts;
    }
    b->last = now;
    return 0;
}

static bz_status steps(canvas_bench *b, uint32_t n, uint64_t seed, bz_error *err)
{
    const bz_generate_options go = {
        .size = sizeof go, .max_tokens = 1, .ignore_end = true, .sampling = {.seed = seed}};
    const bz_denoise_options d = {.size = sizeof d,
                                  .steps = n + 1,
                                  .confidence = -1}; /* never settles early: all steps run */
    bz_job *job = NULL;
    bz_status status = bz_session_diffuse(b->session, &go, &d, &job, err);
    if (status == BZ_OK) {
        status =
            bz_job_run(job, &(bz_host){.size = sizeof(bz_host), .event = on_step, .user = b}, err);
        bz_job_free(job);
    }
    return status;
}

static bz_status encode(canvas_bench *b, uint32_t n, unsigned run, double *seconds, bz_error *err)
{
    int32_t *ids = malloc(n * sizeof *ids);
    uint64_t state = run * 0x9E3779B97F4A7C15u + 1;
    bz_job *job = NULL;
    if (!ids) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a prompt of %u tokens.", n);
    }
    for (uint32_t i = 0; i < n;
         i++) { /* from the whole vocabulary; the first differs between runs */
        state = state * 6364136223846793005u + 1442695040888963407u;
        ids[i] = (int32_t)((i ? state >> 33 : run) % bz_model_vocab(b->model));
    }
    const double start = cli_seconds();
    bz_status status = bz_session_prefill(b->session, ids, n, NULL, &job, err);
    if (status == BZ_OK) {
        status = bz_job_run(job, NULL, err);
        bz_job_free(job);
    }
    *seconds = cli_seconds() - start;
    free(ids);
    return status;
}

static bz_status measure(canvas_bench *b, canvas_speed *s, bz_error *err)
{
    double seconds;
    const double start = cli_seconds();
    b->now = s;
    b->warm = false;
    bz_status status =
        encode(b, s->prompt, 1000, &seconds, err); /* compiles kernels, loads pages */
    if (status == BZ_OK) {
        status = steps(b, 1, 0, err);
    }
    b->warm_up_s += cli_seconds() - start;
    b->warm = true;
    for (unsigned run = 0; run < b->o->repeat && status == BZ_OK; run++) {
        status = encode(b, s->prompt, run, &seconds, err);
        if (status == BZ_OK) {
            s->encode = s->prompt / seconds > s->encode ? s->prompt / seconds : s->encode;
            status = steps(b, STEPS_PER_RUN, run, err);
        }
    }
    cli_sort(s->step, s->n);
    if (status == BZ_OK && b->gpu) {
        s->n_lines =
            bz_debug_profile(b->session, BZ_DEBUG_CANVAS, s->prompt, s->lines, MAX_KERNELS);
    }
    return status;
}

/* ---- reports ----------------------------------------------------------------------------- */

static double median(const canvas_speed *s)
{
    return s->n % 2 ? s->step[s->n / 2] : (s->step[s->n / 2 - 1] + s->step[s->n / 2]) / 2;
}

static void print_text(const canvas_bench *b)
{
    const cli_options *o = b->o;
    char size[BZ_UNITS_MAX], other[BZ_UNITS_MAX];
    printf("%s, %s\n", o->model, bz_bytes_text(cli_model_bytes(b->model), size));
    if (b->gpu) {
        printf("bezel %s on gpu, %s", bz_version(), bz_debug_gpu_get_info(b->gpu).adapter);
    } else {
        printf("bezel %s on cpu, %s kernels, %u threads", bz_version(),
               bz_debug_kernels(o->kernels), o->threads ? o->threads : bz_os_cpu_count());
    }
    printf("; canvas of %u tokens, %s activations\n\n", bz_model_canvas(b->model),
           o->exact ? "float" : "8-bit");
    printf("  prompt      encode   step: best     median\n");
    for (uint32_t i = 0; i < b->n; i++) {
        const canvas_speed *s = &b->at[i];
        printf("  %6u  %10.1f  %8.2f ms  %8.2f ms   (tokens/s, of %u steps)\n", s->prompt,
               s->encode, 1e3 * s->step[0], 1e3 * median(s), s->n);
    }
    printf("\n  load     %.3f s, warm-up %.3f s\n", b->load_s, b->warm_up_s);
    printf("  weights  %s read per step\n", bz_bytes_text(b->memory.token_bytes, size));
    if (b->gpu) {
        const canvas_speed *s = &b->at[b->n - 1];
        printf("  step     %llu dispatches in %llu submits, %s read back, %s written\n",
               (unsigned long long)s->counts.dispatches, (unsigned long long)s->counts.submits,
               bz_bytes_text(s->counts.read_bytes, size),
               bz_bytes_text(s->counts.written_bytes, other));
        printf("  memory   %s in GPU buffers\n", bz_bytes_text(b->gpu_bytes, size));
    }
    for (uint32_t i = 0; i < b->n; i++) {
        double total = 0;
        for (size_t k = 0; k < b->at[i].n_lines; k++) {
            total += b->at[i].lines[k].microseconds;
        }
        if (b->at[i].n_lines) {
            printf("\n  step after %u tokens: %.0f us in kernels\n", b->at[i].prompt, total);
        }
        for (size_t k = 0; k < b->at[i].n_lines; k++) {
            const bz_debug_kernel_time *l = &b->at[i].lines[k];
            printf("    %-24s %5u  %9.1f us %5.1f%%\n", l->kernel, l->dispatches, l->microseconds,
                   100 * l->microseconds / total);
        }
    }
}

static int print_json(const canvas_bench *b)
{
    bz_json j;
    cli_json_begin(&j);
    bz_json_object(&j);
    bz_json_put_text(&j, "version", bz_version());
    bz_json_put_text(&j, "model", b->o->model);
    bz_json_put_uint(&j, "model_bytes", cli_model_bytes(b->model));
    bz_json_put_text(&j, "device", b->gpu ? "gpu" : "cpu");
    bz_json_put_text(&j, "adapter", b->gpu ? bz_debug_gpu_get_info(b->gpu).adapter : NULL);
    bz_json_put_bool(&j, "exact", b->o->exact);
    bz_json_put_uint(&j, "canvas", bz_model_canvas(b->model));
    bz_json_put_float(&j, "load_s", b->load_s);
    bz_json_put_float(&j, "warm_up_s", b->warm_up_s);
    bz_json_put_uint(&j, "weight_bytes_per_step", b->memory.token_bytes);
    bz_json_put_uint(&j, "gpu_bytes", b->gpu_bytes);
    bz_json_key(&j, "prompts");
    bz_json_array(&j);
    for (uint32_t i = 0; i < b->n; i++) {
        const canvas_speed *s = &b->at[i];
        bz_json_object(&j);
        bz_json_put_uint(&j, "tokens", s->prompt);
        bz_json_put_float(&j, "encode_tokens_per_s", s->encode);
        bz_json_put_float(&j, "step_ms_best", 1e3 * s->step[0]);
        bz_json_put_float(&j, "step_ms_median", 1e3 * median(s));
        bz_json_put_uint(&j, "steps", s->n);
        bz_json_put_uint(&j, "read_bytes_per_step", s->counts.read_bytes);
        bz_json_put_uint(&j, "written_bytes_per_step", s->counts.written_bytes);
        bz_json_put_uint(&j, "dispatches_per_step", s->counts.dispatches);
        bz_json_key(&j, "kernels");
        bz_json_array(&j);
        for (size_t k = 0; k < s->n_lines; k++) {
            bz_json_object(&j);
            bz_json_put_text(&j, "kernel", s->lines[k].kernel);
            bz_json_put_uint(&j, "dispatches", s->lines[k].dispatches);
            bz_json_put_float(&j, "us", s->lines[k].microseconds);
            bz_json_end(&j);
        }
        bz_json_end(&j);
        bz_json_end(&j);
    }
    bz_json_end(&j);
    bz_json_end(&j);
    return cli_json_end(&j);
}

/* ---- the run ------------------------------------------------------------------------------- */

static int run_bench(canvas_bench *b, uint32_t longest)
{
    const cli_options *o = b->o;
    bz_error err = {0};
    const bz_session_options so = {.size = sizeof so,
                                   .context = longest + bz_model_canvas(b->model),
                                   .chunk = o->chunk,
                                   .threads = o->threads,
                                   .kernels = o->kernels,
                                   .no_fuse = o->no_fuse,
                                   .exact = o->exact,
                                   .kv = o->kv};
    if (so.context > bz_model_context(b->model)) {
        return cli_usage_error("bench",
                               "%u tokens exceed this model's context of %u; give a smaller '-p'.",
                               so.context, bz_model_context(b->model));
    }
    bz_status status = bz_session_new(&b->session, b->model, &so, &err);
    status = status == BZ_OK ? adapters_use(b->m, b->session, &err) : status;
    if (status == BZ_OK) {
        status = bz_debug_model_memory(b->model, o->kv, 0, &b->memory, &err);
    }
    for (uint32_t i = 0; i < b->n && status == BZ_OK; i++) {
        status = measure(b, &b->at[i], &err);
    }
    if (status != BZ_OK) {
        return cli_error(&err);
    }
    b->gpu_bytes = b->gpu ? bz_debug_gpu_get_counts(b->gpu).buffer_bytes : 0;
    if (o->json) {
        return print_json(b);
    }
    print_text(b);
    return cli_flush();
}

int bench_canvas(const cli_options *o, bool length_given, const cli_model *m, double load_s)
{
    canvas_bench *b = calloc(1, sizeof *b);
    bz_error err = {0};
    if (!b) {
        bz_fail(&err, BZ_OUT_OF_MEMORY, "No memory for the results.");
        return cli_error(&err);
    }
    b->o = o;
    bz_model *model = m->model;
    b->m = m;
    b->model = model;
    b->gpu = bz_debug_model_gpu(model);
    b->load_s = load_s;
    const uint32_t room = bz_model_context(model) - bz_model_canvas(model);
    b->at[0].prompt = length_given ? o->prompt_tokens : 256;
    b->at[1].prompt = 2048;
    b->n = length_given || room < 2048 ? 1 : 2;
    const int code = run_bench(b, b->at[b->n - 1].prompt);
    bz_session_free(b->session);
    free(b);
    return code;
}
