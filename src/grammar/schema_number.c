/* Numbers of a schema. */
#include <stdlib.h>
#include <string.h>

#include "grammar/schema_internal.h"

enum { MAX_DIGITS = 400 };

/* ---- decimals
 * ---------------------------------------------------------------------------------------- */

static bool all_digits(const char *s, size_t n, bz_arena *arena, bz_str *out, size_t zeros_before,
                       size_t zeros_after)
{
    char *p = bz_arena_alloc(arena, n + zeros_before + zeros_after + 1);
    if (!p) {
        return false;
    }
    memset(p, '0', zeros_before);
    memcpy(p + zeros_before, s, n);
    memset(p + zeros_before + n, '0', zeros_after);
    *out = (bz_str){p, n + zeros_before + zeros_after};
    return true;
}

bool bz_decimal_read(bz_str text, bz_arena *arena, decimal *out)
{
    char digits[MAX_DIGITS];
    size_t n = 0, i = 0, point = 0;
    int64_t exponent = 0;
    bool seen_point = false;
    *out = (decimal){.negative = text.len && text.data[0] == '-'};
    for (i = out->negative; i < text.len && text.data[i] != 'e' && text.data[i] != 'E'; i++) {
        if (text.data[i] == '.') {
            seen_point = true;
        } else if (n == sizeof digits) {
            return false;
        } else {
            digits[n++] = text.data[i];
            point += !seen_point;
        }
    }
    if (i < text.len) {
        exponent = strtoll(text.data + i + 1, NULL, 10);
    }
    if (exponent > MAX_DIGITS || exponent < -MAX_DIGITS) {
        return false;
    }
    const int64_t at = (int64_t)point + exponent; /* digits before the point */
    const size_t before = at < 0 ? (size_t)-at : 0, whole = at < 0 ? 0 : (size_t)at,
                 after = whole > n ? whole - n : 0;
    bz_str all;
    if (!all_digits(digits, n, arena, &all, before, after)) {
        return false;
    }
    out->whole = (bz_str){all.data, whole};
    out->fraction = (bz_str){all.data + whole, all.len - whole};
    while (out->whole.len && out->whole.data[0] == '0') {
        out->whole.data++;
        out->whole.len--;
    }
    while (out->fraction.len && out->fraction.data[out->fraction.len - 1] == '0') {
        out->fraction.len--;
    }
    out->is_set = true;
    out->negative = out->negative && (out->whole.len || out->fraction.len);
    return true;
}

static int compare_size(const decimal *x, const decimal *y)
{
    if (x->whole.len != y->whole.len) {
        return x->whole.len < y->whole.len ? -1 : 1;
    }
    const int whole = memcmp(x->whole.data, y->whole.data, x->whole.len);
    const size_t n = x->fraction.len < y->fraction.len ? x->fraction.len : y->fraction.len;
    const int fraction = whole ? whole : memcmp(x->fraction.data, y->fraction.data, n);
    return fraction ? fraction : (x->fraction.len > n) - (y->fraction.len > n);
}

int bz_decimal_compare(const decimal *x, const decimal *y)
{
    if (x->negative != y->negative) {
        return x->negative ? -1 : 1;
    }
    return x->negative ? compare_size(y, x) : compare_size(x, y);
}

/* ---- ranges of numbers
 * ---------------------------------------------------------------------------------- */

/* Digits are compared one by one with those of both bounds: as long as all were equal to a bound's,
 * the bound limits the next one. */
typedef struct range_writer {
    bz_build *b;
    uint32_t to;
    const decimal *low, *high;                /* high NULL: none */
    bool fraction;                            /* may be written */
    size_t length;                            /* digits before the point */
    uint32_t state[2 * MAX_DIGITS + 4][2][2]; /* + 1; 0: not made. By position, at low, at high */
} range_writer;

static int digit_at(bz_str s, size_t i)
{
    return i < s.len ? s.data[i] - '0' : 0;
}

static bool may_end(const range_writer *w, size_t fraction, bool at_low, bool at_high)
{
    const bool low_rest = at_low && w->low->fraction.len > fraction,
               high_rest = at_high && w->high->fraction.len > fraction;
    return !low_rest && !(at_low && w->low->exclusive) &&
           (!at_high || high_rest || !w->high->exclusive);
}

static uint32_t range_state(range_writer *w, size_t position, bool at_low, bool at_high);

static void add_digits(range_writer *w, uint32_t from, size_t next, int a, int z, int low, int high)
{
    for (int d = a; d <= z;) { /* digits with the same consequence together */
        int e = d;
        while (e < z && e != low && e != high && e + 1 != low && e + 1 != high) {
            e++;
        }
        bz_build_bytes(w->b, from, range_state(w, next, d == low, d == high), (uint8_t)('0' + d),
                       (uint8_t)('0' + e));
        d = e + 1;
    }
}

