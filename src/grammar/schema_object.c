/* Objects of a schema. */
#include <stdlib.h>
#include <string.h>

#include "grammar/regex.h"
#include "grammar/schema_internal.h"

enum { MAX_COUNTED = 64 };

typedef struct listed_member {
    bz_str key;
    all_of all;
    bool required;
} listed_member;

typedef struct object_writer {
    schema_reader *r;
    bz_build *b;
    all_of all;
    const merged *m;
    listed_member *members;
    uint32_t n_members, cap_members, n_required;
    bz_str patterns[5];
    uint32_t n_patterns;
    bool others;  /* members that are not listed are allowed */
    bool never;   /* there is no such object */
    uint32_t cap; /* counts of members are kept up to this; 0: they do not matter */
} object_writer;

/* ---- which members
 * ---------------------------------------------------------------------------------- */

static bool add_member(object_writer *w, bz_str key)
{
    for (uint32_t i = 0; i < w->n_members; i++) {
        if (w->members[i].key.len == key.len &&
            memcmp(w->members[i].key.data, key.data, key.len) == 0) {
            return true;
        }
    }
    if (w->n_members == w->cap_members) {
        const uint32_t cap = w->cap_members ? 2 * w->cap_members : 16;
        listed_member *more = bz_arena_array(w->r->arena, cap, sizeof *more);
        if (!more) {
            return bz_schema_no_memory(w->r);
        }
        if (w->n_members) {
            memcpy(more, w->members, w->n_members * sizeof *more);
        }
        w->members = more;
        w->cap_members = cap;
    }
    listed_member x = {.key = key, .required = bz_all_requires(w->all, key)};
    if (!bz_all_member(w->r, w->all, key, &x.all)) {
        return false;
    }
    if (bz_all_never(x.all)) {
        w->never |= x.required; /* kept, so that its name is not among the others */
    }
    w->n_required += x.required;
    w->members[w->n_members++] = x;
    return true;
}

static bool add_keys(object_writer *w, const bz_json_node *object)
{
    for (const bz_json_node *x = bz_json_first(object); x; x = x->next) {
        if (!add_member(w, x->key)) {
            return false;
        }
    }
    return true;
}

static bool add_names(object_writer *w, const bz_json_node *list)
{
    for (const bz_json_node *x = bz_json_first(list); x; x = x->next) {
        if (x->kind == BZ_JSON_STRING && !add_member(w, x->of.text)) {
            return false;
        }
    }
    return true;
}

/* The names that propertyNames lists, if it does. */
static bool add_allowed_names(object_writer *w, const bz_json_node *schema)
{
    all_of all = {0};
    merged m;
    if (!bz_all_add(w->r, &all, schema, 0) || !bz_all_merge(w->r, all, &m)) {
        return false;
    }
    for (uint32_t i = 0; m.has_values && !m.never && i < m.n_values; i++) {
        if (m.values[i]->kind == BZ_JSON_STRING && !add_member(w, m.values[i]->of.text)) {
            return false;
        }
    }
    return true;
}

static int by_key(const void *x, const void *y)
{
    const listed_member *p = x, *q = y;
    const size_t n = p->key.len < q->key.len ? p->key.len : q->key.len;
    const int order = memcmp(p->key.data, q->key.data, n);
    return order ? order : (p->key.len > n) - (q->key.len > n);
}

