/* From logits to tokens on the GPU: candidates, sums, edits and choice against the CPU's sampler on
 * the same rows; then generating: passes sent ahead give what passes one by one give, whatever
 * happens in between. */
#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "gpu/run/backend.h"
#include "gpu/run/internal.h"
#include "sample/random.h"
#include "sample/sampler.h"
#include "session/session.h"
#include "support/check.h"
#include "support/devices.h"
#include "support/forward.h"
#include "support/golden.h"
#include "support/gpu_wait.h"
#include "support/structured.h"

/* ---- counting allocations: the linker sends the program's own through here ------------- */

static atomic_int allocations;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

void *__wrap_malloc(size_t n)
{
    allocations++;
    return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    allocations++;
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    allocations++;
    return __real_realloc(p, n);
}

/* ---- random numbers ---------------------------------------------------------------------- */

static uint64_t draws;

static double unit(void)
{
    return bz_random_unit(77, draws++);
}

static uint32_t below(uint32_t n)
{
    return (uint32_t)(unit() * n);
}

static float normal(void)
{
    return (float)(sqrt(-2 * log(1 - unit())) * cos(6.283185307179586 * unit()));
}

/* ---- a model of one table, whose rows are the logits ---------------------------------------- */

enum { KINDS = 14 };

typedef struct lab {
    bz_gpu_model *model;
    bz_backend *b;
    bz_weight_info info;
    bz_weights weights;
    const uint8_t *bytes[1];
    float *rows; /* [KINDS][vocab] */
    uint32_t vocab;
    bz_plan *plan;
    bz_schedule *schedule;
    bz_kv *kv;
    void *kv_list[1];
} lab;

static const char *const kind_names[KINDS] = {
    "normal",     "softcapped",       "few values",     "all equal",     "ascending",
    "descending", "with NaN and inf", "all -inf",       "all NaN",       "one finite",
    "huge",       "in one run",       "zeros and tiny", "-inf and +inf",
};

static float value_of(int kind, uint32_t i, uint32_t n)
{
    switch (kind) {
    case 0: return normal() * 8;
    case 1: return 30 * tanhf(normal() * 0.7f);
    case 2: return (float)below(5) - 2;
    case 3: return -1.5f;
    case 4: return (float)i * 1e-4f - 3;
    case 5: return 5 - (float)i * 1e-4f;
    case 6: {
        static const float odd[] = {NAN, -INFINITY, INFINITY, FLT_MAX, -FLT_MAX, -0.0f, 0.0f};
        return below(3) ? normal() : odd[below(7)];
    }
    case 7: return -INFINITY;
    case 8: return NAN;
    case 9: return i == n - 1 ? -7.25f : i % 2 ? NAN : -INFINITY;
    case 10: return normal() * 1e38f;
    case 11: return i / 32 == n / 64 ? 20 + normal() : normal();
    case 12: return i % 3 ? (i % 2 ? 0.0f : -0.0f) : (float)((int)below(9) - 4) * 1e-37f;
    default: return i % 5 ? -INFINITY : INFINITY;
    }
}

static void lab_open(lab *l, uint32_t vocab, bool baseline)
{
    bz_error err = {0};
    *l = (lab){.vocab = vocab};
    l->rows = malloc((size_t)KINDS * vocab * sizeof *l->rows);
    for (int k = 0; k < KINDS; k++) {
        for (uint32_t i = 0; i < vocab; i++) {
            l->rows[(size_t)k * vocab + i] = value_of(k, i, vocab);
        }
    }
    l->info = (bz_weight_info){.name = "rows",
                               .type = BZ_F32,
                               .ne = {vocab, KINDS, 1},
                               .size = (uint64_t)KINDS * vocab * 4};
    l->weights = (bz_weights){.info = &l->info, .n = 1, .cap = 1};
    l->bytes[0] = (const uint8_t *)l->rows;
    bz_need need = {0};
    bz_progress p;
    if (bz_gpu_model_new(&l->model, &(gpu_options){.baseline = baseline}, &l->weights, l->bytes,
                         &err) != BZ_OK) {
        printf("FAIL opening a device: %s\n", err.text);
        exit(1);
    }
    while ((p = bz_gpu_model_load(l->model, &need)) != BZ_JOB_DONE &&
           CHECKF(p != BZ_JOB_ERROR, "%s", need.error.text)) {
        bz_os_sleep(p == BZ_JOB_NEED_GPU ? GPU_POLL_NS : 0);
    }
    CHECKF(bz_gpu_new(&l->b, l->model, true, BZ_CACHE_F32, true, &err) == BZ_OK, "%s", err.text);
    CHECK(bz_plan_new(&l->plan, &l->weights, NULL, 0, 1, 1, &err) == BZ_OK);
    bz_tensor x = bz_embed(l->plan, (bz_weight){1}, 1, "row");
    CHECK(bz_plan_finish(l->plan, bz_take_rows(l->plan, x, "logits"), &err) == BZ_OK);
    CHECKF(l->b->prepare(l->b, l->plan, &l->schedule, &err) == BZ_OK, "%s", err.text);
    CHECK(l->b->kv_new(l->b, NULL, 0, BZ_CACHE_F32, 0, NULL, &l->kv, &err) == BZ_OK);
    l->kv_list[0] = l->kv;
}

