/* Lists of schemas that hold at one place. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/schema_internal.h"

enum { MAX_MULTIPLE = 1000, MAX_MULTIPLE_DIGITS = 9, MAX_REMAINDERS = 4096 };

bool bz_schema_is(const bz_json_node *node)
{
    return bz_json_is(node, BZ_JSON_OBJECT) || bz_json_is(node, BZ_JSON_TRUE) ||
           bz_json_is(node, BZ_JSON_FALSE);
}

static bool add_part(schema_reader *r, all_of *all, const bz_json_node *node, uint32_t skip,
                     const bz_json_node *by, bool silent)
{
    schema_part *parts = bz_arena_array(r->arena, all->n + (size_t)1, sizeof *parts);
    if (!parts) {
        return bz_schema_no_memory(r);
    }
    if (all->n) {
        memcpy(parts, all->parts, all->n * sizeof *parts);
    }
    parts[all->n] =
        (schema_part){.node = node, .id = node, .by = by, .skip = skip, .silent = silent};
    *all = (all_of){parts, all->n + 1};
    return true;
}

static const schema_part *find_part(const all_of *all, const bz_json_node *node)
{
    for (uint32_t i = 0; i < all->n; i++) {
        if (all->parts[i].node == node) {
            return &all->parts[i];
        }
    }
    return NULL;
}

/* The list with a part that several brought; lists share their parts, so it is copied. */
static bool share_part(schema_reader *r, all_of *all, const schema_part *there, bool silent)
{
    const size_t i = (size_t)(there - all->parts);
    schema_part *parts = bz_arena_array(r->arena, all->n, sizeof *parts);
    if (!parts) {
        return bz_schema_no_memory(r);
    }
    memcpy(parts, all->parts, all->n * sizeof *parts);
    parts[i].shared = true;
    parts[i].silent = parts[i].silent && silent;
    all->parts = parts;
    return true;
}

/* Schemas that are being added, each by the one before; of the first: the part that has it as an
 * alternative. */
typedef struct adding {
    const bz_json_node *node;
    const struct adding *by;
    bool was_there;
    bool silent; /* an opposite, or brought by one */
} adding;

static bool add(schema_reader *r, all_of *all, const bz_json_node *node, uint32_t skip,
                const adding *by);

/* Whether what is added is, or is brought by, an alternative of a part. */
static bool is_within(const all_of *all, const adding *by, const bz_json_node *part)
{
    while (by && by->by) {
        by = by->by;
    }
    const bz_json_node *id = by && by->was_there ? by->node : NULL;
    for (uint32_t steps = 0; id && id != part && steps <= all->n; steps++) {
        uint32_t k = 0;
        while (k < all->n && all->parts[k].id != id) {
            k++;
        }
        id = k < all->n ? all->parts[k].by : NULL;
    }
    return id == part;
}

static bool add_opposite(schema_reader *r, all_of *all, const bz_json_node *node, const adding *by)
{
    const bz_json_node *opposite = bz_schema_not(r, node);
    adding whose = by ? *by : (adding){.was_there = true};
    whose.silent = true;
    return opposite && add(r, all, opposite, 0, &whose);
}

static bool add_target(schema_reader *r, all_of *all, const bz_json_node *ref, const adding *by)
{
    const bz_json_node *target = ref ? bz_schema_target(r, ref) : NULL;
    return !ref || (target && add(r, all, target, 0, by));
}

/* What a schema refers to. */
static bool add_brought(schema_reader *r, all_of *all, const bz_json_node *node, const adding *here)
{
    const bz_json_node *list = bz_json_get(node, "allOf"), *other = bz_json_get(node, "not"),
                       *is = bz_json_first(bz_json_get(node, BZ_SCHEMA_IS)),
                       *is_not = bz_json_first(bz_json_get(node, BZ_SCHEMA_NOT));
    if (!add_target(r, all, bz_json_get(node, "$ref"), here) ||
        !add_target(r, all, bz_json_get(node, "$dynamicRef"), here) ||
        !add_target(r, all, bz_json_get(node, "$recursiveRef"), here)) {
        return false;
    }
    if (list && !bz_json_is(list, BZ_JSON_ARRAY)) {
        return bz_schema_fail(r, list, "allOf is a list");
    }
    for (const bz_json_node *item = bz_json_first(list); item; item = item->next) {
        if (!add(r, all, item, 0, here)) {
            return false;
        }
    }
    return (!is || add(r, all, is, 0, here)) && (!is_not || add_opposite(r, all, is_not, here)) &&
           (!other || add_opposite(r, all, other, here));
}

