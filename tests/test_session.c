/* Continuing is exact to the last bit: whatever a session reuses, however a prompt is cut and
 * however many threads there are, the logits are those of a fresh prefill. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/kernels.h"
#include "session/session.h"
#include "support/check.h"
#include "support/forward.h"
#include "support/golden.h"

enum { MAX_PROMPT = 400 };

static int32_t prompt[MAX_PROMPT];

static void make_prompt(uint32_t vocab)
{
    uint32_t x = 12345;
    prompt[0] = 2;
    for (int i = 1; i < MAX_PROMPT; i++) {
        x = x * 1664525u + 1013904223u;
        prompt[i] = (int32_t)(494 + (x >> 8) % (vocab - 501));
    }
}

static bool same(const float *a, const float *b, size_t n)
{
    return memcmp(a, b, n * sizeof *a) == 0;
}

/* Activations in 8 bits, with each type of cache; or nothing rounded. */
typedef enum numbers { F16, EXACT, Q8, Q4 } numbers;

static const char *name_of(numbers how)
{
    static const char *const names[] = {"8 bit", "exact", "8 bit, q8", "8 bit, q4"};
    return names[how];
}

static const char *kv_of(numbers how)
{
    return how == Q8 ? "q8" : how == Q4 ? "q4" : NULL;
}

static bz_cache_type cache_of(numbers how)
{
    static const bz_cache_type types[] = {BZ_CACHE_F16, BZ_CACHE_F32, BZ_CACHE_Q8, BZ_CACHE_Q4};
    return types[how];
}

/* Last-row logits of a fresh session. */
static float *fresh(const bz_model *m, numbers how, const int32_t *ids, size_t n)
{
    const bz_session_options o = {
        .size = sizeof o, .exact = how == EXACT, .kv = kv_of(how), .threads = 1};
    bz_session *s = session_or_fail(m, &o);
    bz_error err = {0};
    CHECKF(prefill(s, ids, n, 0, NULL, &err) == BZ_OK, "%s", err.text);
    float *out = malloc(bz_model_vocab(m) * sizeof *out);
    memcpy(out, bz_session_logits(s), bz_model_vocab(m) * sizeof *out);
    bz_session_free(s);
    return out;
}

static void check_last(const bz_model *m, bz_session *s, numbers how, const int32_t *ids, size_t n)
{
    float *want = fresh(m, how, ids, n);
    CHECK(bz_session_logits(s) && same(bz_session_logits(s), want, bz_model_vocab(m)));
    free(want);
}

static bz_status go(bz_session *s, const int32_t *ids, size_t n, uint32_t snapshot)
{
    bz_error err = {0};
    bz_status status = prefill(s, ids, n, snapshot, NULL, &err);
    CHECKF(status == BZ_OK, "%s", err.text);
    return status;
}

/* ---- chunks and threads ------------------------------------------------------------ */

static void test_chunks(const bz_model *m, const char *name, numbers how, const char *kernels)
{
    const uint32_t vocab = bz_model_vocab(m), n = 100;
    float *want = malloc((size_t)n * vocab * sizeof *want),
          *got = malloc((size_t)n * vocab * sizeof *got);
    const struct {
        uint32_t chunk;
        unsigned threads;
    } ways[] = {{512, 1}, {512, 2}, {1, 1}, {1, 2}, {7, 2}, {64, 3}, {13, 1}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        begin("%s %s %s: chunk %u, %u threads, the same bits", name, name_of(how), kernels,
              ways[i].chunk, ways[i].threads);
        const bz_session_options o = {.size = sizeof o,
                                      .exact = how == EXACT,
                                      .kv = kv_of(how),
                                      .chunk = ways[i].chunk,
                                      .threads = ways[i].threads,
                                      .kernels = kernels};
        bz_session *s = session_or_fail(m, &o);
        bz_error err = {0};
        CHECKF(prefill(s, prompt, n, 0, i ? got : want, &err) == BZ_OK, "%s", err.text);
        CHECK(i == 0 || same(got, want, (size_t)n * vocab));
        bz_session_free(s);
    }
    free(want);
    free(got);
}

/* ---- reuse -------------------------------------------------------------------------- */

