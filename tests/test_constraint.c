/* Answers that follow a grammar: the same tokens in a session, with log-probabilities and in a
 * batch, thoughts that stay free, forced tools, and what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "bezel_batch.h"
#include "grammar/matcher.h"
#include "support/check.h"

enum { TOKENS = 400, CONTEXT = 1024 };

static const char schema[] =
    "{\"type\":\"object\",\"properties\":{\"explanation\":{\"type\":\"string\",\"maxLength\":30},"
    "\"confidence_in_percent\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":100},\"kind\":{"
    "\"enum\":[\"positive\",\"negative\"]}},\"required\":[\"explanation\",\"confidence_in_"
    "percent\","
    "\"kind\"],\"additionalProperties\":false}";

typedef struct tokens {
    int32_t ids[TOKENS];
    size_t n;
    bz_finish finish;
} tokens;

static int on_session_event(void *user, const bz_event *e)
{
    tokens *t = user;
    if (e->kind == BZ_EVENT_TOKEN && t->n < TOKENS) {
        CHECK(e->log_prob <= 0);
        t->ids[t->n++] = e->token;
    }
    return 0;
}

static bool run_job(bz_status started, bz_job *job, tokens *t)
{
    const bz_host host = {.size = sizeof host, .event = on_session_event, .user = t};
    const bool done = started == BZ_OK && bz_job_run(job, &host, NULL) == BZ_OK;
    t->finish = done ? bz_job_finish(job) : BZ_FINISH_NONE;
    bz_job_free(job);
    return done;
}

static size_t prompt(const bz_model *m, int32_t ids[CONTEXT])
{
    static const char text[] = "I like it. ";
    const int64_t n = bz_tokenize(m, text, strlen(text), false, true, ids, CONTEXT, NULL);
    return n < 0 ? 0 : (size_t)n;
}

static bz_generate_options options_of(bz_grammar *g, uint64_t seed)
{
    return (bz_generate_options){.size = sizeof(bz_generate_options),
                                 .max_tokens = TOKENS,
                                 .sampling = {.seed = seed, .top_k = seed % 2 ? 0 : -1},
                                 .grammar = g};
}

static void in_session(const bz_model *m, bz_grammar *g, uint64_t seed, bool log_probs,
                       uint32_t chunk, tokens *t)
{
    const bz_session_options so = {.size = sizeof so, .context = CONTEXT, .chunk = chunk};
    bz_generate_options go = options_of(g, seed);
    int32_t ids[CONTEXT];
    bz_session *s = NULL;
    bz_job *job = NULL;
    bz_status status;
    *t = (tokens){0};
    go.log_probs = log_probs;
    CHECK(bz_session_new(&s, m, &so, NULL) == BZ_OK);
    const size_t n = prompt(m, ids);
    status = bz_session_prefill(s, ids, n, NULL, &job, NULL);
    CHECK(run_job(status, job, t));
    job = NULL;
    status = bz_session_generate(s, &go, &job, NULL);
    CHECK(run_job(status, job, t));
    CHECK(bz_session_get_stats(s).generated == t->n);
    bz_session_free(s);
}

typedef struct batch_tokens {
    tokens t[2];
    uint32_t slot[2]; /* of each */
    int running;
} batch_tokens;

static void on_batch_event(void *user, const bz_batch_event *e)
{
    batch_tokens *b = user;
    CHECKF(e->token >= 0, "%s", e->error.text);
    tokens *t = &b->t[e->slot == b->slot[1]];
    if (t->n < TOKENS) {
        t->ids[t->n++] = e->token;
    }
    b->running -= e->finish != BZ_FINISH_NONE || e->token < 0;
}

static void in_batch(const bz_model *m, bz_grammar *g, batch_tokens *out)
{
    const bz_batch_options bo = {.size = sizeof bo, .slots = 2, .context = CONTEXT};
    bz_batch *b = NULL;
    int32_t ids[CONTEXT];
    bz_error err = {0};
    const size_t n = prompt(m, ids);
    *out = (batch_tokens){.running = 2};
    CHECK(bz_batch_new(&b, m, &bo, NULL) == BZ_OK);
    for (uint64_t i = 0; i < 2; i++) {
        const bz_generate_options go = options_of(g, i);
        CHECKF(bz_batch_start(b, ids, n, &go, &out->slot[i], &err) == BZ_OK, "%s", err.text);
    }
    while (out->running && bz_batch_step(b, on_batch_event, out, NULL) == BZ_OK) {
    }
    bz_batch_free(b);
}

static bool same(const tokens *x, const tokens *y)
{
    return x->n == y->n && memcmp(x->ids, y->ids, x->n * sizeof *x->ids) == 0;
}

/* The text of an answer fits the grammar. */
static bool fits(const bz_model *m, bz_grammar *g, const tokens *t)
{
    static char bytes[256];
    bz_str list[256];
    bz_vocabulary *v = NULL;
    bz_matcher *matcher = NULL;
    for (int i = 0; i < 256; i++) {
        bytes[i] = (char)i;
        list[i] = (bz_str){bytes + i, 1};
    }
    bool good = bz_vocabulary_new(&v, list, 256, NULL) == BZ_OK &&
                bz_matcher_new(&matcher, g, v, NULL) == BZ_OK;
    bz_text_stream stream = {0};
    for (size_t i = 0; i < t->n && good; i++) {
        char text[BZ_TEXT_MAX];
        const size_t n =
            bz_token_ends(m, t->ids[i]) ? 0 : bz_text_push(&stream, m, t->ids[i], false, text);
        good = bz_matcher_take(matcher, text, n);
    }
    good = good && bz_matcher_can_end(matcher);
    bz_matcher_free(matcher);
    bz_vocabulary_free(v);
    return good;
}

