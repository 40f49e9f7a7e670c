#include "text/request.h"

#include <math.h>

typedef enum field {
    TEMPERATURE,
    TOP_P,
    TOP_K,
    MIN_P,
    REPETITION,
    WINDOW,
    PRESENCE,
    FREQUENCY,
    MAX_TOKENS,
    TOP_LOG_PROBS
} field;

/* Of two names for one thing the later line wins. */
static const struct {
    const char *name;
    field field;
    bool whole;
    double low, high;
} names[] = {
    {"temperature", TEMPERATURE, false, 0, 100},
    {"top_p", TOP_P, false, 0, 1},
    {"top_k", TOP_K, true, -1, 1 << 30},
    {"min_p", MIN_P, false, 0, 1},
    {"repeat_penalty", REPETITION, false, 0.01, 100},
    {"repetition_penalty", REPETITION, false, 0.01, 100},
    {"repeat_last_n", WINDOW, true, -1, 1 << 30},
    {"presence_penalty", PRESENCE, false, -100, 100},
    {"frequency_penalty", FREQUENCY, false, -100, 100},
    {"num_predict", MAX_TOKENS, true, -2, 1 << 30},
    {"max_tokens", MAX_TOKENS, true, 1, 1 << 30},
    {"max_completion_tokens", MAX_TOKENS, true, 1, 1 << 30},
    {"top_logprobs", TOP_LOG_PROBS, true, 0, 20},
};

static bool is_nothing(const bz_json_node *node)
{
    return !node || node->kind == BZ_JSON_NULL;
}

/* Zero is a default in our options and a value in a request. */
static void put(bz_generate_options *o, field f, double value)
{
    bz_sampling *s = &o->sampling;
    switch (f) {
    case TEMPERATURE: s->temperature = value > 0 ? (float)value : -1; break;
    case TOP_P:
        s->top_p = (float)value;
        s->greedy = s->greedy || value <= 0; /* the likeliest token alone has that much */
        break;
    case TOP_K: s->top_k = value > 0 ? (int32_t)value : -1; break;
    case MIN_P: s->min_p = value > 0 ? (float)value : -1; break;
    case REPETITION: s->repetition = (float)value; break;
    case WINDOW:
        s->window = (int32_t)value;
        s->repetition = value == 0 ? 1 : s->repetition; /* it looks at no token */
        break;
    case PRESENCE: s->presence = (float)value; break;
    case FREQUENCY: s->frequency = (float)value; break;
    case MAX_TOKENS: o->max_tokens = value > 0 ? (uint32_t)value : 0; break;
    case TOP_LOG_PROBS: o->top_log_probs = (uint32_t)value; break;
    }
}

static bz_status read_numbers(bz_generate_options *o, const bz_json_node *object, bz_error *err)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const bz_json_node *node = bz_json_get(object, names[i].name);
        double value;
        if (is_nothing(node)) {
            continue;
        }
        if (!bz_json_to_double(node, &value) || value < names[i].low || value > names[i].high ||
            (names[i].whole && value != floor(value))) {
            return bz_fail(err, BZ_BAD_REQUEST, "%s is a %snumber from %.17g to %.17g.",
                           names[i].name, names[i].whole ? "whole " : "", names[i].low,
                           names[i].high);
        }
        put(o, names[i].field, value);
    }
    return BZ_OK;
}

/* Below zero: any, as Ollama says it. */
static bz_status read_seed(bz_generate_options *o, bool *seeded, const bz_json_node *node,
                           bz_error *err)
{
    int64_t seed;
    if (is_nothing(node)) {
        return BZ_OK;
    }
    if (!bz_json_to_int(node, &seed)) {
        return bz_fail(err, BZ_BAD_REQUEST, "seed is a whole number.");
    }
    *seeded = seed >= 0;
    o->sampling.seed = *seeded ? (uint64_t)seed : 0;
    return BZ_OK;
}

