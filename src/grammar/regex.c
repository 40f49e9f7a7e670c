#include "grammar/regex.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

enum { MAX_DEPTH = 200, MAX_COUNT = 1000000, MAX_CHAR = 0x10FFFF };

typedef struct reader {
    const char *s;
    size_t n, at;
    bz_arena *a;
    unsigned depth;
    const char *why; /* what is wrong; NULL: nothing yet */
} reader;

/* A growing list in the arena. */
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
        const bz_tree **more = bz_arena_array(r->a, cap, sizeof(const bz_tree *));
        if (!more) {
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

static bool more(const reader *r)
{
    return r->at < r->n;
}

static bool next_is(const reader *r, const char *text)
{
    const size_t len = strlen(text);
    return r->n - r->at >= len && memcmp(r->s + r->at, text, len) == 0;
}

static bool take(reader *r, const char *text)
{
    const bool is = next_is(r, text);
    r->at += is ? strlen(text) : 0;
    return is;
}

static uint32_t take_char(reader *r)
{
    uint32_t c;
    r->at += bz_utf8_decode(r->s + r->at, r->n - r->at, &c);
    return c;
}

/* ---- sets of characters -------------------------------------------------------------------------
 */

typedef struct char_set {
    bz_char_range *ranges; /* [cap] */
    size_t n, cap;
} char_set;

static bool add_range(reader *r, char_set *s, uint32_t first, uint32_t last)
{
    if (s->n == s->cap) {
        const size_t cap = s->cap ? 2 * s->cap : 16;
        bz_char_range *all = bz_arena_array(r->a, cap, sizeof *all);
        if (!all) {
            return false;
        }
        if (s->n) {
            memcpy(all, s->ranges, s->n * sizeof *all);
        }
        s->ranges = all;
        s->cap = cap;
    }
    s->ranges[s->n++] = (bz_char_range){first, last};
    return true;
}

static const bz_char_range digits[] = {{'0', '9'}},
                           words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
                           spaces[] = {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},
                                       {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029},
                                       {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000},
                                       {0xFEFF, 0xFEFF}},
                           line_ends[] = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

/* \d and its kind: false if `c` is not the letter of one. */
static bool class_of(char c, const bz_char_range **ranges, size_t *n, bool *negated)
{
    *negated = c == 'D' || c == 'W' || c == 'S';
    switch (c) {
    case 'd':
    case 'D': *ranges = digits, *n = 1; return true;
    case 'w':
    case 'W': *ranges = words, *n = 4; return true;
    case 's':
    case 'S': *ranges = spaces, *n = sizeof spaces / sizeof *spaces; return true;
    default: return false;
    }
}

static bool add_class(reader *r, char_set *s, const bz_char_range *ranges, size_t n, bool negated)
{
    const bz_tree *t = bz_tree_chars(r->a, ranges, n, negated);
    for (uint32_t i = 0; t && i < t->n; i++) {
        if (!add_range(r, s, t->of.ranges[i].first, t->of.ranges[i].last)) {
            return false;
        }
    }
    return t != NULL;
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* n hexadecimal digits; UINT32_MAX: there are fewer. */
static uint32_t take_hex(reader *r, size_t n)
{
    uint32_t value = 0;
    for (size_t i = 0; i < n; i++, r->at++) {
        const int digit = more(r) ? hex(r->s[r->at]) : -1;
        if (digit < 0) {
            return UINT32_MAX;
        }
        value = value << 4 | (uint32_t)digit;
    }
    return value;
}

static uint32_t take_code_point(reader *r)
{
    if (take(r, "{")) {
        uint32_t value = 0;
        size_t n = 0;
        for (; more(r) && hex(r->s[r->at]) >= 0 && n < 6; n++) {
            value = value << 4 | (uint32_t)hex(r->s[r->at++]);
        }
        return n && take(r, "}") && value <= MAX_CHAR ? value : UINT32_MAX;
    }
    uint32_t high = take_hex(r, 4);
    if (high >= 0xD800 && high < 0xDC00 && take(r, "\\u")) {
        const uint32_t low = take_hex(r, 4);
        return low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)
                                             : UINT32_MAX;
    }
    return high;
}

/* After a backslash: one character. UINT32_MAX: r->why. */
static uint32_t take_escape(reader *r, bool in_set)
{
    if (!more(r)) {
        fail(r, "a backslash at the end");
        return UINT32_MAX;
    }
    const uint32_t c = take_char(r);
    uint32_t value = c;
    switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case 'f': return '\f';
    case 'v': return '\v';
    case '0':
        if (more(r) && r->s[r->at] >= '0' && r->s[r->at] <= '9') {
            fail(r, "octal escapes are not supported");
            return UINT32_MAX;
        }
        return 0;
    case 'x': value = take_hex(r, 2); break;
    case 'u': value = take_code_point(r); break;
    case 'c': value = more(r) ? (uint32_t)r->s[r->at++] & 31 : UINT32_MAX; break;
    case 'b':
        if (in_set) {
            return '\b';
        }
        fail(r, "word borders (\\b) are not supported");
        return UINT32_MAX;
    default:
        if (c >= '1' && c <= '9') {
            fail(r, "back references are not supported");
            return UINT32_MAX;
        }
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
            fail(r, c == 'p' || c == 'P' ? "Unicode properties (\\p) are not supported"
                    : c == 'B'           ? "word borders (\\B) are not supported"
                                         : "an unknown escape");
            return UINT32_MAX;
        }
        return c;
    }
    if (value == UINT32_MAX) {
        fail(r, "an incomplete escape");
    }
    return value;
}