static uint32_t range_state(range_writer *w, size_t position, bool at_low, bool at_high)
{
    uint32_t *known = &w->state[position][at_low][at_high];
    if (*known || w->b->failed) {
        return *known ? *known - 1 : 0;
    }
    const uint32_t state = bz_build_state(w->b);
    *known = state + 1;
    const bool in_whole = position < w->length;
    const size_t last = 1 + (w->low->fraction.len > (w->high ? w->high->fraction.len : 0)
                                 ? w->low->fraction.len
                                 : (w->high ? w->high->fraction.len : 0));
    /* positions: the digits before the point; the place of the point; after it */
    const size_t fraction = in_whole ? 0 : position - w->length;
    if (!in_whole && (fraction == 0 || fraction >= 2) &&
        may_end(w, fraction ? fraction - 1 : 0, at_low, at_high)) {
        bz_build_empty(w->b, state, w->to);
    }
    if (position == w->length) {
        if (w->fraction) {
            const uint32_t next = range_state(w, position + 1, at_low, at_high);
            bz_build_bytes(w->b, state, next, '.', '.');
        }
        return state;
    }
    /* after the last digit of both bounds only zeros are equal to theirs */
    const size_t i = in_whole ? position : fraction - 1;
    const size_t next = in_whole || fraction <= last ? position + 1 : position;
    const int low = at_low ? digit_at(in_whole ? w->low->whole : w->low->fraction, i) : -1,
              high = at_high ? digit_at(in_whole ? w->high->whole : w->high->fraction, i) : -1;
    const int least = position == 0 && w->length > 1 ? 1 : 0;
    add_digits(w, state, next, low > least ? low : least, high >= 0 ? high : 9, low, high);
    return state;
}

/* Numbers from low to high, neither of them negative; their sign is written already. */
static void add_range(bz_build *b, uint32_t from, uint32_t to, const decimal *low,
                      const decimal *high, bool fraction)
{
    range_writer *w = malloc(sizeof *w);
    if (!w) {
        b->failed = true;
        return;
    }
    const size_t first = low->whole.len ? low->whole.len : 1,
                 last = high ? (high->whole.len ? high->whole.len : 1) : first;
    for (size_t length = first; length <= last && !b->failed; length++) {
        memset(w, 0, sizeof *w);
        w->b = b;
        w->to = to;
        w->low = low;
        w->high = high;
        w->fraction = fraction;
        w->length = length;
        bz_build_empty(b, from, range_state(w, 0, length == first, high != NULL && length == last));
    }
    if (!high && !b->failed) { /* all longer numbers */
        uint32_t at = bz_build_state(b);
        bz_build_bytes(b, from, at, '1', '9');
        for (size_t i = 0; i < first; i++) {
            const uint32_t next = bz_build_state(b);
            bz_build_bytes(b, at, next, '0', '9');
            at = next;
        }
        bz_build_bytes(b, at, at, '0', '9');
        bz_build_empty(b, at, to);
        if (fraction) {
            const uint32_t point = bz_build_state(b), digits = bz_build_state(b);
            bz_build_bytes(b, at, point, '.', '.');
            bz_build_bytes(b, point, digits, '0', '9');
            bz_build_bytes(b, digits, digits, '0', '9');
            bz_build_empty(b, digits, to);
        }
    }
    free(w);
}

static void add_bounded(bz_build *b, const merged *m, uint32_t from, uint32_t to, bool fraction)
{
    static const decimal zero = {.is_set = true}, above_zero = {.is_set = true, .exclusive = true};
    if (m->low.is_set && m->high.is_set) {
        const int order = bz_decimal_compare(&m->low, &m->high);
        if (order > 0 || (order == 0 && (m->low.exclusive || m->high.exclusive))) {
            return;
        }
    }
    if (!m->high.is_set || !m->high.negative) {
        const decimal *low = m->low.is_set && !m->low.negative ? &m->low : &zero;
        add_range(b, from, to, low, m->high.is_set ? &m->high : NULL, fraction);
    }
    if (!m->low.is_set || m->low.negative) { /* the same with the bounds exchanged */
        const uint32_t minus = bz_build_state(b);
        const decimal *low = m->high.is_set && m->high.negative ? &m->high : &above_zero;
        bz_build_bytes(b, from, minus, '-', '-');
        add_range(b, minus, to, low, m->low.is_set ? &m->low : NULL, fraction);
    }
}

/* Multiples of of / 10^places. States are remainders of the number without its point, by how many
 * digits after the point were written: [places + 2][of], the first for those without a point. */
