/* What the header promises about threads: a model is shared freely, a session belongs to one thread
 * at a time, and neither changes a bit of any result. Worth most under ThreadSanitizer (make tsan).
 */
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "base/pool.h"
#include "support/check.h"
#include "support/forward.h"
#include "support/golden.h"

enum { MOST = 6, PROMPT = 40, ANSWER = 20 };

/* CHECK is for one thread: the others only fill in what they found. */
static void run_all(void (*run)(void *), void *arguments, size_t size, int n)
{
    bz_os_thread *threads[MOST];
    for (int i = 0; i < n; i++) {
        threads[i] = bz_os_thread_start(run, (char *)arguments + (size_t)i * size);
        CHECK(threads[i] != NULL);
    }
    for (int i = 0; i < n; i++) {
        bz_os_thread_join(threads[i]);
    }
}

/* ---- sessions ------------------------------------------------------------------------ */

typedef struct answer {
    bz_status status;
    int32_t ids[2 * ANSWER]; /* greedy, then drawn */
    size_t n;
    float *logits; /* after the last token */
} answer;

static int on_token(void *user, const bz_event *e)
{
    answer *a = user;
    if (e->kind == BZ_EVENT_TOKEN && a->n < 2 * ANSWER) {
        a->ids[a->n++] = e->token;
    }
    return 0;
}

static bz_status run_and_free(bz_job *job, answer *a)
{
    bz_status status =
        bz_job_run(job, &(bz_host){.size = sizeof(bz_host), .event = on_token, .user = a}, NULL);
    bz_job_free(job);
    return status;
}

static void fill_prompt(const bz_model *m, unsigned number, int32_t ids[PROMPT])
{
    uint32_t x = 77 + number;
    ids[0] = 2;
    for (int i = 1; i < PROMPT; i++) {
        x = x * 1664525u + 1013904223u;
        ids[i] = (int32_t)(494 + (x >> 8) % (bz_model_vocab(m) - 501));
    }
}

static bz_status feed_prompt(bz_session *s, const bz_model *m, unsigned number, answer *a)
{
    int32_t ids[PROMPT];
    bz_job *job = NULL;
    fill_prompt(m, number, ids);
    bz_status status = bz_session_prefill(s, ids, PROMPT, NULL, &job, NULL);
    return status == BZ_OK ? run_and_free(job, a) : status;
}

static bz_status add_tokens(bz_session *s, uint32_t n, bool greedy, unsigned seed, answer *a)
{
    const bz_generate_options o = {.size = sizeof o,
                                   .max_tokens = n,
                                   .ignore_end = true,
                                   .sampling = {.greedy = greedy, .seed = seed}};
    bz_job *job = NULL;
    bz_status status = bz_session_generate(s, &o, &job, NULL);
    return status == BZ_OK ? run_and_free(job, a) : status;
}

/* A whole conversation: the prompt, some likeliest tokens, some drawn ones. */
static void converse(const bz_model *m, unsigned number, unsigned threads, answer *a)
{
    bz_session *s = NULL;
    a->n = 0;
    a->status = bz_session_new(
        &s, m,
        &(bz_session_options){.size = sizeof(bz_session_options), .threads = threads, .chunk = 16},
        NULL);
    if (a->status == BZ_OK) {
        a->status = feed_prompt(s, m, number, a);
    }
    if (a->status == BZ_OK) {
        a->status = add_tokens(s, ANSWER, true, 0, a);
    }
    if (a->status == BZ_OK) {
        a->status = add_tokens(s, ANSWER, false, number, a);
    }
    if (a->status == BZ_OK) {
        memcpy(a->logits, bz_session_logits(s), bz_model_vocab(m) * sizeof *a->logits);
    }
    bz_session_free(s);
}

static void new_answer(answer *a, const bz_model *m)
{
    *a = (answer){.logits = calloc(bz_model_vocab(m), sizeof(float))};
}

static bool same_answer(const answer *a, const answer *b, const bz_model *m)
{
    return a->status == BZ_OK && b->status == BZ_OK && a->n == 2 * ANSWER && b->n == 2 * ANSWER &&
           memcmp(a->ids, b->ids, sizeof a->ids) == 0 &&
           memcmp(a->logits, b->logits, bz_model_vocab(m) * sizeof *a->logits) == 0;
}

typedef struct speaker {
    const bz_model *model;
    unsigned number, threads;
    int rounds, right;
    const answer *want;
} speaker;