/* One member of a set: a class, added at once (*is_class), or a character. */
static bool take_member(reader *r, char_set *s, uint32_t *c, bool *is_class)
{
    const bz_char_range *ranges;
    size_t n;
    bool negated;
    *is_class = false;
    if (!take(r, "\\")) {
        *c = take_char(r);
        return true;
    }
    if (more(r) && class_of(r->s[r->at], &ranges, &n, &negated)) {
        r->at++;
        *is_class = true;
        return add_class(r, s, ranges, n, negated);
    }
    *c = take_escape(r, true);
    return *c != UINT32_MAX;
}

static const bz_tree *read_set(reader *r)
{
    char_set s = {0};
    const bool negated = take(r, "^");
    while (more(r) && !next_is(r, "]")) {
        uint32_t first, last;
        bool is_class, ends_in_class;
        if (!take_member(r, &s, &first, &is_class)) {
            return NULL;
        }
        if (is_class) {
            continue;
        }
        last = first;
        if (next_is(r, "-") && r->at + 1 < r->n && r->s[r->at + 1] != ']') {
            r->at++;
            if (!take_member(r, &s, &last, &ends_in_class)) {
                return NULL;
            }
            if (ends_in_class) { /* [a-\d]: the characters a and - */
                last = first;
                if (!add_range(r, &s, '-', '-')) {
                    return NULL;
                }
            }
        }
        if (last < first) {
            return fail(r, "a range whose end is before its beginning");
        }
        if (!add_range(r, &s, first, last)) {
            return NULL;
        }
    }
    return take(r, "]") ? bz_tree_chars(r->a, s.ranges, s.n, negated)
                        : fail(r, "a [ without its ]");
}

/* ---- expressions
 * ------------------------------------------------------------------------------------ */

static const bz_tree *read_alternatives(reader *r);

static const bz_tree *read_group(reader *r)
{
    if (take(r, "?")) {
        if (take(r, "<") && !next_is(r, "=") && !next_is(r, "!")) { /* a name */
            while (more(r) && r->s[r->at] != '>') {
                r->at++;
            }
            if (!take(r, ">")) {
                return fail(r, "a group's name without its >");
            }
        } else if (!take(r, ":")) {
            return fail(r, "look-around and flags of a group are not supported");
        }
    }
    if (r->depth >= MAX_DEPTH) {
        return fail(r, "groups are nested too deeply");
    }
    r->depth++;
    const bz_tree *t = read_alternatives(r);
    r->depth--;
    return t && !take(r, ")") ? fail(r, "a ( without its )") : t;
}

static const bz_tree *one_char(reader *r, uint32_t c)
{
    const bz_char_range range = {c, c};
    return c == UINT32_MAX ? NULL : bz_tree_chars(r->a, &range, 1, false);
}

static const bz_tree *read_atom(reader *r)
{
    const bz_char_range *ranges;
    size_t n;
    bool negated;
    if (take(r, "(")) {
        return read_group(r);
    }
    if (take(r, "[")) {
        return read_set(r);
    }
    if (take(r, ".")) {
        return bz_tree_chars(r->a, line_ends, sizeof line_ends / sizeof *line_ends, true);
    }
    if (take(r, "^")) {
        return bz_tree_mark(r->a, BZ_TREE_BEGIN);
    }
    if (take(r, "$")) {
        return bz_tree_mark(r->a, BZ_TREE_END);
    }
    if (next_is(r, "*") || next_is(r, "+") || next_is(r, "?")) {
        return fail(r, "nothing to repeat");
    }
    if (!take(r, "\\")) {
        return one_char(r, take_char(r));
    }
    if (more(r) && class_of(r->s[r->at], &ranges, &n, &negated)) {
        r->at++;
        return bz_tree_chars(r->a, ranges, n, negated);
    }
    return one_char(r, take_escape(r, false));
}

/* A number of a {count}; false: there is none. */
static bool take_count(reader *r, uint32_t *count)
{
    const size_t begin = r->at;
    uint64_t value = 0;
    while (more(r) && r->s[r->at] >= '0' && r->s[r->at] <= '9') {
        value = value * 10 + (uint64_t)(r->s[r->at++] - '0');
        value = value > MAX_COUNT ? MAX_COUNT + 1 : value;
    }
    *count = (uint32_t)value;
    return r->at > begin;
}