static bool add(schema_reader *r, all_of *all, const bz_json_node *node, uint32_t skip,
                const adding *by)
{
    const bool silent = by && by->silent;
    const adding here = {.node = node, .by = by, .silent = silent};
    const bz_json_node *brought = by ? by->node : NULL;
    if (!bz_schema_is(node)) {
        return bz_schema_fail(r, node, "a schema is an object, true or false");
    }
    if (!bz_schema_work(r, node)) {
        return false;
    }
    const schema_part *there = find_part(all, node);
    bool itself = there && there->skip && is_within(all, by, there->id);
    for (const adding *x = by; x; x = x->by) {
        itself |= !x->was_there && x->node == node;
    }
    if (itself) {
        return bz_schema_fail(r, node, "it can begin with itself, which has no end");
    }
    if (node->kind == BZ_JSON_TRUE) {
        return true;
    }
    if (there) {
        const bool heard = there->silent && !silent;
        return ((there->shared || there->by == brought) && !heard) ||
               share_part(r, all, there, silent);
    }
    if (node->kind == BZ_JSON_FALSE) {
        return add_part(r, all, node, 0, brought, silent);
    }
    return add_part(r, all, node, skip, brought, silent) && add_brought(r, all, node, &here);
}

bool bz_all_add(schema_reader *r, all_of *all, const bz_json_node *node, uint32_t skip)
{
    return add(r, all, node, skip, NULL);
}

bool bz_all_add_not(schema_reader *r, all_of *all, const bz_json_node *node)
{
    return add_opposite(r, all, node, NULL);
}

bool bz_all_never(all_of all)
{
    for (uint32_t i = 0; i < all.n; i++) {
        if (all.parts[i].node->kind == BZ_JSON_FALSE) {
            return true;
        }
    }
    return false;
}

/* ---- alternatives
 * --------------------------------------------------------------------------------- */

/* The list again, with part i marked, and another schema, or its opposite. */
static bool choose_either(schema_reader *r, all_of all, uint32_t i, uint32_t skip,
                          const bz_json_node *option, bool opposite, all_of *out)
{
    schema_part *parts = bz_arena_array(r->arena, all.n + (size_t)1, sizeof *parts);
    if (!parts) {
        return bz_schema_no_memory(r);
    }
    memcpy(parts, all.parts, all.n * sizeof *parts);
    parts[i].skip |= skip;
    *out = (all_of){parts, all.n};
    const adding whose = {.node = parts[i].id, .was_there = true, .silent = parts[i].silent};
    return opposite ? add_opposite(r, out, option, &whose) : add(r, out, option, 0, &whose);
}

static bool choose(schema_reader *r, all_of all, uint32_t i, uint32_t skip,
                   const bz_json_node *option, all_of *out)
{
    return choose_either(r, all, i, skip, option, false, out);
}

bz_json_node *bz_schema_made(schema_reader *r, const bz_json_node *of, made_kind kind, bool *fresh)
{
    const uint64_t address = (uint64_t)(uintptr_t)of;
    const uint32_t words[3] = {(uint32_t)address, (uint32_t)(address >> 32), (uint32_t)kind};
    const uint32_t number = bz_sets_number(&r->made_keys, words, 3, fresh);
    if (number == UINT32_MAX) {
        bz_schema_no_memory(r);
        return NULL;
    }
    if (!*fresh) {
        return r->made[number].node;
    }
    if (number >= r->cap_made) {
        const uint32_t cap = r->cap_made ? 2 * r->cap_made : 16;
        made_schema *made = realloc(r->made, cap * sizeof *made);
        if (!made) {
            bz_schema_no_memory(r);
            return NULL;
        }
        r->made = made;
        r->cap_made = cap;
    }
    bz_json_node *node = bz_arena_alloc(r->arena, sizeof *node);
    r->made[number] = (made_schema){of, node};
    if (!node) {
        bz_schema_no_memory(r);
        return NULL;
    }
    *node = (bz_json_node){.kind = BZ_JSON_OBJECT};
    return node;
}

