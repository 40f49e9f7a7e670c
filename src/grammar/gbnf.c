/*   name ::= "text" [a-z] [^"\n] . (group) other-name item* item+ item? item{2,5} | alternative   #
 * remark
 *
 * The rule `root` is the whole grammar. A rule ends where the next one begins, so line breaks may
 * be anywhere. */
#include "grammar/gbnf.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "grammar/tree.h"

enum { MAX_DEPTH = 200, MAX_COUNT = 1000000, MAX_CHAR = 0x10FFFF };

typedef struct gbnf_rule {
    bz_str name;
    const bz_tree *tree; /* NULL: used, not written yet */
    uint32_t rule;       /* in the build */
    bool may_be_empty;
    uint32_t not_empty; /* the rule of its texts that are not empty; 0: not made */
} gbnf_rule;

typedef struct reader {
    const char *s;
    size_t n, at;
    bz_arena arena;
    bz_build build;
    gbnf_rule *rules; /* [n_rules], the first is root */
    uint32_t n_rules, cap_rules;
    unsigned depth;
    const char *why;
    bz_str what; /* of `why`; may be empty */
    bool no_memory;
} reader;

typedef struct items {
    const bz_tree **list;
    size_t n, cap;
} items;

static const bz_tree *fail(reader *r, const char *why)
{
    r->why = r->why ? r->why : why;
    return NULL;
}

static bool add_item(reader *r, items *l, const bz_tree *t)
{
    if (!t) {
        return false;
    }
    if (l->n == l->cap) {
        const size_t cap = l->cap ? 2 * l->cap : 8;
        const bz_tree **more = bz_arena_array(&r->arena, cap, sizeof(const bz_tree *));
        if (!more) {
            r->no_memory = true;
            return false;
        }
        if (l->n) {
            memcpy(more, l->list, l->n * sizeof(const bz_tree *));
        }
        l->list = more;
        l->cap = cap;
    }
    l->list[l->n++] = t;
    return true;
}

/* ---- words
 * ---------------------------------------------------------------------------------------- */

