/* Arrays of a schema. */
#include "grammar/schema_internal.h"

enum {
    MAX_COUNTED = 64,   /* items, or values of them */
    MAX_STATES = 4096,  /* of counts */
    MAX_ANY_ORDER = 10, /* values; more are written in the order of their list */
};

/* Items after others, all alike: at least `min` more, at most `max`. */
static void add_rest(schema_reader *r, uint32_t item, uint32_t from, uint32_t to, uint32_t min,
                     uint32_t max)
{
    bz_build *b = r->build;
    if (max == 0) {
        bz_build_empty(b, from, to);
        return;
    }
    const bool counted = min > 1 || (max != BZ_NO_LIMIT && max > 1);
    const uint32_t body = counted ? bz_build_rule(b) : 0;
    if (b->failed) {
        return;
    }
    /* ", item" */
    const uint32_t begin = counted ? b->rules[body].start : bz_build_state(b),
                   end = counted ? b->rules[body].end : bz_build_state(b),
                   comma = bz_build_state(b);
    bz_build_bytes(b, begin, comma, ',', ',');
    bz_build_call(b, bz_json_add_space(r->rules, comma), end, item);
    if (counted) {
        bz_build_call(b, from, to, bz_build_loop(b, body, min, max));
        return;
    }
    bz_build_empty(b, from, begin);
    bz_build_empty(b, end, to);
    if (min == 0) {
        bz_build_empty(b, from, to);
    }
    if (max == BZ_NO_LIMIT) {
        bz_build_empty(b, end, begin);
    }
}

/* ---- items that are counted, or different
 * --------------------------------------------------------------- */

/* The state after the comma before item i. */
static uint32_t after_comma(schema_reader *r, uint32_t from, uint32_t i)
{
    if (i == 0) {
        return from;
    }
    const uint32_t comma = bz_build_state(r->build);
    bz_build_bytes(r->build, from, comma, ',', ',');
    return bz_json_add_space(r->rules, comma);
}

/* An array may end after i items; an empty one has no blank before its end. */
static void add_end(schema_reader *r, uint32_t from, uint32_t close, uint32_t i)
{
    bz_build_empty(r->build, i ? bz_json_add_space(r->rules, from) : from, close);
}

/* Which items must occur, and how often. */
typedef struct wanted_items {
    const bz_json_node *schema; /* NULL: none */
    uint32_t least, most;
    uint32_t cap; /* they are counted up to this */
} wanted_items;

static bool find_wanted(schema_reader *r, all_of all, wanted_items *w)
{
    for (uint32_t i = 0; i < all.n; i++) {
        const bz_json_node *node = all.parts[i].node, *some = bz_json_get(node, "contains");
        uint32_t least = 1, most = BZ_NO_LIMIT;
        if (!some) {
            continue;
        }
        if (!bz_schema_count(r, node, "minContains", &least) ||
            !bz_schema_count(r, node, "maxContains", &most)) {
            return false;
        }
        if (least == 0 && most == BZ_NO_LIMIT) {
            continue;
        }
        if (w->schema) {
            return bz_schema_fail(r, some, "contains is supported once for an array only");
        }
        *w = (wanted_items){some, least, most, most == BZ_NO_LIMIT ? least : most};
    }
    for (uint32_t i = 0; w->schema && i < all.n; i++) {
        const bz_json_node *rest = bz_json_get(all.parts[i].node, "unevaluatedItems");
        if (rest && rest->kind != BZ_JSON_TRUE) {
            return bz_schema_fail(r, rest, "unevaluatedItems is not supported beside contains");
        }
    }
    return true;
}

/* Item i when c of those before it were wanted: this one is not, or is. */
static void add_wanted_item(schema_reader *r, all_of item, const wanted_items *w, uint32_t begin,
                            const uint32_t *next, uint32_t c)
{
    for (uint32_t is = 0; is < 2 && r->status == BZ_OK; is++) {
        all_of list = item;
        const bool limited = w->most != BZ_NO_LIMIT;
        const bool good = is        ? c < w->cap && bz_all_add(r, &list, w->schema, 0)
                          : limited ? bz_all_add_not(r, &list, w->schema)
                                    : true;
        if (good && !bz_all_never(list)) {
            bz_build_call(r->build, begin, next[c + is], bz_schema_rule_of(r, list));
        }
    }
}

/* States by how many items were written and how many of them are wanted: [length + 1][cap + 1].
 * Without a greatest number of items the last row is repeated. */
