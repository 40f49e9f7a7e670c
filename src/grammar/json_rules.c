#include "grammar/json_rules.h"

#include <string.h>

#include "grammar/regex.h"

/* The depth of an indentation: without a limit a model may write blanks forever. */
#define SPACE   "( |\r?\n[ \t]{0,64})?"
#define NUMBER  "-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?"
#define INTEGER "-?(0|[1-9][0-9]*)"
/* Control characters need an escape; surrogates come in pairs. */
#define CHARACTER                                                                                  \
    "[^\\x00-\\x1f\"\\\\]|\\\\([\"\\\\/bfnrt]|u([0-9a-ce-fA-CE-F][0-9a-fA-F]{3}|[dD][0-7]["        \
    "0-9a-fA-F]{2}|[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2}))"
#define PLAIN_CHARACTER "[^\\x00]"
/* A key of the model's notation without quotes. */
#define BARE_KEY "[^\\x00-\\x20\\x7f:,{}\\[\\]\"]+"

static const bz_tree *tree_of(bz_json_rules *r, const char *regex)
{
    const bz_tree *t = NULL;
    if (bz_regex_read(&t, regex, strlen(regex), false, r->arena, NULL) != BZ_OK) {
        r->build->failed = true;
    }
    return t;
}

/* Counts are written out: the rules are the same in every grammar, and have no calls. */
static bz_tree_out plain_out(const bz_json_rules *r)
{
    return (bz_tree_out){.build = r->build, .arena = r->arena, .regular = true};
}

static uint32_t new_rule(bz_json_rules *r, uint32_t *kept)
{
    const uint32_t rule = bz_build_rule(r->build);
    *kept = rule + 1;
    if (!r->build->failed) {
        r->build->rules[rule].shared = true;
    }
    return rule;
}

static uint32_t start_of(const bz_json_rules *r, uint32_t rule)
{
    return r->build->failed ? 0 : r->build->rules[rule].start;
}

static uint32_t end_of(const bz_json_rules *r, uint32_t rule)
{
    return r->build->failed ? 0 : r->build->rules[rule].end;
}

static uint32_t regex_rule(bz_json_rules *r, uint32_t *kept, const char *regex)
{
    if (!*kept) {
        const uint32_t rule = new_rule(r, kept);
        const bz_tree_out out = plain_out(r);
        bz_tree_emit(&out, tree_of(r, regex), start_of(r, rule), end_of(r, rule));
    }
    return *kept - 1;
}

uint32_t bz_json_space(bz_json_rules *r)
{
    return regex_rule(r, &r->space, SPACE);
}

uint32_t bz_json_any_number(bz_json_rules *r)
{
    return regex_rule(r, &r->number, NUMBER);
}

uint32_t bz_json_any_integer(bz_json_rules *r)
{
    return regex_rule(r, &r->integer, INTEGER);
}

const bz_tree *bz_json_character(bz_json_rules *r)
{
    if (!r->character) {
        r->character = tree_of(r, r->native ? PLAIN_CHARACTER : CHARACTER);
    }
    return r->character;
}

uint32_t bz_json_add_space(bz_json_rules *r, uint32_t from)
{
    if (r->native) {
        return from;
    }
    const uint32_t to = bz_build_state(r->build);
    bz_build_call(r->build, from, to, bz_json_space(r));
    return to;
}

void bz_json_add_quote(bz_json_rules *r, uint32_t from, uint32_t to)
{
    static const char special[2] = {(char)BZ_SPECIAL_BYTE, BZ_SPECIAL_QUOTE};
    if (r->native) {
        bz_build_text(r->build, from, to, special, 2);
    } else {
        bz_build_text(r->build, from, to, "\"", 1);
    }
}

uint32_t bz_json_any_string(bz_json_rules *r)
{
    if (!r->string) {
        const uint32_t rule = new_rule(r, &r->string);
        const uint32_t a = bz_build_state(r->build), b = bz_build_state(r->build);
        const bz_tree_out out = plain_out(r);
        bz_json_add_quote(r, start_of(r, rule), a);
        bz_tree_emit(&out, bz_tree_repeat(r->arena, bz_json_character(r), 0, BZ_NO_LIMIT), a, b);
        bz_json_add_quote(r, b, end_of(r, rule));
    }
    return r->string - 1;
}

uint32_t bz_json_any_key(bz_json_rules *r)
{
    return r->native ? regex_rule(r, &r->key, BARE_KEY) : bz_json_any_string(r);
}

/* ---- values of any kind
 * -------------------------------------------------------------------------- */

/* Items between brackets, each from `begin` on, which ends at `done`. */
static void add_items(bz_json_rules *r, uint32_t from, uint32_t to, const char *brackets,
                      uint32_t begin, uint32_t done)
{
    bz_build *b = r->build;
    const uint32_t open = bz_build_state(b), comma = bz_build_state(b);
    bz_build_text(b, from, open, brackets, 1);
    const uint32_t inside = bz_json_add_space(r, open);
    bz_build_text(b, inside, to, brackets + 1, 1); /* empty */
    bz_build_empty(b, inside, begin);
    bz_build_text(b, done, comma, ",", 1);
    bz_build_empty(b, bz_json_add_space(r, comma), begin);
    bz_build_text(b, bz_json_add_space(r, done), to, brackets + 1, 1);
}

