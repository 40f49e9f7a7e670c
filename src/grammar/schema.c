/* From a schema to rules: one per list of schemas that hold at a place. */
#include "grammar/schema.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/schema_internal.h"

enum { MAX_WORK = 100000, MAX_RULES = 20000, MAX_NESTED = 200 };

/* ---- errors
 * -------------------------------------------------------------------------------------- */

typedef struct pointer_text {
    char text[160];
    size_t n;
} pointer_text;

static void put(pointer_text *p, const char *s, size_t n)
{
    for (size_t i = 0; i < n && p->n < sizeof p->text - 8; i++) {
        /* a pointer's own characters, and what would spoil a message */
        const char c = s[i];
        if (c == '~' || c == '/') {
            p->text[p->n++] = '~';
            p->text[p->n++] = c == '~' ? '0' : '1';
        } else {
            p->text[p->n++] = (unsigned char)c < 0x20 || (unsigned char)c > 0x7E ? '?' : c;
        }
    }
}

/* The JSON pointer of a node below `from`. */
static bool find_pointer(const bz_json_node *from, const bz_json_node *node, pointer_text *p,
                         unsigned depth)
{
    if (from == node) {
        return true;
    }
    if (depth > BZ_JSON_DEPTH) {
        return false;
    }
    uint32_t i = 0;
    const size_t n = p->n;
    for (const bz_json_node *x = bz_json_first(from); x; x = x->next, i++) {
        char index[16];
        if (p->n < sizeof p->text - 8) {
            p->text[p->n++] = '/';
        }
        if (from->kind == BZ_JSON_ARRAY) {
            put(p, index, (size_t)snprintf(index, sizeof index, "%u", i));
        } else {
            put(p, x->key.data, x->key.len);
        }
        if (find_pointer(x, node, p, depth + 1)) {
            return true;
        }
        p->n = n;
    }
    return false;
}

bool bz_schema_fail(schema_reader *r, const bz_json_node *at, const char *format, ...)
{
    if (r->status != BZ_OK) {
        return false;
    }
    char what[200];
    pointer_text p = {.text = "#", .n = 1};
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    bool found = at && find_pointer(r->root, at, &p, 0);
    for (uint32_t i = 0; i < r->made_keys.n_lists && i < r->cap_made && at && !found; i++) {
        found = r->made[i].node == at && find_pointer(r->root, r->made[i].of, &p, 0);
    }
    p.text[found ? p.n : 1] = 0;
    const size_t n = strlen(what);
    r->status = bz_fail(r->err, BZ_BAD_SCHEMA, "The schema cannot be obeyed at %s: %s%s", p.text,
                        what, n && what[n - 1] == '.' ? "" : ".");
    return false;
}

bool bz_schema_no_memory(schema_reader *r)
{
    if (r->status == BZ_OK) {
        r->status = bz_fail(r->err, BZ_OUT_OF_MEMORY, "No memory for the schema.");
    }
    return false;
}

bool bz_schema_failed(schema_reader *r, const bz_json_node *at, bz_status status,
                      const bz_error *error)
{
    return status == BZ_OUT_OF_MEMORY ? bz_schema_no_memory(r)
                                      : bz_schema_fail(r, at, "%s", error->text);
}

bool bz_schema_work(schema_reader *r, const bz_json_node *at)
{
    if (++r->work > MAX_WORK) {
        return bz_schema_fail(r, at, "its alternatives multiply to too many");
    }
    return r->status == BZ_OK;
}

/* ---- references
 * ------------------------------------------------------------------------------------ */

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* One part of a pointer, decoded; returns its length in out. */
static size_t decode_part(const char *s, size_t n, char *out)
{
    size_t made = 0;
    for (size_t i = 0; i < n; i++) {
        char c = s[i];
        if (c == '%' && i + 2 < n && hex(s[i + 1]) >= 0 && hex(s[i + 2]) >= 0) {
            c = (char)(hex(s[i + 1]) * 16 + hex(s[i + 2]));
            i += 2;
        } else if (c == '~' && i + 1 < n && (s[i + 1] == '0' || s[i + 1] == '1')) {
            c = s[++i] == '0' ? '~' : '/';
        }
        out[made++] = c;
    }
    return made;
}

