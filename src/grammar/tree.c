#include "grammar/tree.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_CHAR = 0x10FFFF };
/* Counts up to this many states are written out, which keeps a rule deterministic where counting
 * would not; more are counted at run time. */
enum { WRITTEN_OUT = 24 };

/* ---- constructors -------------------------------------------------------------------------- */

static bz_tree *new_node(bz_arena *a, bz_tree_kind kind)
{
    bz_tree *t = bz_arena_alloc(a, sizeof *t);
    if (t) {
        *t = (bz_tree){.kind = kind};
    }
    return t;
}

const bz_tree *bz_tree_mark(bz_arena *a, bz_tree_kind kind)
{
    return new_node(a, kind);
}

const bz_tree *bz_tree_empty(bz_arena *a)
{
    return new_node(a, BZ_TREE_EMPTY);
}

const bz_tree *bz_tree_text(bz_arena *a, const char *text, size_t n)
{
    bz_tree *t = new_node(a, n ? BZ_TREE_TEXT : BZ_TREE_EMPTY);
    char *copy = bz_arena_alloc(a, n + 1);
    if (!t || !copy) {
        return NULL;
    }
    memcpy(copy, text, n);
    t->of.text = copy;
    t->n = (uint32_t)n;
    return t;
}

static int by_first(const void *x, const void *y)
{
    const bz_char_range *p = x, *q = y;
    return p->first < q->first ? -1 : p->first > q->first;
}

const bz_tree *bz_tree_chars(bz_arena *a, const bz_char_range *ranges, size_t n, bool negated)
{
    bz_tree *t = new_node(a, BZ_TREE_CHARS);
    bz_char_range *sorted = bz_arena_array(a, n + 2, sizeof *sorted),
                  *out = bz_arena_array(a, n + 2, sizeof *out);
    if (!t || !sorted || !out) {
        return NULL;
    }
    if (n) {
        memcpy(sorted, ranges, n * sizeof *ranges);
        qsort(sorted, n, sizeof *sorted, by_first);
    }
    size_t joined = 0;
    for (size_t i = 0; i < n; i++) {
        if (joined && sorted[i].first <= sorted[joined - 1].last + 1) {
            if (sorted[i].last > sorted[joined - 1].last) {
                sorted[joined - 1].last = sorted[i].last;
            }
        } else {
            sorted[joined++] = sorted[i];
        }
    }
    if (!negated) {
        t->of.ranges = sorted;
        t->n = (uint32_t)joined;
        return t;
    }
    uint32_t next = 0, made = 0;
    for (size_t i = 0; i < joined; i++) {
        if (sorted[i].first > next) {
            out[made++] = (bz_char_range){next, sorted[i].first - 1};
        }
        next = sorted[i].last + 1;
    }
    if (next <= MAX_CHAR) {
        out[made++] = (bz_char_range){next, MAX_CHAR};
    }
    t->of.ranges = out;
    t->n = made;
    return t;
}

const bz_tree *bz_tree_list(bz_arena *a, bz_tree_kind kind, const bz_tree *const *items, size_t n)
{
    bz_tree *t = new_node(a, kind);
    const bz_tree **copy = bz_arena_array(a, n + 1, sizeof(const bz_tree *));
    if (!t || !copy) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        copy[i] = items[i];
        if (!items[i]) {
            return NULL;
        }
    }
    if (n == 1) {
        return items[0];
    }
    t->of.items = copy;
    t->n = (uint32_t)n;
    return t;
}

const bz_tree *bz_tree_seq(bz_arena *a, const bz_tree *x, const bz_tree *y)
{
    const bz_tree *items[2] = {x, y};
    return bz_tree_list(a, BZ_TREE_SEQ, items, 2);
}

const bz_tree *bz_tree_repeat(bz_arena *a, const bz_tree *item, uint32_t min, uint32_t max)
{
    bz_tree *t = new_node(a, BZ_TREE_REPEAT);
    if (!t || !item) {
        return NULL;
    }
    t->item = item;
    t->min = min;
    t->max = max;
    return t;
}

const bz_tree *bz_tree_call(bz_arena *a, uint32_t callee)
{
    bz_tree *t = new_node(a, BZ_TREE_CALL);
    if (t) {
        t->callee = callee;
    }
    return t;
}

/* ---- the empty text -------------------------------------------------------------------------- */