uint32_t bz_json_any_object(bz_json_rules *r)
{
    if (!r->object) {
        bz_build *b = r->build;
        const uint32_t rule = new_rule(r, &r->object);
        const uint32_t begin = bz_build_state(b), key = bz_build_state(b),
                       colon = bz_build_state(b), done = bz_build_state(b);
        add_items(r, start_of(r, rule), end_of(r, rule), "{}", begin, done);
        bz_build_call(b, begin, key, bz_json_any_key(r));
        bz_build_text(b, key, colon, ":", 1);
        bz_build_call(b, bz_json_add_space(r, colon), done, bz_json_any_value(r));
    }
    return r->object - 1;
}

uint32_t bz_json_any_value(bz_json_rules *r)
{
    if (!r->value) {
        bz_build *b = r->build;
        const uint32_t rule = new_rule(r, &r->value);
        const uint32_t from = start_of(r, rule), to = end_of(r, rule), begin = bz_build_state(b),
                       done = bz_build_state(b);
        bz_build_text(b, from, to, "null", 4);
        bz_build_text(b, from, to, "true", 4);
        bz_build_text(b, from, to, "false", 5);
        bz_build_call(b, from, to, bz_json_any_number(r));
        bz_build_call(b, from, to, bz_json_any_string(r));
        bz_build_call(b, from, to, bz_json_any_object(r));
        add_items(r, from, to, "[]", begin, done);
        bz_build_call(b, begin, done, rule);
    }
    return r->value - 1;
}

/* ---- given values
 * ------------------------------------------------------------------------------------ */

void bz_json_add_text(bz_json_rules *r, uint32_t from, uint32_t to, bz_str text)
{
    const bz_tree_out out = {
        .build = r->build, .arena = r->arena, .escape = !r->native, .regular = true};
    bz_tree_emit(&out, bz_tree_text(r->arena, text.data, text.len), from, to);
}

static void add_string(bz_json_rules *r, uint32_t from, uint32_t to, bz_str text)
{
    const uint32_t a = bz_build_state(r->build), b = bz_build_state(r->build);
    bz_json_add_quote(r, from, a);
    bz_json_add_text(r, a, b, text);
    bz_json_add_quote(r, b, to);
}

bool bz_json_key_is_bare(bz_str key)
{
    for (size_t i = 0; i < key.len; i++) {
        const unsigned char c = (unsigned char)key.data[i];
        if (c <= 0x20 || c == 0x7F || memchr(":,{}[]\"", c, 7)) {
            return false;
        }
    }
    return key.len > 0;
}

void bz_json_add_key(bz_json_rules *r, uint32_t from, uint32_t to, bz_str key)
{
    if (r->native && bz_json_key_is_bare(key)) {
        bz_build_text(r->build, from, to, key.data, key.len);
    } else {
        add_string(r, from, to, key);
    }
}

static void add_members(bz_json_rules *r, uint32_t from, uint32_t to, const bz_json_node *value)
{
    const bool object = value->kind == BZ_JSON_OBJECT;
    bz_build *b = r->build;
    const uint32_t open = bz_build_state(b);
    bz_build_text(b, from, open, object ? "{" : "[", 1);
    uint32_t at = bz_json_add_space(r, open);
    for (const bz_json_node *item = value->of.first; item; item = item->next) {
        const uint32_t done = bz_build_state(b);
        if (object) {
            const uint32_t key = bz_build_state(b), colon = bz_build_state(b);
            bz_json_add_key(r, at, key, item->key);
            bz_build_text(b, key, colon, ":", 1);
            at = bz_json_add_space(r, colon);
        }
        bz_json_add_literal(r, at, done, item);
        at = done;
        if (item->next) {
            const uint32_t comma = bz_build_state(b);
            bz_build_text(b, at, comma, ",", 1);
            at = bz_json_add_space(r, comma);
        }
    }
    at = value->of.first ? bz_json_add_space(r, at) : at;
    bz_build_text(b, at, to, object ? "}" : "]", 1);
}

void bz_json_add_literal(bz_json_rules *r, uint32_t from, uint32_t to, const bz_json_node *value)
{
    bz_build *b = r->build;
    if (b->failed) {
        return;
    }
    switch ((bz_json_kind)value->kind) {
    case BZ_JSON_NULL: bz_build_text(b, from, to, "null", 4); break;
    case BZ_JSON_FALSE: bz_build_text(b, from, to, "false", 5); break;
    case BZ_JSON_TRUE: bz_build_text(b, from, to, "true", 4); break;
    case BZ_JSON_NUMBER: bz_build_text(b, from, to, value->of.text.data, value->of.text.len); break;
    case BZ_JSON_STRING: add_string(r, from, to, value->of.text); break;
    case BZ_JSON_ARRAY:
    case BZ_JSON_OBJECT: add_members(r, from, to, value); break;
    }
}
