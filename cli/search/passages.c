#include "cli/search/passages.h"

#include <stdlib.h>
#include <string.h>

/* A line without its newline; `next`: where the following one begins. */
typedef struct text_line {
    size_t at, len, next;
} text_line;

typedef struct cutter {
    passages *out;
    const char *text;
    size_t len, max;
    bool markdown, failed;

    size_t counted; /* newlines before it are in `line` */
    uint32_t line;

    size_t begin, end; /* the passage so far; equal: nothing yet */
    bool only_headings;
} cutter;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v';
}

static bool continues_character(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

static text_line line_at(const char *text, size_t len, size_t at)
{
    const char *end = memchr(text + at, '\n', len - at);
    const size_t stop = end ? (size_t)(end - text) : len;
    return (text_line){at, stop - at, end ? stop + 1 : len};
}

static bool is_empty(const char *text, text_line l)
{
    size_t i = 0;
    while (i < l.len && is_blank(text[l.at + i])) {
        i++;
    }
    return i == l.len;
}

/* How many characters c a line begins with, after at most three blanks; `rest`: where they end. */
static size_t run_of(const char *text, text_line l, char c, size_t *rest)
{
    size_t i = 0, n = 0;
    while (i < l.len && i < 3 && text[l.at + i] == ' ') {
        i++;
    }
    while (i + n < l.len && text[l.at + i + n] == c) {
        n++;
    }
    *rest = l.at + i + n;
    return n;
}

static bool is_heading(const char *text, text_line l)
{
    size_t rest;
    const size_t n = run_of(text, l, '#', &rest);
    return n >= 1 && n <= 6 && (rest == l.at + l.len || is_blank(text[rest]));
}

/* The line below a heading: only = or -. */
static bool is_underline(const char *text, text_line l)
{
    size_t rest = l.at;
    const bool drawn = run_of(text, l, '=', &rest) >= 3 || run_of(text, l, '-', &rest) >= 3;
    while (drawn && rest < l.at + l.len && is_blank(text[rest])) {
        rest++;
    }
    return drawn && rest == l.at + l.len;
}

/* Begins or ends a block of code, in which nothing is a heading. */
static bool is_fence(const char *text, text_line l)
{
    size_t rest;
    return run_of(text, l, '`', &rest) >= 3 || run_of(text, l, '~', &rest) >= 3;
}

/* ---- passages --------------------------------------------------------------------------- */

static uint32_t line_of(cutter *c, size_t at)
{
    for (; c->counted < at; c->counted++) {
        c->line += c->text[c->counted] == '\n';
    }
    return c->line;
}

/* Appends text[at..end) without the blanks around it. */
static void put(cutter *c, size_t at, size_t end)
{
    passages *p = c->out;
    while (at < end && is_blank(c->text[at])) {
        at++;
    }
    while (end > at && is_blank(c->text[end - 1])) {
        end--;
    }
    if (at == end || c->failed) {
        return;
    }
    if (p->n == p->cap) {
        passage *more = realloc(p->list, (2 * p->cap + 16) * sizeof *more);
        if (!more) {
            c->failed = true;
            return;
        }
        p->list = more;
        p->cap = 2 * p->cap + 16;
    }
    p->list[p->n++] = (passage){at, end - at, line_of(c, at)};
}

/* Where to cut text[at..end), which is longer than `max`. */
static size_t cut_at(const cutter *c, size_t at)
{
    const char *text = c->text;
    const size_t last = at + c->max, half = at + c->max / 2;
    for (size_t i = last; i > half; i--) {
        if (text[i - 1] == '\n') {
            return i;
        }
    }
    for (size_t i = last; i > half + 1; i--) {
        if (is_blank(text[i - 1]) && strchr(".!?:;", text[i - 2]) && text[i - 2]) {
            return i;
        }
    }
    for (size_t i = last; i > half; i--) {
        if (is_blank(text[i - 1])) {
            return i;
        }
    }
    size_t i = last;
    while (i > half && continues_character(text[i])) {
        i--;
    }
    return i;
}

static void flush(cutter *c)
{
    while (c->end - c->begin > c->max) {
        const size_t cut = cut_at(c, c->begin);
        put(c, c->begin, cut);
        c->begin = cut;
    }
    put(c, c->begin, c->end);
    c->begin = c->end;
}

/* A paragraph, or a heading with what follows it up to an empty line: text[at..end). */
static void add(cutter *c, size_t at, size_t end, bool heading)
{
    const bool nothing = c->begin == c->end;
    if (!nothing && ((heading && !c->only_headings) || end - c->begin > c->max)) {
        flush(c);
    }
    if (c->begin == c->end) {
        c->begin = at;
        c->only_headings = true;
    }
    c->end = end;
    c->only_headings &= heading && line_at(c->text, end, at).next == end;
}

bool passages_cut(passages *p, const char *text, size_t len, bool markdown, size_t max)
{
    cutter c = {.out = p, .text = text, .len = len, .max = max, .markdown = markdown, .line = 1};
    size_t at = 0, block = 0; /* the block that is read begins there */
    bool open = false, fenced = false, heading = false;
    while (at < len) {
        const text_line l = line_at(text, len, at);
        const bool fence = markdown && is_fence(text, l);
        const text_line below = l.next < len ? line_at(text, len, l.next) : (text_line){0};
        const bool title = markdown && !fenced &&
                           (is_heading(text, l) || (!open && below.len && !is_empty(text, l) &&
                                                    is_underline(text, below)));
        const bool empty = is_empty(text, l);
        if (open && ((empty && !fenced) || title)) {
            add(&c, block, at, heading);
            open = false;
        }
        if (!open && !empty) {
            open = true;
            block = at;
            heading = title;
        }
        fenced = fence ? !fenced : fenced;
        at = l.next;
    }
    if (open) {
        add(&c, block, len, heading);
    }
    flush(&c);
    return !c.failed;
}

bz_str passages_title(const char *text, size_t len)
{
    bool fenced = false;
    for (size_t at = 0; at < len;) {
        const text_line l = line_at(text, len, at);
        size_t first;
        fenced ^= is_fence(text, l);
        if (!fenced && is_heading(text, l)) {
            size_t end = l.at + l.len;
            run_of(text, l, '#', &first);
            while (first < end && is_blank(text[first])) {
                first++;
            }
            while (end > first && (is_blank(text[end - 1]) || text[end - 1] == '#')) {
                end--;
            }
            return (bz_str){text + first, end - first};
        }
        at = l.next;
    }
    return (bz_str){"", 0};
}
