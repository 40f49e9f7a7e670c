/* Repairs invalid calls, as small models write them: wrong quotes, strings and objects that are not
 * closed, strings without quotes. Each repair produces a new text, which is then parsed again. */
#include <stdlib.h>
#include <string.h>

#include "text/parse_call_internal.h"
#include "text/space.h"

static bz_str from(bz_str s, size_t at)
{
    return (bz_str){s.data + at, s.len - at};
}

static bool same(bz_str a, bz_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* The text that a repair produces. full: out of memory. */
typedef struct repair {
    bz_json_buffer text;
    bool full;
} repair;

static void add(repair *to, bz_str s)
{
    to->full = to->full || !bz_json_to_buffer(&to->text, s.data, s.len);
}

static void add_quote(repair *to)
{
    char quote = BZ_CALL_QUOTE;
    add(to, (bz_str){&quote, 1});
}

static bz_str text_of(const repair *r)
{
    return (bz_str){r->text.text ? r->text.text : "", r->text.n};
}

/* A scan over an invalid text. After one unclosed quote no later quote of that kind is tried again,
 * so that the scan stays linear. */
typedef struct pass {
    bz_str s;
    size_t at;
    bool open_double, open_single;
} pass;

/* Offset after the string that begins here in quote tokens or double quotes; p->at if none does;
 * s.len if the closing token is missing. */
static size_t string_end(pass *p)
{
    bz_str s = p->s;
    if (s.data[p->at] == BZ_CALL_QUOTE) {
        const char *end = memchr(s.data + p->at + 1, BZ_CALL_QUOTE, s.len - p->at - 1);
        return end ? (size_t)(end - s.data) + 1 : s.len;
    }
    size_t end = s.data[p->at] == '"' && !p->open_double ? bz_call_quoted_end(s, p->at) : p->at;
    p->open_double = p->open_double || end == 0;
    return end ? end : p->at;
}

/* Offset after 'text', or 0. */
static size_t single_end(pass *p)
{
    size_t end = p->s.data[p->at] == '\'' && !p->open_single ? bz_call_quoted_end(p->s, p->at) : 0;
    p->open_single = p->open_single || (p->s.data[p->at] == '\'' && end == 0);
    return end;
}

/* Turns a value 'text' into a string; a quote token directly after it is dropped. */
static void fix_single_quotes(repair *to, bz_str s)
{
    bool value = false; /* a value may begin here */
    for (pass p = {.s = s}; p.at < s.len;) {
        size_t end = string_end(&p);
        if (end > p.at) {
            add(to, (bz_str){s.data + p.at, end - p.at});
            p.at = end;
            value = false;
            continue;
        }
        if (value && (end = single_end(&p)) > 0) {
            add_quote(to);
            add(to, (bz_str){s.data + p.at + 1, end - p.at - 2});
            add_quote(to);
            p.at = end + (end < s.len && s.data[end] == BZ_CALL_QUOTE);
            value = false;
            continue;
        }
        size_t space = bz_space_before(from(s, p.at)), n = space ? space : 1;
        value = space ? value : s.data[p.at] == ':' || s.data[p.at] == '[' || s.data[p.at] == ',';
        add(to, (bz_str){s.data + p.at, n});
        p.at += n;
    }
}

static size_t count_quotes(bz_str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        n += s.data[i] == BZ_CALL_QUOTE;
    }
    return n;
}

/* Closes an unclosed string before the last `outside` brackets. Returns how many brackets are at
 * the end. */
static size_t fix_open_string(repair *to, bz_str s, size_t outside)
{
    size_t end = s.len - bz_space_after(s), brackets = 0;
    while (brackets < end &&
           (s.data[end - 1 - brackets] == '}' || s.data[end - 1 - brackets] == ']')) {
        brackets++;
    }
    if (count_quotes(s) % 2 == 0) {
        add(to, s);
        return 0;
    }
    end -= outside < brackets ? outside : brackets;
    add(to, (bz_str){s.data, end});
    add_quote(to);
    add(to, from(s, end));
    return brackets;
}

static void fix_open_object(repair *to, bz_str s)
{
    size_t end = s.len - bz_space_after(s);
    add(to, (bz_str){s.data, end});
    if (end == 0 || s.data[end - 1] != '}') {
        add(to, (bz_str){"}", 1});
    }
}

static bool is_string_type(const bz_json_node *type)
{
    bz_str s = bz_json_string(type);
    return bz_str_is(s, "string") || bz_str_is(s, "STRING");
}

static bool accepts_string(const bz_json_node *schema)
{
    const bz_json_node *type = bz_json_get(schema, "type");
    bool accepts = is_string_type(type);
    for (const bz_json_node *one = bz_json_first(type); one && !accepts; one = one->next) {
        accepts = is_string_type(one);
    }
    for (const bz_json_node *one = bz_json_first(bz_json_get(schema, "anyOf")); one && !accepts;
         one = one->next) {
        accepts = accepts_string(one);
    }
    return accepts;
}