/* {"1234": -100}: keys are tokens. OpenAI's -100 means never. */
static bz_status read_bias(bz_sampling *s, const bz_json_node *node, bz_arena *arena, bz_error *err)
{
    if (is_nothing(node)) {
        return BZ_OK;
    }
    bz_bias *all = bz_json_is(node, BZ_JSON_OBJECT)
                       ? bz_arena_array(arena, node->n + (size_t)1, sizeof *all)
                       : NULL;
    if (!all) {
        return bz_json_is(node, BZ_JSON_OBJECT)
                   ? bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for logit_bias.")
                   : bz_fail(err, BZ_BAD_REQUEST, "logit_bias is an object: numbers by tokens.");
    }
    size_t n = 0;
    for (const bz_json_node *item = node->of.first; item; item = item->next) {
        const bz_json_node key = {.kind = BZ_JSON_NUMBER, .of.text = item->key};
        int64_t token;
        double bias;
        if (item->key.len == 0 || item->key.data[0] == '-' || !bz_json_to_int(&key, &token) ||
            token > INT32_MAX || !bz_json_to_double(item, &bias) || bias < -100 || bias > 100) {
            char shown[200];
            return bz_fail(err, BZ_BAD_REQUEST,
                           "logit_bias of '%s': keys are tokens, values numbers from -100 to 100.",
                           bz_str_show(item->key, shown));
        }
        all[n++] = (bz_bias){(int32_t)token, bias <= -100 ? -INFINITY : (float)bias};
    }
    s->bias = all;
    s->n_bias = n;
    return BZ_OK;
}

static bz_status read_log_probs(bz_generate_options *o, const bz_json_node *request, bz_error *err)
{
    const bz_json_node *wanted = bz_json_get(request, "logprobs");
    if (!is_nothing(wanted) && wanted->kind != BZ_JSON_TRUE && wanted->kind != BZ_JSON_FALSE) {
        return bz_fail(err, BZ_BAD_REQUEST, "logprobs is true or false.");
    }
    o->log_probs = bz_json_is(wanted, BZ_JSON_TRUE);
    if (o->top_log_probs && !o->log_probs) {
        return bz_fail(err, BZ_BAD_REQUEST, "top_logprobs needs logprobs: true.");
    }
    return BZ_OK;
}

/* What we cannot do yet must not look as if it had been done. */
static bz_status refuse(const bz_json_node *request, bz_error *err)
{
    const bz_json_node *n = bz_json_get(request, "n"),
                       *choice = bz_json_get(request, "tool_choice");
    const bz_json_node *format = bz_json_get(request, "response_format");
    const bz_str word = bz_json_string(choice);
    int64_t answers;
    if (!is_nothing(n) && (!bz_json_to_int(n, &answers) || answers != 1)) {
        return bz_fail(err, BZ_BAD_REQUEST, "n is 1: one answer per request.");
    }
    if (!is_nothing(choice) && !bz_str_is(word, "auto") && !bz_str_is(word, "none")) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "tool_choice is auto or none; a tool cannot be forced yet.");
    }
    if (!is_nothing(format) && !bz_str_is(bz_json_string(bz_json_get(format, "type")), "text")) {
        return bz_fail(err, BZ_BAD_SCHEMA,
                       "response_format is text; JSON and schemas are not supported yet.");
    }
    return BZ_OK;
}

bz_status bz_request_read(bz_generate_options *o, bool *seeded, const bz_json_node *request,
                          bz_arena *arena, bz_error *err)
{
    const bz_json_node *options = bz_json_get(request, "options");
    *o = (bz_generate_options){.size = sizeof(bz_generate_options)};
    *seeded = false;
    bz_status status = refuse(request, err);
    if (status == BZ_OK) {
        status = read_numbers(o, options, err);
    }
    if (status == BZ_OK) {
        status = read_numbers(o, request, err);
    }
    if (status == BZ_OK) {
        status = read_seed(o, seeded, bz_json_get(options, "seed"), err);
    }
    if (status == BZ_OK) {
        status = read_seed(o, seeded, bz_json_get(request, "seed"), err);
    }
    if (status == BZ_OK) {
        status = read_bias(&o->sampling, bz_json_get(request, "logit_bias"), arena, err);
    }
    return status == BZ_OK ? read_log_probs(o, request, err) : status;
}
