/* Generating: the same seed gives the same text however it is computed, stops end it where they
 * should, and what a file recommends is heeded. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "model/hints.h"
#include "session/session.h"
#include "support/check.h"
#include "support/forward.h"
#include "support/gguf_build.h"
#include "support/golden.h"

enum { PROMPT = 60, MAX_TOKENS = 200, MAX_TEXT = 1 << 16 };

static int32_t prompt[PROMPT];

static void make_prompt(uint32_t vocab)
{
    uint32_t x = 777;
    prompt[0] = 2;
    for (int i = 1; i < PROMPT; i++) {
        x = x * 1664525u + 1013904223u;
        prompt[i] = (int32_t)(494 + (x >> 8) % (vocab - 501));
    }
}

/* ---- an answer and all that was reported ------------------------------------------------- */

typedef struct answer {
    int32_t ids[MAX_TOKENS];
    size_t text_at[MAX_TOKENS + 1]; /* text shown before each token */
    float log_prob[MAX_TOKENS];
    size_t n, len;
    char text[MAX_TEXT];
    bz_finish finish;
    bz_error err;
} answer;

static int on_event(void *user, const bz_event *e)
{
    answer *a = user;
    if (e->kind == BZ_EVENT_TOKEN && a->n < MAX_TOKENS) {
        a->text_at[a->n] = a->len;
        a->log_prob[a->n] = e->log_prob;
        a->ids[a->n++] = e->token;
        memcpy(a->text + a->len, e->text, e->text_len);
        a->len += e->text_len;
        a->text_at[a->n] = a->len;
        CHECK(e->done == a->n);
    }
    return 0;
}

static bz_status go_on(bz_session *s, const bz_generate_options *o, answer *a)
{
    bz_job *job = NULL;
    a->n = a->len = 0;
    a->err = (bz_error){0};
    a->finish = BZ_FINISH_NONE;
    bz_status status = bz_session_generate(s, o, &job, &a->err);
    if (status == BZ_OK) {
        CHECK(bz_job_finish(job) == BZ_FINISH_NONE);
        status = bz_job_run(job, &(bz_host){.size = sizeof(bz_host), .event = on_event, .user = a},
                            &a->err);
        a->finish = bz_job_finish(job);
        bz_job_free(job);
    }
    a->text[a->len] = 0;
    return status;
}

static bz_status ask(bz_session *s, const bz_generate_options *o, answer *a)
{
    bz_error err = {0};
    CHECKF(prefill(s, prompt, PROMPT, 0, NULL, &err) == BZ_OK, "%s", err.text);
    return go_on(s, o, a);
}

static bool same_ids(const answer *a, const answer *b)
{
    return a->n == b->n && memcmp(a->ids, b->ids, a->n * sizeof *a->ids) == 0;
}

static answer first, second;

/* Waiting threads would only use the cores of other tests. test_seeds has several. */
static const bz_session_options one_thread = {.size = sizeof one_thread, .threads = 1};

/* ---- seeds ---------------------------------------------------------------------------------- */

