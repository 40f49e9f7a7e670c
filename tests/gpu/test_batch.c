/* bezel_batch.h on the GPU: sequences of different lengths that join and leave get the tokens that
 * sessions of their own generate. With int8 activations that holds for up to 8 sequences: kernels
 * for more rows round in groups of another size, so that now and then another token is the best. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bezel_batch.h"
#include "gpu/device/test_hooks.h"
#include "session/model.h"
#include "support/check.h"
#include "support/devices.h"
#include "support/forward.h"
#include "support/golden.h"
#include "support/random.h"

enum { MAX_TOKENS = 320, CONTEXT = 384, CHUNK = 32 };

typedef struct sequence {
    uint32_t prompt, answer; /* tokens wanted */
    int32_t ids[MAX_TOKENS]; /* prompt, then answer */
    uint32_t n;              /* tokens so far */
    uint32_t slot;
    bool ended;
} sequence;

/* Every kind of choice: greedy, drawn from a short list, with penalties, and from more
 * candidates than a list has, so that rows of logits are read. */
static bz_generate_options options_of(const sequence *q)
{
    static const bz_sampling kinds[] = {{.greedy = true},
                                        {.seed = 5},
                                        {.repetition = 1.3f, .presence = 0.5f, .seed = 6},
                                        {.temperature = 3, .top_k = -1, .top_p = -1, .seed = 7}};
    return (bz_generate_options){.size = sizeof(bz_generate_options),
                                 .max_tokens = q->answer,
                                 .ignore_end = true,
                                 .sampling = kinds[q->prompt % 4]};
}

typedef struct run {
    bz_batch *batch;
    sequence *in_slot[BZ_BATCH_MAX_SLOTS];
    uint32_t running;
    uint32_t tokens; /* of all sequences */
} run;

static void on_event(void *user, const bz_batch_event *e)
{
    run *r = user;
    sequence *q = r->in_slot[e->slot];
    if (!CHECKF(q && e->error.code == BZ_OK && e->token >= 0, "%s", e->error.text)) {
        return;
    }
    q->ids[q->n++] = e->token;
    r->tokens++;
    if (e->finish != BZ_FINISH_NONE) {
        q->ended = true;
        r->in_slot[e->slot] = NULL;
        r->running--;
    }
}

static bz_batch *new_batch(const bz_model *m, uint32_t slots, bool exact)
{
    const bz_batch_options o = {
        .size = sizeof o, .slots = slots, .context = CONTEXT, .chunk = CHUNK, .exact = exact};
    bz_batch *b = NULL;
    bz_error err = {0};
    CHECKF(bz_batch_new(&b, m, &o, &err) == BZ_OK, "%s", err.text);
    return b;
}

/* Frees the batch. Returns the prompt tokens that needed no computing. lose_at: the device is lost
 * after that number of tokens; 0: never. */
static uint64_t run_batch(const bz_model *m, bz_batch *batch, sequence *all, uint32_t n,
                          uint32_t lose_at)
{
    run r = {.batch = batch};
    bz_error err = {0};
    uint32_t next = 0;
    while (batch && (next < n || r.running)) {
        while (next < n && bz_batch_has_free(batch)) {
            sequence *q = &all[next++];
            const bz_generate_options go = options_of(q);
            if (!CHECKF(bz_batch_start(r.batch, q->ids, q->prompt, &go, &q->slot, &err) == BZ_OK,
                        "%s", err.text)) {
                bz_batch_free(r.batch);
                return 0;
            }
            q->n = q->prompt;
            r.in_slot[q->slot] = q;
            r.running++;
        }
        if (!CHECKF(bz_batch_step(r.batch, on_event, &r, &err) == BZ_OK, "%s", err.text)) {
            break;
        }
        if (lose_at && r.tokens >= lose_at) {
            gpu_test_lose(bz_model_device(m));
            lose_at = 0;
        }
    }
    const uint64_t reused = batch ? bz_batch_reused(batch) : 0;
    bz_batch_free(r.batch);
    return reused;
}

static void fill_prompts(const bz_model *m, sequence *all, const uint32_t (*lengths)[2], uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        all[i] = (sequence){.prompt = lengths[i][0], .answer = lengths[i][1]};
        for (uint32_t k = 0; k < all[i].prompt; k++) {
            all[i].ids[k] = 3 + (int32_t)random_below(bz_model_vocab(m) - 3);
        }
    }
}

typedef struct answer {
    int32_t ids[MAX_TOKENS];
    uint32_t n;
} answer;

static int on_session_event(void *user, const bz_event *e)
{
    answer *a = user;
    if (e->kind == BZ_EVENT_TOKEN && a->n < MAX_TOKENS) {
        a->ids[a->n++] = e->token;
    }
    return 0;
}