static void lab_close(lab *l)
{
    l->b->release(l->b, l->schedule);
    bz_plan_free(l->plan);
    l->b->kv_free(l->b, l->kv);
    l->b->free(l->b);
    bz_gpu_model_drop(l->model);
    free(l->rows);
}

static bool lab_send(lab *l, const bz_topk_request *topk, int32_t kind, double u)
{
    bz_error err = {0};
    const int32_t pos = 0;
    const uint32_t zero = 0;
    const bz_rows rows = {
        .n = 1, .n_out = 1, .id = &kind, .pos = &pos, .seq = &zero, .out = &zero, .kv = l->kv_list};
    bz_pass_state state = BZ_PASS_ERROR;
    if (!topk || l->b->set_topk(l->b, l->schedule, l->kv, topk, &err) == BZ_OK) {
        while ((state = l->b->send(l->b, l->schedule, &rows,
                                   kind < 0 ? BZ_FEED_CHOICE : BZ_FEED_IDS, &u, &err)) ==
               BZ_PASS_WAIT) {
            bz_os_sleep(GPU_POLL_NS);
        }
    }
    return CHECKF(state == BZ_PASS_DONE, "%s", err.text);
}

static bool lab_receive(lab *l, bz_shortlist *list, int32_t *guess)
{
    bz_error err = {0};
    bz_pass_state state;
    while ((state = l->b->receive(l->b, list, guess, NULL, &err)) == BZ_PASS_WAIT) {
        bz_os_sleep(GPU_POLL_NS);
    }
    return CHECKF(state == BZ_PASS_DONE, "%s", err.text);
}

/* The row of the pass received last, as the device holds it. */
static const float *lab_row(lab *l)
{
    bz_error err = {0};
    bz_pass_state state;
    l->b->begin_logits(l->b);
    while ((state = l->b->step(l->b, 0, &err)) == BZ_PASS_WAIT || state == BZ_PASS_AGAIN) {
        bz_os_sleep(GPU_POLL_NS);
    }
    CHECKF(state == BZ_PASS_DONE, "%s", err.text);
    return l->b->output(l->b, l->schedule);
}

static bool near(float a, float b)
{
    return a == b || fabs((double)a - (double)b) < 1e-5 * fmax(1, fabs((double)b));
}