static void test_seeds(const bz_model *m, const char *name)
{
    static const struct {
        uint32_t chunk;
        unsigned threads;
    } ways[] = {{512, 1}, {7, 2}, {512, 3}, {1, 1}};
    static const bz_sampling samplings[] = {
        {.seed = 11},
        {.seed = 11, .temperature = 2, .top_k = -1, .top_p = -1},
        {.seed = 11,
         .temperature = 1.5f,
         .top_k = 300,
         .top_p = -1,
         .min_p = 0.001f,
         .repetition = 1.2f,
         .frequency = 0.1f},
        {.greedy = true},
    };
    static const char *const names[] = {"as recommended", "hot, nothing cut", "penalties",
                                        "greedy"};
    for (size_t k = quick_run() ? 2 : 0; k < sizeof samplings / sizeof *samplings; k++) {
        begin("%s, %s: one seed, one text, for any chunks and threads", name, names[k]);
        bz_generate_options o = {
            .size = sizeof o, .max_tokens = 60, .ignore_end = true, .sampling = samplings[k]};
        for (size_t i = 0; i < (quick_run() ? 2 : sizeof ways / sizeof *ways); i++) {
            bz_session *s =
                session_or_fail(m, &(bz_session_options){.size = sizeof(bz_session_options),
                                                         .chunk = ways[i].chunk,
                                                         .threads = ways[i].threads});
            CHECKF(ask(s, &o, i ? &second : &first) == BZ_OK, "%s", second.err.text);
            CHECK(i == 0 || same_ids(&first, &second));
            CHECK(i == 0 ||
                  (first.len == second.len && memcmp(first.text, second.text, first.len) == 0));
            bz_session_free(s);
        }
        CHECK(first.n == 60 && first.finish == BZ_FINISH_LENGTH);

        begin("%s, %s: in two jobs, and again after another answer", name, names[k]);
        bz_session *s = session_or_fail(m, &one_thread);
        o.max_tokens = 30;
        CHECK(ask(s, &o, &second) == BZ_OK &&
              memcmp(first.ids, second.ids, 30 * sizeof *first.ids) == 0);
        CHECK(go_on(s, &o, &second) == BZ_OK &&
              memcmp(first.ids + 30, second.ids, 30 * sizeof *first.ids) == 0);
        o.max_tokens = 60;
        CHECK(ask(s, &o, &second) == BZ_OK && same_ids(&first, &second));
        o.sampling.seed = 12;
        CHECK(ask(s, &o, &second) == BZ_OK && same_ids(&first, &second) == o.sampling.greedy);
        bz_session_free(s);
    }
}

/* ---- stops ------------------------------------------------------------------------------------
 */

static void test_stops(const bz_model *m)
{
    bz_session *s =
        session_or_fail(m, &(bz_session_options){.size = sizeof(bz_session_options), .threads = 2});
    bz_generate_options o = {
        .size = sizeof o, .max_tokens = 100, .ignore_end = true, .sampling.seed = 3};
    CHECK(ask(s, &o, &first) == BZ_OK);

    begin("the events' text is the stream's text");
    bz_text_stream stream = {{0}};
    char text[MAX_TEXT], piece[BZ_TEXT_MAX];
    size_t len = 0;
    for (size_t i = 0; i <= first.n; i++) {
        size_t n = bz_text_push(&stream, m, i < first.n ? first.ids[i] : -1, false, piece);
        memcpy(text + len, piece, n);
        len += n;
    }
    CHECK(len == first.len && memcmp(text, first.text, len) == 0 && len > 50);

    begin("a stop id ends the answer without its text");
    size_t at = 40;
    while (first.text_at[at] == first.text_at[at + 1] || first.text_at[at] < 10) {
        at++;
    }
    size_t earliest = 0;
    while (first.ids[earliest] != first.ids[at]) {
        earliest++;
    }
    const int32_t ids[] = {first.ids[at], first.ids[at]};
    o.stop_ids = ids;
    o.n_stop_ids = 2;
    CHECK(ask(s, &o, &second) == BZ_OK && second.finish == BZ_FINISH_STOP);
    CHECK(second.n == earliest + 1 && second.ids[earliest] == ids[0]);
    CHECK(second.len <= first.text_at[earliest] + 9); /* an open character comes as replacements */
    CHECK(bz_session_get_stats(s).position == PROMPT + earliest); /* it is not fed back */
    o.n_stop_ids = 0;

    begin("a stop string across tokens ends the answer and is not shown");
    int crossing = 0;
    for (size_t i = 5; i + 2 < first.n; i += quick_run() ? 20 : 3) {
        /* the last character of a token and the first of the next */
        size_t border = first.text_at[i], from = border, to = border + 1;
        if (border < 8 || border + 4 > first.len) {
            continue;
        }
        do {
            from--;
        } while ((first.text[from] & 0xC0) == 0x80);
        while ((first.text[to] & 0xC0) == 0x80) {
            to++;
        }
        char string[16] = {0};
        memcpy(string, first.text + from, to - from);
        if (strlen(string) < to - from) {
            continue; /* the text of random weights may have zero bytes */
        }
        const char *const stops[] = {"never said", string};
        o.stop = stops;
        o.n_stop = 2;
        CHECK(ask(s, &o, &second) == BZ_OK && second.finish == BZ_FINISH_STOP);
        size_t found = 0;
        while (memcmp(first.text + found, string, to - from) != 0) {
            found++;
        }
        CHECKF(second.len == found && memcmp(first.text, second.text, found) == 0,
               "%s: %zu bytes, not %zu", string, second.len, found);
        CHECK(bz_session_get_stats(s).position == PROMPT + second.n - 1);
        crossing++;
    }
    CHECK(crossing > 1);

    begin("text held back at the end comes with the last token");
    char tail[64];
    size_t from = first.len - 1;
    while ((first.text[from] & 0xC0) == 0x80) {
        from--;
    }
    snprintf(tail, sizeof tail, "%.8s and then something", first.text + from);
    const char *const held[] = {tail};
    o.stop = held;
    o.n_stop = 1;
    CHECK(ask(s, &o, &second) == BZ_OK && second.finish == BZ_FINISH_LENGTH);
    CHECK(second.len == first.len && memcmp(second.text, first.text, first.len) == 0);
    o.n_stop = 0;

    begin("an end token ends the answer");
    const bz_bias force = {106, INFINITY};
    o.sampling.bias = &force;
    o.sampling.n_bias = 1;
    o.ignore_end = false;
    CHECK(bz_token_ends(m, 106));
    CHECK(ask(s, &o, &second) == BZ_OK && second.n == 1 && second.ids[0] == 106);
    CHECK(second.finish == BZ_FINISH_END && second.len == 0 &&
          bz_session_get_stats(s).position == PROMPT);
    o.ignore_end = true;
    o.max_tokens = 5;
    CHECK(ask(s, &o, &second) == BZ_OK && second.n == 5 && second.finish == BZ_FINISH_LENGTH &&
          second.len == 0);
    o.show_control = true;
    CHECK(ask(s, &o, &second) == BZ_OK && second.len == 5 * strlen("<turn|>"));
    bz_session_free(s);

    begin("a full context is a separate finish reason");
    s = session_or_fail(
        m, &(bz_session_options){.size = sizeof(bz_session_options), .context = PROMPT + 5});
    o = (bz_generate_options){.size = sizeof(bz_generate_options), .ignore_end = true};
    CHECK(ask(s, &o, &second) == BZ_OK && second.n == 5 && second.finish == BZ_FINISH_CONTEXT);
    CHECK(go_on(s, &o, &second) == BZ_OK && second.n == 0 && second.finish == BZ_FINISH_CONTEXT);
    bz_session_free(s);
}