static bz_str key_of(const char *text)
{
    return (bz_str){text, strlen(text)};
}

/* {"properties": {NAME: false}}, or {"required": [...]} and the schema that depends on the name. */
static bool fill_dependent(schema_reader *r, bz_json_node *node, const bz_json_node *item,
                           bool present)
{
    bz_json_node *made = bz_arena_array(r->arena, 4, sizeof *made);
    if (!made) {
        return bz_schema_no_memory(r);
    }
    memset(made, 0, 4 * sizeof *made);
    if (!present) {
        made[0] = (bz_json_node){.kind = BZ_JSON_OBJECT, .n = 1, .key = key_of("properties")};
        made[0].of.first = &made[1];
        made[1] = (bz_json_node){.kind = BZ_JSON_FALSE, .key = item->key};
        node->of.first = &made[0];
        node->n = 1;
        return true;
    }
    const bool names = item->kind == BZ_JSON_ARRAY;
    made[0] = (bz_json_node){.kind = BZ_JSON_ARRAY, .n = 1, .key = key_of("required")};
    made[1] = (bz_json_node){.kind = BZ_JSON_STRING, .of.text = item->key};
    made[0].of.first = &made[1];
    node->of.first = &made[0];
    node->n = 1;
    if (names) {
        made[1].next = item->of.first;
        made[0].n += item->n;
        return true;
    }
    made[2] = (bz_json_node){.kind = BZ_JSON_ARRAY, .n = 1, .key = key_of("allOf")};
    made[0].next = &made[2];
    node->n = 2;
    made[3] = *item;
    made[3].key = (bz_str){0};
    made[3].next = NULL;
    made[2].of.first = &made[3];
    return true;
}

/* Dependencies on the presence of names: each name is there, or not. */
static bool dependent(schema_reader *r, all_of all, uint32_t i, all_of **ways, uint32_t *n)
{
    static const char *const words[] = {"dependentRequired", "dependentSchemas", "dependencies"};
    const bz_json_node *items[4], *node = all.parts[i].node;
    uint32_t count = 0;
    for (size_t k = 0; k < 3; k++) {
        const bz_json_node *list = bz_json_get(node, words[k]);
        for (const bz_json_node *x = bz_json_first(list); x; x = x->next) {
            if (count == 4) {
                return bz_schema_fail(r, list, "more than 4 dependencies are not supported");
            }
            items[count++] = x;
        }
    }
    *n = 1u << count;
    *ways = bz_arena_array(r->arena, *n, sizeof **ways);
    if (!*ways) {
        return bz_schema_no_memory(r);
    }
    for (uint32_t w = 0; w < *n; w++) {
        (*ways)[w] = all;
        for (uint32_t k = 0; k < count; k++) {
            bool fresh;
            const bool present = w >> k & 1;
            bz_json_node *made =
                bz_schema_made(r, items[k], present ? BZ_MADE_PRESENT : BZ_MADE_ABSENT, &fresh);
            if (!made || (fresh && !fill_dependent(r, made, items[k], present)) ||
                !choose(r, (*ways)[w], i, SKIP_DEPENDENT, made, &(*ways)[w])) {
                return false;
            }
        }
    }
    return true;
}

static bool has_dependencies(const bz_json_node *node)
{
    return bz_json_first(bz_json_get(node, "dependentRequired")) ||
           bz_json_first(bz_json_get(node, "dependentSchemas")) ||
           bz_json_first(bz_json_get(node, "dependencies"));
}

