/* Random numbers, ranking, and the chain of filters against one written as plainly as possible:
 * a full sort and doubles. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "sample/random.h"
#include "sample/sampler.h"
#include "sample/softmax.h"
#include "support/check.h"
#include "support/golden.h"

static uint64_t draws; /* all random numbers below come from one stream */

static double unit(void)
{
    return bz_random_unit(2024, draws++);
}

static uint32_t below(uint32_t n)
{
    return (uint32_t)(unit() * n);
}

static float normal(void)
{
    return (float)(sqrt(-2 * log(1 - unit())) * cos(6.283185307179586 * unit()));
}

/* ---- random numbers ------------------------------------------------------------------- */

static void test_random(void)
{
    begin("Philox4x32-10 returns the published values");
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t out[4];
        bz_philox(known[i].counter, known[i].key, out);
        CHECK(memcmp(out, known[i].out, sizeof out) == 0);
    }

    begin("draws depend on all bits of seed and index, and never change");
    CHECK(bz_random_bits(0, 0) == 0xe169c58d6627e8d5u);
    CHECKF(bz_random_bits(1, 2) == 0x8e76cc9d3f55b3f0u, "%llx",
           (unsigned long long)bz_random_bits(1, 2));
    CHECK(bz_random_bits(0, 1) != bz_random_bits(1, 0));
    CHECK(bz_random_bits(0, (uint64_t)1 << 32) != bz_random_bits(0, 1));
    CHECK(bz_random_bits((uint64_t)1 << 32, 0) != bz_random_bits(1, 0));

    begin("uniform numbers are in [0, 1) and evenly distributed");
    int count[16] = {0};
    double sum = 0;
    for (uint64_t i = 0; i < 160000; i++) {
        double u = bz_random_unit(7, i);
        CHECK(u >= 0 && u < 1);
        count[(int)(u * 16)]++;
        sum += u;
    }
    CHECKF(fabs(sum / 160000 - 0.5) < 0.004, "mean %g", sum / 160000);
    for (int i = 0; i < 16; i++) {
        CHECKF(abs(count[i] - 10000) < 500, "%d of 10000", count[i]);
    }
}

/* ---- sums and ranking -------------------------------------------------------------------- */

static void test_exp(void)
{
    begin("the exponential is exact to 2e-7");
    double worst = 0;
    for (float x = 0; x > -86.9f; x -= 0.00371f) {
        worst = fmax(worst, fabs((double)bz_exp_f32(x) / exp((double)x) - 1));
    }
    CHECKF(worst < 2e-7, "off by %g", worst);
    CHECK(bz_exp_f32(0) == 1 && bz_exp_f32(-88) == 0 && bz_exp_f32(-INFINITY) == 0);
    CHECK(bz_exp_f32(-FLT_MAX) == 0 && bz_exp_f32(NAN) == 0 && bz_exp_f32(3) == 1);

    begin("sums of exponentials of unusual rows");
    float row[2000];
    for (uint32_t n = 1; n <= 2000; n += 37) {
        double sum = 0;
        for (uint32_t i = 0; i < n; i++) {
            row[i] = normal() * 8;
            sum += exp((double)row[i]);
        }
        bz_exp_sum e = bz_sum_exp(row, n);
        double got_log = (double)e.max + log(e.sum);
        CHECKF(fabs(got_log - log(sum)) < 1e-6, "%g, not %g", got_log, log(sum));
    }
    const float none[] = {NAN, -INFINITY}, odd[] = {NAN, 1, -INFINITY, 1},
                endless[] = {0, INFINITY, FLT_MAX};
    CHECK(bz_sum_exp(none, 2).max == -INFINITY);
    CHECK(bz_sum_exp(odd, 4).max == 1 && bz_sum_exp(odd, 4).sum == 2);
    CHECK(bz_sum_exp(endless, 3).max == FLT_MAX && bz_sum_exp(endless, 3).sum == 2);
}

static int by_rank(const void *a, const void *b)
{
    const bz_candidate *x = a, *y = b;
    return x->logit > y->logit ? -1 : x->logit < y->logit ? 1 : x->id - y->id;
}

