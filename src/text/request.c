#include "text/request.h"

#include <math.h>
#include <string.h>

/* ---- numbers ---------------------------------------------------------------------- */

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

/* Of two names for one setting the later line wins. */
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

static bool is_absent(const bz_json_node *node)
{
    return !node || node->kind == BZ_JSON_NULL;
}

/* Zero is a default in bz_generate_options and a value in a request. */
static void put(bz_generate_options *o, field f, double value)
{
    bz_sampling *s = &o->sampling;
    switch (f) {
    case TEMPERATURE: s->temperature = value > 0 ? (float)value : -1; break;
    case TOP_P:
        s->top_p = (float)value;
        s->greedy = s->greedy || value <= 0; /* the likeliest token alone suffices */
        break;
    case TOP_K: s->top_k = value > 0 ? (int32_t)value : -1; break;
    case MIN_P: s->min_p = value > 0 ? (float)value : -1; break;
    case REPETITION: s->repetition = (float)value; break;
    case WINDOW:
        s->window = (int32_t)value;
        s->repetition = value == 0 ? 1 : s->repetition; /* no token counts as seen */
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
        if (is_absent(node)) {
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

/* Below zero: any seed, as in Ollama's API. */
static bz_status read_seed(bz_request *r, const bz_json_node *node, bz_error *err)
{
    int64_t seed;
    if (is_absent(node)) {
        return BZ_OK;
    }
    if (!bz_json_to_int(node, &seed)) {
        return bz_fail(err, BZ_BAD_REQUEST, "seed is a whole number.");
    }
    r->has_seed = seed >= 0;
    r->generate.sampling.seed = r->has_seed ? (uint64_t)seed : 0;
    return BZ_OK;
}

/* {"1234": -100}: keys are tokens. OpenAI's -100 means never. */
static bz_status read_bias(bz_sampling *s, const bz_json_node *node, bz_arena *arena, bz_error *err)
{
    if (is_absent(node)) {
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
    if (!is_absent(wanted) && wanted->kind != BZ_JSON_TRUE && wanted->kind != BZ_JSON_FALSE) {
        return bz_fail(err, BZ_BAD_REQUEST, "logprobs is true or false.");
    }
    o->log_probs = bz_json_is(wanted, BZ_JSON_TRUE);
    if (o->top_log_probs && !o->log_probs) {
        return bz_fail(err, BZ_BAD_REQUEST, "top_logprobs needs logprobs: true.");
    }
    return BZ_OK;
}

/* ---- stop strings ------------------------------------------------------------------- */

static bz_status read_stop_string(const bz_json_node *node, bz_arena *arena, const char **out,
                                  bz_error *err)
{
    if (!bz_json_is(node, BZ_JSON_STRING) || memchr(node->of.text.data, 0, node->of.text.len)) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "stop is a text without zero bytes, or a list of such texts.");
    }
    char *copy = bz_arena_alloc(arena, node->of.text.len + 1);
    if (!copy) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a stop string.");
    }
    memcpy(copy, node->of.text.data, node->of.text.len);
    copy[node->of.text.len] = 0;
    *out = copy;
    return BZ_OK;
}

static bz_status read_stop(bz_request *r, const bz_json_node *stop, bz_arena *arena, bz_error *err)
{
    if (is_absent(stop)) {
        return BZ_OK;
    }
    const bool list = stop->kind == BZ_JSON_ARRAY;
    const size_t n = list ? stop->n : 1;
    const char **strings = bz_arena_array(arena, n + 1, sizeof *strings);
    if (!strings) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the stop strings.");
    }
    bz_status status = BZ_OK;
    const bz_json_node *item = list ? stop->of.first : stop;
    for (size_t i = 0; i < n && status == BZ_OK; i++, item = item->next) {
        status = read_stop_string(item, arena, &strings[i], err);
    }
    r->stop = strings;
    r->n_stop = n;
    return status;
}

/* ---- the form of the answer ------------------------------------------------------------- */

static bz_status set_form(bz_request_answer *a, bz_request_form form, const bz_json_node *schema,
                          bz_str text, bz_error *err)
{
    if (a->form != BZ_FORM_FREE) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "Only one of response_format, format, grammar, regex and choices can be "
                       "given.");
    }
    a->form = form;
    a->schema = schema;
    a->text = text;
    return BZ_OK;
}

static const bz_str no_text = {"", 0};

/* {"type": "text"}, {"type": "json_object"}, {"type": "json_schema", "json_schema": {"schema":
 * {...}}}; the schema may also be beside the type. */