static bool list_members(object_writer *w)
{
    for (uint32_t i = 0; i < w->all.n; i++) {
        const bz_json_node *node = w->all.parts[i].node, *list = bz_json_get(node, "properties");
        if (list && !bz_json_is(list, BZ_JSON_OBJECT)) {
            return bz_schema_fail(w->r, list, "properties is an object");
        }
        if (!add_keys(w, list)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < w->all.n; i++) {
        const bz_json_node *node = w->all.parts[i].node, *list = bz_json_get(node, "required"),
                           *names = bz_json_get(node, "propertyNames");
        if (list && !bz_json_is(list, BZ_JSON_ARRAY) && list->kind != BZ_JSON_TRUE &&
            list->kind != BZ_JSON_FALSE) { /* of draft 3: true in a property */
            return bz_schema_fail(w->r, list, "required is a list of names");
        }
        if (!add_names(w, list) || (names && !add_allowed_names(w, names))) {
            return false;
        }
    }
    if (w->r->rules->native && w->n_members > 1) {
        qsort(w->members, w->n_members, sizeof *w->members, by_key);
    }
    return true;
}

/* ---- names that are not listed
 * ------------------------------------------------------------------------- */

/* Takes what y has, or has not, from *x. */
static bool cut(object_writer *w, bz_dfa *x, bz_dfa *y, bool without)
{
    bz_dfa out = {0};
    bz_error error;
    const bz_status status = bz_dfa_meet(&out, x, y, without, &error);
    bz_dfa_free(x);
    bz_dfa_free(y);
    *x = out;
    return status == BZ_OK           ? true
           : status == BZ_BAD_SCHEMA ? bz_schema_fail(w->r, w->m->at, "%s", error.text)
                                     : bz_schema_no_memory(w->r);
}

/* The names that are listed, as they are written. */
static bool listed_dfa(object_writer *w, bz_dfa *out)
{
    bz_build b = {0};
    bz_json_rules rules = {.build = &b, .arena = w->r->arena, .native = w->r->rules->native};
    const uint32_t rule = bz_build_rule(&b);
    uint32_t first;
    for (uint32_t i = 0; i < w->n_members && !b.failed; i++) {
        bz_json_add_text(&rules, b.rules[rule].start, b.rules[rule].end, w->members[i].key);
    }
    const bool good = !b.failed && bz_dfa_append(out, &b, b.rules[rule].start, b.rules[rule].end,
                                                 &first, NULL) == BZ_OK;
    bz_build_free(&b);
    return good || bz_schema_no_memory(w->r);
}

static bz_str text_of(const char *s)
{
    return (bz_str){s, strlen(s)};
}

/* Names, as they are written, that match the patterns in `set`, no others, and are not listed. */
static bool names_dfa(object_writer *w, uint32_t set, bz_dfa *out)
{
    schema_reader *r = w->r;
    bz_dfa listed = {0};
    /* bare names of the model's notation */
    const char *any = r->rules->native ? "^[^\\x00-\\x20\\x7f:,{}\\[\\]\"]+$" : "";
    if (!bz_schema_pattern_dfa(r, w->m->at, text_of(any), true, out) || !listed_dfa(w, &listed) ||
        !cut(w, out, &listed, true)) {
        bz_dfa_free(&listed);
        return false;
    }
    for (uint32_t i = 0; i < w->n_patterns; i++) {
        bz_dfa pattern = {0};
        if (!bz_schema_pattern_dfa(r, w->m->at, w->patterns[i], true, &pattern) ||
            !cut(w, out, &pattern, !(set >> i & 1))) {
            bz_dfa_free(&pattern);
            return false;
        }
    }
    for (uint32_t i = 0; i < w->all.n; i++) {
        const bz_json_node *names = bz_json_get(w->all.parts[i].node, "propertyNames");
        all_of all = {0};
        merged m;
        bz_dfa d = {0};
        if (!names) {
            continue;
        }
        if (!bz_all_add(r, &all, names, 0) || !bz_all_merge(r, all, &m)) {
            return false;
        }
        if (m.never || m.has_values ||
            !(m.kinds & KIND_STRING)) { /* the names are listed, or none */
            bz_dfa none = {0};
            bz_build b = {0};
            const uint32_t rule = bz_build_rule(&b);
            uint32_t first;
            const bool good = !b.failed && bz_dfa_append(&none, &b, b.rules[rule].start,
                                                         b.rules[rule].end, &first, NULL) == BZ_OK;
            bz_build_free(&b);
            if (!good || !cut(w, out, &none, false)) {
                return good || bz_schema_no_memory(r);
            }
        } else if ((m.n_patterns || m.n_not_patterns || m.min_length ||
                    m.max_length != BZ_NO_LIMIT) &&
                   (!bz_schema_string_dfa(r, &m, &d) || !cut(w, out, &d, false))) {
            bz_dfa_free(&d);
            return false;
        }
    }
    return true;
}

static bool has_names(const object_writer *w)
{
    for (uint32_t i = 0; i < w->all.n; i++) {
        if (bz_json_get(w->all.parts[i].node, "propertyNames")) {
            return true;
        }
    }
    return false;
}

/* ---- the graph
 * ----------------------------------------------------------------------------------------- */

/* The colon and a value of the schemas. */
static void add_value(object_writer *w, uint32_t key, uint32_t to, all_of all)
{
    const uint32_t colon = bz_build_state(w->b);
    bz_build_bytes(w->b, key, colon, ':', ':');
    bz_build_call(w->b, bz_json_add_space(w->r->rules, colon), to, bz_schema_rule_of(w->r, all));
}

static void add_others(object_writer *w, uint32_t from, uint32_t to)
{
    bz_build *b = w->b;
    for (uint32_t set = 0; set < 1u << w->n_patterns && w->r->status == BZ_OK; set++) {
        all_of all;
        if (!bz_all_others(w->r, w->all, set, &all) || bz_all_never(all)) {
            continue;
        }
        const uint32_t key = bz_build_state(b);
        if (!w->n_members && !w->n_patterns && !has_names(w)) {
            bz_build_call(b, from, key, bz_json_any_key(w->r->rules));
        } else {
            bz_dfa d = {0};
            const bool quoted = !w->r->rules->native;
            const uint32_t begin = quoted ? bz_build_state(b) : from,
                           end = quoted ? bz_build_state(b) : key;
            if (quoted) {
                bz_json_add_quote(w->r->rules, from, begin);
                bz_json_add_quote(w->r->rules, end, key);
            }
            if (names_dfa(w, set, &d)) {
                bz_dfa_emit(&d, b, begin, end);
            }
            bz_dfa_free(&d);
        }
        add_value(w, key, to, all);
    }
}

/* States after the members before number i, by how many there are: [n_members + 1][cap + 1]. The
 * count stays at the cap if there is no greatest one. */
static uint32_t next_count(const object_writer *w, uint32_t count)
{
    return count < w->cap ? count + 1 : w->m->max_members == BZ_NO_LIMIT ? w->cap : UINT32_MAX;
}

static uint32_t after_comma(object_writer *w, uint32_t from, bool first)
{
    if (first) {
        return from;
    }
    const uint32_t comma = bz_build_state(w->b);
    bz_build_bytes(w->b, from, comma, ',', ',');
    return bz_json_add_space(w->r->rules, comma);
}

/* some[i][c]: members were written; none[i]: not yet. */
static void add_chain(object_writer *w, uint32_t from, uint32_t to)
{
    bz_build *b = w->b;
    const uint32_t n = w->n_members, width = w->cap + 1;
    const bool counts = w->cap > 0;
    uint32_t *some = bz_arena_array(w->r->arena, (n + (size_t)1) * width + n + 1, sizeof *some);
    if (!some) {
        bz_schema_no_memory(w->r);
        return;
    }
    uint32_t *none = some + (n + (size_t)1) * width;
    for (uint32_t i = 0; i <= n; i++) {
        for (uint32_t c = 0; c < width; c++) {
            some[i * width + c] = bz_build_state(b);
        }
        none[i] = i ? bz_build_state(b) : from;
    }
    for (uint32_t i = 0; i <= n && !b->failed && w->r->status == BZ_OK; i++) {
        const listed_member *x = i < n ? &w->members[i] : NULL;
        for (uint32_t c = 0; c <= width; c++) { /* c == width: none[i] */
            const bool first = c == width;
            const uint32_t state = first ? none[i] : some[i * width + c],
                           now = counts && !first ? c : 0, next = counts ? next_count(w, now) : 0;
            if (counts && !first && c == 0) {
                continue;
            }
            if (x && !x->required) {
                bz_build_empty(b, state, first ? none[i + 1] : some[(i + 1) * width + c]);
            }
            if (x && !bz_all_never(x->all) && next != UINT32_MAX) {
                const uint32_t key = bz_build_state(b);
                bz_json_add_key(w->r->rules, after_comma(w, state, first), key, x->key);
                add_value(w, key, some[(i + 1) * width + next], x->all);
            }
            if (!x && w->others && next != UINT32_MAX) {
                add_others(w, after_comma(w, state, first), some[n * width + next]);
            }
            if (!x && now >= w->m->min_members * counts) {
                const uint32_t end = first ? state : bz_json_add_space(w->r->rules, state);
                bz_build_bytes(b, end, to, '}', '}');
            }
        }
    }
}

/* Whether members must be counted, and up to what. False: refused. */
static bool decide_counts(object_writer *w)
{
    const merged *m = w->m;
    const bool least = m->min_members > w->n_required,
               most = m->max_members != BZ_NO_LIMIT && (w->others || m->max_members < w->n_members);
    if (w->others && m->min_members > w->n_required + 1) {
        return bz_schema_fail(w->r, m->at,
                              "minProperties above the number of required properties plus one is "
                              "supported only with additionalProperties false");
    }
    if (!least && !most) {
        return true;
    }
    w->cap = most ? m->max_members : m->min_members;
    if (most && m->max_members == 0) {
        w->others = false;
        w->cap = 1;
    }
    if (w->cap > MAX_COUNTED || (uint64_t)w->cap * w->n_members > 4096) {
        return bz_schema_fail(w->r, m->at,
                              "minProperties or maxProperties above %d is not "
                              "supported here",
                              (int)MAX_COUNTED);
    }
    return true;
}

void bz_schema_add_object(schema_reader *r, all_of all, const merged *m, uint32_t from, uint32_t to)
{
    object_writer w = {.r = r, .b = r->build, .all = all, .m = m};
    const uint32_t open = bz_build_state(r->build);
    if (!list_members(&w) || !bz_all_patterns(r, all, w.patterns, &w.n_patterns)) {
        return;
    }
    for (uint32_t set = 0; set < 1u << w.n_patterns && !w.others; set++) {
        all_of other;
        if (!bz_all_others(r, all, set, &other)) {
            return;
        }
        w.others = !bz_all_never(other);
    }
    if (w.never || m->min_members > m->max_members || w.n_required > m->max_members ||
        !decide_counts(&w)) {
        return;
    }
    bz_build_bytes(r->build, from, open, '{', '{');
    const uint32_t inside = bz_json_add_space(r->rules, open);
    if (m->max_members == 0) {
        bz_build_bytes(r->build, inside, to, '}', '}');
        return;
    }
    add_chain(&w, inside, to);
}