static bool same_value(float a, float b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void same_sum(bz_exp_sum a, bz_exp_sum b)
{
    CHECKF(a.max == b.max && (a.max == -INFINITY || fabs(log(a.sum) - log(b.sum)) < 1e-6),
           "%g %.9g, not %g %.9g", (double)a.max, a.sum, (double)b.max, b.sum);
}

static void same_list(const bz_shortlist *got, const bz_shortlist *want,
                      const bz_topk_request *topk)
{
    CHECKF(got->n == want->n && got->whole == want->whole && got->finite == want->finite,
           "%u%s%s, not %u%s%s", got->n, got->whole ? " whole" : "",
           got->finite ? "" : " not finite", want->n, want->whole ? " whole" : "",
           want->finite ? "" : " not finite");
    for (uint32_t i = 0; i < got->n && i < want->n; i++) {
        if (!CHECKF(got->best[i].id == want->best[i].id &&
                        got->best[i].logit == want->best[i].logit &&
                        same_value(got->raw[i], want->raw[i]),
                    "place %u: token %d with %.9g (%.9g), not %d with %.9g (%.9g)", i,
                    got->best[i].id, (double)got->best[i].logit, (double)got->raw[i],
                    want->best[i].id, (double)want->best[i].logit, (double)want->raw[i])) {
            break;
        }
    }
    if (topk->sum) {
        same_sum(got->sum, want->sum);
    }
    if (topk->raw_sum) {
        same_sum(got->raw_sum, want->raw_sum);
    }
}

/* ---- what is asked for ------------------------------------------------------------------------
 */

enum { N_SEEN = 90, MAX_BIAS = 3000 };

typedef struct request {
    bz_sampling sampling;
    bool log_probs;
    bool edits; /* bias, forbidden, seen */
} request;

static const request requests[] = {
    {{.greedy = true}, false, false},
    {{.greedy = true}, true, true},
    {{.top_k = 2, .temperature = 0.7f}, false, false},
    {{.top_k = 40, .top_p = 0.9f}, true, false},
    {{.top_k = 64, .repetition = 1.1f, .frequency = 0.1f, .presence = 0.3f, .window = N_SEEN},
     true,
     true},
    {{.top_k = 255, .top_p = -1, .min_p = 0.05f, .temperature = 2}, false, true},
    {{.top_k = 256, .repetition = 0.7f, .window = 64}, false, true},
    {{.top_k = -1, .top_p = 0.5f}, true, true},
    {{.top_k = -1,
      .top_p = -1,
      .repetition = 3.7f,
      .presence = -2,
      .frequency = 1e-3f,
      .window = -1},
     true,
     true},
    {{.top_k = -1, .top_p = -1}, false, false},
};
enum { N_REQUESTS = sizeof requests / sizeof *requests };

static bz_sampler *sampler_of(const request *r, uint32_t vocab, bz_bias *bias)
{
    bz_error err = {0};
    bz_sampler *s = NULL;
    const int32_t forbidden[] = {0, (int32_t)vocab - 1, 7};
    int32_t seen[N_SEEN];
    bz_sampling o = r->sampling;
    if (r->edits) {
        uint32_t n = below(4) ? below(40) : below(MAX_BIAS);
        for (uint32_t i = 0; i < n; i++) {
            static const float odd[] = {INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, -0.0f};
            bias[i] = (bz_bias){(int32_t)below(vocab), below(20) ? normal() * 5 : odd[below(5)]};
        }
        o.bias = bias;
        o.n_bias = n;
    }
    CHECK(bz_sampler_new(&s, vocab, 4096, forbidden, r->edits ? 3 : 0, &err) == BZ_OK);
    CHECKF(bz_sampler_begin(s, &o, r->log_probs, 0, &err) == BZ_OK, "%s", err.text);
    for (int i = 0; i < N_SEEN; i++) {
        seen[i] = below(9) ? (int32_t)(below(N_SEEN) * (vocab / N_SEEN)) : -1;
    }
    bz_sampler_see(s, seen, N_SEEN);
    return s;
}

/* The guess is allowed to be wrong, but seldom: it is made in f32. */
static uint32_t guesses, wrong_guesses;

static void test_rows(uint32_t vocab)
{
    static bz_bias bias[MAX_BIAS];
    begin("vocabulary %u: candidates, sums and edits are the CPU's on rows of every kind", vocab);
    lab l;
    lab_open(&l, vocab, true);
    for (int kind = 0; kind < KINDS; kind++) {
        for (int r = 0; r < N_REQUESTS; r++) {
            if ((quick_run() || vocab > 50000) && (kind + r) % 3) {
                continue;
            }
            bz_sampler *s = sampler_of(&requests[r], vocab, bias);
            const bz_topk_request topk = bz_sampler_topk_request(s);
            bz_shortlist got, want;
            bz_error err = {0};
            int32_t guess = -1;
            const double u = unit();
            if (lab_send(&l, &topk, kind, u) && lab_receive(&l, &got, &guess)) {
                const float *row = lab_row(&l);
                for (uint32_t i = 0; i < vocab; i++) {
                    if (!CHECK(same_value(row[i], l.rows[(size_t)kind * vocab + i]))) {
                        break;
                    }
                }
                bz_status status = bz_sampler_shortlist(s, row, &want, &err);
                same_list(&got, &want, &topk);
                bz_choice a, b;
                if (status == BZ_OK && bz_sampler_choose(s, &got, NULL, u, &a) &&
                    bz_sampler_choose(s, &want, NULL, u, &b)) {
                    CHECKF(a.id == b.id, "%s: token %d, not %d", kind_names[kind], a.id, b.id);
                    CHECKF(!requests[r].log_probs || near(a.log_prob, b.log_prob),
                           "%s, request %d: log-probability %.9g, not %.9g", kind_names[kind], r,
                           (double)a.log_prob, (double)b.log_prob);
                    guesses++;
                    wrong_guesses += guess != a.id;
                }
            }
            bz_sampler_free(s);
        }
    }
    lab_close(&l);
}

static void test_flights(void)
{
    begin("several passes in flight, fed with their own choice, some abandoned");
    lab l;
    lab_open(&l, 300, true);
    gpu *g = l.model->g;
    bz_error err = {0};
    bz_sampler *s = NULL;
    CHECK(bz_sampler_new(&s, 300, 64, NULL, 0, &err) == BZ_OK);
    for (int round = 0; round < 6; round++) {
        /* bias makes the choice the number of a row that exists: 3, from whatever row */
        const bz_bias bias = {3, 1e30f};
        CHECK(bz_sampler_begin(s, &(bz_sampling){.greedy = true, .bias = &bias, .n_bias = 1}, false,
                               0, &err) == BZ_OK);
        bz_topk_request topk = bz_sampler_topk_request(s);
        bz_shortlist list;
        int32_t guess;
        gpu_counts before = gpu_counts_of(g);
        CHECK(lab_send(&l, &topk, 0, 0));
        for (int i = 0; i < 3; i++) {
            CHECK(lab_send(&l, NULL, -1, 0));
        }
        CHECK(gpu_counts_of(g).submits == before.submits + 4);
        CHECK(lab_receive(&l, &list, &guess) && guess == 3 && list.raw[0] == l.rows[3]);
        CHECK(lab_receive(&l, &list, &guess) && guess == 3 && list.raw[0] == l.rows[3 * 300 + 3]);
        if (round % 2) {
            l.b->discard(l.b); /* and the next list is that of the next pass sent */
        } else {
            CHECK(lab_receive(&l, &list, &guess) && lab_receive(&l, &list, &guess) &&
                  list.raw[0] == -1.5f);
        }
    }
    for (int i = 0; i < 100; i++) { /* the ring of those forgotten never overflows */
        CHECK(lab_send(&l, NULL, 3, 0));
        l.b->discard(l.b);
    }
    bz_shortlist list;
    int32_t guess;
    CHECK(lab_send(&l, NULL, 5, 0) && lab_receive(&l, &list, &guess) &&
          list.raw[0] == l.rows[5 * 300 + 3]);
    bz_sampler_free(s);
    lab_close(&l);
}

/* For looking at, not for passing: how long the end of a pass takes. */
static void show_times(void)
{
    lab l;
    bz_shortlist list;
    int32_t guess;
    lab_open(&l, 262144, false);
    printf("  %s, vocabulary 262144, microseconds\n", gpu_adapter_name(l.model->g));
    for (int kind = 0; kind < KINDS; kind++) {
        const bz_edits none = {0};
        const bz_topk_request topks[] = {
            {.edits = &none, .wanted = 1, .greedy = true},
            {.edits = &none, .wanted = 64, .top_k = 64, .top_p = 0.95f, .temperature = 1},
            {.edits = &none,
             .wanted = 256,
             .top_p = 0.95f,
             .temperature = 1,
             .sum = true,
             .raw_sum = true}};
        printf("  %-18s", kind_names[kind]);
        for (int w = 0; w < 3; w++) {
            double best[2] = {1e9, 1e9};
            CHECK(lab_send(&l, &topks[w], kind, 0.5) && lab_receive(&l, &list, &guess));
            for (int i = 0; i < 20; i++) {
                double ns[4];
                if (gpu_time_list(l.model->g, l.schedule->list, l.schedule->n, 2, ns)) {
                    best[0] = fmin(best[0], ns[0] / 1e3);
                    best[1] = fmin(best[1], ns[1] / 1e3);
                }
            }
            printf("   %3u candidates: scan %6.1f, pick %6.1f", topks[w].wanted, best[0], best[1]);
        }
        printf("\n");
    }
    lab_close(&l);
}

/* ---- generating ---------------------------------------------------------------------------------
 */

enum { PROMPT = 24, MAX_TOKENS = 400 };

/* A token takes a software adapter about 40 ms: a short run generates fewer, but more than twice as
 * many as there are passes in flight. */
static uint32_t shortened(uint32_t tokens)
{
    return quick_run() ? tokens * 2 / 5 : tokens;
}

typedef struct answer {
    int32_t ids[MAX_TOKENS];
    float log_prob[MAX_TOKENS], top_prob[MAX_TOKENS];
    int32_t top_id[MAX_TOKENS];
    size_t n, stop_after; /* cancelled after this many tokens; 0: never */
    bz_finish finish;
    bz_error err;
} answer;

static int32_t prompt[PROMPT];

static bz_status answer_now(bz_session *s, const bz_generate_options *o, size_t stop_after,
                            uint32_t more_steps, answer *a)
{
    *a = (answer){.stop_after = stop_after};
    bz_job *job = NULL;
    bz_need need = {0};
    bz_status status = bz_session_generate(s, o, &job, &a->err);
    if (status != BZ_OK) {
        return status;
    }
    for (bool ended = false; !ended;) {
        switch (bz_job_step(job, &need)) {
        case BZ_JOB_EVENT:
            a->log_prob[a->n] = need.event.log_prob;
            if (need.event.n_top) {
                a->top_id[a->n] = need.event.top[need.event.n_top - 1].token;
                a->top_prob[a->n] = need.event.top[need.event.n_top - 1].log_prob;
            }
            a->ids[a->n++] = need.event.token;
            ended = a->n == MAX_TOKENS;
            break;
        case BZ_JOB_NEED_GPU: bz_os_sleep(GPU_POLL_NS); break;
        case BZ_JOB_DONE: ended = true; break;
        case BZ_JOB_ERROR:
            ended = true;
            status = need.error.code;
            a->err = need.error;
            break;
        default: break;
        }
        if (stop_after && a->n == stop_after && !ended) {
            for (uint32_t i = 0; i < more_steps; i++) { /* somewhere between two tokens */
                bz_job_step(job, &need);
            }
            ended = true;
        }
    }
    a->finish = bz_job_finish(job);
    bz_job_free(job);
    return status;
}

static void same_answer(const answer *got, const answer *want, const char *what)
{
    CHECKF(got->n == want->n && got->finish == want->finish && got->err.code == want->err.code,
           "%s: %zu tokens, not %zu; finish %d, not %d; %s", what, got->n, want->n, got->finish,
           want->finish, got->err.text);
    for (size_t i = 0; i < got->n && i < want->n; i++) {
        if (!CHECKF(got->ids[i] == want->ids[i], "%s: token %zu is %d, not %d", what, i,
                    got->ids[i], want->ids[i]) ||
            !CHECKF(fabs((double)got->log_prob[i] - (double)want->log_prob[i]) < 1e-5 &&
                        got->top_id[i] == want->top_id[i] &&
                        fabs((double)got->top_prob[i] - (double)want->top_prob[i]) < 1e-5,
                    "%s: log-probability %g, not %g", what, (double)got->log_prob[i],
                    (double)want->log_prob[i])) {
            break;
        }
    }
}

static answer by_rows, one_by_one, ahead;

static void ask_three_ways(bz_session *s, const bz_generate_options *o, const char *what)
{
    static const uint32_t ways[] = {0, 1, BZ_AHEAD};
    answer *const answers[] = {&by_rows, &one_by_one, &ahead};
    for (int i = 0; i < 3; i++) {
        bz_error err = {0};
        s->ahead = ways[i];
        CHECKF(prefill(s, prompt, PROMPT, 0, NULL, &err) == BZ_OK, "%s", err.text);
        answer_now(s, o, 0, 0, answers[i]);
        CHECK(i == 0 || bz_session_get_stats(s).position == PROMPT + by_rows.n);
    }
    same_answer(&one_by_one, &by_rows, what);
    same_answer(&ahead, &by_rows, what);
    s->ahead = BZ_AHEAD;
}

static void test_samplings(const bz_model *m, const char *device)
{
    static const bz_bias bias[] = {{600, 4}, {601, -INFINITY}, {520, 2.5f}, {521, -3}};
    static const struct {
        const char *name;
        bz_generate_options o;
        uint32_t seeds;
    } cases[] = {
        {"greedy", {.sampling.greedy = true}, 1},
        {"greedy with log-probabilities", {.sampling.greedy = true, .log_probs = true}, 1},
        {"greedy with five of them", {.sampling.greedy = true, .top_log_probs = 5}, 1},
        {"as recommended", {.log_probs = true}, 4},
        {"top-k 1", {.sampling.top_k = 1}, 1},
        {"top-k 40, hot", {.sampling = {.top_k = 40, .temperature = 1.7f, .top_p = -1}}, 3},
        {"top-k 40, cold", {.sampling = {.top_k = 40, .temperature = 0.2f}}, 2},
        {"top-k 256",
         {.sampling = {.top_k = 256, .top_p = 0.99f, .temperature = 1.2f}, .top_log_probs = 5},
         3},
        {"top-k 300", {.sampling = {.top_k = 300, .top_p = -1, .temperature = 1.5f}}, 2},
        {"top-k 300, min-p", {.sampling = {.top_k = 300, .top_p = -1, .min_p = 0.02f}}, 2},
        {"top-k off", {.sampling = {.top_k = -1, .top_p = 0.9f}}, 3},
        {"top-k off, top-p near 1",
         {.sampling = {.top_k = -1, .top_p = 0.9999f, .temperature = 2}},
         2},
        {"nothing cut", {.sampling = {.top_k = -1, .top_p = -1}, .log_probs = true}, 4},
        {"nothing cut, hot", {.sampling = {.top_k = -1, .top_p = -1, .temperature = 1.5f}}, 2},
        {"min-p", {.sampling = {.top_k = -1, .top_p = -1, .min_p = 0.1f, .temperature = 1.3f}}, 2},
        {"min-p that leaves much",
         {.sampling = {.top_k = -1, .top_p = -1, .min_p = 1e-4f, .temperature = 3}},
         2},
        {"bias", {.sampling = {.bias = bias, .n_bias = 4}, .log_probs = true}, 2},
        {"bias with five log-probabilities",
         {.sampling = {.bias = bias, .n_bias = 4}, .top_log_probs = 5},
         1},
        {"penalties",
         {.sampling = {.repetition = 1.3f, .presence = 0.4f, .frequency = 0.2f, .window = 16},
          .log_probs = true},
         2},
        {"penalties over all, greedy",
         {.sampling = {.greedy = true, .repetition = 1.1f, .window = -1}},
         1},
        {"penalties with top-k off",
         {.sampling = {.top_k = -1, .repetition = 1.2f, .bias = bias, .n_bias = 4}},
         1},
        {"300 log-probabilities", {.top_log_probs = 300}, 1},
    };
    bz_session *s =
        session_or_fail(m, &(bz_session_options){.size = sizeof(bz_session_options), .chunk = 32});
    /* From here on the prompt is there but for its last token, which every asking computes again,
     * by itself: a pass of many rows rounds otherwise, and near ties would be decided otherwise. */
    bz_error err = {0};
    begin("%s: a first answer", device);
    CHECKF(prefill(s, prompt, PROMPT, 0, NULL, &err) == BZ_OK, "%s", err.text);
    answer_now(s,
               &(bz_generate_options){
                   .size = sizeof(bz_generate_options), .max_tokens = 2, .ignore_end = true},
               0, 0, &by_rows);
    CHECK(by_rows.n == 2);
    const bool second = strcmp(device, "gpu") != 0;
    const uint32_t n_made = shortened(24);
    /* The second device differs in the kernels that choose, which test_rows runs on every kind of
     * request: a short run takes every third case there. */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i += second && quick_run() ? 3 : 1) {
        begin("%s, %s: from rows, one by one and ahead: the same tokens", device, cases[i].name);
        const uint32_t seeds = quick_run() || second ? 1 : cases[i].seeds;
        for (uint32_t seed = 1; seed <= seeds; seed++) {
            bz_generate_options o = cases[i].o;
            o.size = sizeof o;
            o.sampling.seed = seed * 1000003;
            o.max_tokens = n_made;
            o.ignore_end = true;
            ask_three_ways(s, &o, cases[i].name);
            CHECK(by_rows.n == n_made && by_rows.finish == BZ_FINISH_LENGTH);
        }
    }

    begin("%s: bias that leaves no token, or one", device);
    static bz_bias none[4096];
    uint32_t vocab = bz_model_vocab(m);
    for (uint32_t i = 0; i < vocab; i++) {
        none[i] = (bz_bias){(int32_t)i, -INFINITY};
    }
    bz_generate_options o = {.size = sizeof o,
                             .max_tokens = 6,
                             .ignore_end = true,
                             .sampling = {.bias = none, .n_bias = vocab - 1}};
    ask_three_ways(s, &o, "one left");
    CHECK(by_rows.n == 6 && by_rows.ids[5] == (int32_t)vocab - 1);
    o.sampling.n_bias = vocab;
    ask_three_ways(s, &o, "none left");
    CHECK(by_rows.n == 0 && ahead.err.code == BZ_BAD_REQUEST);
    bz_session_free(s);
}