static void test_reuse(const bz_model *m, const char *name, numbers how)
{
    int32_t other[MAX_PROMPT];
    const bz_session_options o = {
        .size = sizeof o, .exact = how == EXACT, .kv = kv_of(how), .chunk = 16, .threads = 2};
    bz_session *s = session_or_fail(m, &o);
    begin("%s %s: the same prompt again computes one token", name, name_of(how));
    go(s, prompt, 60, 0);
    uint64_t before = bz_session_get_stats(s).prefilled;
    go(s, prompt, 60, 0);
    CHECK(bz_session_get_stats(s).prefilled - before == 1);
    check_last(m, s, how, prompt, 60);

    begin("%s %s: a longer prompt computes what is new", name, name_of(how));
    before = bz_session_get_stats(s).prefilled;
    go(s, prompt, 75, 0);
    CHECK(bz_session_get_stats(s).prefilled - before == 15);
    check_last(m, s, how, prompt, 75);

    /* ring = window 8 + 15: five tokens back is inside it */
    begin("%s %s: an edit near the end computes what differs", name, name_of(how));
    memcpy(other, prompt, sizeof other);
    other[70] = 500;
    before = bz_session_get_stats(s).prefilled;
    go(s, other, 90, 0);
    CHECK(bz_session_get_stats(s).prefilled - before == 20);
    check_last(m, s, how, other, 90);

    begin("%s %s: an edit before the rings starts over", name, name_of(how));
    other[10] = 501;
    before = bz_session_get_stats(s).prefilled;
    go(s, other, 90, 0);
    CHECK(bz_session_get_stats(s).prefilled - before == 90);
    check_last(m, s, how, other, 90);

    begin("%s %s: a shorter prompt rewinds", name, name_of(how));
    before = bz_session_get_stats(s).prefilled;
    go(s, other, 80, 0);
    CHECK(bz_session_get_stats(s).prefilled - before == 1);
    check_last(m, s, how, other, 80);
    bz_session_free(s);
}

/* ---- snapshots ------------------------------------------------------------------------ */

static void test_snapshots(const bz_model *m, const char *name, numbers how)
{
    enum { PROMPT = 50, KEEP = 46, ANSWER = 120 };
    int32_t talk[MAX_PROMPT], made[ANSWER];
    const bz_session_options o = {
        .size = sizeof o, .exact = how == EXACT, .kv = kv_of(how), .chunk = 16, .threads = 2};
    bz_session *s = session_or_fail(m, &o);

    begin("%s %s: after an answer longer than the ring only what differs is computed", name,
          name_of(how));
    go(s, prompt, PROMPT, KEEP);
    CHECK(generate(s, made, ANSWER) == ANSWER);
    memcpy(talk, prompt, KEEP * sizeof *talk);
    memcpy(talk + KEEP, prompt + 200,
           30 * sizeof *talk); /* history without the thinking, and a new question */
    bz_session_stats before = bz_session_get_stats(s);
    go(s, talk, KEEP + 30, KEEP + 26);
    bz_session_stats after = bz_session_get_stats(s);
    CHECKF(after.prefilled - before.prefilled == 30, "%llu tokens",
           (unsigned long long)(after.prefilled - before.prefilled));
    CHECK(after.restores - before.restores == 1);
    check_last(m, s, how, talk, KEEP + 30);

    begin("%s %s: regenerating goes back to the newest snapshot, editing to an older one", name,
          name_of(how));
    generate(s, made, ANSWER);
    before = bz_session_get_stats(s);
    go(s, talk, KEEP + 30, KEEP + 26);
    CHECK(bz_session_get_stats(s).prefilled - before.prefilled == 4);
    check_last(m, s, how, talk, KEEP + 30);
    generate(s, made, ANSWER);
    talk[KEEP + 2] = 600;
    before = bz_session_get_stats(s);
    go(s, talk, KEEP + 30, 0);
    CHECK(bz_session_get_stats(s).prefilled - before.prefilled == 30);
    check_last(m, s, how, talk, KEEP + 30);

    begin("%s %s: a snapshot whose tokens changed is not used", name, name_of(how));
    generate(s, made, ANSWER);
    talk[KEEP - 3] = 601; /* before every snapshot */
    before = bz_session_get_stats(s);
    go(s, talk, KEEP + 30, 0);
    CHECK(bz_session_get_stats(s).prefilled - before.prefilled == KEEP + 30);
    CHECK(bz_session_get_stats(s).restores == before.restores);
    check_last(m, s, how, talk, KEEP + 30);

    begin("%s %s: more snapshots than slots", name, name_of(how));
    for (uint32_t i = 1; i <= 6; i++) { /* 4 places: 20 and 40 are forgotten */
        go(s, prompt, 20 * i + 1, 20 * i);
    }
    generate(s, made, ANSWER);
    before = bz_session_get_stats(s);
    memcpy(talk, prompt, sizeof talk);
    talk[101] = 602;
    go(s, talk, 130, 0);
    CHECK(bz_session_get_stats(s).prefilled - before.prefilled == 30);
    check_last(m, s, how, talk, 130);
    bz_session_free(s);
}