/* ---- log-probabilities, bias, bad requests
 * --------------------------------------------------------- */

static double log_softmax(const float *logits, uint32_t n, int32_t id)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += exp((double)logits[i]);
    }
    return (double)logits[id] - log(sum);
}

typedef struct probs_seen {
    bz_session *s;
    int tokens;
} probs_seen;

static int on_probs(void *user, const bz_event *e)
{
    probs_seen *p = user;
    if (e->kind != BZ_EVENT_TOKEN) {
        return 0;
    }
    const float *logits = bz_session_logits(p->s); /* the row this token was chosen from */
    const uint32_t vocab = p->s->model->text.config.vocab;
    CHECK(e->n_top == 300 &&
          fabs((double)e->log_prob - log_softmax(logits, vocab, e->token)) < 1e-4);
    for (uint32_t i = 0; i < e->n_top; i += 50) {
        CHECK(fabs((double)e->top[i].log_prob - log_softmax(logits, vocab, e->top[i].token)) <
              1e-4);
        CHECK(i == 0 || e->top[i].log_prob <= e->top[i - 1].log_prob);
    }
    p->tokens++;
    return 0;
}

static void test_requests(const bz_model *m)
{
    begin("log-probabilities are those of the session's logits");
    bz_error err = {0};
    bz_session *s =
        session_or_fail(m, &(bz_session_options){.size = sizeof(bz_session_options), .threads = 2});
    CHECK(prefill(s, prompt, PROMPT, 0, NULL, &err) == BZ_OK);
    const bz_bias bias = {600, 3};
    bz_generate_options o = {.size = sizeof o,
                             .max_tokens = 10,
                             .ignore_end = true,
                             .top_log_probs = 300,
                             .sampling.seed = 5};
    probs_seen seen = {s, 0};
    for (int i = 0; i < 2; i++) {
        bz_job *job = NULL;
        o.sampling.bias = &bias;
        o.sampling.n_bias = (size_t)i;
        CHECK(bz_session_generate(s, &o, &job, &err) == BZ_OK);
        CHECK(bz_job_run(job, &(bz_host){.size = sizeof(bz_host), .event = on_probs, .user = &seen},
                         &err) == BZ_OK);
        bz_job_free(job);
    }
    CHECK(seen.tokens == 20);

    begin("unsupported requests are refused with a reason, and the session stays free");
    const int32_t far = 640;
    const char *const empty[] = {""};
    CHECK(ask(s,
              &(bz_generate_options){
                  .size = sizeof(bz_generate_options), .stop_ids = &far, .n_stop_ids = 1},
              &first) == BZ_BAD_REQUEST);
    CHECKF(strcmp(first.err.text, "The stop token 640 is not in the vocabulary of 640.") == 0, "%s",
           first.err.text);
    CHECK(
        ask(s,
            &(bz_generate_options){.size = sizeof(bz_generate_options), .stop = empty, .n_stop = 1},
            &first) == BZ_BAD_REQUEST);
    CHECK(ask(s, &(bz_generate_options){.size = sizeof(bz_generate_options), .sampling.min_p = 2},
              &first) == BZ_BAD_REQUEST);
    bz_bias none[640];
    for (int32_t i = 0; i < 640; i++) {
        none[i] = (bz_bias){i, -INFINITY};
    }
    o = (bz_generate_options){.size = sizeof(bz_generate_options),
                              .max_tokens = 3,
                              .sampling = {.bias = none, .n_bias = 640}};
    CHECK(ask(s, &o, &first) == BZ_BAD_REQUEST && first.n == 0 && first.finish == BZ_FINISH_NONE);
    o.sampling.n_bias = 639; /* the last one is left */
    CHECK(ask(s, &o, &first) == BZ_OK && first.n == 3 && first.ids[0] == 639 &&
          first.ids[2] == 639);
    bz_session_free(s);
}