/* Sessions come and go in every round: so do their pools. */
static void speak(void *argument)
{
    speaker *p = argument;
    answer got;
    new_answer(&got, p->model);
    for (int i = 0; i < p->rounds; i++) {
        converse(p->model, p->number, p->threads, &got);
        p->right += same_answer(&got, p->want, p->model);
    }
    free(got.logits);
}

static void test_sessions(const char *file)
{
    enum { SPEAKERS = 4 };
    const int rounds = quick_run() ? 2 : 4;
    begin("%s: %d sessions in threads of their own answer as they do alone", file, SPEAKERS);
    bz_model *m = open_or_fail(model_path(file));
    answer alone[SPEAKERS];
    speaker speakers[SPEAKERS];
    for (unsigned i = 0; i < SPEAKERS; i++) {
        new_answer(&alone[i], m);
        converse(m, i, 1, &alone[i]);
        speakers[i] = (speaker){m, i, 1 + i % 2, rounds, 0, &alone[i]};
    }
    CHECK(!same_answer(&alone[0], &alone[1], m)); /* the answers do depend on the prompt */
    run_all(speak, speakers, sizeof *speakers, SPEAKERS);
    for (int i = 0; i < SPEAKERS; i++) {
        CHECKF(speakers[i].right == rounds, "session %d: %d of %d rounds", i, speakers[i].right,
               rounds);
        free(alone[i].logits);
    }
    bz_model_free(m);
}

/* ---- one session, several threads, one after the other ----------------------------------- */

typedef struct turn {
    const bz_model *model;
    bz_session *session;
    answer *answer;
    int number;
} turn;

static void take_turn(void *argument)
{
    turn *t = argument;
    answer *a = t->answer;
    switch (t->number) {
    case 0: a->status = feed_prompt(t->session, t->model, 3, a); break;
    case 1: a->status = add_tokens(t->session, ANSWER / 2, true, 0, a); break;
    case 2: a->status = add_tokens(t->session, ANSWER / 2, true, 0, a); break;
    default: a->status = add_tokens(t->session, ANSWER, false, 3, a); break;
    }
}

static void test_handing_over(const char *file)
{
    begin("%s: a session moves from thread to thread", file);
    bz_model *m = open_or_fail(model_path(file));
    answer want, got;
    new_answer(&want, m);
    new_answer(&got, m);
    converse(m, 3, 1, &want);
    bz_session *s = session_or_fail(
        m, &(bz_session_options){.size = sizeof(bz_session_options), .threads = 2, .chunk = 16});
    for (int i = 0; i < 4; i++) {
        turn t = {m, s, &got, i};
        run_all(take_turn, &t, sizeof t, 1);
    }
    memcpy(got.logits, bz_session_logits(s), bz_model_vocab(m) * sizeof *got.logits);
    CHECK(same_answer(&want, &got, m));
    bz_session_free(s);
    free(want.logits);
    free(got.logits);
    bz_model_free(m);
}

/* ---- tokens -------------------------------------------------------------------------------- */

static const char *const texts[] = {
    "Hello world, this is plain text.",
    "na\xC3\xAFve \xF0\x9F\x99\x82 text\n with  spaces",
    "<|turn>user\nspecials<turn|>\n",
    "",
    "\xE4\xB8\xAD\xE6\x96\x87 and \xFF broken bytes",
};
enum { TEXTS = sizeof texts / sizeof *texts, MAX_IDS = 128 };

typedef struct encoded {
    int64_t n;
    int32_t ids[MAX_IDS];
    size_t len;
    char text[MAX_IDS * 16];
} encoded;

/* There and back. */
static void encode(const bz_model *m, const char *text, encoded *e)
{
    memset(e, 0, sizeof *e);
    e->n = bz_tokenize(m, text, strlen(text), true, true, e->ids, MAX_IDS, NULL);
    bz_text_stream stream = {{0}};
    for (int64_t i = 0; i <= e->n && e->len + BZ_TEXT_MAX <= sizeof e->text; i++) {
        e->len += bz_text_push(&stream, m, i < e->n ? e->ids[i] : -1, true, e->text + e->len);
    }
}

typedef struct reader {
    const bz_model *model;
    int rounds, right;
    const encoded *want; /* [TEXTS] */
} reader;

static void read_texts(void *argument)
{
    reader *r = argument;
    encoded got;
    for (int i = 0; i < r->rounds; i++) {
        for (int t = 0; t < TEXTS; t++) {
            encode(r->model, texts[t], &got);
            r->right += memcmp(&got, &r->want[t], sizeof got) == 0;
        }
    }
}

