/* Drafts: whatever is guessed, the text, its log-probabilities and what the session holds
 * afterwards are those of generating token by token. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/draft.h"
#include "support/check.h"
#include "support/clusters.h"
#include "support/forward.h"
#include "support/golden.h"

#define PEBBLE  "../../models/pebble.gguf" /* from build/golden */
#define DRAFTER "../../models/pebble-drafter.gguf"

enum { MAX_TOKENS = 512, MAX_PROMPT = 600, MAX_TEXT = 1 << 14 };

typedef struct answer {
    int32_t ids[MAX_TOKENS];
    float log_prob[MAX_TOKENS];
    char text[MAX_TEXT];
    size_t n, len;
    bz_finish finish;
} answer;

static int on_event(void *user, const bz_event *e)
{
    answer *a = user;
    if (e->kind == BZ_EVENT_TOKEN && a->n < MAX_TOKENS) {
        a->ids[a->n] = e->token;
        a->log_prob[a->n++] = e->log_prob;
        memcpy(a->text + a->len, e->text, e->text_len);
        a->len += e->text_len;
    }
    return 0;
}

static bz_status go_on(bz_session *s, const bz_generate_options *o, answer *a, bz_error *err)
{
    const bz_host host = {.size = sizeof host, .event = on_event, .user = a};
    bz_job *job = NULL;
    memset(a, 0, sizeof *a);
    bz_status status = bz_session_generate(s, o, &job, err);
    if (status == BZ_OK) {
        status = bz_job_run(job, &host, err);
        a->finish = bz_job_finish(job);
        bz_job_free(job);
    }
    return status;
}

static answer plain, drafted;
static bz_draft_kind kind; /* of the drafts that are tested */
static bool clusters;      /* the drafter chooses from half of the tokens */

static void begin_with(const char *what)
{
    begin("%s: %s", kind == BZ_DRAFT_LOOKUP ? "lookup" : clusters ? "clusters" : "drafter", what);
}

/* The answer to a prompt, and one more token after it from what the session then holds. */
static void ask(bz_session *s, const int32_t *prompt, size_t n, const bz_generate_options *o,
                answer *a, float *after)
{
    bz_error err = {0};
    CHECKF(prefill(s, prompt, n, 0, NULL, &err) == BZ_OK, "%s", err.text);
    CHECKF(go_on(s, o, a, &err) == BZ_OK, "%s", err.text);
    const int32_t more[] = {105, 2364};
    int32_t *held = calloc(n + a->n + 2, sizeof *held);
    size_t length = bz_session_get_stats(s).position;
    memcpy(held, prompt, n * sizeof *held);
    memcpy(held + n, a->ids, a->n * sizeof *held);
    memcpy(held + length, more, sizeof more);
    CHECKF(prefill(s, held, length + 2, 0, NULL, &err) == BZ_OK, "%s", err.text);
    memcpy(after, bz_session_logits(s),
           bz_model_vocab(((const struct bz_session *)s)->model) * sizeof *after);
    free(held);
}

static bool same(const answer *a, const answer *b)
{
    return a->n == b->n && a->finish == b->finish && a->len == b->len &&
           memcmp(a->ids, b->ids, a->n * sizeof *a->ids) == 0 &&
           memcmp(a->log_prob, b->log_prob, a->n * sizeof *a->log_prob) == 0 &&
           memcmp(a->text, b->text, a->len) == 0;
}

/* Compares an answer with drafts (0: as many as pay) with the plain one. */
static void compare(bz_session *s, const int32_t *prompt, size_t n, bz_generate_options o,
                    const uint32_t *counts, size_t n_counts, const char *name)
{
    static float after[2][4096];
    o.draft = BZ_DRAFT_OFF;
    ask(s, prompt, n, &o, &plain, after[0]);
    for (size_t i = 0; i < n_counts; i++) {
        o.draft = kind;
        o.drafts = counts[i];
        ask(s, prompt, n, &o, &drafted, after[1]);
        CHECKF(same(&plain, &drafted), "%s, %u drafts: %zu and %zu tokens", name, counts[i],
               plain.n, drafted.n);
        CHECKF(memcmp(after[0], after[1], sizeof after[0]) == 0,
               "%s, %u drafts: the session holds something else", name, counts[i]);
    }
}

static size_t tokens_of(const bz_model *m, const char *text, int32_t *ids)
{
    int64_t n = bz_tokenize(m, text, strlen(text), true, false, ids, MAX_PROMPT, NULL);
    CHECKF(n > 0 && n <= MAX_PROMPT, "%lld tokens", (long long)n);
    return n > 0 && n <= MAX_PROMPT ? (size_t)n : 0;
}

