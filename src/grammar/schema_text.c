/* Strings and numbers of a schema. */
#include <stdlib.h>
#include <string.h>

#include "grammar/regex.h"
#include "grammar/schema_internal.h"

enum { MAX_LENGTH_WITH_PATTERN = 4096, MAX_DIGITS = 400 };

/* ---- formats
 * -------------------------------------------------------------------------------------- */

#define YEAR "([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
#define LEAP "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([13579][26]|[2468][048]|0[48])00)"
#define DATE                                                                                       \
    "(" YEAR "-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-"   \
    "(0[1-9]|1[0-9]|2[0-8]))|" LEAP "-02-29)"
#define TIME                                                                                       \
    "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]" \
    ")"
#define OCTET "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define IPV4  OCTET "(\\." OCTET "){3}"
#define H16   "[0-9a-fA-F]{1,4}"
/* :: stands for one group of zeros or more. */
#define IPV6                                                                                       \
    "((" H16 ":){7}" H16 "|(" H16 ":){1,7}:|(" H16 ":){1,6}:" H16 "|(" H16 ":){1,5}(:" H16         \
    "){1,2}|(" H16 ":){1,4}(:" H16 "){1,3}|(" H16 ":){1,3}(:" H16 "){1,4}|(" H16 ":){1,2}(:" H16   \
    "){1,5}|" H16 ":(:" H16 "){1,6}|:(:" H16 "){1,7}|::)"
/* At most 63 characters, counted without looking ahead: hyphens only between others. */
#define LABEL     "[a-zA-Z0-9](-?[a-zA-Z0-9]){0,31}"
#define HOSTNAME  LABEL "(\\." LABEL "){0,7}"
#define EMAIL     "[a-zA-Z0-9_%+~-]+(\\.[a-zA-Z0-9_%+~-]+)*@" LABEL "(\\." LABEL "){1,4}"
#define URI_CHAR  "([a-zA-Z0-9._~:/?#\\[\\]@!$&'()*+,;=-]|%[0-9a-fA-F]{2})"
#define UUID      "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
#define TIME_PART "T([0-9]+H([0-9]+M([0-9]+S)?)?|[0-9]+M([0-9]+S)?|[0-9]+S)"
#define DAY_PART  "([0-9]+Y([0-9]+M([0-9]+D)?)?|[0-9]+M([0-9]+D)?|[0-9]+D)"
#define DURATION  "P(" DAY_PART "(" TIME_PART ")?|" TIME_PART "|[0-9]+W)"

static const struct {
    const char *name, *regex;
} formats[] = {
    {"date", "^" DATE "$"},
    {"time", "^" TIME "$"},
    {"date-time", "^" DATE "T" TIME "$"},
    {"duration", "^" DURATION "$"},
    {"uuid", "^" UUID "$"},
    {"ipv4", "^" IPV4 "$"},
    {"ipv6", "^" IPV6 "$"},
    {"hostname", "^" HOSTNAME "$"},
    {"email", "^" EMAIL "$"},
    {"uri", "^[a-zA-Z][a-zA-Z0-9+.-]*:" URI_CHAR "+$"},
    {"json-pointer", "^(/([^~/]|~[01])*)*$"},
    /* OpenAPI's names for any text, and for numbers written as text */
    {"binary", ""},
    {"byte", "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"},
    {"password", ""},
};

_Static_assert(sizeof formats / sizeof *formats <= BZ_FORMATS, "a rule for each format");

bool bz_schema_format(schema_reader *r, const bz_json_node *at, bz_str name, bz_str *pattern)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (bz_str_is(name, formats[i].name)) {
            *pattern = (bz_str){formats[i].regex, strlen(formats[i].regex)};
            return true;
        }
    }
    char shown[200];
    return bz_schema_fail(r, at, "the format %s is not supported", bz_str_show(name, shown));
}

/* ---- strings
 * ----------------------------------------------------------------------------------------- */

static bool failed(schema_reader *r, const bz_json_node *at, bz_status status,
                   const bz_error *error)
{
    return status == BZ_OUT_OF_MEMORY ? bz_schema_no_memory(r)
                                      : bz_schema_fail(r, at, "%s", error->text);
}

static bool dfa_of_tree(schema_reader *r, const bz_json_node *at, const bz_tree *t, bool written,
                        bz_dfa *out)
{
    bz_build b = {0};
    bz_error error;
    const bz_tree_out to = {
        .build = &b, .arena = r->arena, .escape = written && !r->rules->native, .regular = true};
    const uint32_t rule = bz_build_rule(&b);
    uint32_t first;
    if (!b.failed) {
        bz_tree_emit(&to, t, b.rules[rule].start, b.rules[rule].end);
    }
    const bz_status status =
        b.failed ? bz_build_status(&b, &error)
                 : bz_dfa_append(out, &b, b.rules[rule].start, b.rules[rule].end, &first, &error);
    bz_build_free(&b);
    return status == BZ_OK || failed(r, at, status, &error);
}