/* If s[at] is the property's key followed by a colon: the offset of the value, else 0. */
static size_t value_of_key(bz_str s, size_t at, const bz_json_node *property)
{
    size_t n = property->key.len;
    at = bz_call_skip_space(s, at);
    if (n == 0 || s.len - at < n || memcmp(s.data + at, property->key.data, n) != 0) {
        return 0;
    }
    at = bz_call_skip_space(s, at + n);
    return at < s.len && s.data[at] == ':' ? at + 1 : 0;
}

/* The end of an unquoted text: before the next known property, or the last brace. */
static size_t bare_end(bz_str s, size_t at, const bz_json_node *properties)
{
    for (size_t i = at; i < s.len; i++) {
        if (s.data[i] != ',') {
            continue;
        }
        for (const bz_json_node *property = bz_json_first(properties); property;
             property = property->next) {
            if (value_of_key(s, i + 1, property)) {
                return i;
            }
        }
    }
    size_t end = s.len - bz_space_after(s);
    return end > at && s.data[end - 1] == '}' ? end - 1 : s.len;
}

/* Whether s[at] is a value that needs no quotes, whatever the schema is. */
static bool is_whole_value(bz_str s, size_t at)
{
    at = bz_call_skip_space(s, at);
    if (at == s.len) {
        return false;
    }
    if (s.data[at] == BZ_CALL_QUOTE || memchr("'\"{[", s.data[at], 4)) {
        return true;
    }
    size_t end = bz_call_number_end(s, at);
    end = bz_call_skip_space(s, end > at ? end : bz_call_word_end(s, at));
    return end > at && (end == s.len || memchr(",}]", s.data[end], 3));
}

/* Quotes unquoted values of properties that are strings in the schema. */
static bool fix_bare_strings(repair *to, bz_str s, const bz_json_node *properties)
{
    bool changed = false;
    size_t copied = 0;
    for (pass p = {.s = s}; p.at < s.len;) {
        size_t end = string_end(&p), value = 0;
        if (end > p.at) {
            p.at = end;
            continue;
        }
        char c = s.data[p.at++];
        for (const bz_json_node *property = bz_json_first(properties); property && !value;
             property = property->next) {
            if ((c == '{' || c == ',') && accepts_string(property)) {
                value = value_of_key(s, p.at, property);
            }
        }
        if (value && !is_whole_value(s, value)) {
            p.at = bare_end(s, value, properties);
            add(to, (bz_str){s.data + copied, value - copied});
            add_quote(to);
            add(to, (bz_str){s.data + value, p.at - value});
            add_quote(to);
            copied = p.at;
            changed = true;
        }
    }
    add(to, from(s, copied));
    return changed;
}

/* Repairs single quotes, then an unclosed string, then, if anything was changed, an unclosed
 * object. With several brackets at the end it is unclear which of them belong to the string; the
 * first valid reading is used. */
static bz_call_answer try_repairs(bz_str s, bool close, bz_json_buffer *out)
{
    repair single = {0};
    bz_call_answer answer = BZ_CALL_BROKEN;
    fix_single_quotes(&single, s);
    bool full = single.full;
    for (size_t outside = 1, max = 1;
         outside <= max && outside <= 8 && answer == BZ_CALL_BROKEN && !full; outside++) {
        repair string = {0}, object = {0};
        size_t brackets = fix_open_string(&string, text_of(&single), outside);
        max = brackets > max ? brackets : max;
        bool changed = close || !same(text_of(&string), s);
        if (changed) {
            fix_open_object(&object, text_of(&string));
        }
        full = string.full || object.full;
        if (changed && !full) {
            answer = bz_call_convert(text_of(&object), out);
        }
        free(string.text.text);
        free(object.text.text);
    }
    free(single.text.text);
    return full ? BZ_CALL_NO_MEMORY : answer;
}

/* The declaration's function object of that name, or NULL. */
static const bz_json_node *tool_named(const bz_json_node *tools, bz_str name)
{
    for (const bz_json_node *tool = bz_json_first(tools); tool; tool = tool->next) {
        const bz_json_node *function = bz_json_get(tool, "function");
        if (!function) {
            function = tool;
        }
        const bz_json_node *declared = bz_json_get(function, "name");
        if (bz_json_is(declared, BZ_JSON_STRING) && same(declared->of.text, name)) {
            return function;
        }
    }
    return NULL;
}

bz_call_answer bz_call_to_json(bz_str call, const bz_json_node *tools, bz_json_buffer *out)
{
    bz_str name, arguments;
    if (!bz_call_name(call, &name, &arguments)) {
        return BZ_CALL_BROKEN;
    }
    bz_call_answer answer = bz_call_convert(arguments, out);
    if (answer != BZ_CALL_BROKEN) {
        return answer;
    }
    answer = try_repairs(arguments, false, out);
    const bz_json_node *function = tool_named(tools, name);
    const bz_json_node *properties = bz_json_get(bz_json_get(function, "parameters"), "properties");
    if (answer == BZ_CALL_BROKEN && bz_json_first(properties)) {
        repair bare = {0};
        if (fix_bare_strings(&bare, arguments, properties) && !bare.full) {
            answer = try_repairs(text_of(&bare), true, out);
        }
        answer = bare.full ? BZ_CALL_NO_MEMORY : answer;
        free(bare.text.text);
    }
    return answer == BZ_CALL_GOOD ? BZ_CALL_REPAIRED : answer;
}
