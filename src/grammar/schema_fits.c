/* Values against schemas, and whether two schemas have a value in common. */
#include <string.h>

#include "base/utf8.h"
#include "grammar/schema_internal.h"

enum { MAX_DEPTH = 64, MAX_APART = 8 };

static bool same_text(bz_str x, bz_str y)
{
    return x.len == y.len && memcmp(x.data, y.data, x.len) == 0;
}

static const bz_json_node *member(const bz_json_node *object, bz_str key)
{
    const bz_json_node *x = bz_json_first(object);
    while (x && !same_text(x->key, key)) {
        x = x->next;
    }
    return x;
}

bool bz_json_same(const bz_json_node *x, const bz_json_node *y)
{
    double p, q;
    if (x->kind != y->kind) {
        return false;
    }
    switch ((bz_json_kind)x->kind) {
    case BZ_JSON_NUMBER:
        return same_text(x->of.text, y->of.text) ||
               (bz_json_to_double(x, &p) && bz_json_to_double(y, &q) && p == q);
    case BZ_JSON_STRING: return same_text(x->of.text, y->of.text);
    case BZ_JSON_ARRAY:
    case BZ_JSON_OBJECT: break;
    default: return true;
    }
    if (x->n != y->n) {
        return false;
    }
    const bz_json_node *b = y->of.first;
    for (const bz_json_node *a = x->of.first; a; a = a->next) {
        const bz_json_node *other = x->kind == BZ_JSON_OBJECT ? member(y, a->key) : b;
        if (!other || !bz_json_same(a, other)) {
            return false;
        }
        b = b->next;
    }
    return true;
}

static uint32_t kind_of(const bz_json_node *value, decimal *number, bz_arena *arena)
{
    switch ((bz_json_kind)value->kind) {
    case BZ_JSON_NULL: return KIND_NULL;
    case BZ_JSON_FALSE:
    case BZ_JSON_TRUE: return KIND_BOOL;
    case BZ_JSON_STRING: return KIND_STRING;
    case BZ_JSON_ARRAY: return KIND_ARRAY;
    case BZ_JSON_OBJECT: return KIND_OBJECT;
    case BZ_JSON_NUMBER: break;
    }
    return bz_decimal_read(value->of.text, arena, number) && number->fraction.len == 0
               ? KIND_INTEGER
               : KIND_FRACTION;
}

static bool fits_number(schema_reader *r, const merged *m, const bz_json_node *value,
                        const decimal *d)
{
    if (m->multiple) {
        uint64_t rest = 0;
        for (size_t i = 0; i < d->whole.len + m->multiple_digits; i++) {
            const size_t k = i - d->whole.len;
            const char c = i < d->whole.len      ? d->whole.data[i]
                           : k < d->fraction.len ? d->fraction.data[k]
                                                 : '0';
            rest = (rest * 10 + (uint64_t)(c - '0')) % m->multiple;
        }
        if (rest || d->fraction.len > m->multiple_digits) {
            return false;
        }
    }
    if (!d->is_set) {
        return !m->low.is_set && !m->high.is_set;
    }
    const int low = m->low.is_set ? bz_decimal_compare(d, &m->low) : 1,
              high = m->high.is_set ? bz_decimal_compare(d, &m->high) : -1;
    (void)r;
    (void)value;
    return (low > 0 || (low == 0 && !m->low.exclusive)) &&
           (high < 0 || (high == 0 && !m->high.exclusive));
}

static bool fits_string(schema_reader *r, const merged *m, const bz_json_node *value)
{
    const bz_str s = value->of.text;
    uint32_t n = 0, c;
    for (size_t i = 0; i < s.len; n++) {
        i += bz_utf8_decode(s.data + i, s.len - i, &c);
    }
    bool fits = n >= m->min_length && n <= m->max_length;
    for (uint32_t i = 0; i < m->n_patterns + m->n_not_patterns && fits; i++) {
        bz_dfa d = {0};
        const bool matches = i < m->n_patterns;
        const bz_str pattern = matches ? m->patterns[i] : m->not_patterns[i - m->n_patterns];
        fits = bz_schema_pattern_dfa(r, m->at, pattern, false, &d) &&
               bz_dfa_accepts(&d, s.data, s.len) == matches;
        bz_dfa_free(&d);
    }
    return fits;
}

static bool fits_members(schema_reader *r, all_of all, const merged *m, const bz_json_node *value)
{
    if (value->n < m->min_members || value->n > m->max_members) {
        return false;
    }
    for (uint32_t i = 0; i < all.n; i++) {
        const bz_json_node *list = bz_json_get(all.parts[i].node, "required");
        for (const bz_json_node *x = bz_json_first(list); x; x = x->next) {
            if (!member(value, bz_json_string(x))) {
                return false;
            }
        }
    }
    for (const bz_json_node *x = value->of.first; x; x = x->next) {
        all_of of;
        if (!bz_all_member(r, all, x->key, &of) || !bz_schema_fits(r, of, x)) {
            return false;
        }
    }
    return true;
}