bool bz_schema_pattern_dfa(schema_reader *r, const bz_json_node *at, bz_str pattern, bool written,
                           bz_dfa *out)
{
    const bz_tree *t;
    bz_error error;
    const bz_status status = bz_regex_read(&t, pattern.data, pattern.len, true, r->arena, &error);
    return status == BZ_OK ? dfa_of_tree(r, at, t, written, out) : failed(r, at, status, &error);
}

static bool has_length(const merged *m)
{
    return m->min_length || m->max_length != BZ_NO_LIMIT;
}

static bool length_dfa(schema_reader *r, const merged *m, bz_dfa *out)
{
    const uint32_t most = m->max_length == BZ_NO_LIMIT ? m->min_length : m->max_length;
    if (most > MAX_LENGTH_WITH_PATTERN) {
        return bz_schema_fail(r, m->at,
                              "a pattern or format together with a length above %d is not "
                              "supported",
                              (int)MAX_LENGTH_WITH_PATTERN);
    }
    return dfa_of_tree(r, m->at,
                       bz_tree_repeat(r->arena, bz_tree_chars(r->arena, NULL, 0, true),
                                      m->min_length, m->max_length),
                       true, out);
}

/* Replaces *x by what it has in common with *y, or without `keep` by what *y does not have. */
static bool meet(schema_reader *r, const merged *m, bz_dfa *x, bz_dfa *y)
{
    bz_dfa both = {0};
    bz_error error;
    const bz_status status = bz_dfa_meet(&both, x, y, false, &error);
    bz_dfa_free(x);
    bz_dfa_free(y);
    *x = both;
    return status == BZ_OK || failed(r, m->at, status, &error);
}

bool bz_schema_string_dfa(schema_reader *r, const merged *m, bz_dfa *out)
{
    bool begun = false;
    for (uint32_t i = 0; i <= m->n_patterns; i++) {
        bz_dfa next = {0};
        if (i == m->n_patterns && !has_length(m) && begun) {
            break;
        }
        const bool good = i < m->n_patterns
                              ? bz_schema_pattern_dfa(r, m->at, m->patterns[i], true, &next)
                              : length_dfa(r, m, &next);
        if (!good) {
            bz_dfa_free(&next);
            return false;
        }
        if (!begun) {
            *out = next;
            begun = true;
        } else if (!meet(r, m, out, &next)) {
            return false;
        }
    }
    return true;
}

/* Characters counted by a loop; its rule is the same in all schemas. */
static void add_counted(schema_reader *r, const merged *m, uint32_t from, uint32_t to)
{
    bz_build *b = r->build;
    const bz_tree_out out = {.build = b, .arena = r->arena, .regular = true};
    const uint32_t body = bz_build_rule(b);
    if (b->failed) {
        return;
    }
    b->rules[body].shared = true;
    bz_tree_emit(&out, bz_json_character(r->rules), b->rules[body].start, b->rules[body].end);
    bz_build_call(b, from, to, bz_build_loop(b, body, m->min_length, m->max_length));
}

/* One pattern without lengths: counts in it are counted while it runs. */
static bool add_pattern(schema_reader *r, const merged *m, uint32_t from, uint32_t to)
{
    const bz_tree *t;
    bz_error error;
    const bz_tree_out out = {.build = r->build, .arena = r->arena, .escape = !r->rules->native};
    const bz_status status =
        bz_regex_read(&t, m->patterns[0].data, m->patterns[0].len, true, r->arena, &error);
    if (status != BZ_OK) {
        return failed(r, m->at, status, &error);
    }
    bz_tree_emit(&out, t, from, to);
    return true;
}

/* A string of a format has a rule that is the same in all schemas: counts in it are written out.
 * False: the pattern is not that of a format. */
