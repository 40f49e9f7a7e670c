/* What the schemas of a list say together. */
#include <math.h>
#include <string.h>

#include "grammar/schema_internal.h"

enum { MAX_MULTIPLE = 1000, MAX_MULTIPLE_DIGITS = 9, MAX_REMAINDERS = 4096 };

static uint32_t kind_named(bz_str name)
{
    static const struct {
        const char *name;
        uint32_t kind;
    } kinds[] = {{"null", KIND_NULL},       {"boolean", KIND_BOOL},
                 {"integer", KIND_INTEGER}, {"number", KIND_NUMBER},
                 {"string", KIND_STRING},   {"array", KIND_ARRAY},
                 {"object", KIND_OBJECT},   {BZ_SCHEMA_FRACTION, KIND_FRACTION}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (bz_str_is(name, kinds[i].name)) {
            return kinds[i].kind;
        }
    }
    return 0;
}

bool bz_schema_kinds(schema_reader *r, const bz_json_node *type, uint32_t *kinds)
{
    *kinds = 0;
    if (bz_json_is(type, BZ_JSON_STRING)) {
        *kinds = kind_named(type->of.text);
    }
    if (bz_json_is(type, BZ_JSON_ARRAY)) {
        for (const bz_json_node *item = type->of.first; item; item = item->next) {
            const uint32_t kind = kind_named(bz_json_string(item));
            if (!kind) {
                return bz_schema_fail(r, item, "an unknown type");
            }
            *kinds |= kind;
        }
    }
    return *kinds || bz_schema_fail(r, type, "an unknown type");
}

static bool merge_type(schema_reader *r, const bz_json_node *type, merged *m)
{
    uint32_t kinds;
    const bool good = bz_schema_kinds(r, type, &kinds);
    m->kinds &= kinds;
    return good;
}

bool bz_schema_count(schema_reader *r, const bz_json_node *node, const char *key, uint32_t *out)
{
    const bz_json_node *item = bz_json_get(node, key);
    double value;
    if (!item) {
        return true;
    }
    if (!bz_json_to_double(item, &value) || value < 0 || value != floor(value)) {
        return bz_schema_fail(r, item, "%s is a whole number from 0 on", key);
    }
    *out = value >= (double)BZ_NO_LIMIT ? BZ_NO_LIMIT : (uint32_t)value;
    return true;
}

static bool merge_counts(schema_reader *r, const bz_json_node *node, const char *min_key,
                         const char *max_key, uint32_t *min, uint32_t *max)
{
    uint32_t low = 0, high = BZ_NO_LIMIT;
    if (!bz_schema_count(r, node, min_key, &low) || !bz_schema_count(r, node, max_key, &high)) {
        return false;
    }
    *min = low > *min ? low : *min;
    *max = high < *max ? high : *max;
    return true;
}

static bool merge_bound(schema_reader *r, const bz_json_node *node, const char *key, bool exclusive,
                        bool low, decimal *bound)
{
    const bz_json_node *item = bz_json_get(node, key);
    if (!item || item->kind == BZ_JSON_TRUE || item->kind == BZ_JSON_FALSE) {
        return true; /* draft 4: true belongs to the other keyword */
    }
    decimal d;
    if (!bz_json_is(item, BZ_JSON_NUMBER) || !bz_decimal_read(item->of.text, r->arena, &d)) {
        return bz_schema_fail(r, item, "%s is a number of at most 400 digits", key);
    }
    d.exclusive = exclusive;
    const int order = bound->is_set ? bz_decimal_compare(&d, bound) : 0;
    if (!bound->is_set || (low ? order > 0 : order < 0)) {
        *bound = d;
    } else if (order == 0) {
        bound->exclusive |= exclusive;
    }
    return true;
}

/* The least multiple of both: of / 10^digits. False: too large. */
static bool join_multiples(merged *m, uint64_t of, uint32_t digits)
{
    const bool was = m->multiple > 0;
    uint64_t a = was ? m->multiple : of, b = of;
    for (uint32_t k = m->multiple_digits; was && k < digits; k++) {
        a *= 10;
    }
    for (uint32_t k = digits; was && k < m->multiple_digits; k++) {
        b *= 10;
    }
    m->multiple_digits = m->multiple_digits > digits ? m->multiple_digits : digits;
    uint64_t p = a, q = b;
    while (q) {
        const uint64_t rest = p % q;
        p = q;
        q = rest;
    }
    if (a / p > UINT64_MAX / b) {
        return false;
    }
    m->multiple = a / p * b;
    while (m->multiple_digits && m->multiple % 10 == 0) {
        m->multiple /= 10;
        m->multiple_digits--;
    }
    return m->multiple <= MAX_MULTIPLE && m->multiple * (m->multiple_digits + 2) <= MAX_REMAINDERS;
}

