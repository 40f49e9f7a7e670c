#include "cli/bench/bench_draft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "bezel_debug.h"
#include "cli/adapters.h"
#include "cli/bench/random_ids.h"
#include "cli/output.h"

enum { MAX_DRAFTS = 7, WARM_UP_TOKENS = 12, N_CHANCES = 3, CONTEXT_OF_REQUESTS = 1024 };

/* How likely a draft is right, for what the costs mean. */
static const double chances[N_CHANCES] = {0.5, 0.7, 0.9};

/* What answers are measured with: a model that was trained answers them as it does its users. */
static const char *const requests[] = {
    "Write a story about a fox named Rilo.",
    "Who are you, and what can you do?",
    "Tell me a story about a girl who finds a lamp in the forest.",
    "Why is the sky blue? Explain it in a few sentences.",
};
enum { N_REQUESTS = sizeof requests / sizeof *requests };

typedef struct answers {
    double seconds, tokens;
    bz_draft_stats drafts;
} answers;

typedef struct draft_bench {
    const cli_options *o;
    const cli_model *m;
    bz_model *model; /* of m */
    bz_session *session;
    bz_draft_kind kind;
    int32_t *ids;                 /* [prompt_tokens] */
    double round[MAX_DRAFTS + 1]; /* seconds of a round of that many drafts, the best of all runs */
    answers plain, drafted;       /* over all requests and runs */
    bool same;                    /* the same tokens with drafts as without */
} draft_bench;

/* The tokens of an answer. */
typedef struct text {
    int32_t *ids;
    size_t n, cap;
} text;

static int keep_token(void *user, const bz_event *e)
{
    text *t = user;
    if (e->kind == BZ_EVENT_TOKEN && t && t->n < t->cap) {
        t->ids[t->n++] = e->token;
    }
    return 0;
}

static bz_draft_stats since(bz_draft_stats now, bz_draft_stats before)
{
    return (bz_draft_stats){.passes = now.passes - before.passes,
                            .drafted = now.drafted - before.drafted,
                            .accepted = now.accepted - before.accepted};
}

/* One answer after a prompt: seconds, tokens and drafts are added to *to. */
static bz_status answer(draft_bench *b, const int32_t *prompt, size_t n, bz_generate_options go,
                        text *kept, answers *to, bz_error *err)
{
    const bz_host host = {.size = sizeof host, .event = keep_token, .user = kept};
    bz_job *job = NULL;
    bz_status status = bz_session_prefill(b->session, prompt, n, NULL, &job, err);
    status = status == BZ_OK ? bz_job_run(job, NULL, err) : status;
    bz_job_free(job);
    job = NULL;
    const bz_draft_stats before = bz_session_get_draft_stats(b->session);
    const uint64_t generated = bz_session_get_stats(b->session).generated;
    const double start = cli_seconds();
    status = status == BZ_OK ? bz_session_generate(b->session, &go, &job, err) : status;
    status = status == BZ_OK ? bz_job_run(job, &host, err) : status;
    bz_job_free(job);
    to->seconds += cli_seconds() - start;
    to->tokens += (double)(bz_session_get_stats(b->session).generated - generated);
    const bz_draft_stats more = since(bz_session_get_draft_stats(b->session), before);
    to->drafts.passes += more.passes;
    to->drafts.drafted += more.drafted;
    to->drafts.accepted += more.accepted;
    return status;
}

/* ---- what a round costs ------------------------------------------------------------------ */

/* A round drafts that many tokens and verifies them in one pass; 0: a pass of one row. */
static bz_status measure_round(draft_bench *b, unsigned run, uint32_t drafts, uint32_t tokens,
                               double *seconds, bz_error *err)
{
    const bz_generate_options go = {.size = sizeof go,
                                    .max_tokens = tokens,
                                    .ignore_end = true,
                                    .sampling = {.greedy = true},
                                    .draft = drafts ? b->kind : BZ_DRAFT_OFF,
                                    .drafts = drafts};
    answers a = {0};
    bench_random_ids(b->ids, b->o->prompt_tokens, run, bz_model_vocab(b->model));
    const bz_status status = answer(b, b->ids, b->o->prompt_tokens, go, NULL, &a, err);
    *seconds = a.seconds / (drafts ? (double)a.drafts.passes : a.tokens);
    return status;
}