static bool fits_unique(const bz_json_node *node, const bz_json_node *value)
{
    if (!bz_json_is(bz_json_get(node, "uniqueItems"), BZ_JSON_TRUE)) {
        return true;
    }
    for (const bz_json_node *x = value->of.first; x; x = x->next) {
        for (const bz_json_node *y = x->next; y; y = y->next) {
            if (bz_json_same(x, y)) {
                return false;
            }
        }
    }
    return true;
}

static bool fits_contains(schema_reader *r, const bz_json_node *node, const bz_json_node *value)
{
    const bz_json_node *some = bz_json_get(node, "contains");
    uint32_t least = 1, most = BZ_NO_LIMIT, n = 0;
    all_of all = {0};
    if (!some) {
        return true;
    }
    if (!bz_schema_count(r, node, "minContains", &least) ||
        !bz_schema_count(r, node, "maxContains", &most) || !bz_all_add(r, &all, some, 0)) {
        return false;
    }
    for (const bz_json_node *x = value->of.first; x; x = x->next) {
        n += bz_schema_fits(r, all, x);
    }
    return n >= least && n <= most;
}

static bool fits_items(schema_reader *r, all_of all, const merged *m, const bz_json_node *value)
{
    for (uint32_t i = 0; i < all.n; i++) {
        if (!fits_unique(all.parts[i].node, value) || !fits_contains(r, all.parts[i].node, value)) {
            return false;
        }
    }
    uint32_t i = 0;
    bool fits = value->n >= m->min_items && value->n <= m->max_items;
    for (const bz_json_node *x = value->of.first; x && fits; x = x->next, i++) {
        all_of of;
        fits = bz_all_item(r, all, i, &of) && bz_schema_fits(r, of, x);
    }
    return fits;
}

/* Without the enums, which the caller has looked at. */
static bool fits_merged(schema_reader *r, all_of all, const bz_json_node *value)
{
    merged m;
    decimal number = {0};
    all_of plain = {0};
    schema_part *parts = bz_arena_array(r->arena, all.n + (size_t)1, sizeof *parts);
    if (!parts) {
        return bz_schema_no_memory(r);
    }
    for (uint32_t i = 0; i < all.n; i++) {
        const bz_json_node *node = all.parts[i].node, *list = bz_json_get(node, "enum"),
                           *single = bz_json_get(node, "const");
        bool in = !list;
        for (const bz_json_node *x = bz_json_first(list); x && !in; x = x->next) {
            in = bz_json_same(x, value);
        }
        if (!in || (single && !bz_json_same(single, value))) {
            return false;
        }
        if (!list && !single) {
            parts[plain.n++] = all.parts[i];
            continue;
        }
        /* the same schema without its list of values */
        bz_json_node *copy = bz_arena_alloc(r->arena, sizeof *copy);
        if (!copy) {
            return bz_schema_no_memory(r);
        }
        *copy = (bz_json_node){.kind = BZ_JSON_OBJECT};
        const bz_json_node **end = &copy->of.first;
        for (const bz_json_node *x = node->of.first; x; x = x->next) {
            if (bz_str_is(x->key, "enum") || bz_str_is(x->key, "const")) {
                continue;
            }
            bz_json_node *item = bz_arena_alloc(r->arena, sizeof *item);
            if (!item) {
                return bz_schema_no_memory(r);
            }
            *item = *x;
            item->next = NULL;
            *end = item;
            end = (const bz_json_node **)&item->next;
            copy->n++;
        }
        parts[plain.n] = all.parts[i];
        parts[plain.n++].node = copy;
    }
    plain.parts = parts;
    if (!bz_all_merge(r, plain, &m) || m.never) {
        return false;
    }
    const uint32_t kind = kind_of(value, &number, r->arena);
    if (!(m.kinds & kind)) {
        return false;
    }
    return kind & KIND_NUMBER    ? fits_number(r, &m, value, &number)
           : kind == KIND_STRING ? fits_string(r, &m, value)
           : kind == KIND_OBJECT ? fits_members(r, plain, &m, value)
           : kind == KIND_ARRAY  ? fits_items(r, plain, &m, value)
                                 : true;
}

bool bz_schema_fits(schema_reader *r, all_of all, const bz_json_node *value)
{
    all_of *ways;
    uint32_t n, fitting = 0;
    const bz_json_node *exclusive;
    if (r->fits_depth >= MAX_DEPTH || !bz_schema_work(r, all.n ? all.parts[0].node : NULL)) {
        return bz_schema_fail(r, all.n ? all.parts[0].node : NULL,
                              "schemas refer to each other too deeply");
    }
    r->fits_depth++;
    bool fits = bz_all_alternatives(r, all, &ways, &n, &exclusive);
    if (fits && n == 0) {
        fits = fits_merged(r, all, value);
    } else if (fits) {
        for (uint32_t i = 0; i < n; i++) {
            fitting += bz_schema_fits(r, ways[i], value);
            if (fitting > (exclusive ? 1 : 0)) {
                break;
            }
        }
        fits = exclusive ? fitting == 1 : fitting > 0;
    }
    r->fits_depth--;
    return fits && r->status == BZ_OK;
}