static uint32_t sort_all(const float *row, uint32_t n, bz_candidate *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!isnan(row[i]) && row[i] != -INFINITY) {
            out[count++] = (bz_candidate){fminf(row[i], FLT_MAX), (int32_t)i};
        }
    }
    qsort(out, count, sizeof *out, by_rank);
    return count;
}

/* Rows of many kinds: plain, with ties, with -inf, with values at the limits of the range. */
static void fill_row(float *row, uint32_t n, int kind)
{
    for (uint32_t i = 0; i < n; i++) {
        float x = normal() * 4;
        switch (kind) {
        case 1: x = floorf(x); break;
        case 2: x = below(3) ? x : below(2) ? -INFINITY : NAN; break;
        case 3: x = 1.5f; break;
        case 4:
            x = below(2) ? x : below(2) ? FLT_MAX * (float)unit() : -FLT_MAX * (float)unit();
            break;
        case 5: x = (float)i * 0.01f; break;
        case 6: x = below(2) ? 0.0f : -0.0f; break;
        case 7: x = i % 7 ? -INFINITY : x * 0.1f; break;
        case 8: x = i == n / 2 ? INFINITY : x; break;
        case 9: x = (float)(n - i) * 0.01f; break;
        default: break;
        }
        row[i] = x;
    }
}

enum { KINDS = 10, MOST = 5000 };

static float row[MOST];
static bz_candidate want[MOST], got[MOST], scratch[MOST];

static void test_rank(void)
{
    begin("the best few and all, ranked as by a full sort");
    static const uint32_t sizes[] = {1, 2, 63, 64, 65, 256, 640, MOST}, most[] = {1, 2, 64, 256};
    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            fill_row(row, sizes[i], kind);
            uint32_t n = sort_all(row, sizes[i], want);
            for (size_t k = 0; k < sizeof most / sizeof *most; k++) {
                uint32_t few = bz_rank_best(row, sizes[i], most[k], got);
                CHECKF(few == (n < most[k] ? n : most[k]), "kind %d: %u of %u", kind, few, n);
                for (uint32_t j = 0; j < few; j++) {
                    CHECKF(got[j].id == want[j].id && got[j].logit == want[j].logit,
                           "kind %d, place %u", kind, j);
                }
            }
            CHECK(bz_rank_all(row, sizes[i], got, scratch) == n);
            for (uint32_t j = 0; j < n; j++) {
                CHECKF(got[j].id == want[j].id && got[j].logit == want[j].logit,
                       "kind %d, place %u", kind, j);
            }
        }
    }
}

static void show_times(void)
{
    enum { N = 262144, RUNS = 5 };
    begin("ranking 262,144 logits");
    float *big = malloc(N * sizeof *big);
    bz_candidate *all = malloc(N * sizeof *all), *other = malloc(N * sizeof *other),
                 best[BZ_CANDIDATES];
    for (int kind = 0; kind <= 5; kind += 5) {
        fill_row(big, N, kind);
        uint64_t t[5] = {bz_os_now()};
        for (int i = 0; i < RUNS; i++) {
            CHECK(bz_rank_best(big, N, BZ_CANDIDATES, best) == BZ_CANDIDATES);
        }
        t[1] = bz_os_now();
        for (int i = 0; i < RUNS; i++) {
            CHECK(bz_rank_best(big, N, 1, best) == 1);
        }
        t[2] = bz_os_now();
        for (int i = 0; i < RUNS; i++) {
            CHECK(bz_sum_exp(big, N).sum >= 1);
        }
        t[3] = bz_os_now();
        for (int i = 0; i < RUNS; i++) {
            CHECK(bz_rank_all(big, N, all, other) == N);
        }
        t[4] = bz_os_now();
        printf("  %s row: best 256 %.2f ms, best one %.2f ms, sum %.2f ms, all %.2f ms\n",
               kind ? "ascending" : "random", (double)(t[1] - t[0]) / 1e6 / RUNS,
               (double)(t[2] - t[1]) / 1e6 / RUNS, (double)(t[3] - t[2]) / 1e6 / RUNS,
               (double)(t[4] - t[3]) / 1e6 / RUNS);
    }
    free(big);
    free(all);
    free(other);
}