static void add_wanted(schema_reader *r, all_of all, const merged *m, const wanted_items *w,
                       uint32_t from, uint32_t close)
{
    const uint32_t listed = bz_all_listed_items(all), width = w->cap + 1;
    const bool endless = m->max_items == BZ_NO_LIMIT;
    uint32_t length = endless ? (listed > m->min_items ? listed : m->min_items) : m->max_items;
    length += endless && length == 0;
    if (length > MAX_COUNTED || (length + (uint64_t)1) * width > MAX_STATES) {
        bz_schema_fail(r, w->schema,
                       "contains is supported for counts of up to %d items, and not together with "
                       "more than %d",
                       (int)MAX_COUNTED, (int)MAX_COUNTED);
        return;
    }
    uint32_t *state = bz_arena_array(r->arena, (length + (size_t)1) * width, sizeof *state);
    if (!state) {
        bz_schema_no_memory(r);
        return;
    }
    for (uint32_t i = 0; i < (length + 1) * width; i++) {
        state[i] = i ? bz_build_state(r->build) : from;
    }
    for (uint32_t i = 0; i <= length && r->status == BZ_OK && !r->build->failed; i++) {
        all_of item;
        if (!bz_all_item(r, all, i < listed ? i : UINT32_MAX, &item)) {
            return;
        }
        for (uint32_t c = 0; c < width && (c <= i || (endless && i == length)); c++) {
            const uint32_t at = state[i * width + c];
            if (i >= m->min_items && c >= w->least) {
                add_end(r, at, close, i);
            }
            if (i < length || endless) {
                const uint32_t next = i < length ? i + 1 : i;
                add_wanted_item(r, item, w, after_comma(r, at, i), state + next * width, c);
            }
        }
    }
}

/* The values that items may have, each once. */
typedef struct item_values {
    const bz_json_node *at; /* for messages */
    all_of item;
    const bz_json_node *value[MAX_COUNTED];
    uint32_t rule[MAX_COUNTED];
    uint32_t n;
} item_values;

static bool add_value(schema_reader *r, item_values *v, const bz_json_node *value)
{
    for (uint32_t i = 0; i < v->n; i++) {
        if (bz_json_same(v->value[i], value)) {
            return true;
        }
    }
    if (!bz_schema_fits(r, v->item, value)) { /* of a oneOf, it may fit another item, too */
        return r->status == BZ_OK;
    }
    if (v->n == MAX_COUNTED) {
        return bz_schema_fail(r, v->at, "uniqueItems is supported for at most %d values",
                              (int)MAX_COUNTED);
    }
    v->value[v->n] = value;
    v->rule[v->n] = bz_build_rule(r->build);
    if (!r->build->failed) {
        const bz_rule *rule = &r->build->rules[v->rule[v->n]];
        bz_json_add_literal(r->rules, rule->start, rule->end, value);
    }
    v->n++;
    return !r->build->failed;
}

static bool add_kind(schema_reader *r, item_values *v, bz_json_kind kind)
{
    bz_json_node *node = bz_arena_alloc(r->arena, sizeof *node);
    if (!node) {
        return bz_schema_no_memory(r);
    }
    *node = (bz_json_node){.kind = (uint8_t)kind};
    return add_value(r, v, node);
}

static bool list_values(schema_reader *r, item_values *v, all_of all)
{
    all_of *ways;
    uint32_t n;
    const bz_json_node *exclusive;
    merged m;
    if (!bz_all_alternatives(r, all, &ways, &n, &exclusive)) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!bz_schema_work(r, v->at) || !list_values(r, v, ways[i])) {
            return false;
        }
    }
    if (n || !bz_all_merge(r, all, &m) || m.never) {
        return r->status == BZ_OK;
    }
    for (uint32_t i = 0; i < (m.has_values ? m.n_values : 0); i++) {
        if (!add_value(r, v, m.values[i])) {
            return false;
        }
    }
    if (m.has_values) {
        return true;
    }
    if (m.kinds & ~(uint32_t)(KIND_NULL | KIND_BOOL)) {
        return bz_schema_fail(r, v->at,
                              "uniqueItems is supported for items of an enum or const only");
    }
    return (!(m.kinds & KIND_NULL) || add_kind(r, v, BZ_JSON_NULL)) &&
           (!(m.kinds & KIND_BOOL) ||
            (add_kind(r, v, BZ_JSON_TRUE) && add_kind(r, v, BZ_JSON_FALSE)));
}

/* A state for every set of values that were written. */
static void add_any_order(schema_reader *r, const item_values *v, const merged *m, uint32_t from,
                          uint32_t close)
{
    uint32_t state[1u << MAX_ANY_ORDER];
    for (uint32_t set = 0; set < 1u << v->n; set++) {
        state[set] = set ? bz_build_state(r->build) : from;
    }
    for (uint32_t set = 0; set < 1u << v->n && !r->build->failed; set++) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < v->n; i++) {
            count += set >> i & 1;
        }
        if (count >= m->min_items && count <= m->max_items) {
            add_end(r, state[set], close, count);
        }
        if (count >= m->max_items || count == v->n) {
            continue;
        }
        const uint32_t begin = after_comma(r, state[set], count);
        for (uint32_t i = 0; i < v->n; i++) {
            if (!(set >> i & 1)) {
                bz_build_call(r->build, begin, state[set | 1u << i], v->rule[i]);
            }
        }
    }
}

