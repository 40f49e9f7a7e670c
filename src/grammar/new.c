/* bz_grammar_new: the notations of bezel.h. */
#include <string.h>

#include "grammar/gbnf.h"
#include "grammar/json_rules.h"
#include "grammar/regex.h"
#include "grammar/schema.h"

static bz_status compile(bz_grammar **out, bz_build *b, bz_error *err)
{
    return bz_grammar_compile(out, b, NULL, NULL, err);
}

static bz_status any_object(bz_grammar **out, bz_build *b, bz_arena *arena, bz_error *err)
{
    bz_json_rules rules = {.build = b, .arena = arena};
    const uint32_t root = bz_build_rule(b), object = bz_json_any_object(&rules);
    if (!b->failed) {
        bz_build_call(b, b->rules[root].start, b->rules[root].end, object);
    }
    return compile(out, b, err);
}

static bz_status regex(bz_grammar **out, bz_build *b, bz_arena *arena, bz_str text, bz_error *err)
{
    const bz_tree *t;
    const bz_tree_out to = {.build = b, .arena = arena};
    const bz_status status = bz_regex_read(&t, text.data, text.len, false, arena, err);
    const uint32_t root = bz_build_rule(b);
    if (status != BZ_OK) {
        return status;
    }
    if (!b->failed) {
        bz_tree_emit(&to, t, b->rules[root].start, b->rules[root].end);
    }
    return compile(out, b, err);
}

static bz_status choices(bz_grammar **out, bz_build *b, const bz_json_node *list, bz_error *err)
{
    const uint32_t root = bz_build_rule(b);
    for (const bz_json_node *x = list->of.first; x && !b->failed; x = x->next) {
        if (x->kind != BZ_JSON_STRING || x->of.text.len == 0) {
            return bz_fail(err, BZ_BAD_SCHEMA, "Choices are texts, none of them empty.");
        }
        bz_build_text(b, b->rules[root].start, b->rules[root].end, x->of.text.data, x->of.text.len);
    }
    return compile(out, b, err);
}

bz_status bz_choices_read(bz_grammar **out, const bz_json_node *list, bz_error *err)
{
    bz_build b = {0};
    if (!bz_json_is(list, BZ_JSON_ARRAY) || list->n == 0) {
        return bz_fail(err, BZ_BAD_SCHEMA, "Choices are a list of one text or more.");
    }
    const bz_status status = choices(out, &b, list, err);
    bz_build_free(&b);
    return status;
}

/* Schemas and choices are JSON. */
static bz_status from_json(bz_grammar **out, bz_grammar_kind kind, bz_arena *arena, bz_str text,
                           bz_error *err)
{
    const bz_json_node *root;
    bz_error why;
    const bz_status status = bz_json_read(&root, text.data, text.len, arena, &why);
    if (status == BZ_OUT_OF_MEMORY) {
        return bz_fail(err, status, "%s", why.text);
    }
    if (status != BZ_OK) {
        return bz_fail(err, BZ_BAD_SCHEMA, "The %s not JSON. %s",
                       kind == BZ_GRAMMAR_SCHEMA ? "schema is" : "choices are", why.text);
    }
    return kind == BZ_GRAMMAR_SCHEMA ? bz_schema_read(out, root, err)
                                     : bz_choices_read(out, root, err);
}

bz_status bz_grammar_new(bz_grammar **out, bz_grammar_kind kind, const char *text, size_t len,
                         bz_error *err)
{
    bz_build b = {0};
    bz_arena arena = {0};
    const bz_str s = {text, len};
    bz_status status;
    *out = NULL;
    switch (kind) {
    case BZ_GRAMMAR_JSON: status = any_object(out, &b, &arena, err); break;
    case BZ_GRAMMAR_SCHEMA:
    case BZ_GRAMMAR_CHOICES: status = from_json(out, kind, &arena, s, err); break;
    case BZ_GRAMMAR_GBNF: status = bz_gbnf_read(out, text, len, err); break;
    case BZ_GRAMMAR_REGEX: status = regex(out, &b, &arena, s, err); break;
    default:
        status =
            bz_fail(err, BZ_BAD_REQUEST, "There is no kind of grammar with number %d.", (int)kind);
    }
    bz_build_free(&b);
    bz_arena_free(&arena);
    return status;
}