static const char *const subjects[] = {
    "Tell me a story about a fox named Rilo.",
    "Who are you?",
    "Say this again: one, two, three, one, two, three, one, two, three.",
    "Write a story about a bear and a bear and a bear.",
    "What is the capital of France? Answer in JSON.",
    "Remember: the key is under the red stone. Where is the key?",
    "What is 7 plus 5?",
    "Tell me a joke.",
    "Write a story about a princess named Mira who finds a lamp.",
    "How are you today?"};

static size_t prompt_of(const bz_model *m, size_t k, int32_t *ids)
{
    char text[400];
    const size_t n = sizeof subjects / sizeof *subjects;
    snprintf(text, sizeof text, "<bos><|turn>user\n%s%s<turn|>\n<|turn>model\n",
             k / n ? subjects[(k * 7 + k / n) % n] : "", subjects[k % n]);
    return tokens_of(m, text, ids);
}

/* Greedy answers past their ends, and seeded ones. */
static void test_texts(const bz_model *m)
{
    static int32_t ids[MAX_PROMPT];
    static const uint32_t counts[] = {0, 1, 4, 7};
    const bool quick = quick_run();
    begin_with("greedy answers");
    bz_session *s = session_or_fail(
        m, &(bz_session_options){.size = sizeof(bz_session_options), .exact = true, .threads = 2});
    for (size_t k = 0; k < (quick ? 3 : 50); k++) {
        const bz_generate_options o = {.size = sizeof o,
                                       .max_tokens = quick ? 96 : 256,
                                       .ignore_end = true,
                                       .sampling = {.greedy = true}};
        const size_t n = prompt_of(m, k, ids);
        compare(s, ids, n, o, counts + (quick ? 3 : k % 4), 1, subjects[k % 10]);
    }
    const bz_draft_stats stats = bz_session_get_draft_stats(s);
    CHECKF(stats.accepted > 3 && stats.accepted < stats.drafted, "%llu of %llu drafts accepted",
           (unsigned long long)stats.accepted, (unsigned long long)stats.drafted);

    begin_with("sampled answers");
    for (size_t k = 0; k < (quick ? 2 : 20); k++) {
        const bz_generate_options o = {.size = sizeof o,
                                       .max_tokens = 128,
                                       .log_probs = k % 2,
                                       .top_log_probs = (uint32_t)k % 3,
                                       .sampling = {.seed = k, .temperature = k % 4 ? 0.8f : 1.4f}};
        const size_t n = prompt_of(m, k, ids);
        compare(s, ids, n, o, counts, quick ? 1 : 4, subjects[k % 10]);
    }
    bz_session_free(s);
}