/* States by the next value and how many were written: [n + 1][cap + 1]. */
static void add_in_order(schema_reader *r, const item_values *v, const merged *m, uint32_t from,
                         uint32_t close)
{
    const uint32_t most = m->max_items < v->n ? m->max_items : 0,
                   least = m->min_items > 1 ? m->min_items : 1, cap = most > least ? most : least,
                   width = cap + 1;
    uint32_t *state = bz_arena_array(r->arena, (v->n + (size_t)1) * width, sizeof *state);
    if (!state) {
        bz_schema_no_memory(r);
        return;
    }
    for (uint32_t i = 0; i < (v->n + 1) * width; i++) {
        state[i] = i ? bz_build_state(r->build) : from;
    }
    for (uint32_t i = 0; i <= v->n && !r->build->failed; i++) {
        for (uint32_t c = 0; c < width; c++) {
            const uint32_t at = state[i * width + c], next = c < cap ? c + 1 : cap;
            if (i == v->n) {
                if (c >= m->min_items && c <= m->max_items) {
                    add_end(r, at, close, c);
                }
                continue;
            }
            bz_build_empty(r->build, at, state[(i + 1) * width + c]);
            if (c < m->max_items) {
                bz_build_call(r->build, after_comma(r, at, c), state[(i + 1) * width + next],
                              v->rule[i]);
            }
        }
    }
}

static void add_unique(schema_reader *r, all_of all, const merged *m, const bz_json_node *at,
                       uint32_t from, uint32_t close)
{
    item_values v = {.at = at};
    if (bz_all_listed_items(all)) {
        bz_schema_fail(r, at, "uniqueItems is not supported beside prefixItems");
        return;
    }
    if (!bz_all_item(r, all, UINT32_MAX, &v.item) || !list_values(r, &v, v.item) ||
        m->min_items > v.n) {
        return;
    }
    (v.n <= MAX_ANY_ORDER ? add_any_order : add_in_order)(r, &v, m, from, close);
}

static const bz_json_node *find_unique(all_of all, const merged *m)
{
    const bz_json_node *found = NULL;
    for (uint32_t i = 0; m->max_items > 1 && i < all.n; i++) {
        const bz_json_node *x = bz_json_get(all.parts[i].node, "uniqueItems");
        found = bz_json_is(x, BZ_JSON_TRUE) ? x : found;
    }
    return found;
}

/* ---- arrays
 * -------------------------------------------------------------------------------------------- */

void bz_schema_add_array(schema_reader *r, all_of all, const merged *m, uint32_t from, uint32_t to)
{
    bz_build *b = r->build;
    const uint32_t listed = bz_all_listed_items(all), open = bz_build_state(b),
                   close = bz_build_state(b);
    const bz_json_node *unique = find_unique(all, m);
    wanted_items wanted = {0};
    if (m->min_items > m->max_items || !find_wanted(r, all, &wanted)) {
        return;
    }
    bz_build_bytes(b, from, open, '[', '[');
    bz_build_bytes(b, close, to, ']', ']');
    uint32_t at = bz_json_add_space(r->rules, open);
    if (unique && wanted.schema) {
        bz_schema_fail(r, unique, "uniqueItems is not supported beside contains");
        return;
    }
    if (unique) {
        add_unique(r, all, m, unique, at, close);
        return;
    }
    if (wanted.schema) {
        add_wanted(r, all, m, &wanted, at, close);
        return;
    }
    for (uint32_t i = 0; i <= listed && !b->failed && r->status == BZ_OK; i++) {
        /* the array may end with i items */
        const uint32_t end = i ? bz_build_state(b) : close;
        all_of item;
        if (i) {
            bz_build_empty(b, bz_json_add_space(r->rules, end), close);
        }
        if (!bz_all_item(r, all, i < listed ? i : UINT32_MAX, &item)) {
            return;
        }
        const bool more = i < m->max_items && !bz_all_never(item);
        if (i < listed) {
            if (i >= m->min_items) {
                bz_build_empty(b, at, end);
            }
            if (!more) {
                return;
            }
            const uint32_t next = bz_build_state(b);
            uint32_t begin = at;
            if (i) {
                const uint32_t comma = bz_build_state(b);
                bz_build_bytes(b, at, comma, ',', ',');
                begin = bz_json_add_space(r->rules, comma);
            }
            bz_build_call(b, begin, next, bz_schema_rule_of(r, item));
            at = next;
            continue;
        }
        const uint32_t min = m->min_items > i ? m->min_items - i : 0,
                       max = m->max_items == BZ_NO_LIMIT ? BZ_NO_LIMIT
                             : m->max_items > i          ? m->max_items - i
                                                         : 0;
        if (!more) {
            if (min == 0) {
                bz_build_empty(b, at, end);
            }
            return;
        }
        const uint32_t some = bz_build_state(b);
        const uint32_t rule = bz_schema_rule_of(r, item);
        if (i == 0) { /* an empty array has no blank before its end */
            if (min == 0) {
                bz_build_empty(b, at, close);
            }
            const uint32_t next = bz_build_state(b);
            bz_build_call(b, at, next, rule);
            add_rest(r, rule, next, some, min ? min - 1 : 0, max == BZ_NO_LIMIT ? max : max - 1);
        } else {
            add_rest(r, rule, at, some, min, max);
        }
        bz_build_empty(b, bz_json_add_space(r->rules, some), close);
    }
}