/* ---- what a token costs
 * ---------------------------------------------------------------------------- */

static void test_costs(const bz_model *m)
{
    static const struct {
        const char *name;
        bz_generate_options o;
        uint64_t read, written; /* bytes per token, at most */
    } cases[] = {
        {"greedy", {.sampling.greedy = true}, 64, 4096},
        {"as recommended", {.log_probs = true}, 1024, 4096},
        {"top-k 256", {.sampling = {.top_k = 256}}, 4096, 4096},
        {"penalties", {.sampling = {.repetition = 1.1f}}, 4096, 8192},
    };
    bz_session *s =
        session_or_fail(m, &(bz_session_options){.size = sizeof(bz_session_options), .chunk = 32});
    const uint32_t n = shortened(60);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin("%s: one submit and few bytes per token, nothing allocated", cases[i].name);
        bz_generate_options o = cases[i].o;
        o.size = sizeof o;
        bz_error err = {0};
        bz_job *job = NULL;
        bz_need need;
        bz_progress p;
        o.max_tokens = n;
        o.ignore_end = true;
        CHECK(prefill(s, prompt, PROMPT, 0, NULL, &err) == BZ_OK);
        CHECK(bz_session_generate(s, &o, &job, &err) == BZ_OK);
        gpu_counts before = gpu_counts_of(bz_model_device(s->model)), after;
        uint32_t made = 0;
        int at_tenth = 0;
        while ((p = bz_job_step(job, &need)) != BZ_JOB_DONE && p != BZ_JOB_ERROR) {
            made += p == BZ_JOB_EVENT;
            if (p == BZ_JOB_EVENT && made == 10) {
                at_tenth = allocations;
            } else if (p == BZ_JOB_NEED_GPU) {
                bz_os_sleep(GPU_POLL_NS);
            }
        }
        after = gpu_counts_of(bz_model_device(s->model));
        CHECK(p == BZ_JOB_DONE && made == n);
        CHECKF(after.submits - before.submits == n, "%d submits",
               (int)(after.submits - before.submits));
        CHECKF(after.read_bytes - before.read_bytes <= n * cases[i].read, "%d bytes read",
               (int)(after.read_bytes - before.read_bytes));
        CHECKF(after.written_bytes - before.written_bytes <= n * cases[i].written,
               "%d bytes written", (int)(after.written_bytes - before.written_bytes));
        CHECKF(allocations == at_tenth, "%d allocations", allocations - at_tenth);
        printf("  per token: %.0f bytes read, %.0f written, %.1f dispatches\n",
               (double)(after.read_bytes - before.read_bytes) / n,
               (double)(after.written_bytes - before.written_bytes) / n,
               (double)(after.dispatches - before.dispatches) / n);
        bz_job_free(job);
    }
    bz_session_free(s);
}