/* ---- the chain, naively ------------------------------------------------------------------- */

typedef struct naive {
    uint32_t n;       /* tokens that can be drawn, in `want` */
    double end[MOST]; /* running sums of their probabilities */
} naive;

static naive reference;

static double weigh(double difference)
{
    return exp(difference);
}

static void naive_chain(const float *logits, uint32_t vocab, const bz_sampling *o,
                        const int32_t *tokens, uint32_t n_tokens)
{
    static float x[MOST];
    memcpy(x, logits, vocab * sizeof *x);
    for (size_t i = 0; i < o->n_bias; i++) {
        x[o->bias[i].token] += o->bias[i].bias;
    }
    uint32_t first =
        o->window < 0 || n_tokens < (uint32_t)o->window ? 0 : n_tokens - (uint32_t)o->window;
    for (uint32_t id = 0; id < vocab; id++) {
        int seen = 0;
        for (uint32_t i = first; i < n_tokens; i++) {
            seen += tokens[i] == (int32_t)id;
        }
        if (seen) {
            x[id] = x[id] > 0 ? x[id] / o->repetition : x[id] * o->repetition;
            x[id] -= (float)seen * o->frequency + o->presence;
        }
    }
    uint32_t n = sort_all(x, vocab, want);
    if (o->greedy) {
        n = 1;
    }
    if (o->top_k > 0 && (uint32_t)o->top_k < n) {
        n = (uint32_t)o->top_k;
    }
    const double best = (double)want[0].logit;
    if (o->top_p > 0 && o->top_p < 1) {
        double total = 0, running = 0;
        for (uint32_t i = 0; i < n; i++) {
            total += weigh((double)want[i].logit - best);
        }
        for (uint32_t i = 0; i < n; i++) {
            running += weigh((double)want[i].logit - best) / total;
            if (running >= (double)o->top_p) {
                n = i + 1;
            }
        }
    }
    if (o->min_p > 0) {
        uint32_t left = 0;
        while (left < n && (double)want[left].logit >= best + log((double)o->min_p)) {
            left++;
        }
        n = left;
    }
    double total = 0;
    for (uint32_t i = 0; i < n; i++) {
        total += weigh(((double)want[i].logit - best) / (double)o->temperature);
        reference.end[i] = total;
    }
    for (uint32_t i = 0; i < n; i++) {
        reference.end[i] /= total;
    }
    reference.n = n;
}

/* The token that stage 2 draws from a list of `length`; the length must not matter. */
static int32_t choose_from(bz_sampler *s, const bz_shortlist *list, uint32_t length, double u,
                           bool *asked)
{
    bz_shortlist cut = *list;
    bz_choice choice = {.id = -1};
    if (length < cut.n) {
        cut.n = length;
        cut.whole = false;
    }
    *asked = !bz_sampler_choose(s, &cut, NULL, u, &choice);
    if (*asked) {
        CHECK(bz_sampler_choose(s, &cut, row, u, &choice));
    }
    return choice.id;
}

static bool check_draws(uint32_t vocab, const bz_sampling *o, const int32_t *tokens,
                        uint32_t n_tokens)
{
    bz_sampler *s = NULL;
    bz_error err = {0};
    bz_shortlist list;
    CHECK(bz_sampler_new(&s, vocab, 4096, NULL, 0, &err) == BZ_OK);
    CHECKF(bz_sampler_begin(s, o, false, 0, &err) == BZ_OK, "%s", err.text);
    bz_sampler_see(s, tokens, n_tokens);
    bz_status status = bz_sampler_shortlist(s, row, &list, &err);
    CHECKF(status == BZ_OK, "%s", err.text);
    naive_chain(row, vocab, o, tokens, n_tokens);
    bool any_asked = false;
    for (int i = 0; status == BZ_OK && i < 12; i++) {
        double u = i == 0 ? 0 : i == 1 ? 1 - 0x1p-53 : unit();
        bool asked, ignored;
        int32_t id = choose_from(s, &list, UINT32_MAX, u, &asked);
        any_asked |= asked;
        if (!o->greedy &&
            (o->top_k < 0 || o->top_k > BZ_CANDIDATES)) { /* else the list is all there is */
            CHECK(choose_from(s, &list, 1, u, &ignored) == id);
            CHECK(choose_from(s, &list, 17, u, &ignored) == id);
        }
        uint32_t at = 0;
        while (at < reference.n && want[at].id != id) {
            at++;
        }
        if (!CHECKF(at < reference.n, "token %d is not among the %u left", id, reference.n)) {
            continue;
        }
        CHECKF(reference.end[at] >= u - 2e-6 && (at == 0 || reference.end[at - 1] <= u + 2e-6),
               "u %.9g gave place %u of %u", u, at, reference.n);
        /* the largest u selects the last token with any weight: the filters cut where they should
         */
        if (i == 1 &&
            (at + 1 == reference.n || want[at + 1].logit > want[0].logit - 14 * o->temperature)) {
            CHECKF(at + 1 == reference.n, "%u tokens left instead of %u", at + 1, reference.n);
        }
        CHECK(i != 0 || at == 0);
    }
    bz_sampler_free(s);
    return any_asked;
}