/* How many sequences have the tokens that a session of its own generates. */
static uint32_t count_same(const bz_model *m, bool exact, const sequence *all, uint32_t n)
{
    uint32_t same = 0;
    bz_session *s = session_or_fail(m, &(bz_session_options){.size = sizeof(bz_session_options),
                                                             .exact = exact,
                                                             .context = CONTEXT,
                                                             .chunk = CHUNK});
    for (uint32_t i = 0; i < n; i++) {
        const sequence *q = &all[i];
        answer own = {.n = 0};
        bz_error err = {0};
        bz_job *job = NULL;
        const bz_generate_options go = options_of(q);
        const bz_host host = {.size = sizeof host, .event = on_session_event, .user = &own};
        CHECKF(q->ended && q->n == q->prompt + q->answer, "sequence %u has %u tokens of %u", i,
               q->n, q->prompt + q->answer);
        CHECKF(prefill(s, q->ids, q->prompt, 0, NULL, &err) == BZ_OK, "%s", err.text);
        CHECKF(bz_session_generate(s, &go, &job, &err) == BZ_OK &&
                   bz_job_run(job, &host, &err) == BZ_OK,
               "%s", err.text);
        bz_job_free(job);
        same += own.n == q->answer &&
                memcmp(own.ids, q->ids + q->prompt, q->answer * sizeof *own.ids) == 0;
    }
    bz_session_free(s);
    return same;
}

static void test_together(const bz_model *m, const char *name, bool exact, uint32_t slots,
                          const uint32_t (*lengths)[2], uint32_t n, uint32_t least)
{
    sequence *all = calloc(n, sizeof *all);
    begin("%s %s: %u sequences in %u slots", name, exact ? "exact" : "int8", n, slots);
    fill_prompts(m, all, lengths, n);
    run_batch(m, new_batch(m, slots, exact), all, n, 0);
    const uint32_t same = count_same(m, exact, all, n);
    CHECKF(same >= least, "%u of %u have the tokens of a session", same, n);
    free(all);
}

/* Prompts that begin alike are computed once per slot. The rings do not reach back to where they
 * differ: a snapshot does. */
static void test_prefix(const bz_model *m)
{
    enum { N = 3, SHARED = 60 };
    static const uint32_t lengths[N][2] = {{100, 2}, {103, 2}, {101, 2}};
    sequence *all = calloc(N, sizeof *all);
    begin("prompts that share a prefix reuse it");
    fill_prompts(m, all, lengths, N);
    for (uint32_t i = 1; i < N; i++) {
        memcpy(all[i].ids, all[0].ids, SHARED * sizeof *all[i].ids);
    }
    const uint64_t reused = run_batch(m, new_batch(m, 2, true), all, N, 0);
    CHECKF(reused >= SHARED, "%u tokens were reused", (unsigned)reused);
    CHECK(count_same(m, true, all, N) == N);
    free(all);
}

/* Sequences continue on another device. */
static void test_lost(const bz_model *m)
{
    enum { N = 3 };
    static const uint32_t lengths[N][2] = {{12, 4}, {41, 4}, {18, 4}};
    sequence *all = calloc(N, sizeof *all);
    begin("a lost device is replaced");
    fill_prompts(m, all, lengths, N);
    run_batch(m, new_batch(m, N, true), all, N, 6);
    CHECK(count_same(m, true, all, N) == N);
    free(all);
}

/* Caches in several bindings: rings of some sequences in each, and sequences that cross them. */
static void test_pieces(const bz_model *m)
{
    enum { N = 4, BYTES = 8 << 10 };
    static const uint32_t lengths[N][2] = {{12, 3}, {90, 3}, {50, 3}, {17, 3}};
    sequence *all = calloc(N, sizeof *all);
    gpu *g = bz_model_device(m);
    const gpu_limits before = *gpu_limits_of(g);
    gpu_limits small = before;
    small.max_binding = BYTES;
    begin("caches in several bindings");
    fill_prompts(m, all, lengths, N);
    gpu_test_limits(g, &small);
    bz_batch *b = new_batch(m, N, true); /* with its first caches */
    gpu_test_limits(g, &before);
    run_batch(m, b, all, N, 0);
    CHECK(count_same(m, true, all, N) == N);
    free(all);
}

/* {prompt, answer}: shorter than a window, longer than a chunk, and longer than the 256 positions
 * that a sequence has memory for at first. */
static const uint32_t few[][2] = {{12, 5}, {44, 3}, {254, 5}, {9, 6}};
/* More than 8 rows: tiles, and attention by row. */
static const uint32_t many[][2] = {{10, 9}, {12, 8}, {11, 8}, {16, 7}, {21, 6},
                                   {13, 6}, {31, 5}, {46, 4}, {9, 3}};
enum { FEW = sizeof few / sizeof *few, MANY = sizeof many / sizeof *many };

int main(void)
{
    devices_keep();
    random_seed_or(20261116);
    bz_model *m = open_on_or_fail(model_path("nano-e-f32.gguf"), "gpu");
    test_together(m, "nano-e-f32", true, 3, few, FEW, FEW);
    test_together(m, "nano-e-f32", true, MANY, many, MANY, MANY);
    test_prefix(m);
    test_pieces(m);
    test_lost(m);
    bz_model_free(m);
    m = open_on_or_fail(model_path("nano-moe-q8_0.gguf"), "gpu");
    test_together(m, "nano-moe-q8_0", false, 3, few, FEW, FEW);
    bz_model_free(m);
    if (!quick_run()) {
        m = open_on_or_fail(model_path("tiny-e-q4_k_m.gguf"), "gpu");
        test_together(m, "tiny-e-q4_k_m", false, MANY, many, MANY, MANY * 3 / 4);
        bz_model_free(m);
    }
    return finish();
}
