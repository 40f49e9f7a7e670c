/* What a request asks of the sampler: OpenAI's fields, Ollama's options, and what is refused. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "text/request.h"

typedef struct reading {
    bz_arena arena;
    bz_request request;
    bz_error err;
    bz_status status;
} reading;

static reading read_text(const char *text)
{
    reading r = {0};
    const bz_json_node *root;
    r.status = bz_json_read(&root, text, strlen(text), &r.arena, &r.err);
    if (CHECKF(r.status == BZ_OK, "%s: %s", text, r.err.text)) {
        r.status = bz_request_read(&r.request, root, &r.arena, &r.err);
    }
    return r;
}

static void test_fields(void)
{
    begin("an empty request: every default");
    reading r =
        read_text("{\"messages\":[],\"temperature\":null,\"seed\":null,\"logit_bias\":null}");
    const bz_generate_options nothing = {.size = sizeof nothing};
    CHECK(r.status == BZ_OK && !r.request.has_seed &&
          memcmp(&r.request.generate, &nothing, sizeof nothing) == 0);
    bz_arena_free(&r.arena);

    begin("OpenAI's fields");
    r = read_text("{\"temperature\":0.5,\"top_p\":0.25,\"top_k\":7,\"min_p\":0.125,\"repetition_"
                  "penalty\":1.5,"
                  "\"presence_penalty\":-2,\"frequency_penalty\":0.5,\"seed\":12,\"max_tokens\":3,"
                  "\"logprobs\":true,\"top_logprobs\":4,\"logit_bias\":{\"7\":-100,\"12\":2.5},"
                  "\"tool_choice\":\"auto\",\"response_format\":{\"type\":\"text\"},\"n\":1}");
    const bz_sampling *s = &r.request.generate.sampling;
    CHECKF(r.status == BZ_OK, "%s", r.err.text);
    CHECK(s->temperature == 0.5f && s->top_p == 0.25f && s->top_k == 7 && s->min_p == 0.125f &&
          !s->greedy);
    CHECK(s->repetition == 1.5f && s->presence == -2 && s->frequency == 0.5f && s->seed == 12 &&
          r.request.has_seed);
    CHECK(r.request.generate.max_tokens == 3 && r.request.generate.log_probs &&
          r.request.generate.top_log_probs == 4);
    CHECK(s->n_bias == 2 && s->bias[0].token == 7 && isinf(s->bias[0].bias) &&
          s->bias[1].bias == 2.5f);
    bz_arena_free(&r.arena);

    begin("stop strings");
    r = read_text("{\"stop\":\"END\"}");
    CHECK(r.status == BZ_OK && r.request.n_stop == 1 && strcmp(r.request.stop[0], "END") == 0);
    CHECK(r.request.generate.n_stop == 0); /* they are searched in the answer alone */
    bz_arena_free(&r.arena);
    r = read_text("{\"stop\":null,\"options\":{\"stop\":[\"a\",\"b\"]}}");
    CHECK(r.status == BZ_OK && r.request.n_stop == 2 && strcmp(r.request.stop[1], "b") == 0);
    bz_arena_free(&r.arena);

    begin("whose drafts are verified");
    static const char *const drafts[] = {"null", "\"off\"", "\"lookup\"", "\"model\""};
    for (int kind = BZ_DRAFT_DEFAULT; kind <= BZ_DRAFT_MODEL; kind++) {
        char text[40];
        snprintf(text, sizeof text, "{\"draft\":%s}", drafts[kind]);
        r = read_text(text);
        CHECKF(r.status == BZ_OK && r.request.generate.draft == (bz_draft_kind)kind, "%s: %s", text,
               r.err.text);
        bz_arena_free(&r.arena);
    }

    begin("keys that cannot change the answer, and unknown keys");
    r = read_text("{\"model\":\"x\",\"user\":\"me\",\"stream\":true,\"stream_options\":{},"
                  "\"metadata\":{},\"store\":false,\"service_tier\":\"auto\","
                  "\"parallel_tool_calls\":true,\"modalities\":[\"text\"],\"verbosity\":"
                  "\"medium\",\"audio\":null,\"functions\":null,\"format\":\"\","
                  "\"safety_identifier\":\"a\",\"prompt_cache_key\":\"b\",\"colour\":\"blue\"}");
    CHECKF(r.status == BZ_OK, "%s", r.err.text);
    bz_arena_free(&r.arena);

    begin("Ollama's options; what stands beside the messages wins");
    r = read_text("{\"options\":{\"num_predict\":-1,\"seed\":-1,\"repeat_last_n\":-1,\"top_k\":5,"
                  "\"temperature\":2},"
                  "\"temperature\":0.5}");
    CHECK(r.status == BZ_OK && r.request.generate.max_tokens == 0 && !r.request.has_seed &&
          r.request.generate.sampling.window == -1);
    CHECK(r.request.generate.sampling.top_k == 5 &&
          r.request.generate.sampling.temperature == 0.5f);
    bz_arena_free(&r.arena);

    begin("zeros are values, not defaults");
    r = read_text("{\"temperature\":0,\"top_k\":0,\"min_p\":0,\"options\":{\"repeat_last_n\":0,"
                  "\"repeat_penalty\":2}}");
    CHECK(r.request.generate.sampling.temperature < 0 && r.request.generate.sampling.top_k < 0 &&
          r.request.generate.sampling.min_p < 0);
    CHECK(r.request.generate.sampling.repetition == 1);
    bz_arena_free(&r.arena);
    r = read_text("{\"top_p\":0}");
    CHECK(r.request.generate.sampling.greedy);
    bz_arena_free(&r.arena);
    r = read_text("{\"max_tokens\":5,\"max_completion_tokens\":9}");
    CHECK(r.request.generate.max_tokens == 9);
    bz_arena_free(&r.arena);
}

