/* Converts a valid tool call to JSON.
 *
 *   call:NAME{key:value,key:value}
 *   value := Q text Q | object | array | JSON string, number or word
 *
 * Q is the quote token. Text between two of them is literal, without escapes. Keys are bare; quoted
 * keys are accepted too. parse_call_repair.c handles invalid calls.
 */
#include "text/parse_call.h"

#include <stdlib.h>
#include <string.h>

#include "text/parse_call_internal.h"
#include "text/space.h"

bool bz_call_name(bz_str call, bz_str *name, bz_str *arguments)
{
    call = bz_trim(call);
    const char *brace = call.len ? memchr(call.data, '{', call.len) : NULL;
    if (!brace || call.len < 5 || memcmp(call.data, "call:", 5) != 0) {
        return false;
    }
    size_t at = (size_t)(brace - call.data);
    *name = bz_trim((bz_str){call.data + 5, at - 5});
    *arguments = (bz_str){brace, call.len - at};
    return name->len > 0 && !memchr(name->data, BZ_CALL_QUOTE, name->len);
}

/* ---- pieces of a text ------------------------------------------------------- */

size_t bz_call_skip_space(bz_str s, size_t at)
{
    return at + bz_space_before((bz_str){s.data + at, s.len - at});
}

size_t bz_call_quoted_end(bz_str s, size_t at)
{
    for (size_t i = at + 1; i < s.len; i++) {
        if (s.data[i] == s.data[at]) {
            return i + 1;
        }
        i += s.data[i] == '\\';
    }
    return 0;
}

static bool is_digit(bz_str s, size_t at)
{
    return at < s.len && s.data[at] >= '0' && s.data[at] <= '9';
}

size_t bz_call_number_end(bz_str s, size_t at)
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

size_t bz_call_word_end(bz_str s, size_t at)
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

/* ---- the parser ------------------------------------------------------------- */

typedef struct reader {
    bz_str s;
    size_t at;
    char *scratch; /* [s.len] for an unescaped string */
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

/* A string in quote tokens or double quotes; false: there is none, or it is not closed. */
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
    size_t end = r->at < s.len && s.data[r->at] == '"' ? bz_call_quoted_end(s, r->at) : 0;
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
        r->at = bz_call_skip_space(r->s, r->at);
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
    r->at = bz_call_skip_space(r->s, r->at);
    if (!take(r, close)) {
        do {
            r->at = bz_call_skip_space(r->s, r->at);
            if ((object && !read_key(r)) || !read_value(r, depth + 1)) {
                return false;
            }
            r->at = bz_call_skip_space(r->s, r->at);
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
    r->at = bz_call_skip_space(r->s, r->at);
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
    size_t end = bz_call_number_end(r->s, r->at);
    text = (bz_str){r->s.data + r->at, end - r->at};
    if (text.len) {
        bz_json_number(r->j, text);
    } else if ((end = bz_call_word_end(r->s, r->at)) > r->at) {
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

/* Distinguishes out of memory from invalid text. */
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

bz_call_answer bz_call_convert(bz_str arguments, bz_json_buffer *out)
{
    bz_json j;
    sink to = {out, false};
    reader r = {.s = arguments, .scratch = malloc(arguments.len + 1), .j = &j};
    if (!r.scratch) {
        return BZ_CALL_NO_MEMORY;
    }
    out->n = 0;
    bz_json_init(&j, to_sink, &to);
    bool good = take(&r, '{') && read_items(&r, true, 0) &&
                bz_call_skip_space(arguments, r.at) == arguments.len;
    good = bz_json_finish(&j) && good;
    free(r.scratch);
    return good ? BZ_CALL_GOOD : to.full ? BZ_CALL_NO_MEMORY : BZ_CALL_BROKEN;
}