/* Defaults spelled out, everything off. */
static bz_sampling plain(void)
{
    return (bz_sampling){.temperature = 1, .top_k = -1, .top_p = -1, .repetition = 1, .window = 64};
}

static void test_chain(void)
{
    static const uint32_t sizes[] = {3, 50, 640, MOST};
    static const char *const kinds[KINDS] = {
        "plain",     "many ties", "holes and NaN",    "all equal", "extreme values",
        "ascending", "zeros",     "mostly forbidden", "one +inf",  "descending"};
    const int rounds = quick_run() ? 2 : 12;
    for (int kind = 0; kind < KINDS; kind++) {
        begin("%s: every filter and all together against a full sort", kinds[kind]);
        int asked = 0, runs = 0;
        for (int i = 0; i < rounds * 16; i++) {
            uint32_t vocab = sizes[i % 4];
            fill_row(row, vocab, kind);
            row[0] = kind == 8 ? row[0] : 0.5f; /* at least one finite logit */
            bz_sampling o = plain();
            bz_bias bias[5];
            int32_t tokens[200];
            uint32_t n_tokens = 0;
            int mix = i / 4 % 4 == 3 ? 127 : 1 << below(7);
            if (mix & 1) {
                o.top_k = (int32_t)(1 + below(below(2) ? 100 : 1000));
            }
            if (mix & 2) {
                o.top_p = (float)(0.05 + 0.949 * unit());
            }
            if (mix & 4) {
                o.min_p = (float)pow(10, -3 * unit());
            }
            if (mix & 8) {
                o.temperature = (float)(0.1 + 2 * unit());
            }
            if (mix & 16) {
                for (int b = 0; b < 5; b++) {
                    bias[b] = (bz_bias){(int32_t)(1 + below(vocab - 1)),
                                        below(4) ? normal() * 10 : -INFINITY};
                }
                bias[0] = (bz_bias){0, 0.25f};
                o.bias = bias;
                o.n_bias = 1 + below(5);
            }
            if (mix & 32) {
                o.repetition = (float)(0.7 + unit());
                o.presence = normal();
                o.frequency = normal();
                o.window = below(3) ? (int32_t)(1 + below(200)) : -1;
                for (n_tokens = 0; n_tokens < 200; n_tokens++) {
                    tokens[n_tokens] = (int32_t)below(vocab < 60 ? vocab : 60);
                }
            }
            if (mix == 64) {
                o.greedy = true;
            }
            asked += check_draws(vocab, &o, tokens, n_tokens);
            runs++;
        }
        CHECK(asked < runs);
    }
}

/* ---- cases with known answers --------------------------------------------------------------- */

static int32_t choose_one(const float *logits, uint32_t vocab, const bz_sampling *o, double u,
                          bool *asked)
{
    bz_sampler *s = NULL;
    bz_error err = {0};
    bz_shortlist list;
    bz_choice choice = {.id = -1};
    CHECK(bz_sampler_new(&s, vocab, 100, NULL, 0, &err) == BZ_OK);
    CHECKF(bz_sampler_begin(s, o, false, 0, &err) == BZ_OK, "%s", err.text);
    CHECKF(bz_sampler_shortlist(s, logits, &list, &err) == BZ_OK, "%s", err.text);
    *asked = !bz_sampler_choose(s, &list, NULL, u, &choice);
    if (*asked) {
        bz_sampler_choose(s, &list, logits, u, &choice);
    }
    bz_sampler_free(s);
    return choice.id;
}