/* ---- a device that guesses wrong
 * --------------------------------------------------------------------- */

static int misled;

static void change_request(bz_topk_request *topk, double *u)
{
    misled++;
    if (topk->wanted) { /* zeros: the device keeps the previous ones */
        topk->greedy = false;
        topk->wanted = topk->wanted < 4 ? 4 : topk->wanted;
        topk->top_k = topk->top_k ? topk->top_k : 4;
        topk->temperature = 4;
        topk->top_p = 1;
    }
    *u = 1 - *u;
}

static void test_misled(const bz_model *m)
{
    static const bz_generate_options cases[] = {
        {.sampling.greedy = true},
        {.sampling.seed = 5},
        {.sampling = {.seed = 6, .top_k = 200, .temperature = 1.5f}}};
    const uint32_t n = shortened(40), n_prompt = quick_run() ? 6 : PROMPT; /* rows one by one */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin("a device that continues with wrong tokens changes nothing, case %zu", i);
        bz_session *s = session_or_fail(
            m, &(bz_session_options){.size = sizeof(bz_session_options), .chunk = 1});
        bz_generate_options o = cases[i];
        o.size = sizeof o;
        bz_error err = {0};
        o.max_tokens = n;
        o.ignore_end = true;
        s->ahead = 0;
        CHECK(prefill(s, prompt, n_prompt, 0, NULL, &err) == BZ_OK);
        answer_now(s, &o, 0, 0, &by_rows);
        CHECK(prefill(s, prompt, n_prompt, 0, NULL, &err) == BZ_OK);
        s->ahead = BZ_AHEAD;
        s->test_override = change_request;
        uint64_t before = gpu_counts_of(bz_model_device(s->model)).submits;
        answer_now(s, &o, 0, 0, &ahead);
        CHECKF(gpu_counts_of(bz_model_device(s->model)).submits - before > n * 3 / 2, "%d submits",
               (int)(gpu_counts_of(bz_model_device(s->model)).submits - before));
        same_answer(&ahead, &by_rows, "misled");
        s->test_override = NULL;
        CHECK(answer_now(s, &o, 0, 0, &ahead) == BZ_OK);
        s->ahead = 0;
        int32_t all[PROMPT + MAX_TOKENS];
        memcpy(all, prompt, sizeof prompt);
        memcpy(all + n_prompt, by_rows.ids, n * sizeof *all);
        CHECK(prefill(s, all, n_prompt + n, 0, NULL, &err) == BZ_OK);
        answer_now(s, &o, 0, 0, &by_rows);
        same_answer(&ahead, &by_rows, "gone on");
        bz_session_free(s);
    }
    CHECK(misled > 0);
}