static bz_status read_response_format(bz_request_answer *a, const bz_json_node *format,
                                      bz_error *err)
{
    const bz_str type = bz_json_string(bz_json_get(format, "type"));
    const bz_json_node *named = bz_json_get(format, "json_schema"),
                       *inner = bz_json_get(named, "schema"),
                       *schema = inner ? inner : bz_json_get(format, "schema");
    if (is_absent(format) || bz_str_is(type, "text")) {
        return BZ_OK;
    }
    if (bz_str_is(type, "json_object") && is_absent(schema)) {
        return set_form(a, BZ_FORM_JSON, NULL, no_text, err);
    }
    if ((bz_str_is(type, "json_schema") || bz_str_is(type, "json_object")) && !is_absent(schema)) {
        return set_form(a, BZ_FORM_SCHEMA, schema, no_text, err);
    }
    return bz_fail(err, BZ_BAD_SCHEMA,
                   bz_str_is(type, "json_schema")
                       ? "response_format of type json_schema needs json_schema.schema."
                       : "response_format.type is text, json_object or json_schema.");
}

static bz_status read_form(bz_request_answer *a, const bz_json_node *request, bz_error *err)
{
    const bz_json_node *format = bz_json_get(request, "format"),
                       *grammar = bz_json_get(request, "grammar"),
                       *regex = bz_json_get(request, "regex"),
                       *choices = bz_json_get(request, "choices");
    bz_status status = read_response_format(a, bz_json_get(request, "response_format"), err);
    if (status == BZ_OK && !is_absent(format) &&
        !(format->kind == BZ_JSON_STRING && format->of.text.len == 0)) {
        status = bz_str_is(bz_json_string(format), "json")
                     ? set_form(a, BZ_FORM_JSON, NULL, no_text, err)
                 : format->kind == BZ_JSON_OBJECT
                     ? set_form(a, BZ_FORM_SCHEMA, format, no_text, err)
                     : bz_fail(err, BZ_BAD_SCHEMA, "format is \"json\" or a JSON schema.");
    }
    if (status == BZ_OK && !is_absent(grammar)) {
        status = grammar->kind == BZ_JSON_STRING
                     ? set_form(a, BZ_FORM_GBNF, NULL, grammar->of.text, err)
                     : bz_fail(err, BZ_BAD_SCHEMA, "grammar is a text in GBNF.");
    }
    if (status == BZ_OK && !is_absent(regex)) {
        status = regex->kind == BZ_JSON_STRING
                     ? set_form(a, BZ_FORM_REGEX, NULL, regex->of.text, err)
                     : bz_fail(err, BZ_BAD_SCHEMA, "regex is a text.");
    }
    if (status == BZ_OK && !is_absent(choices)) {
        status = choices->kind == BZ_JSON_ARRAY
                     ? set_form(a, BZ_FORM_CHOICES, choices, no_text, err)
                     : bz_fail(err, BZ_BAD_SCHEMA, "choices is a list of texts.");
    }
    return status;
}

static bz_status read_tool_choice(bz_request_answer *a, const bz_json_node *request, bz_error *err)
{
    const bz_json_node *choice = bz_json_get(request, "tool_choice"),
                       *parallel = bz_json_get(request, "parallel_tool_calls");
    const bz_str word = bz_json_string(choice);
    if (!is_absent(parallel) && parallel->kind != BZ_JSON_TRUE && parallel->kind != BZ_JSON_FALSE) {
        return bz_fail(err, BZ_BAD_REQUEST, "parallel_tool_calls is true or false.");
    }
    a->one_call = bz_json_is(parallel, BZ_JSON_FALSE);
    if (is_absent(choice) || bz_str_is(word, "auto") || bz_str_is(word, "none")) {
        return BZ_OK;
    }
    a->must_call = true;
    if (bz_str_is(word, "required")) {
        return BZ_OK;
    }
    const bz_json_node *function = bz_json_get(choice, "function");
    a->tool = bz_json_string(bz_json_get(function ? function : choice, "name"));
    a->one_call = true;
    return choice->kind == BZ_JSON_OBJECT && a->tool.len
               ? BZ_OK
               : bz_fail(err, BZ_BAD_REQUEST,
                         "tool_choice is auto, none, required or {\"type\": \"function\", "
                         "\"function\": {\"name\": ...}}.");
}

/* Whether old turns may be left out of a conversation that is too long. */
static bz_status read_context_shift(bz_request *r, const bz_json_node *node, bz_error *err)
{
    if (is_absent(node)) {
        return BZ_OK;
    }
    r->has_context_shift = true;
    r->context_shift = bz_json_is(node, BZ_JSON_TRUE);
    return r->context_shift || bz_json_is(node, BZ_JSON_FALSE)
               ? BZ_OK
               : bz_fail(err, BZ_BAD_REQUEST, "context_shift is true or false.");
}

bool bz_draft_named(bz_draft_kind *kind, bz_str name)
{
    static const struct {
        const char *name;
        bz_draft_kind kind;
    } kinds[] = {{"model", BZ_DRAFT_MODEL}, {"lookup", BZ_DRAFT_LOOKUP}, {"off", BZ_DRAFT_OFF}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (bz_str_is(name, kinds[i].name)) {
            *kind = kinds[i].kind;
            return true;
        }
    }
    return false;
}

/* Whose drafts a pass verifies. */
static bz_status read_draft(bz_generate_options *o, const bz_json_node *node, bz_error *err)
{
    if (is_absent(node)) {
        return BZ_OK;
    }
    return bz_draft_named(&o->draft, bz_json_string(node))
               ? BZ_OK
               : bz_fail(err, BZ_BAD_REQUEST, "draft is \"model\", \"lookup\" or \"off\".");
}