/* The condition with `then`, or its opposite with `else`. */
static bool conditional(schema_reader *r, all_of all, uint32_t i, all_of **ways, uint32_t *n)
{
    const bz_json_node *node = all.parts[i].node, *condition = bz_json_get(node, "if"),
                       *next[2] = {bz_json_get(node, "then"), bz_json_get(node, "else")};
    *ways = bz_arena_array(r->arena, 2, sizeof **ways);
    if (!*ways) {
        return bz_schema_no_memory(r);
    }
    const adding whose = {
        .node = all.parts[i].id, .was_there = true, .silent = all.parts[i].silent};
    for (int k = 0; k < 2; k++, (*n)++) {
        if (!choose_either(r, all, i, SKIP_IF, condition, k == 1, &(*ways)[k]) ||
            (next[k] && !add(r, &(*ways)[k], next[k], 0, &whose))) {
            return false;
        }
    }
    return true;
}

/* Without both of them it only says which members and items are mentioned. */
static bool has_condition(all_of all, const bz_json_node *node)
{
    return bz_json_get(node, "if") &&
           (bz_json_get(node, "then") || bz_json_get(node, "else") || bz_all_has_rest(all));
}

bool bz_all_alternatives(schema_reader *r, all_of all, all_of **ways, uint32_t *n,
                         const bz_json_node **exclusive)
{
    *n = 0;
    *exclusive = NULL;
    for (uint32_t i = 0; i < all.n; i++) {
        const bz_json_node *node = all.parts[i].node;
        const uint32_t skip = all.parts[i].skip;
        const bz_json_node *list = NULL;
        uint32_t taken = 0;
        if (!(skip & SKIP_DEPENDENT) && has_dependencies(node)) {
            return dependent(r, all, i, ways, n);
        }
        if (!(skip & SKIP_IF) && has_condition(all, node)) {
            return conditional(r, all, i, ways, n);
        }
        if (!(skip & SKIP_ANY_OF) && bz_json_get(node, "anyOf")) {
            list = bz_json_get(node, "anyOf");
            taken = SKIP_ANY_OF;
        } else if (!(skip & SKIP_ONE_OF) && bz_json_get(node, "oneOf")) {
            list = bz_json_get(node, "oneOf");
            taken = SKIP_ONE_OF;
            *exclusive = list;
        }
        if (!list) {
            continue;
        }
        if (!bz_json_is(list, BZ_JSON_ARRAY) || list->n == 0) {
            return bz_schema_fail(r, list, "a list of schemas is expected here");
        }
        *ways = bz_arena_array(r->arena, list->n, sizeof **ways);
        if (!*ways) {
            return bz_schema_no_memory(r);
        }
        for (const bz_json_node *item = list->of.first; item; item = item->next) {
            if (!choose(r, all, i, taken, item, &(*ways)[*n])) {
                return false;
            }
            (*n)++;
        }
        return true;
    }
    return true;
}

/* ---- what they say together
 * -------------------------------------------------------------------------- */

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
            all_of of;
            if (x->kind == BZ_JSON_STRING &&
                (!bz_all_member(r, all, x->of.text, &of) || !kinds_left(r, of))) {
                return true;
            }
        }
    }
    return r->status != BZ_OK;
}

/* ---- members and items
 * --------------------------------------------------------------------------------- */

static const bz_json_node *find_member(const bz_json_node *object, bz_str key)
{
    const bz_json_node *found = NULL;
    for (const bz_json_node *x = bz_json_first(object); x; x = x->next) {
        if (x->key.len == key.len && memcmp(x->key.data, key.data, key.len) == 0) {
            found = x;
        }
    }
    return found;
}

/* 1: it matches, 0: not, -1: error. */
static int matches(schema_reader *r, const bz_json_node *at, bz_str key)
{
    bz_dfa d = {0};
    if (!bz_schema_pattern_dfa(r, at, at->key, false, &d)) {
        return -1;
    }
    const bool is = bz_dfa_accepts(&d, key.data, key.len);
    bz_dfa_free(&d);
    return is;
}

