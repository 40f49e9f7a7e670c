#include "cli/bench/bench_batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "bezel_batch.h"
#include "bezel_debug.h"
#include "cli/adapters.h"
#include "cli/bench/random_ids.h"
#include "cli/output.h"

/* Tokens that a sequence may generate while the prompts of others are read: two per chunk. */
enum { SMALLEST_CHUNK = 64, MARGIN = 16 };

typedef struct batch_bench {
    const cli_options *o;
    const cli_model *m;
    bz_model *model; /* of m */
    bz_batch *batch;
    int32_t *ids;                    /* [prompt_tokens] */
    double last[BZ_BATCH_MAX_SLOTS]; /* time of the slot's last token, 0: none yet */
    uint32_t slot_of[BZ_BATCH_MAX_SLOTS];
    uint32_t running, counted; /* sequences with a token; tokens in the measured part */
    double all_running;        /* when the last sequence had its first token */
    double longest_wait;       /* between two tokens of a sequence before that */
    /* [repeat] */
    double *prefill, *decode, *wait;
} batch_bench;

static void on_event(void *user, const bz_batch_event *e)
{
    batch_bench *b = user;
    const double now = cli_seconds();
    double *last = &b->last[e->slot];
    if (e->token < 0) {
        return;
    }
    if (b->all_running > 0) {
        b->counted++;
    } else if (*last > 0) {
        b->longest_wait = now - *last > b->longest_wait ? now - *last : b->longest_wait;
    } else {
        b->running++;
    }
    *last = now;
}

/* Starts sequences of random tokens, no two with the same first token. */
static bz_status start_all(batch_bench *b, unsigned run, bz_error *err)
{
    const cli_options *o = b->o;
    const uint32_t vocab = bz_model_vocab(b->model);
    const bz_generate_options go = {
        .size = sizeof go, .ignore_end = true, .sampling = {.greedy = true}};
    bz_status status = BZ_OK;
    for (uint32_t i = 0; i < o->sequences && status == BZ_OK; i++) {
        bench_random_ids(b->ids, o->prompt_tokens, run * o->sequences + i, vocab);
        status = bz_batch_start(b->batch, b->ids, o->prompt_tokens, &go, &b->slot_of[i], err);
    }
    return status;
}

/* Reads all prompts, then measures tokens while all sequences run. */
static bz_status measure(batch_bench *b, unsigned run, uint32_t tokens, bz_error *err)
{
    memset(b->last, 0, sizeof b->last);
    b->running = b->counted = 0;
    b->all_running = b->longest_wait = 0;
    const double start = cli_seconds();
    bz_status status = start_all(b, run, err);
    while (status == BZ_OK && b->running < b->o->sequences) {
        status = bz_batch_step(b->batch, on_event, b, err);
    }
    b->all_running = cli_seconds();
    while (status == BZ_OK && b->counted < tokens * b->o->sequences) {
        status = bz_batch_step(b->batch, on_event, b, err);
    }
    const double end = cli_seconds();
    for (uint32_t i = 0; i < b->o->sequences && status == BZ_OK; i++) {
        bz_batch_stop(b->batch, b->slot_of[i]);
    }
    while (status == BZ_OK &&
           !bz_batch_has_free(b->batch)) { /* all leave with the pass in flight */
        status = bz_batch_step(b->batch, on_event, b, err);
    }
    if (run) {
        b->prefill[run - 1] =
            (double)b->o->sequences * b->o->prompt_tokens / (b->all_running - start + 1e-9);
        b->decode[run - 1] = (double)b->counted / (end - b->all_running + 1e-9);
        b->wait[run - 1] = b->longest_wait;
    }
    return status;
}