static void test_details(void)
{
    const double most = 1 - 0x1p-53;
    bool asked;
    const float quarters[] = {-1, 2, 2, -1, 2, 2}; /* four of nearly a quarter each, two small */
    bz_sampling o = plain();

    begin("greedy takes the first of equal logits, however it is requested");
    for (int way = 0; way < 3; way++) {
        o = (bz_sampling){
            .greedy = way == 0, .temperature = way == 1 ? -1.0f : 0, .top_k = way == 2};
        CHECK(choose_one(quarters, 6, &o, most, &asked) == 1 && !asked);
    }
    const float broken[] = {NAN, -INFINITY, -3, NAN, -3, -7};
    CHECK(choose_one(broken, 6, &(bz_sampling){.greedy = true}, 0, &asked) == 2);

    begin("top-p keeps the token that crosses");
    o = plain();
    o.top_p = 0.3f;
    CHECK(choose_one(quarters, 6, &o, most, &asked) == 2 && !asked);
    o.top_p = 0.2f;
    CHECK(choose_one(quarters, 6, &o, most, &asked) == 1);
    o.top_p = 1e-9f;
    CHECK(choose_one(quarters, 6, &o, most, &asked) == 1);
    o.top_p = 1;
    CHECK(choose_one(quarters, 6, &o, most, &asked) == 3);

    begin("a running sum that just reaches top-p suffices");
    const float halves[] = {7, 7};
    o = plain();
    CHECK(choose_one(halves, 2, &o, 0.5, &asked) == 0);
    CHECK(choose_one(halves, 2, &o, 0.5 + 0x1p-52, &asked) == 1);
    o.temperature = 3;
    CHECK(choose_one(halves, 2, &o, 0.5, &asked) == 0);
    o.top_p = 0.5f;
    CHECK(choose_one(halves, 2, &o, most, &asked) == 0);

    begin("top-p looks at the survivors of top-k only");
    o.top_k = 2;
    o.top_p = 0.45f; /* of two with probability 0.5: one */
    CHECK(choose_one(quarters, 6, &o, most, &asked) == 1);
    o.top_p = 0.55f;
    CHECK(choose_one(quarters, 6, &o, most, &asked) == 2);

    begin("min-p is relative to the maximum and applies before the temperature");
    const float steps[] = {0, -1, -2, -3, -4};
    o = plain();
    o.min_p = (float)exp(-2.5);
    o.temperature = 50; /* would make all equal */
    CHECK(choose_one(steps, 5, &o, most, &asked) == 2);
    o.min_p = 1;
    CHECK(choose_one(steps, 5, &o, most, &asked) == 0);
    o.min_p = 0;
    CHECK(choose_one(steps, 5, &o, 0.79, &asked) == 3); /* nearly uniform */
    o.temperature = 1e-30f;
    CHECK(choose_one(steps, 5, &o, most, &asked) == 0);

    begin("zeroed options are temperature 1, top-k 64, top-p 0.95");
    float flat[200] = {0};
    o = (bz_sampling){0};
    CHECK(choose_one(flat, 200, &o, most, &asked) == 60); /* 61 of 64 are 0.953 */
    CHECK(!asked);

    begin("a draw among equal probabilities: u selects the right one");
    o = plain();
    for (int i = 0; i < 200; i++) {
        CHECK(choose_one(flat, 200, &o, (i + 0.5) / 200, &asked) == i);
    }

    begin("the row is requested only where the list does not suffice");
    for (uint32_t i = 0; i < 2000; i++) {
        row[i] = -(float)i * 0.001f;
    }
    o = plain();
    CHECK(choose_one(row, 2000, &o, 0.1, &asked) >= 0 && !asked); /* inside the 256 best */
    CHECK(choose_one(row, 2000, &o, 0.9, &asked) > 256 && asked);
    o.temperature = 0.9f;
    CHECK(choose_one(row, 2000, &o, 0.1, &asked) >= 0 && asked);
    o.min_p = 0.9f; /* 105 tokens */
    CHECK(choose_one(row, 2000, &o, most, &asked) == 105 && !asked);
    o.min_p = 0.5f; /* 693 tokens */
    CHECK(choose_one(row, 2000, &o, most, &asked) == 693 && asked);
    o = plain();
    o.top_p = 0.1f;
    CHECK(choose_one(row, 2000, &o, most, &asked) < 256 && !asked);
    o.top_p = 0.9f;
    CHECK(choose_one(row, 2000, &o, most, &asked) > 256 && asked);
    o = plain();
    o.top_k = 256;
    CHECK(choose_one(row, 2000, &o, most, &asked) == 255 && !asked);
    o.top_k = 257;
    CHECK(choose_one(row, 2000, &o, most, &asked) == 256 && asked);

    begin("penalties: divided above zero, multiplied below, then counts");
    const float base[] = {4, 4, -4, -4, 1};
    const int32_t seen[] = {4, 0, 0, 2};
    bz_sampler *s = NULL;
    bz_error err = {0};
    CHECK(bz_sampler_new(&s, 5, 100, NULL, 0, &err) == BZ_OK);
    o = (bz_sampling){
        .repetition = 2, .presence = 0.5f, .frequency = 0.25f, .window = 3, .top_k = 5, .top_p = 1};
    CHECK(bz_sampler_begin(s, &o, false, 0, &err) == BZ_OK);
    bz_sampler_see(s, seen, 4); /* token 4 is four back */
    bz_shortlist list;
    CHECK(bz_sampler_shortlist(s, base, &list, &err) == BZ_OK);
    CHECK(list.n == 5 && list.best[0].id == 1 && list.best[0].logit == 4);
    CHECK(list.best[1].id == 0 && list.best[1].logit == 2 - 1.0f); /* 4 / 2 - 0.5 - 2 * 0.25 */
    CHECK(list.best[2].id == 4 && list.best[2].logit == 1);
    CHECK(list.best[3].id == 3 && list.best[3].logit == -4);
    CHECK(list.best[4].id == 2 && list.best[4].logit == -8.75f);
    bz_sampler_see(s, seen, 1); /* the list is rebuilt for each row */
    CHECK(bz_sampler_shortlist(s, base, &list, &err) == BZ_OK);
    CHECK(list.best[0].logit == 4 && list.best[1].logit == 4 && list.best[2].logit == 0.5f - 0.75f);
    CHECK(base[0] == 4); /* the model's row is unchanged */
    bz_sampler_free(s);

    begin("bias applies before penalties, adds up, and can force or forbid");
    const bz_bias bias[] = {{0, -3}, {0, -3}, {1, -INFINITY}, {3, INFINITY}};
    const int32_t forbidden[] = {3};
    o = (bz_sampling){.repetition = 2, .bias = bias, .n_bias = 4, .top_k = 5};
    CHECK(bz_sampler_new(&s, 5, 100, NULL, 0, &err) == BZ_OK);
    CHECK(bz_sampler_begin(s, &o, false, 0, &err) == BZ_OK);
    bz_sampler_see(s, seen, 2);
    CHECK(bz_sampler_shortlist(s, base, &list, &err) == BZ_OK);
    CHECK(list.n == 4 && list.best[0].id == 3 && list.best[0].logit == FLT_MAX);
    CHECK(list.best[1].id == 4 && list.best[2].id == 0 &&
          list.best[2].logit == -4); /* 4 - 3 - 3, times 2 */
    bz_sampler_see(s, seen, 1);
    CHECK(bz_sampler_shortlist(s, base, &list, &err) == BZ_OK);
    CHECK(list.best[2].id == 0 && list.best[2].logit == -2); /* no longer seen */
    bz_sampler_free(s);
    CHECK(bz_sampler_new(&s, 5, 100, forbidden, 1, &err) == BZ_OK);
    CHECK(bz_sampler_begin(s, &o, false, 0, &err) == BZ_OK);
    CHECK(bz_sampler_shortlist(s, base, &list, &err) == BZ_OK);
    CHECK(list.n == 3 && list.best[0].id == 4); /* suppressed, whatever the bias */
    bz_sampler_free(s);
}