static void equal_tokens(const bz_model *m, bz_grammar *g)
{
    static tokens plain[2], other;
    static batch_tokens batch;
    begin("a session, one with log-probabilities, short chunks and a batch write the same");
    for (uint64_t seed = 0; seed < 2; seed++) {
        in_session(m, g, seed, false, 0, &plain[seed]);
        CHECK(plain[seed].finish == BZ_FINISH_END && fits(m, g, &plain[seed]));
        in_session(m, g, seed, true, 0, &other);
        CHECK(same(&plain[seed], &other));
        in_session(m, g, seed, false, 2, &other);
        CHECK(same(&plain[seed], &other));
    }
    in_batch(m, g, &batch);
    CHECK(same(&plain[0], &batch.t[0]) && same(&plain[1], &batch.t[1]));
}

static void refusals(const bz_model *m, bz_grammar *g)
{
    const bz_session_options so = {.size = sizeof so, .context = 64};
    const bz_batch_options bo = {.size = sizeof bo, .slots = 1, .context = 64};
    bz_generate_options go = options_of(g, 1);
    tokens t = {0};
    bz_session *s = NULL;
    bz_batch *b = NULL;
    bz_job *job = NULL;
    bz_error err = {0};
    int32_t ids[CONTEXT];
    uint32_t slot;
    bz_status status;
    const size_t n = prompt(m, ids);
    begin("end tokens cannot be ignored, and a canvas follows no grammar");
    go.ignore_end = true;
    CHECK(bz_session_new(&s, m, &so, NULL) == BZ_OK);
    status = bz_session_prefill(s, ids, n, NULL, &job, NULL);
    CHECK(run_job(status, job, &t));
    CHECK(bz_session_generate(s, &go, &job, &err) == BZ_BAD_REQUEST && strstr(err.text, "ends"));
    bz_session_free(s);
    CHECK(bz_batch_new(&b, m, &bo, NULL) == BZ_OK);
    CHECK(bz_batch_start(b, ids, n, &go, &slot, &err) == BZ_BAD_REQUEST);
    bz_batch_free(b);
    bz_model *canvas = NULL;
    go.ignore_end = false;
    CHECK(bz_model_open_file(&canvas, "models/pebble-diffusion.gguf", NULL, NULL, &err) == BZ_OK);
    CHECK(bz_session_new(&s, canvas, &so, NULL) == BZ_OK);
    CHECK(bz_session_generate(s, &go, &job, &err) == BZ_BAD_REQUEST &&
          strstr(err.text, "diffusion model"));
    bz_session_free(s);
    bz_model_free(canvas);
}

static char *ask(const bz_model *m, const char *request, bz_error *err)
{
    const bz_session_options so = {.size = sizeof so, .context = CONTEXT};
    const bz_chat_options o = {.size = sizeof o, .session_options = &so, .seed = 3};
    char *answer = NULL;
    bz_chat(m, request, strlen(request), &o, &answer, err);
    return answer;
}

static void requests(const bz_model *m)
{
    static const struct {
        const char *settings, *says;
    } good[] = {
        {"\"think\":true,\"choices\":[\"left\"]", "\"content\":\"left\""},
        {"\"regex\":\"a{3}\"", "\"content\":\"aaa\""},
        {"\"grammar\":\"root ::= \\\"gbnf\\\" \\\"!\\\"\"", "\"content\":\"gbnf!\""},
        {"\"format\":{\"const\":{\"a\":1}}", "{\\\"a\\\":"},
        {"\"tool_choice\":\"required\",\"parallel_tool_calls\":false,\"tools\":[{\"type\":"
         "\"function\",\"function\":{\"name\":\"go\",\"parameters\":{\"type\":\"object\","
         "\"properties\":{\"way\":{\"const\":\"up\"}},\"required\":[\"way\"]}}}]",
         "{\\\"way\\\":\\\"up\\\"}"},
    };
    static const struct {
        const char *settings, *says;
    } bad[] = {
        {"\"tool_choice\":\"required\"", "there is none"},
        {"\"tool_choice\":\"required\",\"format\":\"json\",\"tools\":[]", "no other form"},
        {"\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"go\"}}],\"regex\":\"a\"",
         "cannot be combined"},
        {"\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"go\",\"strict\":true,"
         "\"parameters\":{\"not\":{\"format\":\"date\"}}}}]",
         "The parameters of the tool go: The schema cannot be obeyed at #/not/format"},
    };
    begin("requests: thoughts stay free, the answer follows");
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char request[1000];
        bz_error err = {0};
        snprintf(request, sizeof request,
                 "{%s,\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"max_tokens\":300}",
                 good[i].settings);
        char *answer = ask(m, request, &err);
        CHECKF(answer && strstr(answer, good[i].says), "%s: %s", good[i].settings,
               answer ? answer : err.text);
        bz_free(answer);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char request[1000];
        bz_error err = {0};
        snprintf(request, sizeof request,
                 "{%s,\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}", bad[i].settings);
        char *answer = ask(m, request, &err);
        CHECKF(!answer && strstr(err.text, bad[i].says), "%s: %s", bad[i].settings, err.text);
        bz_free(answer);
    }
}

int main(void)
{
    bz_model *m = NULL;
    bz_grammar *g = NULL;
    bz_error err = {0};
    begin("setup");
    CHECKF(bz_model_open_file(&m, "models/pebble.gguf", NULL, NULL, &err) == BZ_OK, "%s", err.text);
    CHECKF(bz_grammar_new(&g, BZ_GRAMMAR_SCHEMA, schema, strlen(schema), &err) == BZ_OK, "%s",
           err.text);
    if (m && g) {
        equal_tokens(m, g);
        refusals(m, g);
        requests(m);
    }
    bz_grammar_free(g);
    bz_model_free(m);
    return finish();
}
