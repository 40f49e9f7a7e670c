/* The opposite of a schema, in keywords that can be obeyed: a list of alternatives, one for each
 * way in which a value can fail to fit. What a keyword says holds for one type of values, so that
 * the opposite of {"minLength": 3} is a string of at most 2 characters. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/schema_internal.h"

/* A node that is being filled. */
typedef struct filling {
    bz_json_node *node;
    const bz_json_node **end; /* where the next item or member goes */
} filling;

typedef struct opposite {
    schema_reader *r;
    const bz_json_node *schema;
    filling ways;       /* the alternatives */
    bz_json_node spare; /* is filled in vain without memory */
} opposite;

/* ---- making nodes
 * ------------------------------------------------------------------------------------- */

static bz_str text_of(const char *s)
{
    return (bz_str){s, s ? strlen(s) : 0};
}

static filling put(opposite *o, filling *in, bz_json_kind kind, const char *key)
{
    bz_json_node *node = bz_arena_alloc(o->r->arena, sizeof *node);
    if (!node) {
        bz_schema_no_memory(o->r);
        node = &o->spare;
    }
    *node = (bz_json_node){.kind = (uint8_t)kind, .key = text_of(key)};
    *in->end = node;
    in->end = &node->next;
    in->node->n++;
    return (filling){node, &node->of.first};
}

static void put_text(opposite *o, filling *in, const char *key, bz_str text)
{
    put(o, in, BZ_JSON_STRING, key).node->of.text = text;
}

static void put_number(opposite *o, filling *in, const char *key, bz_str digits)
{
    put(o, in, BZ_JSON_NUMBER, key).node->of.text = digits;
}

static void put_count(opposite *o, filling *in, const char *key, uint32_t count)
{
    char *digits = bz_arena_alloc(o->r->arena, 12);
    if (!digits) {
        bz_schema_no_memory(o->r);
        return;
    }
    snprintf(digits, 12, "%u", count);
    put_number(o, in, key, text_of(digits));
}

/* BZ_SCHEMA_IS or BZ_SCHEMA_NOT: a schema that is elsewhere, too. */
static void put_schema(opposite *o, filling *in, const char *key, const bz_json_node *schema)
{
    filling list = put(o, in, BZ_JSON_ARRAY, key);
    list.node->of.first = schema;
    list.node->n = 1;
}

/* {"type": TYPE}, one more alternative. */
static filling put_way(opposite *o, const char *type)
{
    filling way = put(o, &o->ways, BZ_JSON_OBJECT, NULL);
    if (type) {
        put_text(o, &way, "type", text_of(type));
    }
    return way;
}

static bool refuse(opposite *o, const bz_json_node *at, const char *name)
{
    return bz_schema_fail(o->r, at,
                          "%s is not supported in what must not hold (not, if, a oneOf whose "
                          "items overlap)",
                          name);
}

static bool says_nothing(const bz_json_node *schema)
{
    return bz_json_is(schema, BZ_JSON_TRUE) || (bz_json_is(schema, BZ_JSON_OBJECT) && !schema->n);
}

/* ---- types and values
 * ---------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    uint32_t kind;
} kinds[] = {
    {"null", KIND_NULL},       {"boolean", KIND_BOOL},  {BZ_SCHEMA_FRACTION, KIND_FRACTION},
    {"integer", KIND_INTEGER}, {"string", KIND_STRING}, {"array", KIND_ARRAY},
    {"object", KIND_OBJECT}};

/* One more alternative, of these kinds; *way to add to it. False: there are none. */
static bool put_kinds(opposite *o, uint32_t which, filling *way)
{
    if (!which) {
        return false;
    }
    *way = put_way(o, NULL);
    filling list = put(o, way, BZ_JSON_ARRAY, "type");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (which & kinds[i].kind) {
            put_text(o, &list, NULL, text_of(kinds[i].name));
        }
    }
    return true;
}