static bool merge_multiple(schema_reader *r, const bz_json_node *x, merged *m)
{
    decimal d;
    if (!bz_json_is(x, BZ_JSON_NUMBER) || !bz_decimal_read(x->of.text, r->arena, &d) ||
        d.negative || (!d.whole.len && !d.fraction.len)) {
        return bz_schema_fail(r, x, "multipleOf is a number above 0");
    }
    uint64_t of = 0;
    bool fits = d.whole.len <= 4 && d.fraction.len <= MAX_MULTIPLE_DIGITS;
    for (size_t i = 0; fits && i < d.whole.len + d.fraction.len; i++) {
        const size_t k = i - d.whole.len;
        of = of * 10 + (uint64_t)((i < d.whole.len ? d.whole.data[i] : d.fraction.data[k]) - '0');
        fits = of <= MAX_MULTIPLE;
    }
    if (!fits || !join_multiples(m, of, (uint32_t)d.fraction.len)) {
        return bz_schema_fail(r, x,
                              "multipleOf is supported for 1 to %d, and these as digits after "
                              "the point, at most %d",
                              (int)MAX_MULTIPLE, (int)MAX_MULTIPLE_DIGITS);
    }
    m->kinds &= m->multiple_digits ? ~0u : ~(uint32_t)KIND_FRACTION;
    return true;
}

static bool merge_numbers(schema_reader *r, const bz_json_node *node, merged *m)
{
    const bool low4 = bz_json_is(bz_json_get(node, "exclusiveMinimum"), BZ_JSON_TRUE),
               high4 = bz_json_is(bz_json_get(node, "exclusiveMaximum"), BZ_JSON_TRUE);
    const bz_json_node *multiple = bz_json_get(node, "multipleOf");
    return (!multiple || merge_multiple(r, multiple, m)) &&
           merge_bound(r, node, "minimum", low4, true, &m->low) &&
           merge_bound(r, node, "exclusiveMinimum", true, true, &m->low) &&
           merge_bound(r, node, "maximum", high4, false, &m->high) &&
           merge_bound(r, node, "exclusiveMaximum", true, false, &m->high);
}

static bool add_pattern(schema_reader *r, bz_str **patterns, uint32_t *n, bz_str pattern)
{
    for (uint32_t i = 0; i < *n; i++) {
        if ((*patterns)[i].len == pattern.len &&
            memcmp((*patterns)[i].data, pattern.data, pattern.len) == 0) {
            return true;
        }
    }
    bz_str *all = bz_arena_array(r->arena, *n + (size_t)1, sizeof *all);
    if (!all) {
        return bz_schema_no_memory(r);
    }
    if (*n) {
        memcpy(all, *patterns, *n * sizeof *all);
    }
    all[(*n)++] = pattern;
    *patterns = all;
    return true;
}

static bool merge_strings(schema_reader *r, const bz_json_node *node, merged *m)
{
    const bz_json_node *pattern = bz_json_get(node, "pattern"),
                       *format = bz_json_get(node, "format"),
                       *other = bz_json_get(node, BZ_SCHEMA_NOT_PATTERN);
    if (bz_json_is(other, BZ_JSON_STRING) &&
        !add_pattern(r, &m->not_patterns, &m->n_not_patterns, other->of.text)) {
        return false;
    }
    if (pattern) {
        if (!bz_json_is(pattern, BZ_JSON_STRING)) {
            return bz_schema_fail(r, pattern, "pattern is a text");
        }
        bz_dfa d = {0}; /* reports what is wrong with it where it is written */
        const bool good = m->kinds & KIND_STRING
                              ? bz_schema_pattern_dfa(r, pattern, pattern->of.text, true, &d)
                              : true;
        bz_dfa_free(&d);
        if (!good || !add_pattern(r, &m->patterns, &m->n_patterns, pattern->of.text)) {
            return false;
        }
    }
    if (bz_json_is(format, BZ_JSON_STRING) && m->kinds & KIND_STRING) {
        bz_str regex = {0};
        if (!bz_schema_format(r, format, format->of.text, &regex) ||
            (regex.len && !add_pattern(r, &m->patterns, &m->n_patterns, regex))) {
            return false;
        }
    }
    return merge_counts(r, node, "minLength", "maxLength", &m->min_length, &m->max_length);
}