/* ---- what the file says
 * ------------------------------------------------------------------------------ */

static void check_hints(gguf_build *b, bz_sampling given, float temperature, int32_t top_k,
                        float top_p)
{
    bz_gguf g;
    bz_error err = {0};
    uint64_t at_least;
    gb_finish(b);
    CHECK(bz_gguf_parse(&g, b->bytes, b->size, b->file_size, &at_least, &err) == BZ_GGUF_DONE);
    bz_hints_sampling(&g, &given);
    CHECKF(given.temperature == temperature && given.top_k == top_k && given.top_p == top_p,
           "%g %d %g", (double)given.temperature, given.top_k, (double)given.top_p);
    bz_gguf_free(&g);
    gb_free(b);
}

static void test_hints(void)
{
    gguf_build b;
    begin("a file without hints changes nothing");
    gb_init(&b);
    check_hints(&b, (bz_sampling){0}, 0, 0, 0);

    begin("hints fill what the request leaves open, in any number type");
    for (int types = 0; types < 2; types++) {
        for (int given = 0; given < 2; given++) {
            gb_init(&b);
            if (types) {
                gb_f64(&b, "general.sampling.temp", 0.5);
                gb_u64(&b, "general.sampling.top_k", 20);
                gb_f32(&b, "general.sampling.top_p", 0.75f);
            } else {
                gb_f32(&b, "general.sampling.temp", 0.5f);
                gb_i32(&b, "general.sampling.top_k", 20);
                gb_f32(&b, "general.sampling.top_p", 0.75f);
            }
            if (given) {
                check_hints(&b, (bz_sampling){.temperature = 2, .top_k = -1, .top_p = 0.5f}, 2, -1,
                            0.5f);
            } else {
                check_hints(&b, (bz_sampling){0}, 0.5f, 20, 0.75f);
            }
        }
    }

    begin("zeros in a file switch off, invalid values are ignored");
    gb_init(&b);
    gb_f32(&b, "general.sampling.temp", 0);
    gb_i32(&b, "general.sampling.top_k", 0);
    gb_f32(&b, "general.sampling.top_p", 1);
    check_hints(&b, (bz_sampling){0}, -1, -1, -1);
    gb_init(&b);
    gb_f32(&b, "general.sampling.temp", NAN);
    gb_str(&b, "general.sampling.top_k", "many");
    gb_f32(&b, "general.sampling.top_p", -3);
    check_hints(&b, (bz_sampling){0}, 0, 0, 0);
}