static const bz_json_node *step_into(const bz_json_node *node, const char *key, size_t n)
{
    uint32_t i = 0;
    char index[16];
    for (const bz_json_node *x = bz_json_first(node); x; x = x->next, i++) {
        const int digits = snprintf(index, sizeof index, "%u", i);
        if (node->kind == BZ_JSON_ARRAY ? (size_t)digits == n && memcmp(index, key, n) == 0
                                        : x->key.len == n && memcmp(x->key.data, key, n) == 0) {
            return x;
        }
    }
    return NULL;
}

static bool is_one_of(bz_str key, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bz_str_is(key, words[i])) {
            return true;
        }
    }
    return false;
}

/* The address that a schema gives itself: #/... in it begins there. */
static bz_str own_id(const bz_json_node *node)
{
    const bz_str id = bz_json_string(bz_json_get(node, "$id"));
    return id.len && id.data[0] != '#' ? id : (bz_str){0};
}

/* The schema with this $anchor (older drafts: $id or id with #). `named`: the members of `node` are
 * schemas under names of the user's; else some are values, in which nothing is an anchor. */
static const bz_json_node *find_anchor(const bz_json_node *node, bz_str name, bool named,
                                       unsigned depth)
{
    const bz_json_node *dynamic = bz_json_get(node, "$dynamicAnchor");
    const bz_str anchor = bz_json_string(dynamic ? dynamic : bz_json_get(node, "$anchor")),
                 id = bz_json_string(bz_json_get(node, bz_json_get(node, "$id") ? "$id" : "id"));
    if (bz_json_is(node, BZ_JSON_OBJECT) && !named &&
        ((anchor.len == name.len && anchor.len && memcmp(anchor.data, name.data, name.len) == 0) ||
         (id.len == name.len + 1 && id.data[0] == '#' &&
          memcmp(id.data + 1, name.data, name.len) == 0))) {
        return node;
    }
    for (const bz_json_node *x = bz_json_first(node); x && depth < BZ_JSON_DEPTH; x = x->next) {
        if (own_id(x).len) {
            continue; /* its anchors are its own */
        }
        static const char *const values[] = {"enum", "const", "default", "examples"},
                                 *const maps[] = {"properties",  "patternProperties",
                                                  "$defs",       "dependentSchemas",
                                                  "definitions", "dependencies"};
        const bool keyword = !named && node->kind == BZ_JSON_OBJECT;
        if (keyword && is_one_of(x->key, values, 4)) {
            continue;
        }
        const bz_json_node *found =
            find_anchor(x, name, keyword && is_one_of(x->key, maps, 6), depth + 1);
        if (found) {
            return found;
        }
    }
    return NULL;
}

/* What a node of the document is: only a schema's $id is an address. */
typedef enum place { PLACE_NONE, PLACE_SCHEMA, PLACE_SCHEMAS } place;

static place place_below(place at, const bz_json_node *node, const bz_json_node *child)
{
    static const char *const maps[] = {"properties",  "patternProperties", "$defs",
                                       "definitions", "dependentSchemas",  "dependencies"};
    static const char *const schemas[] = {"items",
                                          "additionalItems",
                                          "prefixItems",
                                          "contains",
                                          "allOf",
                                          "anyOf",
                                          "oneOf",
                                          "not",
                                          "if",
                                          "then",
                                          "else",
                                          "additionalProperties",
                                          "propertyNames",
                                          "unevaluatedItems",
                                          "unevaluatedProperties"};
    if (at != PLACE_SCHEMA) {
        return at == PLACE_SCHEMAS ? PLACE_SCHEMA : PLACE_NONE;
    }
    if (node->kind != BZ_JSON_OBJECT) {
        return PLACE_NONE;
    }
    return is_one_of(child->key, maps, sizeof maps / sizeof *maps)             ? PLACE_SCHEMAS
           : !is_one_of(child->key, schemas, sizeof schemas / sizeof *schemas) ? PLACE_NONE
           : child->kind == BZ_JSON_ARRAY                                      ? PLACE_SCHEMAS
                                                                               : PLACE_SCHEMA;
}

static bool is_addressed(const bz_json_node *node, place at)
{
    return at == PLACE_SCHEMA && own_id(node).len;
}

/* The first schema below `node` with this address; NULL: with any. */
static const bz_json_node *with_address(const bz_json_node *node, place at, const bz_str *address,
                                        unsigned depth)
{
    const bz_json_node *found = NULL;
    for (const bz_json_node *x = bz_json_first(node); x && !found && depth < BZ_JSON_DEPTH;
         x = x->next) {
        const place below = place_below(at, node, x);
        const bz_str id = is_addressed(x, below) ? own_id(x) : (bz_str){0};
        const bool is =
            id.len &&
            (!address || (id.len == address->len && memcmp(id.data, address->data, id.len) == 0));
        found = is ? x : below == PLACE_NONE ? NULL : with_address(x, below, address, depth + 1);
    }
    return found;
}