/* The values of an enum or const so far that are in the list, too. */
static bool merge_values(schema_reader *r, const bz_json_node *list, const bz_json_node *single,
                         merged *m)
{
    const uint32_t n = single ? 1 : list->n;
    const bz_json_node **kept = bz_arena_array(r->arena, n + (size_t)1, sizeof *kept);
    uint32_t n_kept = 0;
    if (!kept) {
        return bz_schema_no_memory(r);
    }
    for (const bz_json_node *x = single ? single : list->of.first; x; x = single ? NULL : x->next) {
        bool in = !m->has_values;
        for (uint32_t i = 0; i < m->n_values && !in; i++) {
            in = bz_json_same(m->values[i], x);
        }
        if (in) {
            kept[n_kept++] = x;
        }
    }
    m->has_values = true;
    m->values = kept;
    m->n_values = n_kept;
    return true;
}

static bool merge_part(schema_reader *r, const bz_json_node *node, merged *m)
{
    const bz_json_node *type = bz_json_get(node, "type"), *list = bz_json_get(node, "enum"),
                       *single = bz_json_get(node, "const");
    if (type && !merge_type(r, type, m)) {
        return false;
    }
    if (list && (!bz_json_is(list, BZ_JSON_ARRAY) || list->n == 0)) {
        return bz_schema_fail(r, list, "enum is a list of values");
    }
    return (!list || merge_values(r, list, NULL, m)) &&
           (!single || merge_values(r, NULL, single, m)) && merge_numbers(r, node, m) &&
           merge_strings(r, node, m) &&
           merge_counts(r, node, "minItems", "maxItems", &m->min_items, &m->max_items) &&
           merge_counts(r, node, "minProperties", "maxProperties", &m->min_members,
                        &m->max_members);
}

bool bz_all_merge(schema_reader *r, all_of all, merged *m)
{
    *m = (merged){.at = all.n ? all.parts[0].node : r->root,
                  .kinds = KIND_ANY,
                  .max_length = BZ_NO_LIMIT,
                  .max_items = BZ_NO_LIMIT,
                  .max_members = BZ_NO_LIMIT};
    m->never = bz_all_never(all);
    /* types first: keywords of other types are not looked at */
    for (uint32_t i = 0; i < all.n && !m->never; i++) {
        const bz_json_node *type = bz_json_get(all.parts[i].node, "type");
        if (type && !merge_type(r, type, m)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < all.n && !m->never; i++) {
        if (!merge_part(r, all.parts[i].node, m)) {
            return false;
        }
    }
    if (m->has_values && !m->never) { /* those that fit everything else */
        uint32_t kept = 0;
        for (uint32_t i = 0; i < m->n_values; i++) {
            const bz_json_node *value = m->values[i];
            if (bz_schema_fits(r, all, value)) {
                m->values[kept++] = value;
            }
        }
        m->n_values = kept;
        m->never = kept == 0;
    }
    m->never |= m->kinds == 0;
    return r->status == BZ_OK;
}

/* The kinds that types and values alone leave. */
static uint32_t kinds_left(schema_reader *r, all_of all)
{
    merged m = {.kinds = KIND_ANY};
    bool values = false;
    for (uint32_t i = 0; i < all.n; i++) {
        const bz_json_node *node = all.parts[i].node, *type = bz_json_get(node, "type");
        if (type && !merge_type(r, type, &m)) {
            return 0; /* with an error */
        }
        values |= bz_json_get(node, "const") || bz_json_get(node, "enum");
    }
    if (bz_all_never(all) || (values && (!bz_all_merge(r, all, &m) || m.never))) {
        return 0;
    }
    return m.kinds;
}

bool bz_all_hopeless(schema_reader *r, all_of all)
{
    const uint32_t kinds = kinds_left(r, all);
    if (kinds == 0) {
        return true;
    }
    for (uint32_t i = 0; kinds == KIND_OBJECT && i < all.n; i++) {
        const bz_json_node *list = bz_json_get(all.parts[i].node, "required");
        for (const bz_json_node *x = bz_json_first(list); x; x = x->next) {
            const all_of before = {all.parts, i}; /* which have been looked at */
            all_of of;
            if (x->kind == BZ_JSON_STRING && !bz_all_requires(before, x->of.text) &&
                (!bz_all_member(r, all, x->of.text, &of) || !kinds_left(r, of))) {
                return true;
            }
        }
    }
    return r->status != BZ_OK;
}