static void not_type(opposite *o, const bz_json_node *x)
{
    uint32_t named;
    filling way;
    if (bz_schema_kinds(o->r, x, &named)) {
        put_kinds(o, KIND_ANY & ~named, &way);
    }
}

/* Appends a text as a regular expression. */
static size_t quote(char *to, bz_str text)
{
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] && strchr("^$\\.*+?()[]{}|/", text.data[i])) {
            to[n++] = '\\';
        }
        to[n++] = text.data[i];
    }
    return n;
}

/* Strings are none of the values. */
static void not_strings(opposite *o, filling *way, const bz_json_node *const *values, uint32_t n)
{
    size_t room = sizeof "^()$", at = 0;
    for (uint32_t i = 0; i < n; i++) {
        room += values[i]->kind == BZ_JSON_STRING ? 2 * values[i]->of.text.len + 1 : 0;
    }
    char *regex = bz_arena_alloc(o->r->arena, room);
    if (!regex) {
        bz_schema_no_memory(o->r);
        return;
    }
    memcpy(regex, "^(", 2);
    at = 2;
    for (uint32_t i = 0; i < n; i++) {
        if (values[i]->kind == BZ_JSON_STRING) {
            regex[at] = '|';
            at += at > 2;
            at += quote(regex + at, values[i]->of.text);
        }
    }
    memcpy(regex + at, ")$", 2);
    put_text(o, way, BZ_SCHEMA_NOT_PATTERN, (bz_str){regex, at + 2});
}

typedef struct placed_number {
    decimal value;
    bz_str text;
} placed_number;

static int by_value(const void *x, const void *y)
{
    const placed_number *p = x, *q = y;
    return bz_decimal_compare(&p->value, &q->value);
}

/* Numbers between the values. */
static void not_numbers(opposite *o, const bz_json_node *const *values, uint32_t n)
{
    placed_number *list = bz_arena_array(o->r->arena, n, sizeof *list);
    uint32_t count = 0;
    if (!list) {
        bz_schema_no_memory(o->r);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (values[i]->kind != BZ_JSON_NUMBER) {
            continue;
        }
        list[count].text = values[i]->of.text;
        if (!bz_decimal_read(list[count].text, o->r->arena, &list[count].value)) {
            bz_schema_fail(o->r, values[i], "a number of more than 400 digits");
            return;
        }
        count++;
    }
    qsort(list, count, sizeof *list, by_value);
    for (uint32_t i = 0; i <= count; i++) {
        if (i && i < count && by_value(&list[i - 1], &list[i]) == 0) {
            continue;
        }
        filling way = put_way(o, "number");
        if (i) {
            put_number(o, &way, "exclusiveMinimum", list[i - 1].text);
        }
        if (i < count) {
            put_number(o, &way, "exclusiveMaximum", list[i].text);
        }
    }
}

static uint32_t kind_of(const bz_json_node *value)
{
    switch ((bz_json_kind)value->kind) {
    case BZ_JSON_NULL: return KIND_NULL;
    case BZ_JSON_FALSE:
    case BZ_JSON_TRUE: return KIND_BOOL;
    case BZ_JSON_NUMBER: return KIND_NUMBER;
    case BZ_JSON_STRING: return KIND_STRING;
    case BZ_JSON_ARRAY: return KIND_ARRAY;
    case BZ_JSON_OBJECT: break;
    }
    return KIND_OBJECT;
}