/* ---- anything in any order
 * ------------------------------------------------------------------------------ */

static float *row_after(bz_session *s, const int32_t *ids, uint32_t n)
{
    bz_error err = {0};
    float *row = malloc(bz_model_vocab(s->model) * sizeof *row);
    CHECKF(prefill(s, ids, n, 0, NULL, &err) == BZ_OK, "%s", err.text);
    memcpy(row, bz_session_logits(s), bz_model_vocab(s->model) * sizeof *row);
    return row;
}

/* Two sessions live the same life, one ahead, one by rows; they must say the same and hold the
 * same. */
static void test_lives(const bz_model *m, uint32_t chunk, int steps)
{
    begin("chunk %u: answers cut short, stopped, continued and rewound equal those from rows",
          chunk);
    const uint32_t context = 200, vocab = bz_model_vocab(m);
    const bz_session_options so = {
        .size = sizeof so, .chunk = chunk, .context = context, .exact = true};
    bz_session *a = session_or_fail(m, &so), *b = session_or_fail(m, &so),
               *fresh = session_or_fail(m, &so);
    int32_t ids[256];
    uint32_t n = 0;
    b->ahead = 0;
    for (int step = 0; step < steps; step++) {
        bz_error err = {0};
        if (n == 0 || n > 150 || below(3) == 0) { /* go back and on with something else */
            uint32_t keep = n ? below(n) : 0, more = 1 + below(20);
            keep = below(3) && n > 12 ? n - below(12) : keep;
            keep = keep > 120 ? 120 : keep;
            for (uint32_t i = 0; i < more; i++) {
                ids[keep + i] = keep + i ? (int32_t)(494 + below(vocab - 501)) : 2;
            }
            n = keep + more;
            uint32_t snapshot = below(2) ? 1 + below(n) : 0;
            CHECKF(prefill(a, ids, n, snapshot, NULL, &err) == BZ_OK, "%s", err.text);
            CHECK(prefill(b, ids, n, snapshot, NULL, &err) == BZ_OK);
            /* Passes ahead may have cost ring rows: then more is computed again, by kernels that
             * add in another order. */
            double d = max_difference(bz_session_logits(a), bz_session_logits(b), vocab);
            CHECKF(chunk == 1 ? d == 0 : d < 1e-3, "off by %g", d);
        }
        int32_t stops[3] = {(int32_t)(494 + below(vocab - 501)), 0, 0};
        bz_generate_options o = {.size = sizeof o,
                                 .max_tokens = below(4) ? 1 + below(30) : 0,
                                 .ignore_end = below(2) != 0,
                                 .log_probs = below(2) != 0};
        o.sampling = (bz_sampling){.seed = (uint64_t)step,
                                   .greedy = below(3) == 0,
                                   .temperature = 1 + (float)below(3) / 2,
                                   .top_k = below(3) ? 0 : -1};
        o.sampling.repetition = below(4) ? 0 : 1.2f;
        if (by_rows.n > 3 && below(2)) { /* a token that may well come again */
            stops[1] = by_rows.ids[below((uint32_t)by_rows.n)];
        }
        o.stop_ids = stops;
        o.n_stop_ids = 3;
        size_t cancel = below(3) ? 0 : 1 + below(8);
        bz_status sb = answer_now(b, &o, cancel, 0, &by_rows),
                  sa = answer_now(a, &o, cancel, 0, &ahead);
        CHECK(sa == BZ_OK && sb == BZ_OK);
        same_answer(&ahead, &by_rows, "a life");
        uint32_t position = bz_session_get_stats(a).position;
        CHECKF(position == bz_session_get_stats(b).position, "%u tokens held, not %u", position,
               bz_session_get_stats(b).position);
        for (uint32_t i = n; i < position; i++) {
            ids[i] = by_rows.ids[i - n];
        }
        n = position;
        CHECK(memcmp(a->tokens, ids, n * sizeof *ids) == 0 && a->sent == 0);
        if (below(6) == 0) { /* left in the middle of a token: where, the device decides */
            answer_now(a, &o, 1 + below(3), below(6), &ahead);
            answer_now(b, &o, 1, 0, &by_rows);
            CHECK(a->sent == 0);
            uint32_t held = bz_session_get_stats(a).position;
            int32_t now[256];
            memcpy(now, a->tokens, held * sizeof *now);
            CHECK(held >= n && memcmp(now, ids, n * sizeof *ids) == 0);
            now[held] = 505;
            float *got = row_after(a, now, held + 1), *want = row_after(fresh, now, held + 1);
            double d = max_difference(got, want, vocab);
            CHECKF(d < 1e-3, "off by %g", d);
            free(got);
            free(want);
            n = 0; /* the two have parted */
        }
    }
    bz_session_free(a);
    bz_session_free(b);
    bz_session_free(fresh);
}

