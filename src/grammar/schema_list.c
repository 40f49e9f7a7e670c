/* Lists of schemas that hold at one place, and their alternatives. */
#include <stdlib.h>
#include <string.h>

#include "grammar/schema_internal.h"

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
    /* the newest first: what they exclude need not be multiplied by the others */
    for (uint32_t i = all.n; i-- > 0;) {
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