/* {m}, {m,} or {m,n}; false: the brace is a character like any other. */
static bool take_braces(reader *r, uint32_t *min, uint32_t *max)
{
    const size_t begin = r->at;
    if (take(r, "{") && take_count(r, min)) {
        *max = *min;
        if (take(r, ",")) {
            *max = BZ_NO_LIMIT;
            take_count(r, max);
            *max = next_is(r, "}") && r->s[r->at - 1] == ',' ? BZ_NO_LIMIT : *max;
        }
        if (take(r, "}")) {
            return true;
        }
    }
    r->at = begin;
    return false;
}

static const bz_tree *read_repeated(reader *r)
{
    const bz_tree *t = read_atom(r);
    while (t && more(r)) {
        uint32_t min, max;
        if (take(r, "*")) {
            min = 0, max = BZ_NO_LIMIT;
        } else if (take(r, "+")) {
            min = 1, max = BZ_NO_LIMIT;
        } else if (take(r, "?")) {
            min = 0, max = 1;
        } else if (!take_braces(r, &min, &max)) {
            break;
        }
        if (min > MAX_COUNT || (max > MAX_COUNT && max != BZ_NO_LIMIT)) {
            return fail(r, "a count above 1,000,000");
        }
        if (min > max) {
            return fail(r, "a count whose end is before its beginning");
        }
        take(r, "?"); /* as few as possible: the same texts */
        t = bz_tree_repeat(r->a, t, min, max);
    }
    return t;
}

static const bz_tree *read_alternatives(reader *r)
{
    items ways = {0};
    do {
        items sequence = {0};
        while (more(r) && !next_is(r, "|") && !next_is(r, ")")) {
            if (!add_item(r, &sequence, read_repeated(r))) {
                return NULL;
            }
        }
        if (!add_item(r, &ways,
                      sequence.n ? bz_tree_list(r->a, BZ_TREE_SEQ, sequence.list, sequence.n)
                                 : bz_tree_empty(r->a))) {
            return NULL;
        }
    } while (take(r, "|"));
    return bz_tree_list(r->a, BZ_TREE_ALT, ways.list, ways.n);
}

/* ---- anchors
 * ------------------------------------------------------------------------------------------ */

static bool contains(const bz_tree *t, bz_tree_kind mark)
{
    if (t->kind == mark) {
        return true;
    }
    if (t->kind == BZ_TREE_REPEAT) {
        return contains(t->item, mark);
    }
    for (uint32_t i = 0; i < t->n && (t->kind == BZ_TREE_SEQ || t->kind == BZ_TREE_ALT); i++) {
        if (contains(t->of.items[i], mark)) {
            return true;
        }
    }
    return false;
}

static const bz_tree *anything(reader *r)
{
    return bz_tree_repeat(r->a, bz_tree_chars(r->a, NULL, 0, true), 0, BZ_NO_LIMIT);
}

/* Removes `mark` (^ or $) at that end of t, and adds what may be there where it is missing. */
static const bz_tree *settle(reader *r, const bz_tree *t, bz_tree_kind mark, bool search)
{
    const bool front = mark == BZ_TREE_BEGIN;
    if (t->kind == mark) {
        return bz_tree_empty(r->a);
    }
    if (!contains(t, mark)) {
        return !search ? t
               : front ? bz_tree_seq(r->a, anything(r), t)
                       : bz_tree_seq(r->a, t, anything(r));
    }
    const bz_tree **list = NULL;
    if (t->kind == BZ_TREE_ALT || t->kind == BZ_TREE_SEQ) {
        list = bz_arena_array(r->a, t->n + (size_t)1, sizeof(const bz_tree *));
    }
    if (!list) {
        return t->kind == BZ_TREE_REPEAT ? fail(r, "^ and $ inside a repetition are not supported")
                                         : NULL;
    }
    const uint32_t edge = front ? 0 : t->n - 1;
    for (uint32_t i = 0; i < t->n; i++) {
        list[i] = t->of.items[i];
        if (t->kind == BZ_TREE_ALT || i == edge) {
            list[i] = settle(r, list[i], mark, search);
            if (!list[i]) {
                return NULL;
            }
        } else if (contains(list[i], mark)) {
            return fail(r, "^ and $ are supported at the ends of the expression only");
        }
    }
    return bz_tree_list(r->a, t->kind, list, t->n);
}

bz_status bz_regex_read(const bz_tree **out, const char *text, size_t len, bool search,
                        bz_arena *arena, bz_error *err)
{
    reader r = {.s = text, .n = len, .a = arena};
    if (!bz_utf8_valid(text, len)) {
        return bz_fail(err, BZ_BAD_SCHEMA, "The regular expression is not UTF-8.");
    }
    const bz_tree *t = read_alternatives(&r);
    if (t && more(&r)) {
        t = fail(&r, "a ) without its (");
    }
    t = t ? settle(&r, t, BZ_TREE_BEGIN, search) : NULL;
    t = t ? settle(&r, t, BZ_TREE_END, search) : NULL;
    if (!t && r.why) {
        return bz_fail(err, BZ_BAD_SCHEMA, "The regular expression is invalid at byte %zu: %s.",
                       r.at, r.why);
    }
    *out = t;
    return t ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a regular expression.");
}
