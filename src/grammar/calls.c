#include "grammar/calls.h"

#include <string.h>

#include "grammar/schema.h"

static const bz_json_node *function_of(const bz_json_node *tool)
{
    const bz_json_node *function = bz_json_get(tool, "function");
    return function ? function : tool;
}

static bool is_strict(const bz_json_node *tool)
{
    return bz_json_is(bz_json_get(function_of(tool), "strict"), BZ_JSON_TRUE) ||
           bz_json_is(bz_json_get(tool, "strict"), BZ_JSON_TRUE);
}

bool bz_calls_strict(const bz_json_node *tools)
{
    for (const bz_json_node *x = bz_json_first(tools); x; x = x->next) {
        if (is_strict(x)) {
            return true;
        }
    }
    return false;
}

/* The rule of a tool's arguments. Parameters that cannot be obeyed are an error only where that was
 * asked for. */
static bz_status arguments(bz_json_rules *rules, const bz_calls_options *o,
                           const bz_json_node *tool, uint32_t *rule, bz_error *err)
{
    const bz_json_node *parameters = bz_json_get(function_of(tool), "parameters");
    bz_error why;
    if ((!o->all_strict && !is_strict(tool)) || !parameters || parameters->kind == BZ_JSON_NULL) {
        *rule = bz_json_any_object(rules);
        return BZ_OK;
    }
    const bz_status status = bz_schema_rule(rules, parameters, true, rule, &why);
    if (status == BZ_BAD_SCHEMA && !is_strict(tool)) {
        *rule = bz_json_any_object(rules);
        return BZ_OK;
    }
    char shown[200];
    return status == BZ_OK
               ? BZ_OK
               : bz_fail(err, status, "The parameters of the tool %s: %s",
                         bz_str_show(bz_json_string(bz_json_get(function_of(tool), "name")), shown),
                         why.text);
}

static bz_status add_tools(bz_json_rules *rules, const bz_calls_options *o, uint32_t from,
                           uint32_t to, bz_error *err)
{
    bz_build *b = rules->build;
    bool any = false;
    for (const bz_json_node *x = bz_json_first(o->tools); x; x = x->next) {
        const bz_str name = bz_json_string(bz_json_get(function_of(x), "name"));
        if (!name.len || (o->only.len && (o->only.len != name.len ||
                                          memcmp(o->only.data, name.data, name.len) != 0))) {
            continue;
        }
        uint32_t rule;
        const bz_status status = arguments(rules, o, x, &rule, err);
        if (status != BZ_OK) {
            return status;
        }
        const uint32_t named = bz_build_state(b);
        bz_build_text(b, from, named, name.data, name.len);
        bz_build_call(b, named, to, rule);
        any = true;
    }
    char shown[200];
    return any ? BZ_OK
           : o->only.len
               ? bz_fail(err, BZ_BAD_REQUEST, "There is no tool named %s.",
                         bz_str_show(o->only, shown))
               : bz_fail(err, BZ_BAD_REQUEST, "A tool must be called, but there is none.");
}

static bz_status add_calls(bz_build *b, bz_arena *arena, const bz_calls_options *o, bz_error *err)
{
    static const char open[] = {(char)BZ_SPECIAL_BYTE, BZ_SPECIAL_CALL, 'c', 'a', 'l', 'l', ':'},
                      close[] = {(char)BZ_SPECIAL_BYTE, BZ_SPECIAL_CALL_END};
    bz_json_rules native = {.build = b, .arena = arena, .native = true},
                  json = {.build = b, .arena = arena};
    const uint32_t root = bz_build_rule(b), begin = bz_build_state(b), name = bz_build_state(b),
                   end = bz_build_state(b), done = bz_build_state(b);
    if (b->failed) {
        return bz_build_status(b, err);
    }
    const uint32_t from = b->rules[root].start, to = b->rules[root].end;
    bz_build_empty(b, from, begin);
    bz_build_text(b, begin, name, open, sizeof open);
    bz_status status = add_tools(&native, o, name, end, err);
    bz_build_text(b, end, done, close, sizeof close);
    bz_build_empty(b, done, to);
    if (o->several) {
        bz_build_empty(b, done, begin);
    }
    if (status == BZ_OK && o->or_json) {
        uint32_t rule = 0;
        if (o->or_schema) {
            status = bz_schema_rule(&json, o->or_schema, false, &rule, err);
        } else {
            rule = bz_json_any_object(&json);
        }
        bz_build_call(b, from, to, rule);
    }
    return status;
}

bz_status bz_calls_read(bz_grammar **out, const bz_calls_options *o, bz_error *err)
{
    bz_build b = {0};
    bz_arena arena = {0};
    bz_status status = add_calls(&b, &arena, o, err);
    if (status == BZ_OK) {
        status = bz_grammar_compile(out, &b, NULL, NULL, err);
    }
    bz_build_free(&b);
    bz_arena_free(&arena);
    return status;
}