static void test_refusals(void)
{
    static const struct {
        const char *text;
        bz_status code;
        const char *says;
    } wrong[] = {
        {"{\"temperature\":-0.5}", BZ_BAD_REQUEST, "temperature"},
        {"{\"temperature\":\"hot\"}", BZ_BAD_REQUEST, "temperature"},
        {"{\"top_p\":1.5}", BZ_BAD_REQUEST, "top_p"},
        {"{\"top_k\":1.5}", BZ_BAD_REQUEST, "top_k"},
        {"{\"max_tokens\":0}", BZ_BAD_REQUEST, "max_tokens"},
        {"{\"seed\":1.5}", BZ_BAD_REQUEST, "seed"},
        {"{\"options\":{\"seed\":\"x\"}}", BZ_BAD_REQUEST, "seed"},
        {"{\"logprobs\":3}", BZ_BAD_REQUEST, "logprobs"},
        {"{\"logprobs\":true,\"top_logprobs\":21}", BZ_BAD_REQUEST, "top_logprobs"},
        {"{\"top_logprobs\":2}", BZ_BAD_REQUEST, "logprobs"},
        {"{\"logit_bias\":[1]}", BZ_BAD_REQUEST, "logit_bias"},
        {"{\"logit_bias\":{\"\":1}}", BZ_BAD_REQUEST, "logit_bias"},
        {"{\"logit_bias\":{\"-1\":1}}", BZ_BAD_REQUEST, "'-1'"},
        {"{\"logit_bias\":{\"1x\":1}}", BZ_BAD_REQUEST, "'1x'"},
        {"{\"logit_bias\":{\"4294967296\":1}}", BZ_BAD_REQUEST, "4294967296"},
        {"{\"logit_bias\":{\"1\":101}}", BZ_BAD_REQUEST, "'1'"},
        {"{\"n\":2}", BZ_BAD_REQUEST, "n is 1"},
        {"{\"tool_choice\":\"maybe\"}", BZ_BAD_REQUEST, "tool_choice"},
        {"{\"tool_choice\":{\"type\":\"function\"}}", BZ_BAD_REQUEST, "tool_choice"},
        {"{\"response_format\":{\"type\":\"json_schema\"}}", BZ_BAD_SCHEMA, "response_format"},
        {"{\"response_format\":\"json\"}", BZ_BAD_SCHEMA, "response_format"},
        {"{\"format\":\"yaml\"}", BZ_BAD_SCHEMA, "format"},
        {"{\"format\":[1]}", BZ_BAD_SCHEMA, "format"},
        {"{\"grammar\":3}", BZ_BAD_SCHEMA, "grammar"},
        {"{\"regex\":[]}", BZ_BAD_SCHEMA, "regex"},
        {"{\"choices\":\"a\"}", BZ_BAD_SCHEMA, "choices"},
        {"{\"format\":\"json\",\"regex\":\"a\"}", BZ_BAD_REQUEST, "Only one"},
        {"{\"modalities\":[\"text\",\"audio\"]}", BZ_BAD_REQUEST, "modalities"},
        {"{\"audio\":{\"voice\":\"x\"}}", BZ_BAD_REQUEST, "audio"},
        {"{\"functions\":[]}", BZ_BAD_REQUEST, "functions"},
        {"{\"function_call\":\"auto\"}", BZ_BAD_REQUEST, "function_call"},
        {"{\"prediction\":{\"type\":\"content\"}}", BZ_BAD_REQUEST, "prediction"},
        {"{\"web_search_options\":{}}", BZ_BAD_REQUEST, "web_search_options"},
        {"{\"store\":true}", BZ_BAD_REQUEST, "store"},
        {"{\"verbosity\":\"low\"}", BZ_BAD_REQUEST, "verbosity"},
        {"{\"draft\":\"magic\"}", BZ_BAD_REQUEST, "draft is"},
        {"{\"draft\":true}", BZ_BAD_REQUEST, "draft is"},
        {"{\"parallel_tool_calls\":1}", BZ_BAD_REQUEST, "parallel_tool_calls"},
        {"{\"think\":3}", BZ_BAD_REQUEST, "think"},
        {"{\"reasoning_effort\":{}}", BZ_BAD_REQUEST, "reasoning_effort"},
        {"{\"stop\":3}", BZ_BAD_REQUEST, "stop"},
        {"{\"stop\":[\"a\",null]}", BZ_BAD_REQUEST, "stop"},
        {"{\"stop\":\"a\\u0000b\"}", BZ_BAD_REQUEST, "stop"},
        {"{\"options\":[]}", BZ_BAD_REQUEST, "options"},
        {"[]", BZ_BAD_REQUEST, "object"},
    };
    begin("unsupported settings are refused by name");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        reading r = read_text(wrong[i].text);
        CHECKF(r.status == wrong[i].code && strstr(r.err.text, wrong[i].says), "%s: %d %s",
               wrong[i].text, r.status, r.err.text);
        bz_arena_free(&r.arena);
    }
}

int main(void)
{
    test_fields();
    test_refusals();
    return finish();
}