static void not_values(opposite *o, const bz_json_node *const *values, uint32_t n)
{
    uint32_t there = 0;
    bool truth[2] = {false, false};
    for (uint32_t i = 0; i < n; i++) {
        const bz_json_kind kind = (bz_json_kind)values[i]->kind;
        there |= kind_of(values[i]);
        truth[0] |= kind == BZ_JSON_FALSE;
        truth[1] |= kind == BZ_JSON_TRUE;
        if ((kind == BZ_JSON_ARRAY || kind == BZ_JSON_OBJECT) && values[i]->n) {
            refuse(o, values[i], kind == BZ_JSON_ARRAY ? "a list" : "an object");
            return;
        }
    }
    /* as few alternatives as possible, since those of many conditions multiply */
    filling rest;
    if (put_kinds(o, (KIND_ANY & ~there) | KIND_STRING, &rest) && there & KIND_STRING) {
        not_strings(o, &rest, values, n);
    }
    if (there & KIND_BOOL && truth[0] != truth[1]) {
        filling way = put_way(o, NULL);
        put(o, &way, truth[0] ? BZ_JSON_TRUE : BZ_JSON_FALSE, "const");
    }
    if (there & KIND_NUMBER) {
        not_numbers(o, values, n);
    }
    if (there & KIND_ARRAY) { /* the empty one, as above */
        filling way = put_way(o, "array");
        put_count(o, &way, "minItems", 1);
    }
    if (there & KIND_OBJECT) {
        filling way = put_way(o, "object");
        put_count(o, &way, "minProperties", 1);
    }
}

static void not_enum(opposite *o, const bz_json_node *x)
{
    const bz_json_node **values = bz_arena_array(o->r->arena, x->n + (size_t)1, sizeof *values);
    uint32_t n = 0;
    if (!values) {
        bz_schema_no_memory(o->r);
        return;
    }
    if (x->kind != BZ_JSON_ARRAY || !x->n) {
        bz_schema_fail(o->r, x, "enum is a list of values");
        return;
    }
    for (const bz_json_node *v = bz_json_first(x); v; v = v->next) {
        values[n++] = v;
    }
    not_values(o, values, n);
}

static void not_const(opposite *o, const bz_json_node *x)
{
    not_values(o, &x, 1);
}

/* ---- bounds
 * -------------------------------------------------------------------------------------------- */

/* The opposite of `key` with this number: `other` with the same one. */
static void other_bound(opposite *o, const bz_json_node *x, const char *key, const char *other)
{
    if (x->kind != BZ_JSON_NUMBER) {
        bz_schema_fail(o->r, x, "%s is a number", key);
        return;
    }
    filling way = put_way(o, "number");
    put_number(o, &way, other, x->of.text);
}

static bool is_switch(const bz_json_node *x) /* of draft 4 */
{
    return x->kind == BZ_JSON_TRUE || x->kind == BZ_JSON_FALSE;
}

static void not_minimum(opposite *o, const bz_json_node *x)
{
    const bool exclusive = bz_json_is(bz_json_get(o->schema, "exclusiveMinimum"), BZ_JSON_TRUE);
    other_bound(o, x, "minimum", exclusive ? "maximum" : "exclusiveMaximum");
}

static void not_maximum(opposite *o, const bz_json_node *x)
{
    const bool exclusive = bz_json_is(bz_json_get(o->schema, "exclusiveMaximum"), BZ_JSON_TRUE);
    other_bound(o, x, "maximum", exclusive ? "minimum" : "exclusiveMinimum");
}

static void not_exclusive_minimum(opposite *o, const bz_json_node *x)
{
    if (!is_switch(x)) {
        other_bound(o, x, "exclusiveMinimum", "maximum");
    }
}

static void not_exclusive_maximum(opposite *o, const bz_json_node *x)
{
    if (!is_switch(x)) {
        other_bound(o, x, "exclusiveMaximum", "minimum");
    }
}

static void not_least(opposite *o, const char *key, const char *type, const char *other)
{
    uint32_t count = 0;
    if (bz_schema_count(o->r, o->schema, key, &count) && count) {
        filling way = put_way(o, type);
        put_count(o, &way, other, count - 1);
    }
}

static void not_most(opposite *o, const char *key, const char *type, const char *other)
{
    uint32_t count = BZ_NO_LIMIT;
    if (bz_schema_count(o->r, o->schema, key, &count) && count != BZ_NO_LIMIT) {
        filling way = put_way(o, type);
        put_count(o, &way, other, count + 1);
    }
}