static bool has_inner_ids(schema_reader *r)
{
    if (!r->inner_id) {
        r->inner_id = with_address(r->root, PLACE_SCHEMA, NULL, 0) ? 1 : -1;
    }
    return r->inner_id > 0;
}

/* The innermost schema with an address of its own around a node below `from`; `within`: around
 * `from`. NULL: it is not there. */
static const bz_json_node *addressed(const bz_json_node *from, place at, const bz_json_node *node,
                                     const bz_json_node *within, unsigned depth)
{
    if (from == node) {
        return within;
    }
    const bz_json_node *found = NULL;
    within = is_addressed(from, at) ? from : within;
    for (const bz_json_node *x = bz_json_first(from); x && !found && depth < BZ_JSON_DEPTH;
         x = x->next) {
        found = addressed(x, place_below(at, from, x), node, within, depth + 1);
    }
    return found;
}

/* In a document without inner addresses a dynamic reference has one target, as any other has. */
static bool check_dynamic(schema_reader *r, const bz_json_node *ref)
{
    if (bz_str_is(ref->key, "$ref")) {
        return true;
    }
    char name[200];
    return !has_inner_ids(r) || bz_schema_fail(r, ref, "%s is supported without inner $id only",
                                               bz_str_show(ref->key, name));
}

static bool same_address(const bz_json_node *node, bz_str address)
{
    const bz_str id = own_id(node);
    return id.len == address.len && memcmp(id.data, address.data, id.len) == 0;
}

/* The schema that an address names, in a reference inside `around`; NULL: it is elsewhere. Whole
 * addresses mean the same everywhere, a name without a path the schema around it. */
static const bz_json_node *named(schema_reader *r, const bz_json_node *around, bz_str address)
{
    const bool whole = address.len && memchr(address.data, ':', address.len);
    if (!address.len ||
        ((whole || !memchr(address.data, '/', address.len)) && same_address(around, address))) {
        return around;
    }
    return !whole                           ? NULL
           : same_address(r->root, address) ? r->root
           : has_inner_ids(r)               ? with_address(r->root, PLACE_SCHEMA, &address, 0)
                                            : NULL;
}

const bz_json_node *bz_schema_target(schema_reader *r, const bz_json_node *ref)
{
    const bz_str s = bz_json_string(ref);
    if (!bz_json_is(ref, BZ_JSON_STRING)) {
        bz_schema_fail(r, ref, "$ref is a text");
        return NULL;
    }
    if (!check_dynamic(r, ref)) {
        return NULL;
    }
    const bz_json_node *around = r->root;
    if (has_inner_ids(r)) { /* a look through the document for every reference */
        around = addressed(r->root, PLACE_SCHEMA, ref, r->root, 0);
        r->work += 16;
    }
    const char *end = s.data + s.len, *mark = s.len ? memchr(s.data, '#', s.len) : NULL;
    const char *at = mark ? mark : end;
    const bz_json_node *found =
        named(r, around ? around : r->root, (bz_str){s.data, (size_t)(at - s.data)});
    if (!found) {
        bz_schema_fail(r, ref, "only references into the schema itself (#/...) are supported");
        return NULL;
    }
    at += at < end;
    if (at < end && *at != '/') {
        found = find_anchor(found, (bz_str){at, (size_t)(end - at)}, false, 0);
        at = end;
    }
    while (found && at < end) {
        const char *slash = memchr(at + 1, '/', (size_t)(end - at - 1));
        const char *next = slash ? slash : end;
        char *part = bz_arena_alloc(r->arena, (size_t)(next - at) + 1);
        if (!part) {
            bz_schema_no_memory(r);
            return NULL;
        }
        found = step_into(found, part, decode_part(at + 1, (size_t)(next - at - 1), part));
        at = next;
    }
    if (!found) {
        bz_schema_fail(r, ref, "the reference leads nowhere");
    }
    return found;
}

/* ---- rules
 * --------------------------------------------------------------------------------------------- */

