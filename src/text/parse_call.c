/*   call:NAME{key:value,key:value}
 *
 *   value := Q text Q | object | array | JSON string, number or word
 *
 * Q is the quote token. Text between two of them is literal: no escapes, quotes and braces
 * and newlines as they come. Keys are bare; quoted ones are taken too.
 */
#include "text/parse_call.h"

#include <stdlib.h>
#include <string.h>

#include "text/space.h"

static bz_str from(bz_str s, size_t at)
{
    return (bz_str){s.data + at, s.len - at};
}

static size_t skip_space(bz_str s, size_t at)
{
    return at + bz_space_before(from(s, at));
}

static bool same(bz_str a, bz_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

bool bz_call_name(bz_str call, bz_str *name, bz_str *arguments)
{
    call = bz_trim(call);
    const char *brace = call.len ? memchr(call.data, '{', call.len) : NULL;
    if (!brace || call.len < 5 || memcmp(call.data, "call:", 5) != 0) {
        return false;
    }
    size_t at = (size_t)(brace - call.data);
    *name = bz_trim((bz_str){call.data + 5, at - 5});
    *arguments = from(call, at);
    return name->len > 0 && !memchr(name->data, BZ_CALL_QUOTE, name->len);
}

const bz_json_node *bz_tool_named(const bz_json_node *tools, bz_str name)
{
    for (const bz_json_node *tool = bz_json_first(tools); tool; tool = tool->next) {
        const bz_json_node *function = bz_json_get(tool, "function");
        if (!function) {
            function = tool;
        }
        const bz_json_node *own = bz_json_get(function, "name");
        if (bz_json_is(own, BZ_JSON_STRING) && same(own->of.text, name)) {
            return function;
        }
    }
    return NULL;
}

/* ---- by the rules ----------------------------------------------------------- */

typedef struct reader {
    bz_str s;
    size_t at;
    char *scratch; /* as long as s: a string without its escapes */
    bz_json *j;
} reader;

static bool take(reader *r, char c)
{
    if (r->at < r->s.len && r->s.data[r->at] == c) {
        r->at++;
        return true;
    }
    return false;
}

/* Behind the quote that closes the one at s[at], or 0. A backslash guards what follows it. */
static size_t quoted_end(bz_str s, size_t at)
{
    for (size_t i = at + 1; i < s.len; i++) {
        if (s.data[i] == s.data[at]) {
            return i + 1;
        }
        i += s.data[i] == '\\';
    }
    return 0;
}

/* A string in either kind of quotes; false: there is none, or it does not end. */
static bool read_string(reader *r, bz_str *string)
{
    bz_str s = r->s;
    if (take(r, BZ_CALL_QUOTE)) {
        const char *end = memchr(s.data + r->at, BZ_CALL_QUOTE, s.len - r->at);
        if (!end) {
            return false;
        }
        *string = (bz_str){s.data + r->at, (size_t)(end - s.data) - r->at};
        r->at += string->len + 1;
        return true;
    }
    size_t end = r->at < s.len && s.data[r->at] == '"' ? quoted_end(s, r->at) : 0;
    if (!end || !bz_json_unquote((bz_str){s.data + r->at, end - r->at}, r->scratch, &string->len)) {
        return false;
    }
    string->data = r->scratch;
    r->at = end;
    return true;
}

static bool starts_string(const reader *r)
{
    return r->at < r->s.len && (r->s.data[r->at] == BZ_CALL_QUOTE || r->s.data[r->at] == '"');
}

static bool ends_bare(char c)
{
    return c == BZ_CALL_QUOTE || memchr(":,{}[]\"", c, 7);
}

static bool read_key(reader *r)
{
    bz_str key;
    if (starts_string(r)) {
        if (!read_string(r, &key)) {
            return false;
        }
        r->at = skip_space(r->s, r->at);
    } else {
        size_t end = r->at;
        while (end < r->s.len && !ends_bare(r->s.data[end])) {
            end++;
        }
        key = bz_trim((bz_str){r->s.data + r->at, end - r->at});
        r->at = end;
    }
    bz_json_key_str(r->j, key);
    return take(r, ':');
}

static bool is_digit(bz_str s, size_t at)
{
    return at < s.len && s.data[at] >= '0' && s.data[at] <= '9';
}

/* Behind a number as JSON has it, or `at`. */
static size_t number_end(bz_str s, size_t at)
{
    size_t i = at + (at < s.len && s.data[at] == '-');
    if (!is_digit(s, i)) {
        return at;
    }
    for (bool zero = s.data[i++] == '0'; !zero && is_digit(s, i);) {
        i++;
    }
    if (i < s.len && s.data[i] == '.' && is_digit(s, i + 1)) {
        for (i += 2; is_digit(s, i);) {
            i++;
        }
    }
    if (i < s.len && (s.data[i] == 'e' || s.data[i] == 'E')) {
        size_t digits = i + 1 + (i + 1 < s.len && (s.data[i + 1] == '+' || s.data[i + 1] == '-'));
        if (is_digit(s, digits)) {
            for (i = digits; is_digit(s, i);) {
                i++;
            }
        }
    }
    return i;
}

/* Behind true, false or null, or `at`. */
static size_t word_end(bz_str s, size_t at)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < 3; i++) {
        size_t n = strlen(words[i]);
        if (s.len - at >= n && memcmp(s.data + at, words[i], n) == 0) {
            return at + n;
        }
    }
    return at;
}