/* Numbers of drafts take turns, so that all of them see the same machine. */
static bz_status measure_rounds(draft_bench *b, bz_error *err)
{
    bz_status status = BZ_OK;
    for (unsigned run = 0; run <= b->o->repeat && status == BZ_OK; run++) { /* run 0: warm-up */
        for (uint32_t k = 0; k <= MAX_DRAFTS && status == BZ_OK; k++) {
            double seconds = 0;
            status =
                measure_round(b, run, k, run ? b->o->max_tokens : WARM_UP_TOKENS, &seconds, err);
            b->round[k] = run > 1 && b->round[k] < seconds ? b->round[k] : seconds;
        }
    }
    return status;
}

/* Tokens that a round of k drafts brings if each is right with that chance, given those before. */
static double tokens_of_round(uint32_t k, double chance)
{
    return (1 - pow(chance, k + 1)) / (1 - chance);
}

/* ---- answers -------------------------------------------------------------------------------- */

static bz_status measure_request(draft_bench *b, const char *request, bz_error *err)
{
    char json[300];
    bz_turn *turn = NULL;
    snprintf(json, sizeof json, "{\"messages\": [{\"role\": \"user\", \"content\": \"%s\"}]}",
             request);
    bz_status status = bz_turn_new(&turn, b->model, json, strlen(json), err);
    text kept[2] = {{.cap = b->o->max_tokens}, {.cap = b->o->max_tokens}};
    for (int i = 0; i < 2 && status == BZ_OK; i++) {
        kept[i].ids = calloc(kept[i].cap, sizeof *kept[i].ids);
        size_t n = 0;
        uint32_t snapshot_at;
        const int32_t *prompt = bz_turn_prompt(turn, &n, &snapshot_at);
        const bz_generate_options go = {.size = sizeof go,
                                        .max_tokens = b->o->max_tokens,
                                        .sampling = {.greedy = true},
                                        .draft = i ? b->kind : BZ_DRAFT_OFF};
        status = kept[i].ids ? answer(b, prompt, n, go, &kept[i], i ? &b->drafted : &b->plain, err)
                             : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for an answer.");
    }
    b->same &= status == BZ_OK && kept[0].n == kept[1].n &&
               memcmp(kept[0].ids, kept[1].ids, kept[0].n * sizeof *kept[0].ids) == 0;
    free(kept[0].ids);
    free(kept[1].ids);
    bz_turn_free(turn);
    return status;
}

static bz_status measure_answers(draft_bench *b, bz_error *err)
{
    bz_status status = BZ_OK;
    b->same = true;
    for (unsigned run = 0; run <= b->o->repeat && status == BZ_OK; run++) { /* run 0: warm-up */
        for (int i = 0; i < N_REQUESTS && status == BZ_OK; i++) {
            status = measure_request(b, requests[i], err);
        }
        if (run == 0) {
            b->plain = b->drafted = (answers){0};
        }
    }
    return status;
}

/* ---- reports ----------------------------------------------------------------------------------
 */

static double speed(const answers *a)
{
    return a->tokens / (a->seconds + 1e-9);
}

static double tokens_per_pass(const answers *a)
{
    return a->drafts.passes ? a->tokens / (double)a->drafts.passes : 0;
}

static void print_rounds(const draft_bench *b)
{
    printf("                               tokens/s if a draft is right with a chance of\n"
           "  drafts      round     cost");
    for (int i = 0; i < N_CHANCES; i++) {
        printf("  %7.0f %%", 100 * chances[i]);
    }
    putchar('\n');
    for (uint32_t k = 0; k <= MAX_DRAFTS; k++) {
        printf("  %6u  %6.2f ms  %5.2f x", k, b->round[k] * 1e3, b->round[k] / b->round[0]);
        for (int i = 0; i < N_CHANCES; i++) {
            printf("  %9.1f", tokens_of_round(k, chances[i]) / b->round[k]);
        }
        putchar('\n');
    }
    putchar('\n');
}