static void test_end(const bz_model *m)
{
    begin("the end of the context, continuing there and after an end token");
    bz_session *s = session_or_fail(m, &(bz_session_options){.size = sizeof(bz_session_options),
                                                             .context = PROMPT + 7,
                                                             .chunk = 8});
    bz_generate_options o = {.size = sizeof o, .ignore_end = true};
    ask_three_ways(s, &o, "to the end");
    CHECK(ahead.n == 7 && ahead.finish == BZ_FINISH_CONTEXT);
    CHECK(answer_now(s, &o, 0, 0, &ahead) == BZ_OK && ahead.n == 0 &&
          ahead.finish == BZ_FINISH_CONTEXT);
    bz_session_free(s);

    s = session_or_fail(m, &(bz_session_options){.size = sizeof(bz_session_options), .chunk = 8});
    const bz_bias force = {106, INFINITY};
    o = (bz_generate_options){.size = sizeof(bz_generate_options),
                              .max_tokens = 9,
                              .sampling = {.bias = &force, .n_bias = 1}};
    bz_error err = {0};
    CHECK(bz_session_generate(s, &o, &(bz_job *){NULL}, &err) ==
          BZ_BAD_REQUEST); /* nothing is prefilled */
    for (int i = 0; i < 3; i++) {
        bz_generate_options four = {
            .size = sizeof four, .max_tokens = 4, .ignore_end = true, .sampling.greedy = true};
        s->ahead = i == 0 ? 0 : (uint32_t)i;
        CHECK(prefill(s, prompt, PROMPT, 0, NULL, &err) == BZ_OK);
        CHECK(bz_session_logits(s));
        CHECK(answer_now(s, &four, 0, 0, &by_rows) == BZ_OK && by_rows.n == 4);
        CHECK((bz_session_logits(s) == NULL) == (i > 0));
        CHECK(answer_now(s, &o, 0, 0, &ahead) == BZ_OK && ahead.n == 1 &&
              ahead.finish == BZ_FINISH_END);
        CHECK(bz_session_get_stats(s).position == PROMPT + 4);
        four.max_tokens = 8;
        CHECK(answer_now(s, &four, 0, 0, &ahead) == BZ_OK && ahead.n == 8);
        if (i == 0) {
            one_by_one = ahead;
        } else {
            same_answer(&ahead, &one_by_one, "after an end token");
        }
    }
    bz_session_free(s);
}