/* The model's file with more keys. They go before the others, and a filler keeps the length a
 * multiple of the alignment, so that tensor data is still where the offsets say. */
static uint8_t *with_keys(const bz_os_map *file, gguf_build *keys, size_t *size)
{
    enum { START = 24 };
    size_t filler = 0, size_before = keys->keys.size + 8 + strlen("test.fill") + 4 + 8;
    while ((size_before + filler) % 32 != 0) {
        filler++;
    }
    char text[33] = {0};
    memset(text, 'x', filler);
    gb_str(keys, "test.fill", text);
    size_t added = keys->keys.size;
    uint8_t *out = malloc(file->size + added);
    memcpy(out, file->data, START);
    memcpy(out + START, keys->keys.data, added);
    memcpy(out + START + added, file->data + START, file->size - START);
    uint64_t n;
    memcpy(&n, out + GB_KEY_COUNT_AT, sizeof n);
    n += keys->n_keys;
    memcpy(out + GB_KEY_COUNT_AT, &n, sizeof n);
    *size = file->size + added;
    return out;
}

static bz_model *open_bytes(const uint8_t *bytes, size_t size)
{
    bz_error err = {0};
    bz_job *job = NULL;
    bz_model *m = NULL;
    const bz_input input = {"made", size, bytes};
    CHECK(bz_model_open(&job, &input, 1, NULL, &err) == BZ_OK);
    if (CHECKF(bz_job_run(job, NULL, &err) == BZ_OK, "%s", err.text)) {
        m = bz_job_model(job);
    }
    bz_job_free(job);
    return m;
}

static void test_file(const char *name)
{
    begin("a model's own temperature, top-k and suppressed tokens");
    bz_error err = {0};
    bz_os_map file;
    CHECK(bz_os_map_file(model_path(name), &file, &err) == BZ_OK);
    bz_model *plain = open_or_fail(model_path(name));
    bz_session *s = session_or_fail(plain, NULL);
    bz_generate_options o = {
        .size = sizeof o, .max_tokens = 30, .ignore_end = true, .sampling.greedy = true};
    CHECK(ask(s, &o, &first) == BZ_OK);
    bz_session_free(s);
    bz_model_free(plain);

    const int32_t suppressed[] = {first.ids[0], 100000, -1};
    gguf_build keys;
    gb_init(&keys);
    gb_f32(&keys, "general.sampling.temp", 0);
    gb_array(&keys, "tokenizer.ggml.suppress_tokens", BZ_GGUF_I32, suppressed, 3);
    size_t size;
    uint8_t *bytes = with_keys(&file, &keys, &size);
    bz_model *m = open_bytes(bytes, size);
    if (m) {
        s = session_or_fail(m, &one_thread);
        o.sampling = (bz_sampling){.seed = 1}; /* greedy, because the file's temperature is 0 */
        CHECK(ask(s, &o, &second) == BZ_OK && second.n == 30);
        for (size_t i = 0; i < second.n; i++) {
            CHECK(second.ids[i] != first.ids[0]);
        }
        o.sampling.seed = 2;
        CHECK(ask(s, &o, &first) == BZ_OK && same_ids(&first, &second));
        o.sampling.temperature = 1.5f; /* the request goes first */
        CHECK(ask(s, &o, &first) == BZ_OK && !same_ids(&first, &second));
        bz_session_free(s);
        bz_model_free(m);
    }
    free(bytes);
    gb_free(&keys);
    bz_os_unmap(&file);
}

int main(void)
{
    test_hints();
    const char *const names[] = {"nano-e-q4_0", "nano-moe-q8_0"};
    for (int i = 0; i < (quick_run() ? 1 : 2); i++) {
        char file[64];
        snprintf(file, sizeof file, "%s.gguf", names[i]);
        bz_model *m = open_or_fail(model_path(file));
        make_prompt(bz_model_vocab(m));
        test_seeds(m, names[i]);
        if (i == 0) {
            test_stops(m);
            test_requests(m);
            test_file(file);
        }
        bz_model_free(m);
    }
    return finish();
}
