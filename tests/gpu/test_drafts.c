/* Drafts on the GPU: the reference's, and answers with drafts against answers without. Drafts of a
 * drafter stay on the device until the pass that verifies them is received. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/session.h"
#include "support/check.h"
#include "support/clusters.h"
#include "support/devices.h"
#include "support/drafter.h"
#include "support/forward.h"
#include "support/golden.h"

#define PEBBLE  "../../models/pebble.gguf" /* from build/golden */
#define DRAFTER "../../models/pebble-drafter.gguf"

enum { MAX_TOKENS = 64, MAX_PROMPT = 64 };

typedef struct answer {
    int32_t ids[MAX_TOKENS];
    float log_prob[MAX_TOKENS];
    size_t n;
    bz_finish finish;
    uint64_t dispatches;
} answer;

static int on_event(void *user, const bz_event *e)
{
    answer *a = user;
    if (e->kind == BZ_EVENT_TOKEN && a->n < MAX_TOKENS) {
        a->ids[a->n] = e->token;
        a->log_prob[a->n++] = e->log_prob;
    }
    return 0;
}

static void ask(bz_session *s, const int32_t *prompt, size_t n, const bz_generate_options *o,
                answer *a)
{
    const bz_host host = {.size = sizeof host, .event = on_event, .user = a};
    bz_error err = {0};
    bz_job *job = NULL;
    memset(a, 0, sizeof *a);
    CHECKF(prefill(s, prompt, n, 0, NULL, &err) == BZ_OK, "%s", err.text);
    if (CHECKF(bz_session_generate(s, o, &job, &err) == BZ_OK, "%s", err.text)) {
        CHECKF(bz_job_run(job, &host, &err) == BZ_OK, "%s", err.text);
        a->finish = bz_job_finish(job);
        bz_job_free(job);
    }
}

/* Logits of several rows differ from those of one in their last bits, and so do log-probabilities.
 */
static void same(const answer *plain, const answer *drafted, const char *name)
{
    CHECKF(plain->n == drafted->n && plain->finish == drafted->finish &&
               memcmp(plain->ids, drafted->ids, plain->n * sizeof *plain->ids) == 0,
           "%s: %zu and %zu tokens", name, plain->n, drafted->n);
    for (size_t i = 0; i < plain->n && i < drafted->n; i++) {
        const double d = (double)plain->log_prob[i] - (double)drafted->log_prob[i];
        CHECKF(d < 1e-3 && d > -1e-3, "%s: log-probability %zu off by %g", name, i, d);
    }
}

static size_t prompt_of(const bz_model *m, int32_t *ids)
{
    static const char text[] = "<bos><|turn>user\nTell me a story about a fox named Rilo.<turn|>\n"
                               "<|turn>model\n";
    const int64_t n = bz_tokenize(m, text, strlen(text), true, false, ids, MAX_PROMPT, NULL);
    CHECKF(n > 0 && n <= MAX_PROMPT, "%lld tokens", (long long)n);
    return (size_t)n;
}

static const char rules[] = "root ::= \"a \" (\"fox \" | \"bear \")+ \"end\"";

/* Every way in which a pass ends: lists of the device, with the drafts there or read by the host;
 * rows of logits, where penalties depend on drafted tokens or a grammar allows none of a list. */
static void test_answers(const bz_model *m, bz_session *s, bz_draft_kind kind, const char *name)
{
    static answer plain, drafted;
    int32_t ids[MAX_PROMPT];
    bz_error err = {0};
    bz_grammar *g = NULL;
    CHECKF(bz_grammar_new(&g, BZ_GRAMMAR_GBNF, rules, strlen(rules), &err) == BZ_OK, "%s",
           err.text);
    const size_t n = prompt_of(m, ids);
    const struct {
        const char *name;
        bz_sampling sampling;
        bool log_probs;
        bz_grammar *grammar;
        uint32_t tokens, drafts;
    } cases[] = {
        {"greedy", {.greedy = true}, true, NULL, 40, 3},
        {"as many as pay", {.greedy = true}, false, NULL, 40, 0},
        {"sampled", {.seed = 7, .temperature = 1.2f}, false, NULL, 24, 4},
        {"penalties", {.greedy = true, .repetition = 1.3f, .window = -1}, false, NULL, 16, 2},
        {"grammar", {.greedy = true}, false, g, 16, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bz_generate_options o = {.size = sizeof o,
                                 .max_tokens = cases[i].tokens,
                                 .sampling = cases[i].sampling,
                                 .log_probs = cases[i].log_probs,
                                 .grammar = cases[i].grammar,
                                 .draft = BZ_DRAFT_OFF};
        begin("gpu %s: %s", name, cases[i].name);
        ask(s, ids, n, &o, &plain);
        o.draft = kind;
        o.drafts = cases[i].drafts;
        const bz_draft_stats before = bz_session_get_draft_stats(s);
        ask(s, ids, n, &o, &drafted);
        same(&plain, &drafted, cases[i].name);
        const bz_draft_stats after = bz_session_get_draft_stats(s);
        const uint64_t right = after.accepted - before.accepted,
                       made = after.drafted - before.drafted;
        if (kind == BZ_DRAFT_MODEL && cases[i].drafts && !cases[i].grammar) {
            CHECKF(right > 0 && right < made, "%llu of %llu drafts accepted",
                   (unsigned long long)right, (unsigned long long)made);
        }
    }
    bz_grammar_free(g);
}

/* Clusters of tokens against float64, with ids of one and of two words, and ties; and a text, where
 * the drafts are chosen from half of the tokens. */
static void test_clusters(const bz_session_options *exact, const char *drafter)
{
    static const cluster_options cases[] = {
        {.clusters = 48, .ids = BZ_I32, .by_reads = true},
        {.clusters = 24, .ids = BZ_I64},
        {.clusters = 768, .ids = BZ_I32, .equal_head = true},
        {.clusters = 48, .ids = BZ_I64, .equal_centroids = true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *device = i % 2 ? "gpu-baseline" : "gpu";
        begin("%s drafts: %u clusters%s%s", device, cases[i].clusters,
              cases[i].equal_head ? ", equal tokens" : "",
              cases[i].equal_centroids ? ", equal clusters" : "");
        check_clusters(device, exact, &cases[i], 1e-3);
    }
    clustered c;
    open_clustered(&c, golden_path(PEBBLE), drafter,
                   &(cluster_options){.clusters = 64, .ids = BZ_I32}, "gpu");
    bz_session *s = session_or_fail(c.m, exact);
    test_answers(c.m, s, BZ_DRAFT_MODEL, "clusters");
    bz_session_free(s);
    close_clustered(&c);
}

int main(void)
{
    const bz_session_options exact = {.size = sizeof exact, .exact = true};
    const bz_session_options fast = {.size = sizeof fast};
    begin("gpu drafts of the reference");
    check_assistant("gpu", &exact, 1e-3);
    begin("gpu baseline drafts of the reference");
    check_assistant("gpu-baseline", &exact, 1e-3);
    begin("gpu drafts of the reference, int8");
    check_assistant("gpu", &fast, 0.2);

    char drafter[300];
    snprintf(drafter, sizeof drafter, "%s", golden_path(DRAFTER));
    bz_model *m = open_with_drafter_or_fail(golden_path(PEBBLE), drafter, "gpu");
    bz_session *s = session_or_fail(m, &exact);
    test_answers(m, s, BZ_DRAFT_MODEL, "drafter");
    test_answers(m, s, BZ_DRAFT_LOOKUP, "lookup");
    bz_session_free(s);
    bz_model_free(m);
    test_clusters(&exact, drafter);
    return finish();
}