static void not_counts(opposite *o)
{
    not_least(o, "minLength", "string", "maxLength");
    not_most(o, "maxLength", "string", "minLength");
    not_least(o, "minItems", "array", "maxItems");
    not_most(o, "maxItems", "array", "minItems");
    not_least(o, "minProperties", "object", "maxProperties");
    not_most(o, "maxProperties", "object", "minProperties");
}

static void not_pattern(opposite *o, const bz_json_node *x)
{
    if (x->kind != BZ_JSON_STRING) {
        bz_schema_fail(o->r, x, "pattern is a text");
        return;
    }
    filling way = put_way(o, "string");
    put_text(o, &way, BZ_SCHEMA_NOT_PATTERN, x->of.text);
}

/* ---- members and items
 * ---------------------------------------------------------------------------------- */

/* {"required": [a], "properties": {b: false}}; either may be empty. */
static void put_presence(opposite *o, filling *way, bz_str present, bz_str absent)
{
    if (present.data) {
        filling list = put(o, way, BZ_JSON_ARRAY, "required");
        put_text(o, &list, NULL, present);
    }
    if (absent.data) {
        filling map = put(o, way, BZ_JSON_OBJECT, "properties");
        put(o, &map, BZ_JSON_FALSE, NULL).node->key = absent;
    }
}

static void not_required(opposite *o, const bz_json_node *x)
{
    for (const bz_json_node *name = bz_json_first(x); name; name = name->next) {
        if (name->kind == BZ_JSON_STRING) {
            filling way = put_way(o, "object");
            put_presence(o, &way, (bz_str){0}, name->of.text);
        }
    }
}

static void not_properties(opposite *o, const bz_json_node *x)
{
    for (const bz_json_node *p = bz_json_first(x); p; p = p->next) {
        if (says_nothing(p)) {
            continue;
        }
        filling way = put_way(o, "object");
        put_presence(o, &way, p->key, (bz_str){0});
        filling map = put(o, &way, BZ_JSON_OBJECT, "properties");
        filling of = put(o, &map, BZ_JSON_OBJECT, NULL);
        of.node->key = p->key;
        put_schema(o, &of, BZ_SCHEMA_NOT, p);
    }
}

static void not_dependencies(opposite *o, const bz_json_node *x)
{
    for (const bz_json_node *p = bz_json_first(x); p; p = p->next) {
        if (p->kind != BZ_JSON_ARRAY) {
            filling way = put_way(o, "object");
            put_presence(o, &way, p->key, (bz_str){0});
            put_schema(o, &way, BZ_SCHEMA_NOT, p);
            continue;
        }
        for (const bz_json_node *name = bz_json_first(p); name; name = name->next) {
            if (name->kind == BZ_JSON_STRING) {
                filling way = put_way(o, "object");
                put_presence(o, &way, p->key, name->of.text);
            }
        }
    }
}

/* Items after the first n do not fit. */
static void not_more_items(opposite *o, const bz_json_node *x, const char *name, uint32_t n)
{
    if (says_nothing(x)) {
        return;
    }
    if (n && x->kind != BZ_JSON_FALSE) {
        refuse(o, x, name);
        return;
    }
    filling way = put_way(o, "array");
    if (x->kind == BZ_JSON_FALSE) {
        put_count(o, &way, "minItems", n + 1);
        return;
    }
    filling some = put(o, &way, BZ_JSON_OBJECT, "contains");
    put_schema(o, &some, BZ_SCHEMA_NOT, x);
}

static void not_items(opposite *o)
{
    const bz_json_node *prefix = bz_json_get(o->schema, "prefixItems"),
                       *items = bz_json_get(o->schema, "items"),
                       *more = bz_json_get(o->schema, "additionalItems");
    const bool old = !prefix && bz_json_is(items, BZ_JSON_ARRAY);
    const bz_json_node *listed = old ? items : prefix;
    uint32_t n = 0;
    for (const bz_json_node *p = bz_json_first(listed); p; p = p->next, n++) {
        if (says_nothing(p)) {
            continue;
        }
        filling way = put_way(o, "array");
        put_count(o, &way, "minItems", n + 1);
        filling list = put(o, &way, BZ_JSON_ARRAY, "prefixItems");
        for (uint32_t i = 0; i < n; i++) {
            put(o, &list, BZ_JSON_TRUE, NULL);
        }
        filling of = put(o, &list, BZ_JSON_OBJECT, NULL);
        put_schema(o, &of, BZ_SCHEMA_NOT, p);
    }
    if (old && more) {
        not_more_items(o, more, "additionalItems", n);
    } else if (!old && items) {
        not_more_items(o, items, "items", n);
    }
}

