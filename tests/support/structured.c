#include "support/structured.h"

#include <stdio.h>
#include <string.h>

#include "base/json_read.h"
#include "support/check.h"
#include "support/forward.h"
#include "support/golden.h"

enum { TOKENS = 80 };

static const char schema[] =
    "{\"type\":\"object\",\"properties\":{\"kind\":{\"enum\":[\"positive\",\"negative\",\"none\"]},"
    "\"percent\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":100},\"words\":{\"type\":"
    "\"array\","
    "\"items\":{\"type\":\"string\",\"maxLength\":4},\"minItems\":1,\"maxItems\":2}},\"required\":["
    "\"kind\",\"percent\",\"words\"],\"additionalProperties\":false}";

typedef struct answer {
    int32_t ids[TOKENS];
    size_t n, len;
    char text[TOKENS * 16];
    bz_finish finish;
} answer;

static int on_event(void *user, const bz_event *e)
{
    answer *a = user;
    CHECK(e->kind != BZ_EVENT_TOKEN || e->log_prob <= 0);
    if (e->kind == BZ_EVENT_TOKEN && a->n < TOKENS && a->len + e->text_len < sizeof a->text) {
        a->ids[a->n++] = e->token;
        memcpy(a->text + a->len, e->text, e->text_len);
        a->len += e->text_len;
    }
    return 0;
}

static void generate_with(const bz_model *m, bz_grammar *g, const bz_sampling *sampling,
                          bool log_probs, answer *a)
{
    static const int32_t ids[] = {2, 60, 61, 62, 63};
    const bz_session_options so = {.size = sizeof so, .context = 128, .chunk = 1, .exact = true};
    const bz_generate_options go = {.size = sizeof go,
                                    .max_tokens = TOKENS,
                                    .sampling = *sampling,
                                    .log_probs = log_probs,
                                    .top_log_probs = log_probs ? 3 : 0,
                                    .grammar = g};
    const bz_host host = {.size = sizeof host, .event = on_event, .user = a};
    bz_session *s = session_or_fail(m, &so);
    bz_error err = {0};
    bz_job *job = NULL;
    *a = (answer){0};
    CHECKF(prefill(s, ids, sizeof ids / sizeof *ids, 0, NULL, &err) == BZ_OK, "%s", err.text);
    CHECKF(bz_session_generate(s, &go, &job, &err) == BZ_OK &&
               bz_job_run(job, &host, &err) == BZ_OK,
           "%s", err.text);
    a->finish = bz_job_finish(job);
    bz_job_free(job);
    bz_session_free(s);
}

static void check_fits(const answer *a)
{
    bz_arena arena = {0};
    const bz_json_node *root = NULL;
    int64_t percent = -1;
    CHECKF(a->finish == BZ_FINISH_END &&
               bz_json_read(&root, a->text, a->len, &arena, NULL) == BZ_OK,
           "%.*s", (int)a->len, a->text);
    if (root) {
        const bz_json_node *words = bz_json_get(root, "words");
        const bz_str kind = bz_json_string(bz_json_get(root, "kind"));
        CHECKF(root->n == 3 && bz_json_to_int(bz_json_get(root, "percent"), &percent) &&
                   percent >= 0 && percent <= 100 && words->n >= 1 && words->n <= 2 &&
                   (bz_str_is(kind, "positive") || bz_str_is(kind, "negative") ||
                    bz_str_is(kind, "none")),
               "%.*s", (int)a->len, a->text);
    }
    bz_arena_free(&arena);
}

/* Without chance: the same tokens on both devices. */
static void check_likeliest(const bz_model *gpu, const bz_model *cpu, bz_grammar *g)
{
    static const struct {
        const char *name;
        bz_sampling sampling;
        bool log_probs;
    } ways[] = {
        {"the likeliest tokens", {.greedy = true}, false},
        {"the likeliest tokens, with log-probabilities", {.greedy = true}, true},
        {"tokens after penalties", {.greedy = true, .repetition = 1.3F, .presence = 0.5F}, false},
        {"one token of each list", {.top_k = 1}, false},
    };
    const size_t n = quick_run() ? 2 : sizeof ways / sizeof *ways;
    for (size_t i = 0; i < n; i++) {
        answer there, here;
        begin("%s that a schema allows are those of the CPU", ways[i].name);
        generate_with(gpu, g, &ways[i].sampling, ways[i].log_probs, &there);
        generate_with(cpu, g, &ways[i].sampling, ways[i].log_probs, &here);
        check_fits(&there);
        CHECKF(there.n == here.n && memcmp(there.ids, here.ids, here.n * sizeof *here.ids) == 0,
               "%.*s and %.*s", (int)there.len, there.text, (int)here.len, here.text);
    }
}

void check_structured(const bz_model *gpu, const bz_model *cpu, uint64_t seeds)
{
    bz_error err = {0};
    bz_grammar *g = NULL;
    begin("a schema");
    CHECKF(bz_grammar_new(&g, BZ_GRAMMAR_SCHEMA, schema, sizeof schema - 1, &err) == BZ_OK, "%s",
           err.text);
    check_likeliest(gpu, cpu, g);
    uint64_t whole = 0;
    begin("drawn tokens fit a schema, from the short list and from whole rows");
    for (uint64_t seed = 0; seed < seeds; seed++) {
        static const bz_sampling draws[] = {
            {.top_k = -1, .top_p = -1},
            {.top_p = -1},
            {.top_k = 5, .min_p = 0.1F, .temperature = 0.7F},
            {.top_p = 0.5F, .frequency = 0.8F, .temperature = 2},
        };
        bz_sampling sampling = draws[seed % 4];
        answer a;
        sampling.seed = seed;
        generate_with(gpu, g, &sampling, seed % 3 == 2, &a);
        if (a.finish == BZ_FINISH_END) { /* else it was cut off */
            check_fits(&a);
            whole++;
        }
    }
    CHECKF(whole * 3 >= seeds * 2, "%d answers are whole", (int)whole);
    bz_grammar_free(g);
}
