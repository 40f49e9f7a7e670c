/* bezel_batch.h: sequences decoded together produce the tokens that sessions produce, and options
 * that a batch does not support are refused. */
#include <stdio.h>
#include <string.h>

#include "bezel_batch.h"
#include "support/check.h"

enum { SEQUENCES = 3, TOKENS = 12, CONTEXT = 128 };

static const char *const prompts[SEQUENCES] = {"Once upon a time", "Once upon a hill", "A fox"};

typedef struct tokens {
    int32_t ids[TOKENS];
    size_t n;
    bz_finish finish;
} tokens;

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

static void session_tokens(const bz_model *model, size_t i, tokens *t)
{
    const bz_session_options so = {.size = sizeof so, .context = CONTEXT};
    const bz_generate_options go = options_of(i);
    int32_t ids[CONTEXT];
    const size_t n = tokenize(model, i, ids);
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
    const bz_batch_options bo = {.size = sizeof bo, .slots = SEQUENCES, .context = CONTEXT};
    bz_batch *b = NULL;
    tokens got[SEQUENCES];
    run r = {.running = 0};
    memset(got, 0, sizeof got);
    begin("sequences together get the tokens of sessions");
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
    test_tokens(model);
    test_refusals(model);
    bz_model_free(model);
    return finish();
}