static void test_log_probs(void)
{
    enum { VOCAB = 1000 };
    fill_row(row, VOCAB, 1);
    row[5] = NAN;
    uint32_t n = sort_all(row, VOCAB, want);
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += exp((double)want[i].logit);
    }
    const bz_bias bias[] = {{want[0].id, -INFINITY}, {want[3].id, 1}, {want[900].id, 100}};
    static const uint32_t tops[] = {0, 1, 5, 256, 257, 400, 5000};
    for (int biased = 0; biased < 2; biased++) {
        begin("log-probabilities are the model's own%s", biased ? ", whatever the bias" : "");
        for (size_t k = 0; k < sizeof tops / sizeof *tops; k++) {
            for (int way = 0; way < 3; way++) {
                bz_sampler *s = NULL;
                bz_error err = {0};
                bz_shortlist list;
                bz_choice choice;
                bz_sampling o = {
                    .greedy = way == 0, .top_k = way == 2 ? -1 : 0, .temperature = 0.5f};
                o.bias = bias;
                o.n_bias = biased ? 3 : 0;
                CHECK(bz_sampler_new(&s, VOCAB, 100, NULL, 0, &err) == BZ_OK);
                CHECK(bz_sampler_begin(s, &o, true, tops[k], &err) == BZ_OK);
                CHECK(bz_sampler_shortlist(s, row, &list, &err) == BZ_OK);
                if (!bz_sampler_choose(s, &list, NULL, 0.7, &choice)) {
                    CHECK(biased || tops[k] > 256);
                    CHECK(bz_sampler_choose(s, &list, row, 0.7, &choice));
                }
                CHECK(!biased || choice.id == bias[2].token);
                CHECK(fabs((double)choice.log_prob - ((double)row[choice.id] - log(sum))) < 1e-5);
                CHECK(choice.n_top == (tops[k] < n ? tops[k] : n));
                for (uint32_t i = 0; i < choice.n_top; i++) {
                    CHECK(choice.top[i].token == want[i].id);
                    CHECK(fabs((double)choice.top[i].log_prob -
                               ((double)want[i].logit - log(sum))) < 1e-5);
                }
                bz_sampler_free(s);
            }
        }
    }
}