static int print_text(const draft_bench *b, double load_s)
{
    const cli_options *o = b->o;
    bz_debug_gpu *gpu = bz_debug_model_gpu(b->model);
    char size[BZ_UNITS_MAX];
    printf("%s, %s; drafts: %s\n", o->model, bz_bytes_text(cli_model_bytes(b->model), size),
           o->draft);
    printf("bezel %s on %s%s; %u run%s after a warm-up\n\n", bz_version(), gpu ? "gpu, " : "cpu",
           gpu ? bz_debug_gpu_get_info(gpu).adapter : "", o->repeat, o->repeat == 1 ? "" : "s");
    if (b->kind == BZ_DRAFT_MODEL) {
        print_rounds(b);
    }
    printf("  answers  %9.2f tokens/s without drafts\n", speed(&b->plain));
    printf("           %9.2f tokens/s with as many as pay: %.2f x, %s\n", speed(&b->drafted),
           speed(&b->drafted) / speed(&b->plain), b->same ? "the same text" : "other text");
    printf("           %llu of %llu drafts right, %.2f tokens per pass\n",
           (unsigned long long)b->drafted.drafts.accepted,
           (unsigned long long)b->drafted.drafts.drafted, tokens_per_pass(&b->drafted));
    printf("\n  load     %.3f s\n", load_s);
    return cli_flush();
}

static void put_answers(bz_json *j, const char *key, const answers *a)
{
    bz_json_key(j, key);
    bz_json_object(j);
    bz_json_put_float(j, "tokens_per_s", speed(a));
    bz_json_put_uint(j, "tokens", (uint64_t)a->tokens);
    bz_json_put_uint(j, "drafted", a->drafts.drafted);
    bz_json_put_uint(j, "accepted", a->drafts.accepted);
    bz_json_put_float(j, "tokens_per_pass", tokens_per_pass(a));
    bz_json_end(j);
}

static int print_json(const draft_bench *b, double load_s)
{
    bz_json j;
    cli_json_begin(&j);
    bz_json_object(&j);
    bz_json_put_text(&j, "version", bz_version());
    bz_json_put_text(&j, "model", b->o->model);
    bz_json_put_text(&j, "device", bz_debug_model_gpu(b->model) ? "gpu" : "cpu");
    bz_json_put_text(&j, "draft", b->o->draft);
    bz_json_put_float(&j, "load_s", load_s);
    bz_json_key(&j, "round_ms"); /* by the number of drafts, from 0; none for lookup */
    bz_json_array(&j);
    for (uint32_t k = 0; k <= MAX_DRAFTS && b->kind == BZ_DRAFT_MODEL; k++) {
        bz_json_float(&j, (float)(b->round[k] * 1e3));
    }
    bz_json_end(&j);
    put_answers(&j, "plain", &b->plain);
    put_answers(&j, "drafted", &b->drafted);
    bz_json_key(&j, "same_text");
    bz_json_bool(&j, b->same);
    bz_json_end(&j);
    return cli_json_end(&j);
}

/* ---- the mode of the verb ---------------------------------------------------------------- */

static int run_all(draft_bench *b, double load_s)
{
    const cli_options *o = b->o;
    bz_error err = {0};
    const uint32_t needed = o->prompt_tokens + o->max_tokens, most = bz_model_context(b->model),
                   asked = CONTEXT_OF_REQUESTS + o->max_tokens;
    if (needed > most) {
        return cli_usage_error(
            "bench", "%u tokens exceed this model's context of %u; give smaller '-p' and '-n'.",
            needed, most);
    }
    const uint32_t context = needed > asked ? needed : asked;
    const bz_session_options so = {.size = sizeof so,
                                   .context = context < most ? context : most,
                                   .chunk = o->chunk,
                                   .threads = o->threads,
                                   .kernels = o->kernels,
                                   .no_fuse = o->no_fuse,
                                   .exact = o->exact,
                                   .kv = o->kv};
    b->ids = calloc(o->prompt_tokens, sizeof *b->ids);
    if (!b->ids) {
        bz_fail(&err, BZ_OUT_OF_MEMORY, "No memory for a prompt of %u tokens.", o->prompt_tokens);
        return cli_error(&err);
    }
    if (bz_session_new(&b->session, b->model, &so, &err) != BZ_OK ||
        adapters_use(b->m, b->session, &err) != BZ_OK ||
        /* How many tokens can be looked up depends on the text, so those rounds have no fixed size.
         */
        (b->kind == BZ_DRAFT_MODEL && measure_rounds(b, &err) != BZ_OK) ||
        measure_answers(b, &err) != BZ_OK) {
        return cli_error(&err);
    }
    return o->json ? print_json(b, load_s) : print_text(b, load_s);
}

int bench_draft(const cli_options *o, const cli_model *m, double load_s)
{
    draft_bench b = {.o = o, .m = m, .model = m->model, .kind = cli_draft(o)};
    const int code = run_all(&b, load_s);
    bz_session_free(b.session);
    free(b.ids);
    return code;
}
