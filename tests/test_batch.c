/* bezel_batch.h: sequences decoded together produce the tokens that sessions produce, and options
 * that a batch does not support are refused. */
#include <stdio.h>
#include <string.h>

#include "bezel_batch.h"
#include "support/check.h"
#include "support/golden.h"

enum { SEQUENCES = 3, TOKENS = 12, CONTEXT = 128 };

static const char *const prompts[SEQUENCES] = {"Once upon a time", "Once upon a hill", "A fox"};

typedef struct tokens {
    int32_t ids[TOKENS];
    size_t n;
    bz_finish finish;
} tokens;

static const char *kv; /* the type of the caches */

static bz_generate_options options_of(size_t i)
{
    return (bz_generate_options){.size = sizeof(bz_generate_options),
                                 .max_tokens = TOKENS,
                                 .ignore_end = true,
                                 .sampling = {.seed = 7 + i}};
}

static size_t tokenize(const bz_model *model, size_t i, int32_t ids[CONTEXT])
{
    const int64_t n =
        bz_tokenize(model, prompts[i], strlen(prompts[i]), false, true, ids, CONTEXT, NULL);
    return n < 0 ? 0 : (size_t)n;
}

static int on_session_event(void *user, const bz_event *e)
{
    tokens *t = user;
    if (e->kind == BZ_EVENT_TOKEN && t->n < TOKENS) {
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

/* What a session of its own generates after ids [n], with the options of sequence i. */
static void generate_alone(const bz_model *model, uint32_t context, size_t i, const int32_t *ids,
                           size_t n, tokens *t)
{
    const bz_session_options so = {.size = sizeof so, .context = context, .kv = kv};
    const bz_generate_options go = options_of(i);
    bz_session *s = NULL;
    bz_job *job = NULL;
    *t = (tokens){0};
    CHECK(bz_session_new(&s, model, &so, NULL) == BZ_OK);
    bz_status status = bz_session_prefill(s, ids, n, NULL, &job, NULL);
    CHECK(run_job(status, job, t));
    job = NULL;
    status = bz_session_generate(s, &go, &job, NULL);
    CHECK(run_job(status, job, t));
    bz_session_free(s);
}

static void session_tokens(const bz_model *model, size_t i, tokens *t)
{
    int32_t ids[CONTEXT];
    const size_t n = tokenize(model, i, ids);
    generate_alone(model, CONTEXT, i, ids, n, t);
}

typedef struct run {
    tokens *in_slot[BZ_BATCH_MAX_SLOTS];
    size_t running;
} run;

static void on_batch_event(void *user, const bz_batch_event *e)
{
    run *r = user;
    tokens *t = r->in_slot[e->slot];
    CHECK(e->error.code == BZ_OK);
    if (e->token >= 0 && t->n < TOKENS) {
        t->ids[t->n++] = e->token;
    }
    if (e->finish != BZ_FINISH_NONE) {
        t->finish = e->finish;
        r->running--;
    }
}

static void test_tokens(const bz_model *model)
{
    const bz_batch_options bo = {
        .size = sizeof bo, .slots = SEQUENCES, .context = CONTEXT, .kv = kv};
    bz_batch *b = NULL;
    tokens got[SEQUENCES];
    run r = {.running = 0};
    memset(got, 0, sizeof got);
    begin("%s: sequences together get the tokens of sessions", kv ? kv : "f16");
    CHECK(bz_batch_new(&b, model, &bo, NULL) == BZ_OK);
    for (size_t i = 0; b && i < SEQUENCES; i++) {
        const bz_generate_options go = options_of(i);
        int32_t ids[CONTEXT];
        uint32_t slot = 0;
        const size_t n = tokenize(model, i, ids);
        CHECK(n > 1 && bz_batch_start(b, ids, n, &go, &slot, NULL) == BZ_OK);
        r.in_slot[slot] = &got[i];
        r.running++;
    }
    while (b && r.running && bz_batch_step(b, on_batch_event, &r, NULL) == BZ_OK) {
    }
    CHECK(r.running == 0);
    for (size_t i = 0; i < SEQUENCES; i++) {
        tokens want;
        session_tokens(model, i, &want);
        CHECKF(want.n == TOKENS && got[i].n == want.n && got[i].finish == want.finish &&
                   memcmp(got[i].ids, want.ids, sizeof want.ids) == 0,
               "sequence %zu: %zu tokens", i, got[i].n);
    }
    bz_batch_free(b);
}

/* ---- many sequences with a common beginning ------------------------------------------------- */

enum { MANY = 10, LONG_CONTEXT = 1024 };

static const char shared_text[] =
    "Once upon a time there was a fox who lived at the edge of a forest and told stories to every "
    "bird, every mouse and every child who came by. The stories were short, and each of them had a "
    "river, a bridge and a lantern in it. Nobody knew why. One evening the fox said: ";

static size_t shared_prompt(const bz_model *model, size_t i, int32_t ids[LONG_CONTEXT])
{
    char text[sizeof shared_text + 64];
    size_t n = 1; /* tokens */
    ids[0] = 2;
    for (int repeat = 0; repeat < 2; repeat++) {
        const int64_t more = bz_tokenize(model, shared_text, sizeof shared_text - 1, false, false,
                                         ids + n, LONG_CONTEXT - n, NULL);
        n += more > 0 ? (size_t)more : 0;
    }
    const int len = snprintf(text, sizeof text, "number %zu, %s", i, prompts[i % SEQUENCES]);
    const int64_t more =
        bz_tokenize(model, text, (size_t)len, false, false, ids + n, LONG_CONTEXT - n, NULL);
    return n + (more > 0 ? (size_t)more : 0);
}

static void alone(const bz_model *model, size_t i, tokens *t)
{
    int32_t ids[LONG_CONTEXT];
    const size_t n = shared_prompt(model, i, ids);
    generate_alone(model, LONG_CONTEXT, i, ids, n, t);
}

static uint32_t start_shared(const bz_model *model, bz_batch *b, run *r, size_t i, tokens *t)
{
    const bz_generate_options go = options_of(i);
    int32_t ids[LONG_CONTEXT];
    uint32_t slot = 0;
    const size_t n = shared_prompt(model, i, ids);
    CHECK(bz_batch_start(b, ids, n, &go, &slot, NULL) == BZ_OK);
    r->in_slot[slot] = t;
    r->running++;
    return slot;
}

static void test_shared_prefix(const bz_model *model)
{
    const bz_batch_options bo = {
        .size = sizeof bo, .slots = MANY, .context = LONG_CONTEXT, .kv = kv};
    bz_batch *b = NULL;
    static tokens got[MANY], want[MANY], stopped;
    run r = {.running = 0};
    int32_t ids[LONG_CONTEXT];
    size_t total = 0;
    memset(got, 0, sizeof got);
    memset(&stopped, 0, sizeof stopped);
    begin("%s: many sequences share a prefix, which is computed about once", kv ? kv : "f16");
    CHECK(bz_batch_new(&b, model, &bo, NULL) == BZ_OK);
    for (size_t i = 0; i < MANY; i++) { /* a third at once, the others between steps */
        start_shared(model, b, &r, i, &got[i]);
        total += shared_prompt(model, i, ids);
        for (int k = 0; i >= MANY / 3 && k < 3; k++) {
            CHECK(bz_batch_step(b, on_batch_event, &r, NULL) == BZ_OK);
        }
    }
    CHECK(bz_batch_cache_bytes(b) > 0);
    while (r.running && bz_batch_step(b, on_batch_event, &r, NULL) == BZ_OK) {
    }
    for (size_t i = 0; i < MANY; i++) {
        alone(model, i, &want[i]);
        CHECKF(got[i].n == TOKENS && memcmp(got[i].ids, want[i].ids, sizeof want[i].ids) == 0,
               "sequence %zu: %zu tokens", i, got[i].n);
    }
    const size_t prefix = shared_prompt(model, 0, ids);
    CHECKF(bz_batch_reused(b) > total - MANY * 20 - 2 * prefix, "%llu of %zu tokens reused",
           (unsigned long long)bz_batch_reused(b), total);

    begin("a sequence can be stopped between any two steps, and its slot used again");
    for (size_t steps = 0; steps < 4; steps++) {
        const uint32_t slot = start_shared(model, b, &r, 1, &stopped);
        got[2] = (tokens){0};
        start_shared(model, b, &r, 2, &got[2]);
        for (size_t k = 0; k < steps; k++) {
            CHECK(bz_batch_step(b, on_batch_event, &r, NULL) == BZ_OK);
        }
        if (stopped.finish == BZ_FINISH_NONE) {
            bz_batch_stop(b, slot);
            r.running--;
        }
        const size_t before = stopped.n;
        got[1] = (tokens){0};
        r.in_slot[slot] = &stopped;
        start_shared(model, b, &r, 1, &got[1]);
        while (r.running && bz_batch_step(b, on_batch_event, &r, NULL) == BZ_OK) {
        }
        CHECKF(stopped.n == before || stopped.finish != BZ_FINISH_NONE, "%zu steps", steps);
        CHECKF(memcmp(got[1].ids, want[1].ids, sizeof want[1].ids) == 0 &&
                   memcmp(got[2].ids, want[2].ids, sizeof want[2].ids) == 0,
               "%zu steps", steps);
        stopped = (tokens){0};
    }
    CHECK(bz_batch_has_free(b));
    bz_batch_free(b);
}

enum { LONG_PROMPT = 600, MAX_ROWS = 64 };

typedef struct turns {
    uint32_t running, reader; /* slots */
    size_t between;           /* tokens of the running answer while the prompt is read */
    bool read;
} turns;

static void on_turn(void *user, const bz_batch_event *e)
{
    turns *t = user;
    t->read |= e->slot == t->reader;
    t->between += e->slot == t->running && !t->read;
}

/* What bounds the longest pause of a running answer: at most MAX_ROWS tokens of a prompt are read
 * between two of its tokens. */
static void test_turns(const bz_model *model)
{
    const bz_batch_options bo = {.size = sizeof bo, .slots = 2, .context = 1024};
    bz_generate_options go = options_of(0);
    bz_batch *b = NULL;
    int32_t ids[LONG_PROMPT];
    turns t = {.reader = UINT32_MAX};
    begin("a long prompt is read in short chunks between the tokens of an answer");
    for (size_t i = 0; i < LONG_PROMPT; i++) {
        ids[i] = (int32_t)(i % 400 + 300);
    }
    go.max_tokens = 0;
    CHECK(bz_batch_new(&b, model, &bo, NULL) == BZ_OK);
    CHECK(b && bz_batch_start(b, ids + 500, 8, &go, &t.running, NULL) == BZ_OK);
    while (b && t.between == 0 && bz_batch_step(b, on_turn, &t, NULL) == BZ_OK) {
    }
    t.between = 0;
    CHECK(b && bz_batch_start(b, ids, LONG_PROMPT, &go, &t.reader, NULL) == BZ_OK);
    while (b && !t.read && bz_batch_step(b, on_turn, &t, NULL) == BZ_OK) {
    }
    CHECKF(t.between >= LONG_PROMPT / MAX_ROWS, "%zu tokens", t.between);
    bz_batch_free(b);
}

static void test_refusals(const bz_model *model)
{
    bz_batch *b = NULL;
    bz_error err = {0};
    uint32_t slot;
    const int32_t ids[] = {2, 10};
    const char *stop = "x";
    begin("options that a batch does not support are refused");
    CHECK(bz_batch_new(&b, model, &(bz_batch_options){.slots = 1}, &err) == BZ_BAD_REQUEST);
    CHECK(bz_batch_new(&b, model,
                       &(bz_batch_options){.size = sizeof(bz_batch_options),
                                           .slots = BZ_BATCH_MAX_SLOTS + 1},
                       &err) == BZ_BAD_REQUEST);
    CHECK(bz_batch_new(&b, model, NULL, &err) == BZ_OK);
    bz_generate_options go = options_of(0);
    go.stop = &stop;
    go.n_stop = 1;
    CHECK(b && bz_batch_start(b, ids, 2, &go, &slot, &err) == BZ_BAD_REQUEST);
    go = options_of(0);
    go.log_probs = true;
    CHECK(b && bz_batch_start(b, ids, 2, &go, &slot, &err) == BZ_BAD_REQUEST);
    go = options_of(0);
    go.draft = BZ_DRAFT_LOOKUP;
    CHECK(b && bz_batch_start(b, ids, 2, &go, &slot, &err) == BZ_BAD_REQUEST &&
          strstr(err.text, "none of them can draft"));
    bz_batch_free(b);
}

int main(void)
{
    bz_model *model = NULL;
    bz_error err = {0};
    if (bz_model_open_file(&model, "models/pebble.gguf", NULL, NULL, &err) != BZ_OK) {
        printf("FAIL models/pebble.gguf: %s\n", err.text);
        return 1;
    }
    static const char *const types[] = {NULL, "q4", "q8"};
    for (size_t i = 0; i < (quick_run() ? 2 : 3); i++) {
        kv = types[i];
        test_tokens(model);
        test_shared_prefix(model);
    }
    kv = NULL;
    test_turns(model);
    test_refusals(model);
    bz_model_free(model);
    return finish();
}