static void not_contains(opposite *o, const bz_json_node *x)
{
    uint32_t least = 1, most = BZ_NO_LIMIT;
    if (!bz_schema_count(o->r, o->schema, "minContains", &least) ||
        !bz_schema_count(o->r, o->schema, "maxContains", &most)) {
        return;
    }
    for (int side = 0; side < 2; side++) {
        if (side ? most == BZ_NO_LIMIT : least == 0) {
            continue;
        }
        filling way = put_way(o, "array");
        filling of = put(o, &way, BZ_JSON_OBJECT, "contains");
        put_schema(o, &of, BZ_SCHEMA_IS, x);
        put_count(o, &way, "minContains", side ? most + 1 : 0);
        if (!side) {
            put_count(o, &way, "maxContains", least - 1);
        }
    }
}

/* ---- schemas
 * --------------------------------------------------------------------------------------------- */

static void not_all_of(opposite *o, const bz_json_node *x)
{
    for (const bz_json_node *s = bz_json_first(x); s; s = s->next) {
        filling way = put_way(o, NULL);
        put_schema(o, &way, BZ_SCHEMA_NOT, s);
    }
}

static void not_any_of(opposite *o, const bz_json_node *x)
{
    filling way = put_way(o, NULL), list = put(o, &way, BZ_JSON_ARRAY, "allOf");
    for (const bz_json_node *s = bz_json_first(x); s; s = s->next) {
        filling of = put(o, &list, BZ_JSON_OBJECT, NULL);
        put_schema(o, &of, BZ_SCHEMA_NOT, s);
    }
}

/* None of them, or two. */
static void not_one_of(opposite *o, const bz_json_node *x)
{
    not_any_of(o, x);
    for (const bz_json_node *a = bz_json_first(x); a; a = a->next) {
        for (const bz_json_node *b = a->next; b && bz_schema_work(o->r, x); b = b->next) {
            filling way = put_way(o, NULL), list = put(o, &way, BZ_JSON_ARRAY, "allOf");
            filling of = put(o, &list, BZ_JSON_OBJECT, NULL);
            put_schema(o, &way, BZ_SCHEMA_IS, a);
            put_schema(o, &of, BZ_SCHEMA_IS, b);
        }
    }
}

static void not_not(opposite *o, const bz_json_node *x)
{
    filling way = put_way(o, NULL);
    put_schema(o, &way, BZ_SCHEMA_IS, x);
}

static void not_if(opposite *o, const bz_json_node *x)
{
    const bz_json_node *then = bz_json_get(o->schema, "then"),
                       *other = bz_json_get(o->schema, "else");
    if (then) {
        filling way = put_way(o, NULL);
        put_schema(o, &way, BZ_SCHEMA_IS, x);
        put_schema(o, &way, BZ_SCHEMA_NOT, then);
    }
    if (other) {
        filling way = put_way(o, NULL), list = put(o, &way, BZ_JSON_ARRAY, "allOf");
        filling of = put(o, &list, BZ_JSON_OBJECT, NULL);
        put_schema(o, &way, BZ_SCHEMA_NOT, x);
        put_schema(o, &of, BZ_SCHEMA_NOT, other);
    }
}

static void not_referred(opposite *o, const bz_json_node *x)
{
    const bz_json_node *target = bz_schema_target(o->r, x);
    if (target) {
        filling way = put_way(o, NULL);
        put_schema(o, &way, BZ_SCHEMA_NOT, target);
    }
}