static bool add_format(schema_reader *r, const merged *m, uint32_t from, uint32_t to)
{
    size_t i = 0;
    bz_build *b = r->build;
    while (i < sizeof formats / sizeof *formats && formats[i].regex != m->patterns[0].data) {
        i++;
    }
    if (i == sizeof formats / sizeof *formats) {
        return false;
    }
    if (!r->format_rule[i]) {
        const uint32_t rule = bz_build_rule(b), begin = bz_build_state(b), end = bz_build_state(b);
        const bz_tree *t;
        const bz_tree_out out = {
            .build = b, .arena = r->arena, .escape = !r->rules->native, .regular = true};
        if (b->failed || bz_regex_read(&t, m->patterns[0].data, m->patterns[0].len, true, r->arena,
                                       NULL) != BZ_OK) {
            return bz_schema_no_memory(r);
        }
        b->rules[rule].shared = true;
        bz_json_add_quote(r->rules, b->rules[rule].start, begin);
        bz_tree_emit(&out, t, begin, end);
        bz_json_add_quote(r->rules, end, b->failed ? end : b->rules[rule].end);
        r->format_rule[i] = rule + 1;
    }
    bz_build_call(b, from, to, r->format_rule[i] - 1);
    return true;
}

void bz_schema_add_string(schema_reader *r, const merged *m, uint32_t from, uint32_t to)
{
    bz_build *b = r->build;
    if (m->min_length > m->max_length) {
        return; /* no text */
    }
    if (!m->n_patterns && !has_length(m)) {
        bz_build_call(b, from, to, bz_json_any_string(r->rules));
        return;
    }
    if (m->n_patterns == 1 && !has_length(m) && add_format(r, m, from, to)) {
        return;
    }
    const uint32_t begin = bz_build_state(b), end = bz_build_state(b);
    bz_json_add_quote(r->rules, from, begin);
    bz_json_add_quote(r->rules, end, to);
    if (!m->n_patterns) {
        if (m->max_length == 0) {
            bz_build_empty(b, begin, end);
        } else {
            add_counted(r, m, begin, end);
        }
    } else if (m->n_patterns == 1 && !has_length(m)) {
        add_pattern(r, m, begin, end);
    } else {
        bz_dfa d = {0};
        if (bz_schema_string_dfa(r, m, &d)) {
            bz_dfa_emit(&d, b, begin, end);
        }
        bz_dfa_free(&d);
    }
}

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

/* Whole numbers that are multiples: states are remainders. */
static void add_multiples(bz_build *b, uint32_t from, uint32_t to, uint64_t of)
{
    const uint32_t digits = bz_build_state(b);
    const uint32_t first = b->n_states;
    for (uint64_t i = 0; i < of && !b->failed; i++) {
        bz_build_state(b);
    }
    bz_build_bytes(b, from, digits, '-', '-');
    bz_build_empty(b, from, digits);
    for (uint32_t d = 0; d < 10 && !b->failed; d++) {
        const uint8_t c = (uint8_t)('0' + d);
        bz_build_bytes(b, digits, first + (uint32_t)(d % of), c, c);
        for (uint32_t i = 0; i < of && !b->failed; i++) {
            bz_build_bytes(b, first + i, first + (uint32_t)((i * 10 + d) % of), c, c);
        }
    }
    bz_build_empty(b, first, to);
}

static bool multiples_in_range(const merged *m, bz_dfa *out, bz_error *error)
{
    bz_build b = {0};
    bz_dfa range = {0}, multiples = {0};
    const uint32_t x = bz_build_rule(&b), y = bz_build_rule(&b);
    uint32_t first;
    if (b.failed) {
        bz_build_free(&b);
        return false;
    }
    add_bounded(&b, m, b.rules[x].start, b.rules[x].end, false);
    add_multiples(&b, b.rules[y].start, b.rules[y].end, m->multiple);
    const bool good =
        !b.failed &&
        bz_dfa_append(&range, &b, b.rules[x].start, b.rules[x].end, &first, error) == BZ_OK &&
        bz_dfa_append(&multiples, &b, b.rules[y].start, b.rules[y].end, &first, error) == BZ_OK &&
        bz_dfa_meet(out, &range, &multiples, false, error) == BZ_OK;
    bz_build_free(&b);
    bz_dfa_free(&range);
    bz_dfa_free(&multiples);
    return good;
}

void bz_schema_add_number(schema_reader *r, const merged *m, uint32_t from, uint32_t to)
{
    bz_build *b = r->build;
    const bool fraction = m->kinds & KIND_FRACTION;
    if (m->multiple > 1) {
        bz_dfa d = {0};
        bz_error error = {.code = BZ_OUT_OF_MEMORY};
        if (multiples_in_range(m, &d, &error)) {
            bz_dfa_emit(&d, b, from, to);
        } else {
            failed(r, m->at, error.code, &error);
        }
        bz_dfa_free(&d);
    } else if (m->low.is_set || m->high.is_set) {
        add_bounded(b, m, from, to, fraction);
    } else {
        bz_build_call(b, from, to,
                      fraction ? bz_json_any_number(r->rules) : bz_json_any_integer(r->rules));
    }
}
