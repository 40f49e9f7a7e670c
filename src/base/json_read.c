/* A recursive descent JSON parser over a copy of the text. Strings are unescaped in place: an
 * escape is never shorter than its character. */
#include "base/json_read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

typedef struct reader {
    char *text;
    size_t at, len;
    bz_arena *arena;
    const char *why; /* the first error, at `at`; the pointer NO_MEMORY: out of memory */
} reader;

static const char NO_MEMORY[] = "no memory";

static bool fail(reader *r, const char *why)
{
    if (!r->why) {
        r->why = why;
    }
    return false;
}

static void skip_space(reader *r)
{
    while (r->at < r->len) {
        char c = r->text[r->at];
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
            return;
        }
        r->at++;
    }
}

static bool take(reader *r, char c)
{
    if (r->at < r->len && r->text[r->at] == c) {
        r->at++;
        return true;
    }
    return false;
}

/* ---- strings ---------------------------------------------------------------- */

/* Four hexadecimal digits at text[at..]. */
static bool hex4(const reader *r, size_t at, uint32_t *value)
{
    *value = 0;
    if (r->len - at < 4) {
        return false;
    }
    for (size_t i = 0; i < 4; i++) {
        char c = r->text[at + i];
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit == 16) {
            return false;
        }
        *value = *value * 16 + digit;
    }
    return true;
}

/* The character of \uXXXX, with r->at after the u. A surrogate pair is one character; an unpaired
 * surrogate is accepted, since JavaScript writes one where a program cut a text. */
static bool read_unicode(reader *r, uint32_t *cp)
{
    uint32_t low;
    if (!hex4(r, r->at, cp)) {
        return fail(r, "\\u needs four hexadecimal digits");
    }
    r->at += 4;
    if (*cp >= 0xD800 && *cp < 0xDC00 && r->len - r->at >= 6 && r->text[r->at] == '\\' &&
        r->text[r->at + 1] == 'u' && hex4(r, r->at + 2, &low) && low >= 0xDC00 && low < 0xE000) {
        *cp = 0x10000 + ((*cp - 0xD800) << 10) + (low - 0xDC00);
        r->at += 6;
    }
    return true;
}

static bool read_escape(reader *r, char **out)
{
    static const char letters[] = "\"\"\\\\//b\bf\fn\nr\rt\t"; /* pairs: letter, character */
    char c = r->at < r->len ? r->text[r->at] : 0;
    if (c == 'u') {
        uint32_t cp;
        r->at++;
        if (!read_unicode(r, &cp)) {
            return false;
        }
        char utf8[4];
        size_t n = bz_utf8_encode(cp, utf8);
        memcpy(*out, utf8, n);
        *out += n;
        return true;
    }
    for (size_t i = 0; i + 1 < sizeof letters; i += 2) {
        if (c == letters[i]) {
            *(*out)++ = letters[i + 1];
            r->at++;
            return true;
        }
    }
    return fail(r, "this escape does not exist");
}

/* A string whose opening quote is at r->at. */
static bool read_string(reader *r, bz_str *string)
{
    char *out = r->text + ++r->at;
    string->data = out;
    while (r->at < r->len) {
        char c = r->text[r->at];
        if (c == '"') {
            r->at++;
            string->len = (size_t)(out - string->data);
            return true;
        }
        if (c == '\\') {
            r->at++;
            if (!read_escape(r, &out)) {
                return false;
            }
            continue;
        }
        if ((unsigned char)c < 0x20) {
            return fail(r, "a control character in a string must be escaped");
        }
        size_t n = 1;
        if ((unsigned char)c >= 0x80) {
            uint32_t cp;
            n = bz_utf8_decode(r->text + r->at, r->len - r->at, &cp);
            if (n == 1) {
                return fail(r, "the text is not UTF-8");
            }
        }
        if (out != r->text + r->at) {
            memmove(out, r->text + r->at, n);
        }
        out += n;
        r->at += n;
    }
    return fail(r, "a string is not closed");
}

bool bz_json_unquote(bz_str quoted, char *out, size_t *n)
{
    bz_str s = {NULL, 0};
    if (quoted.len < 2 || quoted.data[0] != '"') {
        return false;
    }
    memmove(out, quoted.data, quoted.len);
    reader r = {.text = out, .len = quoted.len};
    if (!read_string(&r, &s) || r.at != r.len) {
        return false;
    }
    memmove(out, s.data, s.len);
    *n = s.len;
    return true;
}

/* ---- numbers and words ------------------------------------------------------ */

static size_t skip_digits(reader *r)
{
    size_t from = r->at;
    while (r->at < r->len && r->text[r->at] >= '0' && r->text[r->at] <= '9') {
        r->at++;
    }
    return r->at - from;
}