/* A list with one schema that is elsewhere, too: opposites of opposites. */
static void not_is(opposite *o, const bz_json_node *x)
{
    const bz_json_node *schema = bz_json_first(x);
    if (schema) {
        filling way = put_way(o, NULL);
        put_schema(o, &way, BZ_SCHEMA_NOT, schema);
    }
}

static void not_hidden_not(opposite *o, const bz_json_node *x)
{
    const bz_json_node *schema = bz_json_first(x);
    if (schema) {
        not_not(o, schema);
    }
}

static void not_hidden_pattern(opposite *o, const bz_json_node *x)
{
    filling way = put_way(o, "string");
    put_text(o, &way, "pattern", bz_json_string(x));
}

static void not_keywords(opposite *o)
{
    static const struct {
        const char *name;
        void (*negate)(opposite *o, const bz_json_node *x);
    } each[] = {{"type", not_type},
                {"enum", not_enum},
                {"const", not_const},
                {"minimum", not_minimum},
                {"maximum", not_maximum},
                {"exclusiveMinimum", not_exclusive_minimum},
                {"exclusiveMaximum", not_exclusive_maximum},
                {"pattern", not_pattern},
                {"required", not_required},
                {"properties", not_properties},
                {"dependentRequired", not_dependencies},
                {"dependentSchemas", not_dependencies},
                {"dependencies", not_dependencies},
                {"contains", not_contains},
                {"allOf", not_all_of},
                {"anyOf", not_any_of},
                {"oneOf", not_one_of},
                {"not", not_not},
                {"if", not_if},
                {"$ref", not_referred},
                {"$dynamicRef", not_referred},
                {"$recursiveRef", not_referred},
                {BZ_SCHEMA_IS, not_is},
                {BZ_SCHEMA_NOT, not_hidden_not},
                {BZ_SCHEMA_NOT_PATTERN, not_hidden_pattern}};
    static const char *const refused[] = {"format",
                                          "multipleOf",
                                          "patternProperties",
                                          "propertyNames",
                                          "unevaluatedItems",
                                          "unevaluatedProperties",
                                          "additionalProperties"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const bz_json_node *x = bz_json_get(o->schema, refused[i]);
        if (x && !says_nothing(x)) {
            refuse(o, x, refused[i]);
            return;
        }
    }
    const bz_json_node *unique = bz_json_get(o->schema, "uniqueItems");
    if (bz_json_is(unique, BZ_JSON_TRUE)) {
        refuse(o, unique, "uniqueItems");
        return;
    }
    for (size_t i = 0; i < sizeof each / sizeof *each && o->r->status == BZ_OK; i++) {
        const bz_json_node *x = bz_json_get(o->schema, each[i].name);
        if (x) {
            each[i].negate(o, x);
        }
    }
    not_counts(o);
    not_items(o);
}

const bz_json_node *bz_schema_not(schema_reader *r, const bz_json_node *schema)
{
    bool fresh;
    if (!bz_schema_is(schema)) {
        bz_schema_fail(r, schema, "a schema is an object, true or false");
        return NULL;
    }
    bz_json_node *node = bz_schema_made(r, schema, BZ_MADE_NOT, &fresh);
    if (!node || !fresh || !bz_schema_work(r, schema)) {
        return r->status == BZ_OK ? node : NULL;
    }
    if (schema->kind != BZ_JSON_OBJECT) {
        node->kind = schema->kind == BZ_JSON_TRUE ? BZ_JSON_FALSE : BZ_JSON_TRUE;
        return node;
    }
    opposite o = {.r = r, .schema = schema};
    filling top = {node, &node->of.first};
    o.ways = put(&o, &top, BZ_JSON_ARRAY, "anyOf");
    not_keywords(&o);
    if (o.ways.node->n == 0) { /* it refuses nothing */
        *node = (bz_json_node){.kind = BZ_JSON_FALSE};
    } else if (o.ways.node->n == 1) {
        *node = *o.ways.node->of.first;
    }
    return r->status == BZ_OK ? node : NULL;
}