/* ---- generating, cancelling ------------------------------------------------------------- */

static void test_generate(const bz_model *m, const char *name, numbers how)
{
    enum { N = 40 };
    int32_t all[64 + N], first[N], second[N];
    begin("%s %s: generating is prefilling its own tokens", name, name_of(how));
    bz_session *s = session_or_fail(m, &(bz_session_options){.size = sizeof(bz_session_options),
                                                             .exact = how == EXACT,
                                                             .kv = kv_of(how),
                                                             .threads = 2});
    go(s, prompt, 30, 0);
    CHECK(generate(s, first, N) == N);
    memcpy(all, prompt, 30 * sizeof *all);
    memcpy(all + 30, first, N * sizeof *all);
    check_last(m, s, how, all, 30 + N);

    begin("%s %s: an answer generated in two jobs is the same text", name, name_of(how));
    go(s, prompt, 30, 0);
    CHECK(generate(s, second, N / 2) == N / 2 && generate(s, second + N / 2, N / 2) == N / 2);
    CHECK(memcmp(first, second, sizeof first) == 0);
    bz_session_free(s);

    begin("%s %s: a cancelled prefill loses nothing", name, name_of(how));
    s = session_or_fail(m, &(bz_session_options){.size = sizeof(bz_session_options),
                                                 .exact = how == EXACT,
                                                 .kv = kv_of(how),
                                                 .chunk = 32,
                                                 .threads = 2});
    for (int steps = 0; steps < 12; steps++) {
        bz_job *job = NULL;
        bz_need need;
        bz_error err = {0};
        CHECK(bz_session_prefill(s, prompt, 100 + (size_t)steps, NULL, &job, &err) == BZ_OK);
        for (int i = 0; i < steps; i++) {
            bz_job_step(job, &need);
        }
        bz_job_free(job);
    }
    go(s, prompt, 140, 0);
    check_last(m, s, how, prompt, 140);
    bz_session_free(s);
}

/* ---- several sequences in one pass -------------------------------------------------------- */

static void test_batch(const bz_model *m, const char *name, numbers how)
{
    begin("%s %s: rows of three sequences in one pass", name, name_of(how));
    enum { SEQUENCES = 3, LENGTH = 20 };
    const uint32_t vocab = bz_model_vocab(m);
    bz_session *s = session_or_fail(m, &(bz_session_options){.size = sizeof(bz_session_options),
                                                             .exact = how == EXACT,
                                                             .kv = kv_of(how),
                                                             .threads = 2});
    bz_backend *b = s->backend;
    bz_kv *kv[SEQUENCES];
    bz_error err = {0};
    bz_plan *plan = NULL;
    bz_schedule *schedule = NULL;
    CHECK(bz_text_record(&m->text, 8, 8, &plan, &err) == BZ_OK &&
          b->prepare(b, plan, &schedule, &err) == BZ_OK);
    for (int q = 0; q < SEQUENCES; q++) {
        CHECK(b->kv_new(b, m->text.caches, m->text.n_caches, cache_of(how), 7, q ? kv[0] : NULL,
                        &kv[q], &err) == BZ_OK);
        CHECK(b->kv_reserve(b, kv[q], LENGTH, &err) == BZ_OK);
    }
    /* sequence q reads the prompt from 100 * q on and runs q tokens ahead of the first */
    for (int32_t t = -2; t < LENGTH; t++) {
        int32_t id[SEQUENCES], pos[SEQUENCES];
        uint32_t seq[SEQUENCES], out[SEQUENCES], n = 0;
        for (int32_t q = 0; q < SEQUENCES; q++) {
            if (t + q >= 0 && t + q < LENGTH) {
                id[n] = prompt[100 * q + t + q];
                pos[n] = t + q;
                seq[n] = (uint32_t)q;
                out[n] = n;
                n++;
            }
        }
        const bz_rows rows = {.n = n,
                              .n_out = n,
                              .id = id,
                              .pos = pos,
                              .seq = seq,
                              .out = out,
                              .kv = (void *const *)kv};
        b->begin(b, schedule, &rows);
        CHECK(b->step(b, 0, &err) == BZ_PASS_DONE);
        for (uint32_t i = 0; i < n; i++) {
            if (pos[i] == LENGTH - 1) {
                float *want = fresh(m, how, prompt + 100 * seq[i], LENGTH);
                CHECK(same(b->output(b, schedule) + (size_t)i * vocab, want, vocab));
                free(want);
            }
        }
    }
    for (int q = 0; q < SEQUENCES; q++) {
        b->kv_free(b, kv[q]);
    }
    b->release(b, schedule);
    bz_plan_free(plan);
    bz_session_free(s);
}