static void add_multiples(bz_build *b, uint32_t from, uint32_t to, uint64_t of, uint32_t places)
{
    const uint32_t digits = bz_build_state(b), first = b->n_states, n = (uint32_t)of;
    for (uint32_t i = 0; i < n * (places + 2) && !b->failed; i++) {
        bz_build_state(b);
    }
    bz_build_bytes(b, from, digits, '-', '-');
    bz_build_empty(b, from, digits);
    for (uint32_t d = 0; d < 10 && !b->failed; d++) {
        bz_build_bytes(b, digits, first + d % n, (uint8_t)('0' + d), (uint8_t)('0' + d));
    }
    for (uint32_t row = 0; row < places + 2 && !b->failed; row++) {
        const uint32_t written = row ? row - 1 : 0, at = first + row * n,
                       next = row ? at + n : at; /* digits before the point stay in their row */
        for (uint32_t i = 0; i < n && !b->failed; i++) {
            uint64_t scaled = i;
            for (uint32_t k = written; k < places; k++) {
                scaled = scaled * 10 % of;
            }
            if (row != 1 && scaled == 0) { /* no digit yet after a point */
                bz_build_empty(b, at + i, to);
            }
            if (row == 0 && places) {
                bz_build_bytes(b, at + i, at + n + i, '.', '.');
            }
            for (uint32_t d = 0; (row == 0 || written < places) && d < 10 && !b->failed; d++) {
                const uint8_t c = (uint8_t)('0' + d);
                bz_build_bytes(b, at + i, next + (i * 10 + d) % n, c, c);
            }
        }
    }
}

/* Numbers with a digit after the point that is not zero, and so few before it that they are not
 * whole for a reader who rounds to double precision either. */
static void add_fractions(bz_build *b, uint32_t from, uint32_t to)
{
    enum { WHOLE = 9, FRACTION = 6 };
    const uint32_t sign = bz_build_state(b), point = bz_build_state(b), end = bz_build_state(b);
    uint32_t at = sign, after = point;
    bz_build_bytes(b, from, sign, '-', '-');
    bz_build_empty(b, from, sign);
    for (int i = 0; i < WHOLE; i++) {
        const uint32_t next = bz_build_state(b);
        bz_build_bytes(b, at, next, '0', '9');
        bz_build_bytes(b, next, point, '.', '.');
        at = next;
    }
    for (int i = 0; i < FRACTION; i++) {
        const uint32_t next = bz_build_state(b);
        bz_build_bytes(b, after, end, '1', '9');
        bz_build_bytes(b, after, next, '0', '0');
        after = next;
    }
    bz_build_bytes(b, end, end, '0', '9');
    bz_build_empty(b, end, to);
}

/* *x becomes what it has in common with the graph of a rule. */
static bool meet_rule(bz_dfa *x, const bz_build *b, uint32_t rule, bz_error *error)
{
    bz_dfa y = {0}, both = {0};
    uint32_t first;
    const bool good =
        bz_dfa_append(&y, b, b->rules[rule].start, b->rules[rule].end, &first, error) == BZ_OK &&
        bz_dfa_meet(&both, x, &y, false, error) == BZ_OK;
    bz_dfa_free(x);
    bz_dfa_free(&y);
    *x = both;
    return good;
}

static bool limited_dfa(const merged *m, bz_dfa *out, bz_error *error)
{
    bz_build b = {0};
    const uint32_t range = bz_build_rule(&b), multiples = bz_build_rule(&b),
                   fractions = bz_build_rule(&b);
    uint32_t first;
    if (b.failed) {
        bz_build_free(&b);
        return false;
    }
    add_bounded(&b, m, b.rules[range].start, b.rules[range].end, m->kinds & KIND_FRACTION);
    if (m->multiple) {
        add_multiples(&b, b.rules[multiples].start, b.rules[multiples].end, m->multiple,
                      m->multiple_digits);
    }
    add_fractions(&b, b.rules[fractions].start, b.rules[fractions].end);
    const bool good =
        !b.failed &&
        bz_dfa_append(out, &b, b.rules[range].start, b.rules[range].end, &first, error) == BZ_OK &&
        (!m->multiple || meet_rule(out, &b, multiples, error)) &&
        (m->kinds & KIND_INTEGER || meet_rule(out, &b, fractions, error));
    bz_build_free(&b);
    return good;
}

void bz_schema_add_number(schema_reader *r, const merged *m, uint32_t from, uint32_t to)
{
    bz_build *b = r->build;
    const bool fraction = m->kinds & KIND_FRACTION;
    if (m->multiple > 1 || m->multiple_digits || !(m->kinds & KIND_INTEGER)) {
        bz_dfa d = {0};
        bz_error error = {.code = BZ_OUT_OF_MEMORY};
        if (limited_dfa(m, &d, &error)) {
            bz_dfa_emit(&d, b, from, to);
        } else {
            bz_schema_failed(r, m->at, error.code, &error);
        }
        bz_dfa_free(&d);
    } else if (m->low.is_set || m->high.is_set) {
        add_bounded(b, m, from, to, fraction);
    } else {
        bz_build_call(b, from, to,
                      fraction ? bz_json_any_number(r->rules) : bz_json_any_integer(r->rules));
    }
}
