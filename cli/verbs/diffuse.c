/* bezel diffuse: runs a diffusion model after given tokens, step by step, to compare with other
 * implementations. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/os_program.h"
#include "bezel_diffusion.h"
#include "cli/adapters.h"
#include "cli/cli.h"
#include "cli/output.h"

typedef struct tracer {
    FILE *draws, *trace;
    const bz_job *job;
    size_t said;
    bool failed; /* the trace cannot be written */
} tracer;

/* The file is a stream of little-endian 32-bit words: for every canvas n ids, then for every step n
 * floats and n ids. */
static bool from_file(void *user, uint32_t n, float *units, int32_t *ids)
{
    tracer *t = user;
    return (!units || fread(units, sizeof *units, n, t->draws) == n) &&
           fread(ids, sizeof *ids, n, t->draws) == n;
}

/* ---- the trace ----------------------------------------------------------------------- */

static bool to_file(void *user, const char *bytes, size_t n)
{
    return fwrite(bytes, 1, n, user) == n;
}

static void put_ids(bz_json *j, const char *key, const int32_t *ids, uint32_t n)
{
    bz_json_key(j, key);
    bz_json_array(j);
    for (uint32_t i = 0; i < n; i++) {
        bz_json_int(j, ids[i]);
    }
    bz_json_end(j);
}

static bool trace_step(FILE *f, const bz_canvas *c, bz_str text)
{
    bz_json j;
    bz_json_init(&j, to_file, f);
    bz_json_object(&j);
    bz_json_put_uint(&j, "canvas", c->number);
    bz_json_put_uint(&j, "step", c->left);
    bz_json_put_float(&j, "temperature", c->temperature);
    put_ids(&j, "canvas_in", c->input, c->n);
    put_ids(&j, "argmax", c->best, c->n);
    put_ids(&j, "sampled", c->drawn, c->n);
    bz_json_key(&j, "entropy");
    bz_json_array(&j);
    for (uint32_t i = 0; i < c->n; i++) {
        bz_json_float(&j, c->entropy[i]);
    }
    bz_json_end(&j);
    bz_json_key(&j, "accepted");
    bz_json_array(&j);
    for (uint32_t i = 0; i < c->n; i++) {
        bz_json_int(&j, c->accepted[i]);
    }
    bz_json_end(&j);
    put_ids(&j, "canvas_out", c->next, c->n);
    bz_json_put_int(&j, "stop", c->certain);
    bz_json_put_str(&j, "text", text);
    bz_json_end(&j);
    return bz_json_finish(&j) && fputc('\n', f) != EOF;
}

static int on_event(void *user, const bz_event *e)
{
    tracer *t = user;
    if (e->kind == BZ_EVENT_CANVAS && t->trace) {
        t->failed = !trace_step(t->trace, bz_job_canvas(t->job), (bz_str){e->text, e->text_len});
    } else if (e->kind == BZ_EVENT_TOKEN) {
        printf("%s%d", t->said++ ? "," : "", e->token);
    }
    return t->failed;
}

/* ---- options ------------------------------------------------------------------------- */

static bool number(const char *name, const char *text, double *out, int *code)
{
    char *end;
    if (!text) {
        return true;
    }
    errno = 0;
    *out = strtod(text, &end);
    if (errno || end == text || *end || !isfinite(*out) || *out < 0) {
        *code = cli_usage_error("diffuse", "'%s' needs a number, not '%s'.", name, text);
        return false;
    }
    return true;
}

/* In the API zero means the file's value and a negative number means zero. */
static bool read_rule(const cli_options *o, bz_denoise_options *d, uint64_t *seed, int *code)
{
    double bound = 0, confidence = 0, stability = 0, number_of_seed = 0;
    if (!number("--entropy-bound", o->entropy_bound, &bound, code) ||
        !number("--confidence", o->confidence, &confidence, code) ||
        !number("--stability", o->stability, &stability, code) ||
        !number("--seed", o->set[SET_SEED], &number_of_seed, code)) {
        return false;
    }
    d->steps = o->steps;
    d->entropy_bound = o->entropy_bound && bound == 0 ? -1 : (float)bound;
    d->confidence = o->confidence && confidence == 0 ? -1 : (float)confidence;
    d->stability = o->stability && stability == 0 ? -1
                   : stability > 4096             ? 4097
                                                  : (int32_t)stability;
    *seed = (uint64_t)number_of_seed;
    return true;
}

static FILE *open_file(const char *path, const char *mode, int *code)
{
    FILE *f = bz_os_stream(path, mode);
    if (!f) {
        fprintf(stderr, "bezel: cannot open %s: %s.\n", path, strerror(errno));
        *code = EXIT_FAILED;
    }
    return f;
}

/* ---- the verb -------------------------------------------------------------------------- */

static bz_status write_canvases(bz_session *s, const bz_generate_options *go,
                                const bz_denoise_options *d, tracer *t, bz_error *err)
{
    bz_job *job = NULL;
    bz_status status = bz_session_diffuse(s, go, d, &job, err);
    if (status == BZ_OK) {
        t->job = job;
        status =
            bz_job_run(job, &(bz_host){.size = sizeof(bz_host), .event = on_event, .user = t}, err);
        bz_job_free(job);
    }
    return status;
}