static bool read_value(reader *r, unsigned depth);

static bool read_items(reader *r, bool object, unsigned depth)
{
    char close = object ? '}' : ']';
    if (depth == BZ_JSON_DEPTH) {
        return false;
    }
    if (object) {
        bz_json_object(r->j);
    } else {
        bz_json_array(r->j);
    }
    r->at = skip_space(r->s, r->at);
    if (!take(r, close)) {
        do {
            r->at = skip_space(r->s, r->at);
            if ((object && !read_key(r)) || !read_value(r, depth + 1)) {
                return false;
            }
            r->at = skip_space(r->s, r->at);
        } while (take(r, ','));
        if (!take(r, close)) {
            return false;
        }
    }
    bz_json_end(r->j);
    return true;
}

static bool read_value(reader *r, unsigned depth)
{
    bz_str text;
    r->at = skip_space(r->s, r->at);
    if (starts_string(r)) {
        if (!read_string(r, &text)) {
            return false;
        }
        bz_json_str(r->j, text);
        return true;
    }
    if (take(r, '{')) {
        return read_items(r, true, depth);
    }
    if (take(r, '[')) {
        return read_items(r, false, depth);
    }
    size_t end = number_end(r->s, r->at);
    text = (bz_str){r->s.data + r->at, end - r->at};
    if (text.len) {
        bz_json_number(r->j, text);
    } else if ((end = word_end(r->s, r->at)) > r->at) {
        if (r->s.data[r->at] == 'n') {
            bz_json_null(r->j);
        } else {
            bz_json_bool(r->j, r->s.data[r->at] == 't');
        }
    }
    bool any = end > r->at;
    r->at = end;
    return any;
}

/* Tells no memory from bad text. */
typedef struct sink {
    bz_json_buffer *out;
    bool full;
} sink;

static bool to_sink(void *user, const char *bytes, size_t n)
{
    sink *s = user;
    s->full = !bz_json_to_buffer(s->out, bytes, n);
    return !s->full;
}

static bz_call_answer convert(bz_str arguments, bz_json_buffer *out)
{
    bz_json j;
    sink to = {out, false};
    reader r = {.s = arguments, .scratch = malloc(arguments.len + 1), .j = &j};
    if (!r.scratch) {
        return BZ_CALL_NO_MEMORY;
    }
    out->n = 0;
    bz_json_init(&j, to_sink, &to);
    bool good = take(&r, '{') && read_items(&r, true, 0) && skip_space(arguments, r.at) == arguments.len;
    good = bz_json_finish(&j) && good;
    free(r.scratch);
    return good ? BZ_CALL_GOOD : to.full ? BZ_CALL_NO_MEMORY : BZ_CALL_BROKEN;
}

/* ---- repairs ---------------------------------------------------------------- */

/* Each makes a new text of an old one. `full` is no memory. */
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

/* A pass over a broken text. A quote that never closes is looked for once, not again from
 * each later one: texts are as long as models make them. */
typedef struct pass {
    bz_str s;
    size_t at;
    bool open_double, open_single;
} pass;

/* Behind the string that begins here in either kind of quotes; at if none does, s.len if
 * it has no closing token. */
static size_t string_end(pass *p)
{
    bz_str s = p->s;
    if (s.data[p->at] == BZ_CALL_QUOTE) {
        const char *end = memchr(s.data + p->at + 1, BZ_CALL_QUOTE, s.len - p->at - 1);
        return end ? (size_t)(end - s.data) + 1 : s.len;
    }
    size_t end = s.data[p->at] == '"' && !p->open_double ? quoted_end(s, p->at) : p->at;
    p->open_double = p->open_double || end == 0;
    return end ? end : p->at;
}

/* Behind 'text', or 0. */
static size_t single_end(pass *p)
{
    size_t end = p->s.data[p->at] == '\'' && !p->open_single ? quoted_end(p->s, p->at) : 0;
    p->open_single = p->open_single || (p->s.data[p->at] == '\'' && end == 0);
    return end;
}