/* ---- bad requests ------------------------------------------------------------ */

static void test_requests(const bz_model *m)
{
    bz_error err = {0};
    bz_job *job = NULL;
    bz_session *s = NULL;
    const int32_t bad[] = {2, 640}, negative[] = {-1};
    begin("unsupported requests are refused with a reason");
    CHECK(bz_session_new(
              &s, m, &(bz_session_options){.size = sizeof(bz_session_options), .context = 1000000},
              &err) == BZ_BAD_REQUEST);
    CHECKF(strcmp(err.text, "A context of 1000000 was requested; this model goes up to 512.") == 0,
           "%s", err.text);
    CHECK(bz_session_new(
              &s, m, &(bz_session_options){.size = sizeof(bz_session_options), .kernels = "abacus"},
              &err) == BZ_BAD_REQUEST);
    s = session_or_fail(m,
                        &(bz_session_options){.size = sizeof(bz_session_options), .context = 20});
    CHECK(bz_session_prefill(s, prompt, 0, NULL, &job, &err) == BZ_BAD_REQUEST);
    CHECK(bz_session_prefill(s, bad, 2, NULL, &job, &err) == BZ_BAD_REQUEST);
    CHECKF(strcmp(err.text,
                  "Token 640 (number 1 of the prompt) is not in the vocabulary of 640.") == 0,
           "%s", err.text);
    CHECK(bz_session_prefill(s, negative, 1, NULL, &job, &err) == BZ_BAD_REQUEST);
    CHECK(bz_session_prefill(s, prompt, 21, NULL, &job, &err) == BZ_CONTEXT_FULL);
    CHECK(bz_session_generate(s, NULL, &job, &err) == BZ_BAD_REQUEST);
    CHECK(bz_session_prefill(s, prompt, 15, NULL, &job, &err) == BZ_OK);
    bz_job *second = NULL;
    CHECK(bz_session_prefill(s, prompt, 15, NULL, &second, &err) == BZ_BAD_REQUEST);
    CHECK(bz_job_run(job, NULL, &err) == BZ_OK);
    bz_job_free(job);

    begin("generation ends with the context");
    int32_t made[64];
    CHECK(generate(s, made, 64) == 5); /* positions 15 .. 19 */
    CHECK(bz_session_get_stats(s).position == 20);
    bz_session_free(s);
}

/* ---- cancelling ------------------------------------------------------------------- */

/* Counts steps, and cancels at the given one. */
typedef struct canceller {
    unsigned steps, cancel_at, after; /* after: calls since it asked to cancel */
    unsigned progress;
} canceller;

static int on_step(void *user, const bz_event *e)
{
    canceller *c = user;
    c->after += c->cancel_at && c->steps >= c->cancel_at;
    c->steps += e->kind == BZ_EVENT_STEP;
    c->progress += e->kind == BZ_EVENT_PROGRESS;
    return c->cancel_at && c->steps >= c->cancel_at;
}