/* ---- what is refused ----------------------------------------------------------------- */

static bool is_list_of_text_alone(const bz_json_node *node)
{
    return bz_json_is(node, BZ_JSON_ARRAY) && node->n == 1 &&
           bz_str_is(bz_json_string(node->of.first), "text");
}

/* Keys for which only one value can be served, besides null. */
static bz_status check_values(const bz_json_node *request, bz_error *err)
{
    const bz_json_node *n = bz_json_get(request, "n"),
                       *modalities = bz_json_get(request, "modalities"),
                       *verbosity = bz_json_get(request, "verbosity");
    int64_t answers;
    if (!is_absent(n) && (!bz_json_to_int(n, &answers) || answers != 1)) {
        return bz_fail(err, BZ_BAD_REQUEST, "n is 1: one answer per request.");
    }
    if (!is_absent(modalities) && !is_list_of_text_alone(modalities)) {
        return bz_fail(err, BZ_BAD_REQUEST, "modalities is [\"text\"]: answers are text.");
    }
    if (!is_absent(verbosity) && !bz_str_is(bz_json_string(verbosity), "medium")) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "verbosity is medium; ask for a shorter or longer answer in a message.");
    }
    return BZ_OK;
}

/* Keys that cannot be obeyed at all. */
static bz_status check_keys(const bz_json_node *request, bz_error *err)
{
    static const struct {
        const char *key, *advice;
    } refused[] = {
        {"audio", "answers are text"},
        {"function_call", "use tool_choice"},
        {"functions", "use tools"},
        {"lora", "adapters belong to a session, or to the model that a server was started with"},
        {"prediction", "leave it out"},
        {"web_search_options", "nothing is fetched from the network"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (!is_absent(bz_json_get(request, refused[i].key))) {
            return bz_fail(err, BZ_BAD_REQUEST, "%s is not supported: %s.", refused[i].key,
                           refused[i].advice);
        }
    }
    if (bz_json_is(bz_json_get(request, "store"), BZ_JSON_TRUE)) {
        return bz_fail(err, BZ_BAD_REQUEST, "store is false: answers are not stored.");
    }
    return BZ_OK;
}

/* Switches that the chat template reads (chat_json.c). */
static bz_status check_switches(const bz_json_node *object, bz_error *err)
{
    static const char *const keys[] = {"think",
                                       "enable_thinking",
                                       "reasoning_effort",
                                       "preserve_thinking",
                                       "add_generation_prompt",
                                       "continue_final_message"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const bz_json_node *node = bz_json_get(object, keys[i]);
        if (!is_absent(node) && node->kind != BZ_JSON_TRUE && node->kind != BZ_JSON_FALSE &&
            node->kind != BZ_JSON_STRING) {
            return bz_fail(err, BZ_BAD_REQUEST, "%s is true, false or a word.", keys[i]);
        }
    }
    return BZ_OK;
}

/* ---- all of it ------------------------------------------------------------------------ */

bz_status bz_request_read(bz_request *r, const bz_json_node *request, bz_arena *arena,
                          bz_error *err)
{
    const bz_json_node *options = bz_json_get(request, "options"),
                       *stop = bz_json_get(request, "stop");
    *r = (bz_request){.generate = {.size = sizeof r->generate}};
    if (!bz_json_is(request, BZ_JSON_OBJECT)) {
        return bz_fail(err, BZ_BAD_REQUEST, "The request is not a JSON object.");
    }
    if (!is_absent(options) && options->kind != BZ_JSON_OBJECT) {
        return bz_fail(err, BZ_BAD_REQUEST, "options is an object.");
    }
    bz_status status = check_values(request, err);
    status = status == BZ_OK ? check_keys(request, err) : status;
    status = status == BZ_OK ? check_switches(request, err) : status;
    status = status == BZ_OK ? read_form(&r->answer, request, err) : status;
    status = status == BZ_OK ? read_tool_choice(&r->answer, request, err) : status;
    status = status == BZ_OK ? read_numbers(&r->generate, options, err) : status;
    status = status == BZ_OK ? read_numbers(&r->generate, request, err) : status;
    status = status == BZ_OK ? read_seed(r, bz_json_get(options, "seed"), err) : status;
    status = status == BZ_OK ? read_seed(r, bz_json_get(request, "seed"), err) : status;
    status = status == BZ_OK
                 ? read_stop(r, is_absent(stop) ? bz_json_get(options, "stop") : stop, arena, err)
                 : status;
    status = status == BZ_OK
                 ? read_bias(&r->generate.sampling, bz_json_get(request, "logit_bias"), arena, err)
                 : status;
    status = status == BZ_OK ? read_context_shift(r, bz_json_get(request, "context_shift"), err)
                             : status;
    status =
        status == BZ_OK ? read_draft(&r->generate, bz_json_get(request, "draft"), err) : status;
    return status == BZ_OK ? read_log_probs(&r->generate, request, err) : status;
}