static bool read_number(reader *r, bz_json_node *node)
{
    size_t from = r->at;
    take(r, '-');
    bool zero = r->at < r->len && r->text[r->at] == '0';
    size_t n = skip_digits(r);
    bool good = n > 0 && !(zero && n > 1);
    if (good && take(r, '.')) {
        good = skip_digits(r) > 0;
    }
    if (good && (take(r, 'e') || take(r, 'E'))) {
        if (!take(r, '+')) {
            take(r, '-');
        }
        good = skip_digits(r) > 0;
    }
    if (!good) {
        r->at = from;
        return fail(r, "this is not a JSON number");
    }
    node->kind = BZ_JSON_NUMBER;
    node->of.text = (bz_str){r->text + from, r->at - from};
    return true;
}

static bool read_word(reader *r, bz_json_node *node)
{
    static const struct {
        const char *word;
        bz_json_kind kind;
    } words[] = {{"null", BZ_JSON_NULL}, {"false", BZ_JSON_FALSE}, {"true", BZ_JSON_TRUE}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i].word);
        if (r->len - r->at >= n && memcmp(r->text + r->at, words[i].word, n) == 0) {
            r->at += n;
            node->kind = (uint8_t)words[i].kind;
            return true;
        }
    }
    return fail(r, r->at < r->len ? "a value is expected here"
                                  : "the text ends where a value is expected");
}

/* ---- values ----------------------------------------------------------------- */

static bool read_value(reader *r, bz_json_node *node, unsigned depth);

static bool read_key(reader *r, bz_json_node *item)
{
    skip_space(r);
    if (r->at >= r->len || r->text[r->at] != '"') {
        return fail(r, "a key in quotes is expected here");
    }
    if (!read_string(r, &item->key)) {
        return false;
    }
    skip_space(r);
    return take(r, ':') || fail(r, "a colon is expected here");
}

/* An array or object whose bracket has been taken. */
static bool read_items(reader *r, bz_json_node *node, unsigned depth)
{
    bool object = node->kind == BZ_JSON_OBJECT;
    char close = object ? '}' : ']';
    const bz_json_node **link = &node->of.first;
    if (depth > BZ_JSON_DEPTH) {
        return fail(r, "values are nested too deeply");
    }
    skip_space(r);
    if (take(r, close)) {
        return true;
    }
    do {
        bz_json_node *item = bz_arena_alloc(r->arena, sizeof *item);
        if (!item) {
            return fail(r, NO_MEMORY);
        }
        *item = (bz_json_node){0};
        *link = item;
        link = &item->next;
        if (node->n++ == UINT32_MAX) {
            return fail(r, NO_MEMORY);
        }
        if ((object && !read_key(r, item)) || !read_value(r, item, depth)) {
            return false;
        }
        skip_space(r);
    } while (take(r, ','));
    return take(r, close) ||
           fail(r, object ? "a comma or } is expected here" : "a comma or ] is expected here");
}

static bool read_value(reader *r, bz_json_node *node, unsigned depth)
{
    skip_space(r);
    char c = r->at < r->len ? r->text[r->at] : 0;
    switch (c) {
    case '{':
    case '[':
        r->at++;
        node->kind = c == '{' ? BZ_JSON_OBJECT : BZ_JSON_ARRAY;
        return read_items(r, node, depth + 1);
    case '"': node->kind = BZ_JSON_STRING; return read_string(r, &node->of.text);
    case '-': return read_number(r, node);
    default: return c >= '0' && c <= '9' ? read_number(r, node) : read_word(r, node);
    }
}

bz_status bz_json_read(const bz_json_node **root, const char *text, size_t len, bz_arena *arena,
                       bz_error *err)
{
    reader r = {.text = bz_arena_alloc(arena, len), .len = len, .arena = arena};
    bz_json_node *node = bz_arena_alloc(arena, sizeof *node);
    *root = NULL;
    if (!r.text || !node) {
        fail(&r, NO_MEMORY);
    } else {
        if (len) {
            memcpy(r.text, text, len);
        }
        *node = (bz_json_node){0};
        if (read_value(&r, node, 0)) {
            skip_space(&r);
            if (r.at < len) {
                fail(&r, "there is more text after the value");
            }
        }
    }
    if (r.why == NO_MEMORY) {
        return bz_fail(err, BZ_OUT_OF_MEMORY,
                       "There is not enough memory to read %zu bytes of JSON.", len);
    }
    if (r.why) {
        return bz_fail(err, BZ_BAD_REQUEST, "The JSON is invalid at byte %zu: %s.", r.at, r.why);
    }
    *root = node;
    return BZ_OK;
}

/* ---- reading the tree ------------------------------------------------------- */

bool bz_json_is(const bz_json_node *node, bz_json_kind kind)
{
    return node && node->kind == kind;
}