static bz_status try_options(const bz_sampling *o, const char *text)
{
    bz_sampler *s = NULL;
    bz_error err = {0};
    CHECK(bz_sampler_new(&s, 10, 10, NULL, 0, &err) == BZ_OK);
    bz_status status = bz_sampler_begin(s, o, false, 0, &err);
    CHECKF(!text || strcmp(err.text, text) == 0, "%s", err.text);
    bz_sampler_free(s);
    return status;
}

static void test_errors(void)
{
    begin("rows and options that are refused, with a reason");
    bz_sampler *s = NULL;
    bz_error err = {0};
    bz_shortlist list;
    float nothing[] = {NAN, INFINITY, -INFINITY, NAN}, one[] = {NAN, NAN, -5, NAN};
    CHECK(bz_sampler_new(&s, 4, 10, NULL, 0, &err) == BZ_OK);
    CHECK(bz_sampler_begin(s, &(bz_sampling){0}, false, 0, &err) == BZ_OK);
    CHECK(bz_sampler_shortlist(s, nothing, &list, &err) == BZ_NUMERIC);
    CHECK(bz_sampler_shortlist(s, one, &list, &err) == BZ_OK && list.n == 1 &&
          list.best[0].id == 2);
    const bz_bias never = {2, -INFINITY};
    CHECK(bz_sampler_begin(s, &(bz_sampling){.bias = &never, .n_bias = 1}, false, 0, &err) ==
          BZ_OK);
    CHECK(bz_sampler_shortlist(s, one, &list, &err) == BZ_BAD_REQUEST);
    CHECKF(
        strcmp(err.text,
               "Bias and suppressed tokens leave no token to sample; remove some of the bias.") ==
            0,
        "%s", err.text);
    bz_sampler_free(s);

    const bz_bias far = {10, 1}, negative = {-1, 1}, no_number = {3, NAN};
    CHECK(try_options(&(bz_sampling){.temperature = NAN},
                      "The sampling option temperature is not a finite number.") == BZ_BAD_REQUEST);
    CHECK(try_options(&(bz_sampling){.frequency = INFINITY}, NULL) == BZ_BAD_REQUEST);
    CHECK(try_options(&(bz_sampling){.repetition = -1},
                      "The repetition penalty is -1; it must be above 0.") == BZ_BAD_REQUEST);
    CHECK(try_options(&(bz_sampling){.min_p = 1.5f}, NULL) == BZ_BAD_REQUEST);
    CHECK(try_options(&(bz_sampling){.bias = &far, .n_bias = 1},
                      "Token 10 of the bias list is not in the vocabulary of 10.") ==
          BZ_BAD_REQUEST);
    CHECK(try_options(&(bz_sampling){.bias = &negative, .n_bias = 1}, NULL) == BZ_BAD_REQUEST);
    CHECK(try_options(&(bz_sampling){.bias = &no_number, .n_bias = 1}, NULL) == BZ_BAD_REQUEST);
    CHECK(try_options(&(bz_sampling){.top_p = 7, .min_p = -1, .top_k = INT32_MIN}, NULL) == BZ_OK);
}

