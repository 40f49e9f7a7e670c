/* bezel run: one answer, or a chat on a terminal. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

/* A conversation as tokens: everything said so far, which is what the session is handed. */
typedef struct talk {
    bz_model *model;
    bz_session *session;
    int32_t *ids;
    size_t n, cap;
    bz_text_stream stream;
    bool failed; /* out of memory */
} talk;

static void push(talk *t, int32_t id)
{
    if (t->n == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 1024;
        int32_t *more = realloc(t->ids, cap * sizeof *more);
        if (!more) {
            t->failed = true;
            return;
        }
        t->ids = more;
        t->cap = cap;
    }
    t->ids[t->n++] = id;
}

/* Control tokens come from us only: what the user typed is plain text. */
static bool push_text(talk *t, const char *text, bool specials, bool bos, bz_error *err)
{
    int64_t n = bz_tokenize(t->model, text, strlen(text), specials, bos, NULL, 0, err);
    int32_t *ids = n < 0 ? NULL : malloc(((size_t)n + 1) * sizeof *ids);
    if (!ids) {
        return false;
    }
    bz_tokenize(t->model, text, strlen(text), specials, bos, ids, (size_t)n, err);
    for (int64_t i = 0; i < n; i++) {
        push(t, ids[i]);
    }
    free(ids);
    return !t->failed;
}

static int on_event(void *user, const bz_event *e)
{
    talk *t = user;
    if (e->kind == BZ_EVENT_TOKEN) {
        char text[BZ_TEXT_MAX];
        size_t n = bz_text_push(&t->stream, t->model, e->token, false, text);
        fwrite(text, 1, n, stdout);
        fflush(stdout);
        push(t, e->token);
    }
    return interrupted != 0;
}

/* One turn: prompt in, answer to stdout, timings to stderr when asked. */
static bz_status answer(talk *t, const cli_options *o, const char *prompt, bz_error *err)
{
    if (!push_text(t, "<|turn>user\n", true, t->n == 0, err) || !push_text(t, prompt, false, false, err) ||
        !push_text(t, "<turn|>\n", true, false, err)) {
        return err->code ? err->code : BZ_OUT_OF_MEMORY;
    }
    const bz_prefill_options po = {.snapshot_at = (uint32_t)t->n};
    if (!push_text(t, "<|turn>model\n", true, false, err)) {
        return err->code ? err->code : BZ_OUT_OF_MEMORY;
    }
    const bz_generate_options go = {.max_tokens = o->max_tokens, .ignore_end = o->ignore_end, .sampling.greedy = true};
    const bz_host host = {.event = on_event, .user = t};
    bz_job *job = NULL;
    double t0 = cli_seconds(), t1 = t0;
    bz_session_stats before = bz_session_get_stats(t->session);
    bz_status status = bz_session_prefill(t->session, t->ids, t->n, &po, &job, err);
    if (status == BZ_OK) {
        status = bz_job_run(job, &host, err);
        bz_job_free(job);
        job = NULL;
        t1 = cli_seconds();
    }
    if (status == BZ_OK) {
        status = bz_session_generate(t->session, &go, &job, err);
    }
    if (status == BZ_OK) {
        status = bz_job_run(job, &host, err);
    }
    bz_job_free(job);
    char rest[BZ_TEXT_MAX];
    fwrite(rest, 1, bz_text_push(&t->stream, t->model, -1, false, rest), stdout);
    putchar('\n');
    fflush(stdout);
    if (t->n && !bz_token_ends(t->model, t->ids[t->n - 1])) {
        push_text(t, "<turn|>", true, false, err); /* cut short: close the turn ourselves */
    }
    push_text(t, "\n", true, false, err);
    if (o->verbose) {
        bz_session_stats s = bz_session_get_stats(t->session);
        double t2 = cli_seconds();
        uint64_t prompt_tokens = s.prefilled - before.prefilled, made = s.generated - before.generated;
        fprintf(stderr, "prompt: %llu tokens (%llu reused) in %.2f s, %.1f tokens/s\nanswer: %llu tokens in %.2f s, %.1f tokens/s\n",
                (unsigned long long)prompt_tokens, (unsigned long long)(s.reused - before.reused), t1 - t0,
                (double)prompt_tokens / (t1 - t0 + 1e-9), (unsigned long long)made, t2 - t1,
                (double)made / (t2 - t1 + 1e-9));
    }
    return status;
}

static int chat(talk *t, const cli_options *o)
{
    char *line = NULL;
    size_t cap = 0;
    bz_error err = {0};
    fprintf(stderr, "Chat with %s. An empty line or Ctrl-D leaves; Ctrl-C stops an answer.\n", o->model);
    for (;;) {
        fputs(">>> ", stderr);
        interrupted = 0;
        ssize_t n = getline(&line, &cap, stdin);
        while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r')) {
            line[--n] = 0;
        }
        if (n <= 0 || strcmp(line, "/bye") == 0) {
            break;
        }
        bz_status status = answer(t, o, line, &err);
        if (status != BZ_OK && status != BZ_ABORTED) {
            free(line);
            return cli_error(&err);
        }
    }
    free(line);
    fputc('\n', stderr);
    return interrupted ? EXIT_INTERRUPTED : EXIT_OK;
}

static int run(int argc, char **argv)
{
    cli_options o = {0};
    int code = cli_parse(&cli_run_verb, argc, argv, "nckdTCmev", 2, &o);
    if (code != EXIT_OK || o.help) {
        return code;
    }
    char *input = NULL;
    size_t len;
    if ((!o.prompt && !isatty(STDIN_FILENO)) || (o.prompt && strcmp(o.prompt, "-") == 0)) {
        input = cli_read_stream(stdin, &len);
        o.prompt = input;
        if (!input) {
            return EXIT_FAILED;
        }
    }
    talk t = {0};
    bz_error err = {0};
    if (!cli_open(&o, &t.model, &code)) {
        free(input);
        return code;
    }
    struct sigaction on_int = {.sa_handler = on_interrupt}; /* no SA_RESTART: Ctrl-C ends a waiting read */
    sigaction(SIGINT, &on_int, NULL);
    const bz_session_options so = {.context = o.context, .threads = o.threads, .chunk = o.chunk, .kernels = o.kernels};
    if (bz_session_new(&t.session, t.model, &so, &err) != BZ_OK) {
        code = cli_error(&err);
    } else if (o.prompt) {
        bz_status status = answer(&t, &o, o.prompt, &err);
        code = status == BZ_OK ? EXIT_OK : status == BZ_ABORTED ? EXIT_INTERRUPTED : cli_error(&err);
    } else {
        code = chat(&t, &o);
    }
    bz_session_free(t.session);
    bz_model_free(t.model);
    free(t.ids);
    free(input);
    return code;
}

const cli_verb cli_run_verb = {
    "run", run, "answer a prompt, or chat on a terminal",
    "Usage: bezel run MODEL [PROMPT|-] [options]\n\n"
    "Without a prompt: a chat on a terminal, else the prompt comes from standard input.\n"
    "The answer goes to stdout; everything else to stderr.\n\n"
    "  -n, --max-tokens N   longest answer\n"
    "  -c, --ctx N          context size\n"
    "      --threads N      threads (default: every processor)\n"
    "      --device NAME    cpu\n"
    "      --kernels NAME   avx2, neon or plain\n"
    "      --mmproj FILE    vision and audio file of a two-file model\n"
    "      --ignore-end     go on past end tokens\n"
    "  -v, --verbose        timings after the answer\n"};