const bz_json_node *bz_json_first(const bz_json_node *node)
{
    return bz_json_is(node, BZ_JSON_ARRAY) || bz_json_is(node, BZ_JSON_OBJECT) ? node->of.first
                                                                               : NULL;
}

const bz_json_node *bz_json_get(const bz_json_node *object, const char *key)
{
    const bz_json_node *found = NULL;
    if (bz_json_is(object, BZ_JSON_OBJECT)) {
        for (const bz_json_node *item = object->of.first; item; item = item->next) {
            if (bz_str_is(item->key, key)) {
                found = item;
            }
        }
    }
    return found;
}

bz_str bz_json_string(const bz_json_node *node)
{
    return bz_json_is(node, BZ_JSON_STRING) ? node->of.text : (bz_str){"", 0};
}

bool bz_json_to_int(const bz_json_node *node, int64_t *value)
{
    if (!bz_json_is(node, BZ_JSON_NUMBER)) {
        return false;
    }
    bz_str s = node->of.text;
    bool minus = s.data[0] == '-';
    int64_t sum = 0; /* negated: INT64_MIN has no positive counterpart */
    for (size_t i = minus; i < s.len; i++) {
        int digit = s.data[i] - '0';
        if (digit < 0 || digit > 9 || sum < (INT64_MIN + digit) / 10) {
            return false;
        }
        sum = sum * 10 - digit;
    }
    if (!minus && sum == INT64_MIN) {
        return false;
    }
    *value = minus ? sum : -sum;
    return true;
}

bool bz_json_to_double(const bz_json_node *node, double *value)
{
    /* strtod expects the locale's decimal point: what printf writes between 1 and 5. */
    char point[16], text[512];
    size_t n = 0;
    if (!bz_json_is(node, BZ_JSON_NUMBER)) {
        return false;
    }
    snprintf(point, sizeof point, "%.1f", 1.5);
    size_t n_point = strlen(point) - 2;
    for (size_t i = 0; i < node->of.text.len; i++) {
        char c = node->of.text.data[i];
        if (n + n_point + 1 >= sizeof text) {
            return false; /* absurdly long */
        }
        if (c == '.') {
            memcpy(text + n, point + 1, n_point);
            n += n_point;
        } else {
            text[n++] = c;
        }
    }
    text[n] = 0;
    *value = strtod(text, NULL);
    return isfinite(*value);
}

/* ---- order ------------------------------------------------------------------ */

typedef struct member {
    const bz_json_node *node;
    size_t at; /* keeps equal keys in their order: qsort is not stable */
} member;

static int key_order(bz_str a, bz_str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n ? memcmp(a.data, b.data, n) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int by_key(const void *a, const void *b)
{
    const member *x = a, *y = b;
    int order = key_order(x->node->key, y->node->key);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

const bz_json_node **bz_json_sorted(const bz_json_node *object, bz_arena *arena, size_t *n)
{
    size_t count = bz_json_is(object, BZ_JSON_OBJECT) ? object->n : 0, kept = 0;
    member *members = bz_arena_array(arena, count + 1, sizeof *members);
    const bz_json_node **sorted = bz_arena_array(arena, count + 1, sizeof *sorted);
    if (!members || !sorted) {
        return NULL;
    }
    const bz_json_node *item = bz_json_first(object);
    for (size_t i = 0; i < count; i++, item = item->next) {
        members[i] = (member){item, i};
    }
    qsort(members, count, sizeof *members, by_key);
    for (size_t i = 0; i < count; i++) {
        if (i + 1 == count || key_order(members[i].node->key, members[i + 1].node->key) != 0) {
            sorted[kept++] = members[i].node;
        }
    }
    *n = kept;
    return sorted;
}

/* ---- writing ---------------------------------------------------------------- */

void bz_json_node_write(bz_json *j, const bz_json_node *node)
{
    switch (node ? node->kind : BZ_JSON_NULL) {
    case BZ_JSON_FALSE: bz_json_bool(j, false); return;
    case BZ_JSON_TRUE: bz_json_bool(j, true); return;
    case BZ_JSON_NUMBER: bz_json_number(j, node->of.text); return;
    case BZ_JSON_STRING: bz_json_str(j, node->of.text); return;
    case BZ_JSON_ARRAY:
    case BZ_JSON_OBJECT:
        if (node->kind == BZ_JSON_OBJECT) {
            bz_json_object(j);
        } else {
            bz_json_array(j);
        }
        for (const bz_json_node *item = node->of.first; item; item = item->next) {
            if (node->kind == BZ_JSON_OBJECT) {
                bz_json_key_str(j, item->key);
            }
            bz_json_node_write(j, item);
        }
        bz_json_end(j);
        return;
    default: bz_json_null(j);
    }
}