/* ---- the distribution ------------------------------------------------------------------------ */

static void check_distribution(const bz_sampling *o, const char *name)
{
    enum { VOCAB = 640, DRAWS = 100000 };
    begin("100,000 draws have the expected distribution: %s", name);
    static int count[VOCAB];
    memset(count, 0, sizeof count);
    fill_row(row, VOCAB, 0);
    bz_sampler *s = NULL;
    bz_error err = {0};
    bz_shortlist list;
    CHECK(bz_sampler_new(&s, VOCAB, 100, NULL, 0, &err) == BZ_OK);
    CHECK(bz_sampler_begin(s, o, false, 0, &err) == BZ_OK);
    CHECK(bz_sampler_shortlist(s, row, &list, &err) == BZ_OK);
    int n = quick_run() ? DRAWS / 10 : DRAWS;
    for (int i = 0; i < n; i++) {
        bz_choice choice;
        CHECK(bz_sampler_choose(s, &list, row, bz_random_unit(99, (uint64_t)i), &choice));
        count[choice.id]++;
    }
    bz_sampler_free(s);
    naive_chain(row, VOCAB, o, NULL, 0);
    /* chi-square over tokens expected five times or more; the rest together is one class */
    double chi = 0, rest = 0, rest_count = 0, classes = 0;
    int drawn = 0;
    for (uint32_t i = 0; i < reference.n; i++) {
        double expected = (reference.end[i] - (i ? reference.end[i - 1] : 0)) * n;
        int seen = count[want[i].id];
        drawn += seen;
        if (expected >= 5) {
            chi += (seen - expected) * (seen - expected) / expected;
            classes++;
        } else {
            rest += expected;
            rest_count += seen;
        }
    }
    if (rest >= 5) {
        chi += (rest_count - rest) * (rest_count - rest) / rest;
        classes++;
    }
    CHECK(drawn == n); /* nothing outside what the filters left */
    CHECKF(chi < classes + 4 * sqrt(2 * classes), "chi-square %.1f of %.0f classes", chi, classes);
}

static void test_distribution(void)
{
    bz_sampling o = plain();
    check_distribution(&o, "everything off");
    o.temperature = 0.7f;
    o.top_k = 40;
    check_distribution(&o, "top-k 40, temperature 0.7");
    o = plain();
    o.top_p = 0.9f;
    o.min_p = 0.02f;
    check_distribution(&o, "top-p 0.9, min-p 0.02");
    o = plain();
    o.temperature = 1.3f;
    o.top_k = 300;
    check_distribution(&o, "top-k 300, temperature 1.3");
}

int main(void)
{
    test_random();
    test_exp();
    test_rank();
    test_chain();
    test_details();
    test_log_probs();
    test_errors();
    test_distribution();
    show_times();
    return finish();
}