/* 'text' as a value becomes a string; a quote token right behind it goes. */
static void fix_single_quotes(repair *to, bz_str s)
{
    bool value = false; /* one may begin here */
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

/* A string that does not end is ended before the last `outside` brackets. Returns how many
 * brackets there are at the end. */
static size_t fix_open_string(repair *to, bz_str s, size_t outside)
{
    size_t end = s.len - bz_space_after(s), brackets = 0;
    while (brackets < end && (s.data[end - 1 - brackets] == '}' || s.data[end - 1 - brackets] == ']')) {
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

static bool says_string(const bz_json_node *type)
{
    bz_str s = bz_json_string(type);
    return bz_str_is(s, "string") || bz_str_is(s, "STRING");
}

static bool takes_string(const bz_json_node *schema)
{
    const bz_json_node *type = bz_json_get(schema, "type");
    bool takes = says_string(type);
    for (const bz_json_node *one = bz_json_first(type); one && !takes; one = one->next) {
        takes = says_string(one);
    }
    for (const bz_json_node *one = bz_json_first(bz_json_get(schema, "anyOf")); one && !takes;
         one = one->next) {
        takes = takes_string(one);
    }
    return takes;
}

/* Is the property's key at s[at], and a colon behind it? Then where the value begins, else 0. */
static size_t value_of_key(bz_str s, size_t at, const bz_json_node *property)
{
    size_t n = property->key.len;
    at = skip_space(s, at);
    if (n == 0 || s.len - at < n || memcmp(s.data + at, property->key.data, n) != 0) {
        return 0;
    }
    at = skip_space(s, at + n);
    return at < s.len && s.data[at] == ':' ? at + 1 : 0;
}

/* Where a bare text ends: before the next property that is known, or the last brace. */
static size_t bare_end(bz_str s, size_t at, const bz_json_node *properties)
{
    for (size_t i = at; i < s.len; i++) {
        if (s.data[i] != ',') {
            continue;
        }
        for (const bz_json_node *property = bz_json_first(properties); property; property = property->next) {
            if (value_of_key(s, i + 1, property)) {
                return i;
            }
        }
    }
    size_t end = s.len - bz_space_after(s);
    return end > at && s.data[end - 1] == '}' ? end - 1 : s.len;
}

/* Something that needs no quotes, whatever the schema says. */
static bool is_whole_value(bz_str s, size_t at)
{
    at = skip_space(s, at);
    if (at == s.len) {
        return false;
    }
    if (s.data[at] == BZ_CALL_QUOTE || memchr("'\"{[", s.data[at], 4)) {
        return true;
    }
    size_t end = number_end(s, at);
    end = skip_space(s, end > at ? end : word_end(s, at));
    return end > at && (end == s.len || memchr(",}]", s.data[end], 3));
}

/* Bare texts of properties that are strings by their schema become strings. */
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
            if ((c == '{' || c == ',') && takes_string(property)) {
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

/* Single quotes, then a string left open, then, if anything had to be changed, the object
 * left open. With more than one bracket at the end it is not clear which of them belong
 * to the string; the first reading that makes sense counts. */
static bz_call_answer try_repairs(bz_str s, bool close, bz_json_buffer *out)
{
    repair single = {0};
    bz_call_answer answer = BZ_CALL_BROKEN;
    fix_single_quotes(&single, s);
    bool full = single.full;
    for (size_t outside = 1, most = 1; outside <= most && outside <= 8 && answer == BZ_CALL_BROKEN && !full;
         outside++) {
        repair string = {0}, object = {0};
        size_t brackets = fix_open_string(&string, text_of(&single), outside);
        most = brackets > most ? brackets : most;
        bool changed = close || !same(text_of(&string), s);
        if (changed) {
            fix_open_object(&object, text_of(&string));
        }
        full = string.full || object.full;
        if (changed && !full) {
            answer = convert(text_of(&object), out);
        }
        free(string.text.text);
        free(object.text.text);
    }
    free(single.text.text);
    return full ? BZ_CALL_NO_MEMORY : answer;
}

bz_call_answer bz_call_to_json(bz_str call, const bz_json_node *tools, bz_json_buffer *out)
{
    bz_str name, arguments;
    if (!bz_call_name(call, &name, &arguments)) {
        return BZ_CALL_BROKEN;
    }
    bz_call_answer answer = convert(arguments, out);
    if (answer != BZ_CALL_BROKEN) {
        return answer;
    }
    answer = try_repairs(arguments, false, out);
    const bz_json_node *function = bz_tool_named(tools, name);
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
