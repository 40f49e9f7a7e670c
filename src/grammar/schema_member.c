/* What a list of schemas says of a member or an item. */
#include <string.h>

#include "grammar/schema_internal.h"

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