static void skip_space(reader *r)
{
    for (; r->at < r->n; r->at++) {
        const char c = r->s[r->at];
        if (c == '#') {
            while (r->at < r->n && r->s[r->at] != '\n') {
                r->at++;
            }
            r->at -= r->at == r->n;
        } else if (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
            return;
        }
    }
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

static bz_str take_name(reader *r)
{
    const size_t begin = r->at;
    while (r->at < r->n && is_name_char(r->s[r->at])) {
        r->at++;
    }
    return (bz_str){r->s + begin, r->at - begin};
}

static bool take(reader *r, const char *text)
{
    const size_t len = strlen(text);
    const bool is = r->n - r->at >= len && memcmp(r->s + r->at, text, len) == 0;
    r->at += is ? len : 0;
    return is;
}

static bool next_is(const reader *r, char c)
{
    return r->at < r->n && r->s[r->at] == c;
}

/* Whether a rule begins here: a name and ::=. */
static bool at_rule(reader *r)
{
    const size_t begin = r->at;
    const bz_str name = take_name(r);
    skip_space(r);
    const bool is = name.len && take(r, "::=");
    r->at = begin;
    return is;
}

/* The index of a new rule. */
static uint32_t add_rule(reader *r, bz_str name)
{
    if (r->n_rules == r->cap_rules) {
        const uint32_t cap = r->cap_rules ? 2 * r->cap_rules : 16;
        gbnf_rule *rules = realloc(r->rules, cap * sizeof *rules);
        if (!rules) {
            r->no_memory = true;
            return 0;
        }
        r->rules = rules;
        r->cap_rules = cap;
    }
    r->rules[r->n_rules] = (gbnf_rule){.name = name, .rule = bz_build_rule(&r->build)};
    return r->n_rules++;
}

static uint32_t find_rule(reader *r, bz_str name)
{
    for (uint32_t i = 0; i < r->n_rules; i++) {
        if (r->rules[i].name.len == name.len &&
            memcmp(r->rules[i].name.data, name.data, name.len) == 0) {
            return i;
        }
    }
    return add_rule(r, name);
}

/* The index of a rule of the build; there, bodies of loops lie between ours. */
static uint32_t index_of(const reader *r, uint32_t rule)
{
    uint32_t i = rule < r->n_rules ? rule : r->n_rules - 1;
    while (i && r->rules[i].rule != rule) {
        i--;
    }
    return i;
}

/* ---- items
 * ------------------------------------------------------------------------------------------- */

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* A character of a text or set; UINT32_MAX: r->why. */
static uint32_t take_char(reader *r)
{
    uint32_t c;
    if (!take(r, "\\")) {
        r->at += bz_utf8_decode(r->s + r->at, r->n - r->at, &c);
        return c;
    }
    const char kind = r->at < r->n ? r->s[r->at++] : 0;
    const size_t n = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    if (n) {
        c = 0;
        for (size_t i = 0; i < n; i++) {
            const int digit = r->at < r->n ? hex(r->s[r->at++]) : -1;
            if (digit < 0) {
                fail(r, "an incomplete escape");
                return UINT32_MAX;
            }
            c = c << 4 | (uint32_t)digit;
        }
        if (c > MAX_CHAR || (c >= 0xD800 && c < 0xE000)) {
            fail(r, "an escape that is not a character");
            return UINT32_MAX;
        }
        return c;
    }
    switch (kind) {
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case '\\':
    case '"':
    case '[':
    case ']':
    case '^':
    case '-': return (uint32_t)kind;
    default: fail(r, "an unknown escape"); return UINT32_MAX;
    }
}

static const bz_tree *read_text(reader *r)
{
    size_t n = 0;
    char *bytes = bz_arena_alloc(&r->arena, r->n - r->at + 4);
    if (!bytes) {
        return NULL;
    }
    while (r->at < r->n && !next_is(r, '"')) {
        const uint32_t c = take_char(r);
        if (c == UINT32_MAX) {
            return NULL;
        }
        n += bz_utf8_encode(c, bytes + n);
    }
    return take(r, "\"") ? bz_tree_text(&r->arena, bytes, n) : fail(r, "a text without its end");
}

static const bz_tree *read_set(reader *r)
{
    const bool negated = take(r, "^");
    size_t n = 0;
    bz_char_range *ranges = bz_arena_array(&r->arena, r->n - r->at + 1, sizeof *ranges);
    if (!ranges) {
        return NULL;
    }
    while (r->at < r->n && !next_is(r, ']')) {
        const uint32_t first = take_char(r);
        uint32_t last = first;
        if (first != UINT32_MAX && next_is(r, '-') && r->at + 1 < r->n && r->s[r->at + 1] != ']') {
            r->at++;
            last = take_char(r);
        }
        if (first == UINT32_MAX || last == UINT32_MAX) {
            return NULL;
        }
        if (last < first) {
            return fail(r, "a range whose end is before its beginning");
        }
        ranges[n++] = (bz_char_range){first, last};
    }
    return take(r, "]") ? bz_tree_chars(&r->arena, ranges, n, negated)
                        : fail(r, "a [ without its ]");
}

static const bz_tree *read_alternatives(reader *r);

static const bz_tree *read_item(reader *r)
{
    if (take(r, "\"")) {
        return read_text(r);
    }
    if (take(r, "[")) {
        return read_set(r);
    }
    if (take(r, ".")) {
        return bz_tree_chars(&r->arena, NULL, 0, true);
    }
    if (take(r, "(")) {
        if (r->depth >= MAX_DEPTH) {
            return fail(r, "groups are nested too deeply");
        }
        r->depth++;
        const bz_tree *t = read_alternatives(r);
        r->depth--;
        return t && !take(r, ")") ? fail(r, "a ( without its )") : t;
    }
    const bz_str name = take_name(r);
    if (!name.len) {
        return fail(r, "neither a text, a set, a group nor a name");
    }
    const uint32_t i = find_rule(r, name); /* moves r->rules */
    return r->no_memory ? NULL : bz_tree_call(&r->arena, r->rules[i].rule);
}

static bool take_number(reader *r, uint32_t *value)
{
    const size_t begin = r->at;
    uint64_t v = 0;
    while (r->at < r->n && r->s[r->at] >= '0' && r->s[r->at] <= '9') {
        v = v * 10 + (uint64_t)(r->s[r->at++] - '0');
        v = v > MAX_COUNT ? MAX_COUNT + 1 : v;
    }
    *value = (uint32_t)v;
    return r->at > begin;
}

static bool take_braces(reader *r, uint32_t *min, uint32_t *max)
{
    skip_space(r);
    const bool any = take_number(r, min);
    skip_space(r);
    *max = *min;
    if (take(r, ",")) {
        skip_space(r);
        if (!take_number(r, max)) {
            *max = BZ_NO_LIMIT;
        }
        skip_space(r);
    } else if (!any) {
        return false;
    }
    return take(r, "}");
}

static const bz_tree *read_repeated(reader *r)
{
    const bz_tree *t = read_item(r);
    for (skip_space(r); t && r->at < r->n; skip_space(r)) {
        uint32_t min = 0, max = BZ_NO_LIMIT;
        if (take(r, "+")) {
            min = 1;
        } else if (take(r, "?")) {
            max = 1;
        } else if (take(r, "{")) {
            if (!take_braces(r, &min, &max)) {
                return fail(r, "a count is {2}, {2,}, {,5} or {2,5}");
            }
        } else if (!take(r, "*")) {
            break;
        }
        if (min > MAX_COUNT || (max > MAX_COUNT && max != BZ_NO_LIMIT)) {
            return fail(r, "a count above 1,000,000");
        }
        if (min > max) {
            return fail(r, "a count whose end is before its beginning");
        }
        t = bz_tree_repeat(&r->arena, t, min, max);
    }
    return t;
}

static const bz_tree *read_alternatives(reader *r)
{
    items ways = {0};
    do {
        items sequence = {0};
        for (skip_space(r); r->at < r->n && !next_is(r, '|') && !next_is(r, ')') && !at_rule(r);
             skip_space(r)) {
            if (!add_item(r, &sequence, read_repeated(r))) {
                return NULL;
            }
        }
        if (!add_item(r, &ways,
                      sequence.n ? bz_tree_list(&r->arena, BZ_TREE_SEQ, sequence.list, sequence.n)
                                 : bz_tree_empty(&r->arena))) {
            return NULL;
        }
    } while (take(r, "|"));
    return bz_tree_list(&r->arena, BZ_TREE_ALT, ways.list, ways.n);
}

/* ---- rules
 * ------------------------------------------------------------------------------------------- */

static bool read_rule(reader *r)
{
    const bz_str name = take_name(r);
    skip_space(r);
    if (!name.len || !take(r, "::=")) {
        fail(r, "a rule is written name ::= ...");
        return false;
    }
    const uint32_t i = find_rule(r, name);
    if (r->no_memory) {
        return false;
    }
    if (r->rules[i].tree) {
        r->what = name;
        fail(r, "there are two rules named ");
        return false;
    }
    const bz_tree *t = read_alternatives(r);
    r->rules[i].tree = t;
    if (t && next_is(r, ')')) {
        fail(r, "a ) without its (");
    }
    return t && !r->why;
}

static bool rule_may_be_empty(void *user, uint32_t callee)
{
    const reader *r = user;
    return r->rules[index_of(r, callee)].may_be_empty;
}

static const bz_tree *rule_not_empty(void *user, uint32_t callee);

static bz_tree_out tree_out(reader *r)
{
    return (bz_tree_out){.build = &r->build,
                         .arena = &r->arena,
                         .rule_may_be_empty = rule_may_be_empty,
                         .rule_not_empty = rule_not_empty,
                         .user = r};
}

static const bz_tree *rule_not_empty(void *user, uint32_t callee)
{
    reader *r = user;
    const bz_tree_out out = tree_out(r);
    const uint32_t of = index_of(r, callee);
    uint32_t i = r->rules[of].not_empty;
    if (i == 0) {
        i = add_rule(r, r->rules[of].name);
        if (r->no_memory) {
            return NULL;
        }
        r->rules[of].not_empty = i;
        const bz_tree *t = bz_tree_not_empty(&out, r->rules[of].tree);
        r->rules[i].tree = t;
        r->no_memory |= !t;
    }
    return bz_tree_call(&r->arena, r->rules[i].rule);
}

static const char *name_of(void *user, uint32_t rule)
{
    reader *r = user;
    const bz_str name = r->rules[index_of(r, rule)].name;
    char *copy = bz_arena_alloc(&r->arena, name.len + 1);
    if (copy) {
        memcpy(copy, name.data, name.len);
        copy[name.len] = 0;
    }
    return copy;
}

static bool check_names(reader *r)
{
    for (uint32_t i = 0; i < r->n_rules; i++) {
        if (!r->rules[i].tree) {
            r->what = r->rules[i].name;
            fail(r, "there is no rule named ");
            return false;
        }
    }
    return true;
}

static bz_status compile(reader *r, bz_grammar **out, bz_error *err)
{
    const bz_tree_out to = tree_out(r);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = r->n_rules; i-- > 0;) {
            if (!r->rules[i].may_be_empty && bz_tree_may_be_empty(&to, r->rules[i].tree)) {
                r->rules[i].may_be_empty = changed = true;
            }
        }
    }
    for (uint32_t i = 0; i < r->n_rules && !r->build.failed && !r->no_memory; i++) {
        const bz_rule rule = r->build.rules[r->rules[i].rule];
        bz_tree_emit(&to, r->rules[i].tree, rule.start, rule.end);
    }
    return r->no_memory ? bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the grammar.")
                        : bz_grammar_compile(out, &r->build, name_of, r, err);
}

static bz_status read_all(reader *r, bz_grammar **out, bz_error *err)
{
    find_rule(r, (bz_str){"root", 4});
    bool good = !r->no_memory;
    for (skip_space(r); good && r->at < r->n; skip_space(r)) {
        good = read_rule(r);
    }
    good = good && !r->no_memory && check_names(r);
    if (!good && r->why) {
        char shown[200];
        return bz_fail(err, BZ_BAD_SCHEMA, "The grammar is invalid at byte %zu: %s%s.", r->at,
                       r->why, r->what.len ? bz_str_show(r->what, shown) : "");
    }
    return good ? compile(r, out, err)
                : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the grammar.");
}

bz_status bz_gbnf_read(bz_grammar **out, const char *text, size_t len, bz_error *err)
{
    if (!bz_utf8_valid(text, len)) {
        return bz_fail(err, BZ_BAD_SCHEMA, "The grammar is not UTF-8.");
    }
    reader r = {.s = text, .n = len};
    const bz_status status = read_all(&r, out, err);
    bz_arena_free(&r.arena);
    bz_build_free(&r.build);
    free(r.rules);
    return status;
}