/* Names what to run, by a part of its name; nothing: everything. */
static bool chosen(const char *name, int n, char **names)
{
    for (int i = 1; i < n; i++) {
        if (strstr(name, names[i])) {
            return true;
        }
    }
    return n == 1;
}

int main(int argc, char **argv)
{
    devices_keep();
    devices_count_as(DEVICES_AS_THEY_ARE);
    const uint32_t vocabs[] = {300, 301, 640, 1023, 1024, 1025, 33333, 262144, 262145};
    for (size_t i = 0; chosen("rows", argc, argv) && i < sizeof vocabs / sizeof *vocabs; i++) {
        test_rows(vocabs[i]);
    }
    if (chosen("rows", argc, argv)) {
        begin("the device's own choice is nearly always the host's");
        CHECKF(guesses > 100 && wrong_guesses * 100 <= guesses, "%u of %u wrong", wrong_guesses,
               guesses);
    }
    if (chosen("flights", argc, argv)) {
        test_flights();
    }

    if (argc == 2 && strcmp(argv[1], "times") == 0) {
        show_times();
        return finish();
    }

    bz_model *m = open_on_or_fail(model_path("nano-e-q8_0.gguf"), "gpu");
    for (int i = 0; i < PROMPT; i++) {
        prompt[i] = i ? 494 + i * 37 % 139 : 2;
    }
    if (chosen("samplings", argc, argv)) {
        test_samplings(m, "gpu");
    }
    if (chosen("costs", argc, argv)) {
        test_costs(m);
    }
    if (chosen("misled", argc, argv)) {
        test_misled(m);
    }
    if (chosen("end", argc, argv)) {
        test_end(m);
    }
    if (chosen("lives", argc, argv)) {
        test_lives(m, 1, quick_run() ? 6 : 20);
        test_lives(m, 16, quick_run() ? 6 : 20);
    }
    if (chosen("structured", argc, argv)) {
        bz_model *cpu = open_or_fail(model_path("nano-e-q8_0.gguf"));
        check_structured(m, cpu, quick_run() ? 3 : 16);
        bz_model_free(cpu);
    }
    bz_model_free(m);
    if (chosen("moe", argc, argv)) {
        m = open_on_or_fail(model_path("nano-moe-q8_0.gguf"), "gpu-baseline");
        test_samplings(m, "gpu-baseline");
        bz_model_free(m);
    }
    return finish();
}