/* Everything that looks at the tokens before, or ends an answer. */
static void test_settings(const bz_model *m)
{
    static int32_t ids[MAX_PROMPT];
    static const uint32_t counts[] = {7, 2};
    static const char *const stops[] = {"was so", "friend"};
    const bz_session_options fast = {.size = sizeof fast, .threads = 1};
    bz_error err = {0};
    bz_session *s = session_or_fail(m, &fast);
    const size_t n = prompt_of(m, 2, ids);
    begin_with("penalties");
    bz_generate_options o = {.size = sizeof o, .max_tokens = 80, .ignore_end = true};
    o.sampling = (bz_sampling){.greedy = true, .repetition = 1.3f, .frequency = 0.2f, .window = -1};
    compare(s, ids, n, o, counts, 2, "penalties");
    begin_with("stop strings");
    o.sampling = (bz_sampling){.greedy = true};
    o.stop = stops;
    o.n_stop = 2;
    compare(s, ids, prompt_of(m, 0, ids), o, counts, 2, "stops");
    o.n_stop = 0;
    begin_with("a grammar");
    bz_grammar *g = NULL;
    static const char rules[] =
        "root ::= (\"{\\\"a\\\": \" [0-9] [0-9]? \", \\\"next\\\": \" \"true\" \"}\" \"\\n\")+";
    CHECKF(bz_grammar_new(&g, BZ_GRAMMAR_GBNF, rules, strlen(rules), &err) == BZ_OK, "%s",
           err.text);
    o.ignore_end = false;
    o.grammar = g;
    compare(s, ids, prompt_of(m, 4, ids), o, counts, 2, "grammar");
    o.log_probs = true; /* then every token is chosen, also those that the grammar prescribes */
    compare(s, ids, prompt_of(m, 4, ids), o, counts, 2, "grammar, log-probabilities");
    const bz_draft_stats stats = bz_session_get_draft_stats(s);
    CHECKF(stats.drafted > 0 && stats.drafted <= BZ_MAX_DRAFTS * stats.passes,
           "%llu drafts in %llu passes", (unsigned long long)stats.drafted,
           (unsigned long long)stats.passes);
    bz_grammar_free(g);
    o.grammar = NULL;
    o.log_probs = false;
    begin_with("to the limit of tokens");
    o.ignore_end = true;
    for (o.max_tokens = 1; o.max_tokens < 12; o.max_tokens++) {
        compare(s, ids, prompt_of(m, 2, ids), o, counts, 1, "limit");
    }
    bz_session_free(s);

    begin_with("to the end of the context, over the ends of rings");
    const bz_session_options tight = {
        .size = sizeof tight, .threads = 1, .context = 420, .chunk = 16};
    s = session_or_fail(m, &tight);
    o.max_tokens = 0;
    for (int i = 0; i < 2; i++) {
        o.draft = i ? kind : BZ_DRAFT_OFF;
        o.drafts = 7;
        const size_t length = prompt_of(m, 2, ids);
        CHECKF(prefill(s, ids, length, 0, NULL, &err) == BZ_OK, "%s", err.text);
        CHECKF(go_on(s, &o, i ? &drafted : &plain, &err) == BZ_OK, "%s", err.text);
    }
    CHECK(same(&plain, &drafted) && plain.finish == BZ_FINISH_CONTEXT && plain.n > 300);
    bz_session_free(s);

    begin_with("requests that cannot be obeyed");
    s = session_or_fail(m, &fast);
    CHECK(prefill(s, ids, 8, 0, NULL, &err) == BZ_OK);
    o.drafts = 8;
    CHECKF(go_on(s, &o, &plain, &err) == BZ_BAD_REQUEST && strstr(err.text, "at most 7"), "%s",
           err.text);
    bz_session_free(s);
}

/* A conversation in which the same question was asked and answered before, so that drafts are often
 * right. */
static size_t prompt_with_answer(const bz_model *m, bz_session *s, int32_t *ids)
{
    int32_t question[MAX_PROMPT];
    bz_error err = {0};
    size_t n = prompt_of(m, 0, ids);
    const size_t length = n;
    memcpy(question, ids, n * sizeof *ids);
    CHECK(prefill(s, ids, n, 0, NULL, &err) == BZ_OK);
    n += generate(s, ids + n, 40);
    memcpy(ids + n, question, length * sizeof *ids);
    return n + length;
}