bool bz_tree_may_be_empty(const bz_tree_out *out, const bz_tree *t)
{
    switch (t->kind) {
    case BZ_TREE_EMPTY:
    case BZ_TREE_BEGIN:
    case BZ_TREE_END: return true;
    case BZ_TREE_CHARS:
    case BZ_TREE_TEXT: return false;
    case BZ_TREE_CALL:
        return out->rule_may_be_empty && out->rule_may_be_empty(out->user, t->callee);
    case BZ_TREE_REPEAT: return t->min == 0 || bz_tree_may_be_empty(out, t->item);
    case BZ_TREE_SEQ:
        for (uint32_t i = 0; i < t->n; i++) {
            if (!bz_tree_may_be_empty(out, t->of.items[i])) {
                return false;
            }
        }
        return true;
    case BZ_TREE_ALT: break;
    }
    for (uint32_t i = 0; i < t->n; i++) {
        if (bz_tree_may_be_empty(out, t->of.items[i])) {
            return true;
        }
    }
    return false;
}

const bz_tree *bz_tree_not_empty(const bz_tree_out *out, const bz_tree *t)
{
    bz_arena *a = out->arena;
    if (!bz_tree_may_be_empty(out, t)) {
        return t;
    }
    switch (t->kind) {
    case BZ_TREE_CALL: return out->rule_not_empty(out->user, t->callee);
    case BZ_TREE_REPEAT: { /* one that is not empty, and up to max - 1 more */
        const bz_tree *item = bz_tree_not_empty(out, t->item);
        if (t->max == 0 || !item) {
            break;
        }
        const uint32_t more = t->max == BZ_NO_LIMIT ? t->max : t->max - 1;
        const uint32_t least = bz_tree_may_be_empty(out, t->item) || t->min == 0 ? 0 : t->min - 1;
        return bz_tree_seq(a, item, bz_tree_repeat(a, item, least, more));
    }
    case BZ_TREE_SEQ: { /* x y: x' y | y', where x' is x without the empty text */
        const bz_tree *first = t->of.items[0],
                      *rest = bz_tree_list(a, BZ_TREE_SEQ, t->of.items + 1, t->n - 1);
        const bz_tree *const ways[2] = {
            bz_tree_seq(a, bz_tree_not_empty(out, first), rest),
            rest ? bz_tree_not_empty(out, rest) : NULL,
        };
        return bz_tree_list(a, BZ_TREE_ALT, ways, 2);
    }
    case BZ_TREE_ALT: {
        const bz_tree **ways = bz_arena_array(a, t->n + 1, sizeof(const bz_tree *));
        for (uint32_t i = 0; ways && i < t->n; i++) {
            ways[i] = bz_tree_not_empty(out, t->of.items[i]);
        }
        return ways ? bz_tree_list(a, BZ_TREE_ALT, ways, t->n) : NULL;
    }
    default: break;
    }
    return bz_tree_list(a, BZ_TREE_ALT, NULL, 0);
}

/* ---- into the graph ---------------------------------------------------------------------------
 */

static void json_escape(bz_build *b, uint32_t from, uint32_t to, uint32_t c)
{
    static const char digits[] = "0123456789abcdef";
    const char *name = memchr("\"\\\b\f\n\r\t", (int)c, 7);
    char text[6] = {'\\', c == '\b'   ? 'b'
                          : c == '\f' ? 'f'
                          : c == '\n' ? 'n'
                          : c == '\r' ? 'r'
                          : c == '\t' ? 't'
                                      : (char)c};
    if (c && name) {
        bz_build_text(b, from, to, text, 2);
        return;
    }
    memcpy(text, "\\u00", 4);
    text[4] = digits[c >> 4];
    text[5] = digits[c & 15];
    bz_build_text(b, from, to, text, 6);
}

static void emit_chars(const bz_tree_out *out, const bz_tree *t, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t first = t->of.ranges[i].first;
        const uint32_t last = t->of.ranges[i].last;
        if (!out->escape) {
            bz_build_chars(out->build, from, to, first, last);
            continue;
        }
        for (; first <= last && first < 0x20; first++) {
            json_escape(out->build, from, to, first);
        }
        static const uint32_t marks[] = {'"', '\\'};
        for (size_t k = 0; k < 2; k++) {
            if (first <= marks[k] && marks[k] <= last) {
                if (first < marks[k]) {
                    bz_build_chars(out->build, from, to, first, marks[k] - 1);
                }
                json_escape(out->build, from, to, marks[k]);
                first = marks[k] + 1;
            }
        }
        if (first <= last) {
            bz_build_chars(out->build, from, to, first, last);
        }
    }
}