/* ---- nothing in common
 * -------------------------------------------------------------------------------- */

static bool values_apart(schema_reader *r, const merged *m, all_of other)
{
    for (uint32_t i = 0; i < m->n_values; i++) {
        if (bz_schema_fits(r, other, m->values[i])) {
            return false;
        }
    }
    return true;
}

static bool strings_apart(schema_reader *r, const merged *x, const merged *y)
{
    bz_dfa a = {0}, b = {0}, both = {0};
    if (x->max_length < y->min_length || y->max_length < x->min_length) {
        return true;
    }
    if (x->n_patterns + x->n_not_patterns == 0 || y->n_patterns + y->n_not_patterns == 0) {
        return false;
    }
    const bool apart = bz_schema_string_dfa(r, x, &a) && bz_schema_string_dfa(r, y, &b) &&
                       bz_dfa_meet(&both, &a, &b, false, NULL) == BZ_OK && !bz_dfa_has_text(&both);
    bz_dfa_free(&a);
    bz_dfa_free(&b);
    bz_dfa_free(&both);
    return apart;
}

static bool below(const decimal *high, const decimal *low)
{
    if (!high->is_set || !low->is_set) {
        return false;
    }
    const int order = bz_decimal_compare(high, low);
    return order < 0 || (order == 0 && (high->exclusive || low->exclusive));
}

/* A member that x requires, which has no value in both. */
static bool members_apart(schema_reader *r, all_of x, all_of y)
{
    for (uint32_t i = 0; i < x.n; i++) {
        const bz_json_node *list = bz_json_get(x.parts[i].node, "required");
        for (const bz_json_node *name = bz_json_first(list); name; name = name->next) {
            all_of a, b;
            if (name->kind == BZ_JSON_STRING && bz_all_member(r, x, name->of.text, &a) &&
                bz_all_member(r, y, name->of.text, &b) && bz_schema_apart(r, a, b)) {
                return true;
            }
        }
    }
    return false;
}

static bool items_apart(schema_reader *r, all_of x, all_of y, const merged *p, const merged *q)
{
    if (p->max_items < q->min_items || q->max_items < p->min_items) {
        return true;
    }
    const uint32_t n = p->min_items > q->min_items ? p->min_items : q->min_items;
    for (uint32_t i = 0; i < n && i < 8; i++) {
        all_of a, b;
        if (bz_all_item(r, x, i, &a) && bz_all_item(r, y, i, &b) && bz_schema_apart(r, a, b)) {
            return true;
        }
    }
    return false;
}

static bool merged_apart(schema_reader *r, all_of x, all_of y)
{
    merged p, q;
    if (!bz_all_merge(r, x, &p) || !bz_all_merge(r, y, &q)) {
        return false;
    }
    if (p.never || q.never || (p.has_values && values_apart(r, &p, y)) ||
        (q.has_values && values_apart(r, &q, x))) {
        return true;
    }
    const uint32_t kinds = p.kinds & q.kinds;
    if (p.has_values || q.has_values || kinds & (KIND_NULL | KIND_BOOL)) {
        return false;
    }
    return (!(kinds & KIND_NUMBER) || below(&p.high, &q.low) || below(&q.high, &p.low)) &&
           (!(kinds & KIND_STRING) || strings_apart(r, &p, &q)) &&
           (!(kinds & KIND_ARRAY) || items_apart(r, x, y, &p, &q)) &&
           (!(kinds & KIND_OBJECT) || members_apart(r, x, y) || members_apart(r, y, x));
}

bool bz_schema_apart(schema_reader *r, all_of x, all_of y)
{
    all_of *ways;
    uint32_t n;
    const bz_json_node *exclusive;
    if (r->fits_depth >= MAX_APART || !bz_schema_work(r, x.n ? x.parts[0].node : NULL)) {
        return false;
    }
    r->fits_depth++;
    bool apart = true;
    for (int side = 0; side < 2; side++) {
        if (!bz_all_alternatives(r, side ? y : x, &ways, &n, &exclusive)) {
            apart = false;
        } else if (n) {
            for (uint32_t i = 0; i < n && apart; i++) {
                apart = bz_schema_apart(r, ways[i], side ? x : y);
            }
            break;
        } else if (side) {
            apart = merged_apart(r, x, y);
        }
        if (!apart) {
            break;
        }
    }
    r->fits_depth--;
    return apart && r->status == BZ_OK;
}