/* What part i says of a member by name; *mentioned: it does. */
static bool add_member(schema_reader *r, const bz_json_node *node, bz_str key, all_of *out,
                       bool *mentioned)
{
    const bz_json_node *property = find_member(bz_json_get(node, "properties"), key);
    bool found = property != NULL;
    if (property && !bz_all_add(r, out, property, 0)) {
        return false;
    }
    for (const bz_json_node *x = bz_json_first(bz_json_get(node, "patternProperties")); x;
         x = x->next) {
        const int is = matches(r, x, key);
        if (is < 0 || (is && !bz_all_add(r, out, x, 0))) {
            return false;
        }
        found |= is == 1;
    }
    const bz_json_node *more = bz_json_get(node, "additionalProperties");
    *mentioned = found || more;
    return found || !more || bz_all_add(r, out, more, 0);
}

static const bz_json_node *no_value(schema_reader *r)
{
    bz_json_node *node = bz_arena_alloc(r->arena, sizeof *node);
    if (node) {
        *node = (bz_json_node){.kind = BZ_JSON_FALSE};
    } else {
        bz_schema_no_memory(r);
    }
    return node;
}

/* ---- what nothing mentions
 * ----------------------------------------------------------------------------------- */

/* unevaluatedProperties and unevaluatedItems hold for what neither their own schema mentions nor
 * one that it brought: not what stands beside it or around it. */

static const char *const rest_words[] = {"unevaluatedProperties", "unevaluatedItems"};
enum { REST_MEMBERS, REST_ITEMS };

bool bz_all_has_rest(all_of all)
{
    for (uint32_t i = 0; i < all.n; i++) {
        if (bz_json_get(all.parts[i].node, rest_words[REST_MEMBERS]) ||
            bz_json_get(all.parts[i].node, rest_words[REST_ITEMS])) {
            return true;
        }
    }
    return false;
}

/* Whether part `of` brought part i, directly or not, or is it. */
static bool brought_by(all_of all, uint32_t i, uint32_t of)
{
    const bz_json_node *id = all.parts[i].id;
    for (uint32_t steps = 0; id && steps <= all.n; steps++) {
        uint32_t k = 0;
        if (id == all.parts[of].id) {
            return true;
        }
        while (k < all.n && all.parts[k].id != id) {
            k++;
        }
        id = k < all.n ? all.parts[k].by : NULL;
    }
    return false;
}

/* Adds what the parts say of a member or item; mentions[i]: part i mentions it. */
static bool add_rest(schema_reader *r, all_of all, int which, const bool *mentions, all_of *out)
{
    for (uint32_t i = 0; i < all.n; i++) {
        const bz_json_node *rest = bz_json_get(all.parts[i].node, rest_words[which]);
        bool mentioned = !rest, unclear = false;
        for (uint32_t k = 0; k < all.n && !mentioned; k++) {
            const bool says =
                !all.parts[k].silent &&
                (mentions[k] || (k != i && bz_json_get(all.parts[k].node, rest_words[which])));
            if (says && !bz_schema_work(r, rest)) {
                return false;
            }
            mentioned = says && brought_by(all, k, i);
            unclear |= says && !mentioned && all.parts[k].shared;
        }
        if (!mentioned && unclear && !bz_json_is(rest, BZ_JSON_TRUE)) {
            return bz_schema_fail(r, rest,
                                  "%s is not supported where a schema is referred to twice",
                                  rest_words[which]);
        }
        if (!mentioned && !bz_all_add(r, out, rest, 0)) {
            return false;
        }
    }
    return true;
}

/* Room for mentions[n]; NULL: no memory. */
static bool *mention_list(schema_reader *r, all_of all)
{
    bool *list = bz_arena_alloc(r->arena, all.n + (size_t)1);
    if (list) {
        memset(list, 0, all.n + (size_t)1);
    } else {
        bz_schema_no_memory(r);
    }
    return list;
}

bool bz_all_member(schema_reader *r, all_of all, bz_str key, all_of *out)
{
    bool *mentions = bz_all_has_rest(all) ? mention_list(r, all) : NULL;
    *out = (all_of){0};
    for (uint32_t i = 0; i < all.n; i++) {
        const bz_json_node *names = bz_json_get(all.parts[i].node, "propertyNames");
        bool mentioned = false;
        if (!add_member(r, all.parts[i].node, key, out, &mentioned)) {
            return false;
        }
        if (mentions) {
            mentions[i] = mentioned;
        }
        if (names) {
            const bz_json_node text = {.kind = BZ_JSON_STRING, .of.text = key};
            all_of name = {0};
            if (!bz_all_add(r, &name, names, 0)) {
                return false;
            }
            if (!bz_schema_fits(r, name, &text)) {
                const bz_json_node *none = no_value(r);
                if (!none || !bz_all_add(r, out, none, 0)) {
                    return false;
                }
            }
        }
    }
    return (!mentions || add_rest(r, all, REST_MEMBERS, mentions, out)) && r->status == BZ_OK;
}