static double median(const double *sorted, unsigned n)
{
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

static void print_line(const char *what, const batch_bench *b, unsigned tokens, double *runs)
{
    const unsigned n = b->o->repeat;
    cli_sort(runs, n);
    printf("  %-8s %3u x %-6u  %9.2f  %9.2f  tokens/s\n", what, b->o->sequences, tokens,
           runs[n - 1], median(runs, n));
}

static int print_text(const batch_bench *b, double load_s)
{
    const cli_options *o = b->o;
    bz_debug_gpu *gpu = bz_debug_model_gpu(b->model);
    char size[BZ_UNITS_MAX];
    printf("%s, %s\n", o->model, bz_bytes_text(cli_model_bytes(b->model), size));
    if (gpu) {
        printf("bezel %s on gpu, %s; ", bz_version(), bz_debug_gpu_get_info(gpu).adapter);
    } else {
        printf("bezel %s on cpu; ", bz_version());
    }
    printf("%u run%s after a warm-up\n\n", o->repeat, o->repeat == 1 ? "" : "s");
    printf("               tokens       best     median\n");
    print_line("prefill", b, o->prompt_tokens, b->prefill);
    print_line("decode", b, o->max_tokens, b->decode);
    printf("\n  one      %.2f tokens/s of each sequence at best\n",
           b->decode[o->repeat - 1] / o->sequences);
    cli_sort(b->wait, o->repeat);
    printf("  wait     %.1f ms at most between two tokens while prompts of others are read\n",
           b->wait[o->repeat - 1] * 1e3);
    printf("  load     %.3f s\n", load_s);
    return cli_flush();
}

static void put_runs(bz_json *j, const char *key, double *runs, unsigned n)
{
    cli_sort(runs, n);
    bz_json_key(j, key);
    bz_json_object(j);
    bz_json_put_float(j, "best", runs[n - 1]);
    bz_json_put_float(j, "median", median(runs, n));
    bz_json_end(j);
}

static int print_json(const batch_bench *b, double load_s)
{
    const cli_options *o = b->o;
    bz_json j;
    cli_json_begin(&j);
    bz_json_object(&j);
    bz_json_put_text(&j, "version", bz_version());
    bz_json_put_text(&j, "model", o->model);
    bz_json_put_text(&j, "device", bz_debug_model_gpu(b->model) ? "gpu" : "cpu");
    bz_json_put_uint(&j, "sequences", o->sequences);
    bz_json_put_uint(&j, "prompt_tokens", o->prompt_tokens);
    bz_json_put_uint(&j, "tokens", o->max_tokens);
    bz_json_put_float(&j, "load_s", load_s);
    put_runs(&j, "prefill", b->prefill, o->repeat); /* tokens per second of all sequences */
    put_runs(&j, "decode", b->decode, o->repeat);
    cli_sort(b->wait, o->repeat);
    bz_json_put_float(&j, "longest_wait_ms", b->wait[o->repeat - 1] * 1e3);
    bz_json_end(&j);
    return cli_json_end(&j);
}

static int run_all(batch_bench *b, double load_s)
{
    const cli_options *o = b->o;
    bz_error err = {0};
    const uint32_t joining = 2 * (o->prompt_tokens / SMALLEST_CHUNK + 1) * o->sequences + MARGIN;
    const bz_batch_options bo = {.size = sizeof bo,
                                 .slots = o->sequences,
                                 .context = o->prompt_tokens + o->max_tokens + joining,
                                 .chunk = o->chunk,
                                 .threads = o->threads,
                                 .kernels = o->kernels,
                                 .exact = o->exact,
                                 .no_fuse = o->no_fuse,
                                 .kv = o->kv};
    if (bo.context > bz_model_context(b->model)) {
        return cli_usage_error(
            "bench", "%u tokens exceed this model's context of %u; give smaller '-p' and '-n'.",
            bo.context, bz_model_context(b->model));
    }
    b->ids = calloc(o->prompt_tokens, sizeof *b->ids);
    b->prefill = calloc(3u * o->repeat, sizeof *b->prefill);
    if (!b->ids || !b->prefill) {
        bz_fail(&err, BZ_OUT_OF_MEMORY, "No memory for a prompt of %u tokens.", o->prompt_tokens);
        return cli_error(&err);
    }
    b->decode = b->prefill + o->repeat;
    b->wait = b->decode + o->repeat;
    bz_status status = bz_batch_new(&b->batch, b->model, &bo, &err);
    status = status == BZ_OK ? adapters_use_batch(b->m, b->batch, &err) : status;
    for (unsigned run = 0; run <= o->repeat && status == BZ_OK; run++) { /* run 0: warm-up */
        status = measure(b, run, run ? o->max_tokens : 1, &err);
    }
    if (status != BZ_OK) {
        return cli_error(&err);
    }
    return o->json ? print_json(b, load_s) : print_text(b, load_s);
}

int bench_batch(const cli_options *o, const cli_model *m, double load_s)
{
    batch_bench b = {.o = o, .m = m, .model = m->model};
    const int code = run_all(&b, load_s);
    bz_batch_free(b.batch);
    free(b.ids);
    free(b.prefill);
    return code;
}