typedef struct mixed {
    reader reader;
    speaker speaker;
    bool reads;
} mixed;

static void read_or_speak(void *argument)
{
    mixed *x = argument;
    if (x->reads) {
        read_texts(&x->reader);
    } else {
        speak(&x->speaker);
    }
}

static void test_tokens(void)
{
    enum { THREADS = 5 };
    const int rounds = quick_run() ? 20 : 200;
    begin("tokenizing in three threads while two sessions answer");
    bz_model *m = open_or_fail(model_path("nano-e-q8_0.gguf"));
    encoded want[TEXTS];
    for (int t = 0; t < TEXTS; t++) {
        encode(m, texts[t], &want[t]);
        CHECK(want[t].n > 0 && want[t].n <= MAX_IDS);
    }
    answer alone;
    new_answer(&alone, m);
    converse(m, 9, 1, &alone);
    mixed all[THREADS];
    for (int i = 0; i < THREADS; i++) {
        all[i] = (mixed){{m, rounds, 0, want}, {m, 9, 1, 2, 0, &alone}, i % 2 == 0};
    }
    run_all(read_or_speak, all, sizeof *all, THREADS);
    for (int i = 0; i < THREADS; i++) {
        if (all[i].reads) {
            CHECKF(all[i].reader.right == rounds * TEXTS, "thread %d: %d of %d", i,
                   all[i].reader.right, rounds * TEXTS);
        } else {
            CHECKF(all[i].speaker.right == 2, "thread %d: %d of 2", i, all[i].speaker.right);
        }
    }
    free(alone.logits);
    bz_model_free(m);
}

/* ---- opening ----------------------------------------------------------------------------------
 */

typedef struct opening {
    const char *path;
    const answer *want;
    bool opened;
    speaker speaker;
} opening;

static void open_and_speak(void *argument)
{
    opening *o = argument;
    bz_model *m = NULL;
    o->opened = bz_model_open_file(&m, o->path, NULL, NULL, NULL) == BZ_OK;
    if (o->opened) {
        o->speaker = (speaker){m, 1, 1, 1, 0, o->want};
        speak(&o->speaker);
        bz_model_free(m);
    }
}

static void test_opening(void)
{
    enum { TIMES = 3 };
    begin("the same file opened in %d threads at once", TIMES);
    const char *path = model_path("nano-dense-f32.gguf");
    bz_model *m = open_or_fail(path);
    answer alone;
    new_answer(&alone, m);
    converse(m, 1, 1, &alone);
    opening all[TIMES];
    for (int i = 0; i < TIMES; i++) {
        all[i] = (opening){.path = path, .want = &alone};
    }
    run_all(open_and_speak, all, sizeof *all, TIMES);
    for (int i = 0; i < TIMES; i++) {
        CHECKF(all[i].opened && all[i].speaker.right == 1, "thread %d", i);
    }
    free(alone.logits);
    bz_model_free(m);
}

/* ---- the pool
 * ------------------------------------------------------------------------------------ */

enum { TASKS = 50 };

typedef struct work {
    uint32_t done[TASKS]; /* plain memory: a task must own it, and the caller must see it */
    unsigned round;
} work;

static void add_one(void *context, uint32_t task, unsigned worker)
{
    (void)worker;
    work *w = context;
    w->done[task] += w->round;
}

static void test_pool(void)
{
    const unsigned rounds = quick_run() ? 300 : 3000;
    for (unsigned threads = 1; threads <= 4; threads++) {
        begin("a pool of %u runs every task of %u loops once", threads, rounds);
        bz_pool *pool = bz_pool_new(threads);
        CHECK(pool != NULL);
        work w = {{0}, 0};
        uint32_t sum = 0;
        for (unsigned r = 1; r <= rounds; r++) {
            w.round = r;
            sum += r;
            CHECK(bz_pool_run(pool, add_one, &w, 0, TASKS, 0) == TASKS);
            if (r % 100 ==
                0) { /* longer than workers look out for work: they sleep and are woken */
                bz_os_sleep(2000000);
            }
        }
        for (int i = 0; i < TASKS; i++) {
            CHECKF(w.done[i] == sum, "task %d: %u instead of %u", i, w.done[i], sum);
        }
        bz_pool_free(pool);
    }
}

int main(void)
{
    test_pool();
    test_sessions("nano-e-q4_0.gguf");
    test_sessions("nano-moe-q8_0.gguf");
    test_handing_over("nano-e-q4_0.gguf");
    test_tokens();
    test_opening();
    return finish();
}