bool bz_all_patterns(schema_reader *r, all_of all, bz_str patterns[5], uint32_t *n)
{
    *n = 0;
    for (uint32_t i = 0; i < all.n; i++) {
        const bz_json_node *list = bz_json_get(all.parts[i].node, "patternProperties");
        for (const bz_json_node *x = bz_json_first(list); x; x = x->next) {
            if (*n == 5) {
                return bz_schema_fail(r, list, "more than 5 patternProperties are not supported");
            }
            patterns[(*n)++] = x->key;
        }
    }
    return true;
}

bool bz_all_others(schema_reader *r, all_of all, uint32_t set, all_of *out)
{
    uint32_t number = 0;
    bool *mentions = bz_all_has_rest(all) ? mention_list(r, all) : NULL;
    *out = (all_of){0};
    for (uint32_t i = 0; i < all.n; i++) {
        const bz_json_node *node = all.parts[i].node,
                           *more = bz_json_get(node, "additionalProperties");
        bool found = false;
        for (const bz_json_node *x = bz_json_first(bz_json_get(node, "patternProperties")); x;
             x = x->next, number++) {
            if (set >> number & 1) {
                found = true;
                if (!bz_all_add(r, out, x, 0)) {
                    return false;
                }
            }
        }
        if (!found && more && !bz_all_add(r, out, more, 0)) {
            return false;
        }
        if (mentions) {
            mentions[i] = found || more;
        }
    }
    return (!mentions || add_rest(r, all, REST_MEMBERS, mentions, out)) && r->status == BZ_OK;
}

/* prefixItems, or a list of items in older drafts. */
static const bz_json_node *listed_items(const bz_json_node *node)
{
    const bz_json_node *listed = bz_json_get(node, "prefixItems"),
                       *items = bz_json_get(node, "items");
    return listed ? listed : bz_json_is(items, BZ_JSON_ARRAY) ? items : NULL;
}

uint32_t bz_all_listed_items(all_of all)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < all.n; i++) {
        const bz_json_node *listed = listed_items(all.parts[i].node);
        n = listed && listed->n > n ? listed->n : n;
    }
    return n;
}

bool bz_all_item(schema_reader *r, all_of all, uint32_t index, all_of *out)
{
    bool *mentions = bz_all_has_rest(all) ? mention_list(r, all) : NULL;
    *out = (all_of){0};
    for (uint32_t i = 0; i < all.n; i++) {
        const bz_json_node *node = all.parts[i].node, *listed = listed_items(node),
                           *items = bz_json_get(node, "items"),
                           *more = bz_json_is(items, BZ_JSON_ARRAY)
                                       ? bz_json_get(node, "additionalItems")
                                       : items;
        const bz_json_node *item = more;
        if (listed && index < listed->n) {
            item = listed->of.first;
            for (uint32_t k = 0; k < index; k++) {
                item = item->next;
            }
        }
        if (item && !bz_all_add(r, out, item, 0)) {
            return false;
        }
        if (mentions) {
            mentions[i] = item != NULL;
        }
    }
    return (!mentions || add_rest(r, all, REST_ITEMS, mentions, out)) && r->status == BZ_OK;
}

bool bz_all_requires(all_of all, bz_str key)
{
    for (uint32_t i = 0; i < all.n; i++) {
        const bz_json_node *list = bz_json_get(all.parts[i].node, "required");
        for (const bz_json_node *x = bz_json_first(list); x; x = x->next) {
            const bz_str name = bz_json_string(x);
            if (x->kind == BZ_JSON_STRING && name.len == key.len &&
                memcmp(name.data, key.data, key.len) == 0) {
                return true;
            }
        }
    }
    return false;
}