static void add_plain(schema_reader *r, all_of all, uint32_t from, uint32_t to)
{
    bz_build *b = r->build;
    merged m;
    if (!bz_all_merge(r, all, &m) || m.never) {
        return;
    }
    if (m.has_values) {
        for (uint32_t i = 0; i < m.n_values; i++) {
            bz_json_add_literal(r->rules, from, to, m.values[i]);
        }
        return;
    }
    if (m.kinds & KIND_NULL) {
        bz_build_text(b, from, to, "null", 4);
    }
    if (m.kinds & KIND_BOOL) {
        bz_build_text(b, from, to, "true", 4);
        bz_build_text(b, from, to, "false", 5);
    }
    if (m.kinds & KIND_NUMBER) {
        bz_schema_add_number(r, &m, from, to);
    }
    if (m.kinds & KIND_STRING) {
        bz_schema_add_string(r, &m, from, to);
    }
    if (m.kinds & KIND_ARRAY) {
        bz_schema_add_array(r, all, &m, from, to);
    }
    if (m.kinds & KIND_OBJECT) {
        bz_schema_add_object(r, all, &m, from, to);
    }
}

/* Item i of a oneOf without what fits item k. */
static bool exclude(schema_reader *r, const bz_json_node *at, all_of *way, uint32_t i, uint32_t k)
{
    const bz_json_node *other = at->of.first;
    for (uint32_t j = 0; j < k; j++) {
        other = other->next;
    }
    if (bz_all_add_not(r, way, other)) {
        return true;
    }
    if (r->status == BZ_BAD_SCHEMA) { /* that is the better reason */
        r->status = BZ_OK;
        bz_schema_fail(r, at,
                       "a value may fit both its items %u and %u; use anyOf, or make them differ "
                       "in a type, a const or a required property",
                       i < k ? i : k, i < k ? k : i);
    }
    return false;
}

/* What fits two items of a oneOf fits none of these. */
static bool make_exclusive(schema_reader *r, const bz_json_node *at, all_of *ways, uint32_t n)
{
    all_of *plain = bz_arena_array(r->arena, n, sizeof *plain);
    if (!plain) {
        return bz_schema_no_memory(r);
    }
    memcpy(plain, ways, n * sizeof *plain);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = i + 1; k < n; k++) {
            const bool apart = bz_schema_apart(r, plain[i], plain[k]);
            if (r->status != BZ_OK ||
                (!apart && (!exclude(r, at, &ways[i], i, k) || !exclude(r, at, &ways[k], k, i)))) {
                return false;
            }
        }
    }
    return true;
}

static bool is_alternative(all_of all)
{
    for (uint32_t i = 0; i < all.n; i++) {
        if (all.parts[i].skip) {
            return true;
        }
    }
    return false;
}

/* Adds what fits the list between two states. */
static void add_all(schema_reader *r, all_of all, uint32_t from, uint32_t to)
{
    all_of *ways;
    uint32_t n;
    const bz_json_node *exclusive;
    if (r->status != BZ_OK || !bz_all_alternatives(r, all, &ways, &n, &exclusive)) {
        return;
    }
    if (is_alternative(all) && bz_all_hopeless(r, all)) {
        return;
    }
    if (n == 0) {
        add_plain(r, all, from, to);
        return;
    }
    if (exclusive && !make_exclusive(r, exclusive, ways, n)) {
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        bz_build_call(r->build, from, to, bz_schema_rule_of(r, ways[i]));
    }
}

static int by_node(const void *x, const void *y)
{
    const schema_part *p = x, *q = y;
    const uintptr_t a = (uintptr_t)p->node, b = (uintptr_t)q->node;
    return a != b ? (a < b ? -1 : 1) : p->skip < q->skip ? -1 : p->skip > q->skip;
}

/* A number for a list, whatever its order. */
static uint32_t number_of(schema_reader *r, all_of all, bool *fresh)
{
    schema_part *sorted = bz_arena_array(r->arena, all.n + (size_t)1, sizeof *sorted);
    const bool nested = bz_all_has_rest(all); /* then it matters which part brought which */
    uint32_t *words = bz_arena_array(r->arena, 5 * (size_t)all.n + 1, sizeof *words), n = 0;
    if (!sorted || !words) {
        return UINT32_MAX;
    }
    if (all.n) {
        memcpy(sorted, all.parts, all.n * sizeof *sorted);
        qsort(sorted, all.n, sizeof *sorted, by_node);
    }
    for (uint32_t i = 0; i < all.n; i++) {
        const uint64_t address = (uint64_t)(uintptr_t)sorted[i].node;
        words[n++] = (uint32_t)address;
        words[n++] = (uint32_t)(address >> 32);
        words[n++] = sorted[i].skip | (uint32_t)nested << 8 | (uint32_t)sorted[i].shared << 9 |
                     (uint32_t)sorted[i].silent << 10;
        if (nested) {
            const uint64_t by = (uint64_t)(uintptr_t)sorted[i].by;
            words[n++] = (uint32_t)by;
            words[n++] = (uint32_t)(by >> 32);
        }
    }
    return bz_sets_number(&r->known, words, n, fresh);
}