static void emit_text(const bz_tree_out *out, const bz_tree *t, uint32_t from, uint32_t to)
{
    if (!out->escape) {
        bz_build_text(out->build, from, to, t->of.text, t->n);
        return;
    }
    for (uint32_t i = 0; i < t->n; i++) {
        const uint8_t c = (uint8_t)t->of.text[i];
        const uint32_t next = i + 1 < t->n ? bz_build_state(out->build) : to;
        if (c < 0x20 || c == '"' || c == '\\') {
            json_escape(out->build, from, next, c);
        } else {
            bz_build_bytes(out->build, from, next, c, c);
        }
        from = next;
    }
}

/* About how many states an expression becomes. */
static uint64_t size_of(const bz_tree *t)
{
    uint64_t size = 1;
    switch (t->kind) {
    case BZ_TREE_TEXT: return t->n;
    case BZ_TREE_CALL: return 1;
    case BZ_TREE_SEQ:
    case BZ_TREE_ALT:
        for (uint32_t i = 0; i < t->n; i++) {
            size += size_of(t->of.items[i]);
        }
        return size;
    case BZ_TREE_REPEAT: {
        const uint64_t times = t->max == BZ_NO_LIMIT ? t->min + (uint64_t)1 : t->max;
        const uint64_t item = size_of(t->item);
        return item * times <= WRITTEN_OUT ? 1 + item * times : 2 + item;
    }
    default: return 1;
    }
}

/* x* between `from` and `to`: a state of its own, so that loops of neighbors do not mix. */
static void emit_star(const bz_tree_out *out, const bz_tree *item, uint32_t from, uint32_t to)
{
    const uint32_t at = bz_build_state(out->build);
    bz_build_empty(out->build, from, at);
    bz_tree_emit(out, item, at, at);
    bz_build_empty(out->build, at, to);
}

static void emit_written_out(const bz_tree_out *out, const bz_tree *t, uint32_t from, uint32_t to)
{
    bz_build *b = out->build;
    for (uint32_t i = 0; i < t->min && !b->failed; i++) {
        const uint32_t next = bz_build_state(b);
        bz_tree_emit(out, t->item, from, next);
        from = next;
    }
    if (t->max == BZ_NO_LIMIT) {
        emit_star(out, t->item, from, to);
        return;
    }
    for (uint32_t i = t->min; i < t->max && !b->failed; i++) {
        const uint32_t next = bz_build_state(b);
        bz_build_empty(b, from, to);
        bz_tree_emit(out, t->item, from, next);
        from = next;
    }
    bz_build_empty(b, from, to);
}

static void emit_repeat(const bz_tree_out *out, const bz_tree *t, uint32_t from, uint32_t to)
{
    bz_build *b = out->build;
    const uint64_t times = t->max == BZ_NO_LIMIT ? t->min + (uint64_t)1 : t->max;
    if (out->regular || t->max == 0 || (t->max == BZ_NO_LIMIT && t->min <= 1) ||
        size_of(t->item) * times <= WRITTEN_OUT) {
        emit_written_out(out, t, from, to);
        return;
    }
    const uint32_t min = bz_tree_may_be_empty(out, t->item) ? 0 : t->min;
    const bz_tree *item = bz_tree_not_empty(out, t->item);
    const uint32_t body = bz_build_rule(b);
    if (!item || b->failed) {
        b->failed = true;
        return;
    }
    bz_tree_emit(out, item, b->rules[body].start, b->rules[body].end);
    bz_build_call(b, from, to, bz_build_loop(b, body, min, t->max));
}

void bz_tree_emit(const bz_tree_out *out, const bz_tree *t, uint32_t from, uint32_t to)
{
    bz_build *b = out->build;
    if (!t) {
        b->failed = true;
    }
    if (b->failed) {
        return;
    }
    switch (t->kind) {
    case BZ_TREE_EMPTY:
    case BZ_TREE_BEGIN:
    case BZ_TREE_END: bz_build_empty(b, from, to); break;
    case BZ_TREE_CHARS: emit_chars(out, t, from, to); break;
    case BZ_TREE_TEXT: emit_text(out, t, from, to); break;
    case BZ_TREE_CALL: bz_build_call(b, from, to, t->callee); break;
    case BZ_TREE_REPEAT: emit_repeat(out, t, from, to); break;
    case BZ_TREE_SEQ:
        for (uint32_t i = 0; i < t->n; i++) {
            const uint32_t next = i + 1 < t->n ? bz_build_state(b) : to;
            bz_tree_emit(out, t->of.items[i], from, next);
            from = next;
        }
        break;
    case BZ_TREE_ALT:
        for (uint32_t i = 0; i < t->n; i++) {
            bz_tree_emit(out, t->of.items[i], from, to);
        }
        break;
    }
}