static int run_model(const cli_options *o, const int32_t *ids, size_t n, bz_generate_options *go,
                     bz_denoise_options *d, tracer *t)
{
    cli_model m;
    bz_session *session = NULL;
    bz_job *job = NULL;
    bz_error err = {0};
    int code;
    if (!cli_open_model(o, &m, &code)) {
        return code;
    }
    const bz_model *model = m.model;
    const bz_session_options so = {.size = sizeof so,
                                   .context = o->context,
                                   .chunk = o->chunk,
                                   .threads = o->threads,
                                   .kernels = o->kernels,
                                   .no_fuse = o->no_fuse,
                                   .exact = !o->fast,
                                   .kv = o->kv};
    go->max_tokens = o->max_tokens ? o->max_tokens : bz_model_canvas(model);
    if (!bz_model_canvas(model)) {
        code =
            cli_usage_error("diffuse", "%s is not a diffusion model; use 'bezel run'.", o->model);
    } else if (bz_session_new(&session, model, &so, &err) != BZ_OK ||
               adapters_use(&m, session, &err) != BZ_OK ||
               bz_session_prefill(session, ids, n, NULL, &job, &err) != BZ_OK ||
               bz_job_run(job, NULL, &err) != BZ_OK) {
        code = cli_error(&err);
    } else {
        bz_job_free(job);
        job = NULL;
        const bz_status status = write_canvases(session, go, d, t, &err);
        putchar('\n');
        if (t->failed) {
            fprintf(stderr, "bezel: cannot write %s.\n", o->trace);
            code = EXIT_FAILED;
        } else {
            code = status == BZ_OK ? cli_flush() : cli_error(&err);
        }
    }
    bz_job_free(job);
    bz_session_free(session);
    cli_close_model(&m);
    return code;
}

static int run(int argc, char **argv)
{
    cli_options o = {0};
    int code = cli_parse(&cli_diffuse_verb, argc, argv, "tncmkdTCfFeDzGZl3", 1, &o);
    if (code != EXIT_OK || o.help) {
        return code;
    }
    if (!o.tokens) {
        return cli_usage_error("diffuse", "no tokens given; use for example '-t 2,10,11'.");
    }
    tracer t = {0};
    bz_denoise_options d = {.size = sizeof d};
    bz_generate_options go = {.size = sizeof go, .ignore_end = o.ignore_end};
    size_t n;
    if (!read_rule(&o, &d, &go.sampling.seed, &code)) {
        return code;
    }
    int32_t *ids = cli_token_list("diffuse", o.tokens, &n);
    if (!ids) {
        return EXIT_USAGE;
    }
    if (o.draws) {
        t.draws = open_file(o.draws, "rb", &code);
        d.draw = from_file;
        d.user = &t;
    }
    if (o.trace && code == EXIT_OK) {
        t.trace = open_file(o.trace, "wb", &code);
    }
    if (code == EXIT_OK) {
        code = run_model(&o, ids, n, &go, &d, &t);
    }
    if (t.trace && fclose(t.trace) != 0 && code == EXIT_OK) {
        fprintf(stderr, "bezel: cannot write %s.\n", o.trace);
        code = EXIT_FAILED;
    }
    if (t.draws) {
        fclose(t.draws);
    }
    free(ids);
    return code;
}

const cli_verb cli_diffuse_verb = {
    "diffuse", run, "run a diffusion model after given tokens, step by step",
    "Usage: bezel diffuse MODEL -t IDS [options]\n\n"
    "Prints the generated ids. Exact by default: float32 activations and an f32 cache.\n\n"
    "  -t, --tokens IDS       comma-separated token ids, or @FILE\n"
    "      --draws FILE       random numbers, little-endian 32-bit words: for every canvas its "
    "ids,\n"
    "                         then for every step over it floats of [0, 1) and ids, one per "
    "position\n"
    "      --seed N           random numbers from a seed\n"
    "      --trace FILE       one JSON object per step: canvas, step (steps left), temperature,\n"
    "                         canvas_in, argmax, sampled, entropy, accepted, canvas_out, stop, "
    "text\n"
    "  -n, --max-tokens N     maximum tokens (one canvas)\n"
    "      --steps N          maximum steps per canvas\n"
    "      --entropy-bound X, --stability N, --confidence X   override the file's values\n"
    "      --ignore-end       continue past end tokens\n"
    "      --lora FILE[:SCALE]    apply a LoRA adapter; may be repeated\n"
    "      --kv TYPE          KV cache in f16, q8 or q4\n"
    "      --fast             as in generation: int8 activations, f16 cache\n"
    "  -c, --ctx N            context size in tokens\n"
    "      --chunk N          tokens per pass of the prompt (does not change the result)\n"
    "      --threads N        threads (does not change the result)\n"
    "      --kernels NAME     amx, avx512bf16, avx512, avxvnni, avx2, i8mm, dotprod, neon or "
    "plain\n"
    "      --device NAME      cpu (default), gpu or auto\n"
    "      --gpu-memory SIZE  gpu: limit for the weights, such as 8GB; layers beyond it are "
    "streamed\n"
    "      --no-fuse          gpu: one kernel per step\n"
    "      --sandbox MODE     auto, on or off: confine the program to its files\n"
    "      --mmproj FILE      vision file of a two-file model\n"};