uint32_t bz_schema_rule_of(schema_reader *r, all_of all)
{
    bool fresh;
    if (r->status != BZ_OK || r->build->failed) {
        return 0;
    }
    if (all.n == 0) {
        return bz_json_any_value(r->rules);
    }
    const uint32_t number = number_of(r, all, &fresh);
    if (number == UINT32_MAX) {
        bz_schema_no_memory(r);
        return 0;
    }
    if (!fresh) {
        return r->known_rule[number];
    }
    if (number >= MAX_RULES || r->depth >= MAX_NESTED) {
        bz_schema_fail(r, all.parts[0].node, "it is too large or nested too deeply");
        return 0;
    }
    if (number >= r->cap_known) {
        const uint32_t cap = r->cap_known ? 2 * r->cap_known : 64;
        uint32_t *rules = realloc(r->known_rule, cap * sizeof *rules);
        if (!rules) {
            bz_schema_no_memory(r);
            return 0;
        }
        r->known_rule = rules;
        r->cap_known = cap;
    }
    const uint32_t rule = bz_build_rule(r->build);
    r->known_rule[number] = rule;
    if (r->build->failed) {
        return 0;
    }
    r->depth++;
    add_all(r, all, r->build->rules[rule].start, r->build->rules[rule].end);
    r->depth--;
    return rule;
}

/* {"type": "object", "allOf": [SCHEMA], "unevaluatedProperties": false} */
static bool add_closed(schema_reader *r, all_of *all, const bz_json_node *schema)
{
    static const char *const keys[] = {"type", "allOf", "unevaluatedProperties"};
    bz_json_node *made = bz_arena_array(r->arena, 5, sizeof *made);
    if (!made) {
        return bz_schema_no_memory(r);
    }
    memset(made, 0, 5 * sizeof *made);
    for (size_t i = 0; i < 3; i++) {
        made[i].key = (bz_str){keys[i], strlen(keys[i])};
        made[i].next = i < 2 ? &made[i + 1] : NULL;
    }
    made[0].kind = BZ_JSON_STRING;
    made[0].of.text = (bz_str){"object", 6};
    made[1].kind = BZ_JSON_ARRAY;
    made[1].n = 1;
    made[1].of.first = &made[4];
    made[2].kind = BZ_JSON_FALSE;
    made[3].kind = BZ_JSON_OBJECT;
    made[3].n = 3;
    made[3].of.first = &made[0];
    if (!bz_all_add(r, all, schema, 0)) { /* reports errors with the schema's own nodes */
        return false;
    }
    *all = (all_of){0};
    made[4] = *schema;
    made[4].next = NULL;
    return bz_all_add(r, all, &made[3], 0);
}

bz_status bz_schema_rule(bz_json_rules *rules, const bz_json_node *schema, bool closed_object,
                         uint32_t *rule, bz_error *err)
{
    schema_reader r = {.root = schema,
                       .rules = rules,
                       .build = rules->build,
                       .arena = rules->arena,
                       .err = err,
                       .status = BZ_OK};
    all_of all = {0};
    if (closed_object ? add_closed(&r, &all, schema) : bz_all_add(&r, &all, schema, 0)) {
        *rule = bz_schema_rule_of(&r, all);
    }
    bz_sets_free(&r.known);
    bz_sets_free(&r.made_keys);
    free(r.known_rule);
    free(r.made);
    return r.status == BZ_OK ? bz_build_status(r.build, err) : r.status;
}

bz_status bz_schema_read(bz_grammar **out, const bz_json_node *schema, bz_error *err)
{
    bz_build build = {0};
    bz_arena arena = {0};
    bz_json_rules rules = {.build = &build, .arena = &arena};
    const uint32_t root = bz_build_rule(&build);
    uint32_t rule = 0;
    bz_status status = bz_schema_rule(&rules, schema, false, &rule, err);
    if (status == BZ_OK) {
        bz_build_call(&build, build.rules[root].start, build.rules[root].end, rule);
        status = bz_grammar_compile(out, &build, NULL, NULL, err);
    }
    bz_build_free(&build);
    bz_arena_free(&arena);
    return status;
}