/* The distribution of sampled tokens with drafts, against the model's probabilities: chi-square. */
static void test_distribution(const bz_model *m)
{
    enum { KEPT = 5, DRAWS = 4 };
    const uint32_t vocab = bz_model_vocab(m);
    const int rounds = quick_run() ? 500 : 26000;
    static int32_t ids[MAX_PROMPT];
    uint64_t n = 0;
    double chi = 0;
    uint32_t cells = 0;
    begin_with("the distribution of sampled tokens");
    bz_session *s =
        session_or_fail(m, &(bz_session_options){.size = sizeof(bz_session_options), .threads = 1});
    bz_error err = {0};
    const size_t length = prompt_with_answer(m, s, ids);
    /* Tokens seen after each prefix of drawn tokens; a prefix is a number in base KEPT + 1. */
    typedef struct node {
        int32_t path[DRAWS];
        uint32_t depth, total, n_tokens, count[KEPT];
        int32_t token[KEPT];
        double p[KEPT];
    } node;
    static node nodes[800];
    uint32_t n_nodes = 0;
    memset(nodes, 0, sizeof nodes);
    bz_generate_options o = {.size = sizeof o,
                             .max_tokens = DRAWS,
                             .ignore_end = true,
                             .draft = kind,
                             .drafts = 3,
                             .sampling = {.top_k = KEPT, .top_p = -1, .temperature = 3}};
    for (int round = 0; round < rounds; round++) {
        o.sampling.seed = (uint64_t)round;
        CHECKF(prefill(s, ids, length, 0, NULL, &err) == BZ_OK, "%s", err.text);
        CHECKF(go_on(s, &o, &drafted, &err) == BZ_OK && drafted.n == DRAWS, "%s", err.text);
        for (uint32_t d = 0; d < DRAWS; d++, n++) {
            uint32_t k = 0;
            while (k < n_nodes && (nodes[k].depth != d ||
                                   memcmp(nodes[k].path, drafted.ids, d * sizeof *ids) != 0)) {
                k++;
            }
            if (k == n_nodes && n_nodes < sizeof nodes / sizeof *nodes) {
                memcpy(nodes[k].path, drafted.ids, d * sizeof *ids);
                nodes[n_nodes++].depth = d;
            }
            uint32_t t = 0;
            while (t < nodes[k].n_tokens && nodes[k].token[t] != drafted.ids[d]) {
                t++;
            }
            if (CHECK(t < KEPT)) {
                nodes[k].n_tokens += t == nodes[k].n_tokens;
                nodes[k].token[t] = drafted.ids[d];
                nodes[k].count[t]++;
                nodes[k].total++;
            }
        }
    }
    for (uint32_t k = 0; k < n_nodes; k++) {
        node *x = &nodes[k];
        if (x->total < 100) {
            continue;
        }
        memcpy(ids + length, x->path, x->depth * sizeof *ids);
        CHECK(prefill(s, ids, length + x->depth, 0, NULL, &err) == BZ_OK);
        const float *z = bz_session_logits(s);
        double best[KEPT], sum = 0;
        for (uint32_t i = 0; i < KEPT; i++) { /* the greatest logits, largest first */
            best[i] = -1e30;
            for (uint32_t v = 0; v < vocab; v++) {
                if ((double)z[v] > best[i] && (i == 0 || (double)z[v] < best[i - 1])) {
                    best[i] = (double)z[v];
                }
            }
            sum += exp((best[i] - best[0]) / 3);
        }
        for (uint32_t i = 0; i < x->n_tokens; i++) {
            const double want = x->total * exp(((double)z[x->token[i]] - best[0]) / 3) / sum;
            chi += ((double)x->count[i] - want) * ((double)x->count[i] - want) / want;
        }
        cells += KEPT - 1;
    }
    /* Mean `cells`, deviation sqrt(2 cells); five deviations. */
    CHECKF(cells > 10 && chi < cells + 5 * sqrt(2.0 * cells), "chi-square %g with %u degrees", chi,
           cells);
    CHECKF(chi > cells - 5 * sqrt(2.0 * cells), "chi-square %g with %u degrees: too even", chi,
           cells);
    const bz_draft_stats stats = bz_session_get_draft_stats(s);
    CHECKF(stats.accepted * 20 > n, "%llu of %llu drafts accepted",
           (unsigned long long)stats.accepted, (unsigned long long)stats.drafted);
    bz_session_free(s);
}

static void test_lookup(void)
{
    int32_t t[32] = {1, 2, 3, 4, 5, 9, 2, 3};
    bz_lookup l;
    begin("what followed the last tokens");
    CHECK(bz_lookup_init(&l, 32));
    CHECK(bz_lookup_find(&l, t, 8, 4) == 4 && t[8] == 4 && t[9] == 5 && t[10] == 9 && t[11] == 2);
    t[8] = 7; /* not what was drafted */
    CHECK(bz_lookup_find(&l, t, 9, 4) == 0);
    t[9] = 2;
    t[10] = 3; /* twice before: after the later one came 7 */
    CHECK(bz_lookup_find(&l, t, 11, 2) == 2 && t[11] == 7 && t[12] == 2);
    bz_lookup_free(&l);

    begin("a repetition goes on");
    int32_t again[32] = {5, 6, 5, 6};
    CHECK(bz_lookup_init(&l, 32));
    CHECK(bz_lookup_find(&l, again, 4, 5) == 5 && again[4] == 5 && again[7] == 6 && again[8] == 5);
    bz_lookup_free(&l);

    begin("rows of media are not drafted");
    int32_t media[32] = {5, 6, -7, -8, 5, 6};
    CHECK(bz_lookup_init(&l, 32));
    CHECK(bz_lookup_find(&l, media, 6, 3) == 0);
    bz_lookup_free(&l);
}

int main(void)
{
    test_lookup();
    char drafter[300];
    snprintf(drafter, sizeof drafter, "%s", golden_path(DRAFTER));
    bz_model *m = open_with_drafter_or_fail(golden_path(PEBBLE), drafter, NULL);
    for (int i = 0; i < 2; i++) {
        kind = i ? BZ_DRAFT_MODEL : BZ_DRAFT_LOOKUP;
        test_texts(m);
        test_settings(m);
        test_distribution(m);
    }
    bz_model_free(m);
    clustered c;
    clusters = true;
    open_clustered(&c, golden_path(PEBBLE), drafter,
                   &(cluster_options){.clusters = 64, .ids = BZ_I32}, NULL);
    test_texts(c.m);
    close_clustered(&c);
    return finish();
}