/* A prompt of one chunk that takes many steps. */
static void test_cancel(void)
{
    enum { LONG = 400 };
    const uint32_t n = quick_run() ? 100 : LONG; /* sanitizers: long enough for several steps */
    bz_model *m = open_or_fail("models/pebble.gguf");
    int32_t ids[LONG];
    for (int i = 0; i < LONG; i++) {
        ids[i] = 4 + i % 500;
    }
    bz_session *s = session_or_fail(m, &(bz_session_options){.size = sizeof(bz_session_options),
                                                             .exact = true,
                                                             .kernels = "plain",
                                                             .threads = 1});
    bz_error err = {0};
    bz_job *job = NULL;
    begin("the event callback is called inside a long pass");
    canceller c = {0};
    const bz_host host = {.size = sizeof host, .event = on_step, .user = &c};
    CHECK(bz_session_prefill(s, ids, n, NULL, &job, &err) == BZ_OK);
    CHECK(bz_job_run(job, &host, &err) == BZ_OK);
    bz_job_free(job);
    CHECKF(c.progress == 1 && c.steps >= 4, "%u steps, %u progress events", c.steps, c.progress);
    const unsigned all = c.steps;

    begin("a flag cancels a long pass after the step that sees it");
    c = (canceller){.cancel_at = all / 2};
    ids[0] = 7; /* nothing can be reused */
    CHECK(bz_session_prefill(s, ids, n, NULL, &job, &err) == BZ_OK);
    CHECK(bz_job_run(job, &host, &err) == BZ_ABORTED && err.code == BZ_ABORTED);
    bz_job_free(job);
    CHECKF(c.steps == all / 2 && c.after == 0 && c.progress == 0, "%u steps, %u after", c.steps,
           c.after);
    CHECK(bz_session_get_stats(s).position == 0);

    begin("a session continues after a cancelled job");
    c = (canceller){0};
    CHECK(bz_session_prefill(s, ids, n, NULL, &job, &err) == BZ_OK);
    CHECK(bz_job_run(job, &host, &err) == BZ_OK && bz_session_get_stats(s).position == n);
    bz_job_free(job);
    bz_session_free(s);
    bz_model_free(m);
}

static void test_cancel_open(void)
{
    begin("a flag cancels opening after the step that sees it");
    canceller c = {.cancel_at = 1};
    const bz_host host = {.size = sizeof host, .event = on_step, .user = &c};
    const bz_open_options o = {.size = sizeof o, .host = &host};
    bz_model *m = NULL;
    bz_error err = {0};
    CHECK(bz_model_open_file(&m, "models/pebble.gguf", NULL, &o, &err) == BZ_ABORTED && !m);
    CHECK(c.steps == 1 && c.after == 0);
    c = (canceller){0};
    CHECK(bz_model_open_file(&m, "models/pebble.gguf", NULL, &o, &err) == BZ_OK);
    CHECKF(c.steps >= 5, "opening takes %u steps", c.steps); /* header, model, tokenizer, ... */
    bz_model_free(m);
}

int main(void)
{
    const char *const names[] = {"nano-e-q4_0", "nano-moe-q8_0", "nano-dense-f32"};
    for (int i = 0; i < (quick_run() ? 1 : 3); i++) {
        char file[64];
        snprintf(file, sizeof file, "%s.gguf", names[i]);
        bz_model *m = open_or_fail(model_path(file));
        make_prompt(bz_model_vocab(m));
        for (numbers how = F16; how <= Q4; how++) {
            if (how == EXACT && quick_run()) {
                continue;
            }
            /* Tables differ in products and in how they read an f16 cache; 8 and 4 bits are read
             * by the same code for all, so the best table and the plain one suffice. */
            const size_t n_tables = quick_run() ? 1 : bz_kernels_count();
            for (size_t k = 0; k < n_tables; k++) {
                if (!kv_of(how) || k == 0 || k + 1 == n_tables) {
                    test_chunks(m, names[i], how, bz_kernels_at(k)->name);
                }
            }
            test_reuse(m, names[i], how);
            test_snapshots(m, names[i], how);
            test_generate(m, names[i], how);
            test_batch(m, names[i], how);
        }
        if (i == 0) {
            test_requests(m);
        }
        bz_model_free(m);
    }
    test_cancel();
    test_cancel_open();
    return finish();
}
