/* Tools in a prompt: JSON values in the model's syntax, and tool declarations.
 *
 *   declaration:NAME{description:"...",parameters:{properties:{...},required:[...],type:"OBJECT"}}
 *
 * where " is the quote token. Members are sorted by the bytes of their names. Other keywords of a
 * schema (minimum, pattern, default ...) are omitted: the model was not trained with them.
 */
#include "text/chat_write.h"

#include <string.h>

/* ---- values ----------------------------------------------------------------- */

static void put_quoted(bz_prompt *p, bz_str text)
{
    bz_put_template(p, BZ_QUOTE);
    bz_put_plain(p, text);
    bz_put_template(p, BZ_QUOTE);
}

void bz_put_members(bz_prompt *p, const bz_json_node *object, bool quote_keys)
{
    size_t n;
    const bz_json_node **sorted = bz_json_sorted(object, &p->arena, &n);
    if (!sorted) {
        p->failed = true;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        bz_put_template(p, i ? "," : "");
        if (quote_keys) {
            put_quoted(p, sorted[i]->key);
        } else {
            bz_put_plain(p, sorted[i]->key);
        }
        bz_put_template(p, ":");
        bz_put_value(p, sorted[i], quote_keys);
    }
}

void bz_put_value(bz_prompt *p, const bz_json_node *node, bool quote_keys)
{
    switch (node ? node->kind : BZ_JSON_NULL) {
    case BZ_JSON_FALSE: bz_put_template(p, "false"); return;
    case BZ_JSON_TRUE: bz_put_template(p, "true"); return;
    case BZ_JSON_NUMBER: bz_put_plain(p, node->of.text); return;
    case BZ_JSON_STRING: put_quoted(p, node->of.text); return;
    case BZ_JSON_ARRAY:
        bz_put_template(p, "[");
        for (const bz_json_node *item = node->of.first; item; item = item->next) {
            bz_put_value(p, item, quote_keys);
            bz_put_template(p, item->next ? "," : "");
        }
        bz_put_template(p, "]");
        return;
    case BZ_JSON_OBJECT:
        bz_put_template(p, "{");
        bz_put_members(p, node, quote_keys);
        bz_put_template(p, "}");
        return;
    default: bz_put_template(p, "null");
    }
}

/* ---- types ------------------------------------------------------------------ */

static bz_str upper(bz_prompt *p, bz_str s)
{
    char *text = bz_arena_alloc(&p->arena, s.len);
    if (!text) {
        p->failed = true;
        return (bz_str){"", 0};
    }
    for (size_t i = 0; i < s.len; i++) {
        char c = s.data[i];
        text[i] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
    }
    return (bz_str){text, s.len};
}

enum { MAX_UNION = 16 }; /* JSON Schema has seven types */

static size_t add_type(bz_str types[MAX_UNION], size_t n, bz_str type)
{
    for (size_t i = 0; i < n; i++) {
        if (types[i].len == type.len && memcmp(types[i].data, type.data, type.len) == 0) {
            return n;
        }
    }
    if (n < MAX_UNION) {
        types[n++] = type;
    }
    return n;
}

/* Adds a string, or the strings of a list. */
static size_t add_types(bz_str types[MAX_UNION], size_t n, const bz_json_node *type)
{
    if (bz_json_is(type, BZ_JSON_STRING)) {
        return add_type(types, n, type->of.text);
    }
    for (const bz_json_node *item = bz_json_first(type); item; item = item->next) {
        if (bz_json_is(item, BZ_JSON_STRING)) {
            n = add_type(types, n, item->of.text);
        }
    }
    return n;
}

/* The types of a schema. Generators write "string or null" as `anyOf`: a list of bare types means
 * the same as a list in `type`. */
static size_t types_of(bz_str types[MAX_UNION], const bz_json_node *schema)
{
    size_t n = add_types(types, 0, bz_json_get(schema, "type"));
    if (n > 0 || bz_json_get(schema, "type")) {
        return n;
    }
    for (const bz_json_node *one = bz_json_first(bz_json_get(schema, "anyOf")); one;
         one = one->next) {
        const bz_json_node *type = bz_json_get(one, "type");
        if (!type || one->n != 1) {
            return 0;
        }
        n = add_types(types, n, type);
    }
    return n;
}

/* One type by its name; several as Python prints a list, as the template does; none as "". */
static bz_str type_text(bz_prompt *p, const bz_json_node *schema)
{
    bz_str types[MAX_UNION];
    size_t n = types_of(types, schema), size = 2, at = 0;
    if (n <= 1) {
        return n ? upper(p, types[0]) : (bz_str){"", 0};
    }
    for (size_t i = 0; i < n; i++) {
        size += types[i].len + 4;
    }
    char *text = bz_arena_alloc(&p->arena, size);
    if (!text) {
        p->failed = true;
        return (bz_str){"", 0};
    }
    text[at++] = '[';
    for (size_t i = 0; i < n; i++) {
        if (i) {
            text[at++] = ',';
            text[at++] = ' ';
        }
        text[at++] = '\'';
        memcpy(text + at, types[i].data, types[i].len);
        at += types[i].len;
        text[at++] = '\'';
    }
    text[at++] = ']';
    return upper(p, (bz_str){text, at});
}

/* ---- schemas ---------------------------------------------------------------- */

/* A comma before every field but the first. */
static void put_field(bz_prompt *p, bool *any, const char *name)
{
    bz_put_template(p, *any ? "," : "");
    bz_put_template(p, name);
    *any = true;
}

static void put_required(bz_prompt *p, const bz_json_node *list)
{
    bool any = false;
    bz_put_template(p, "[");
    for (const bz_json_node *item = bz_json_first(list); item; item = item->next) {
        if (bz_json_is(item, BZ_JSON_STRING)) {
            put_field(p, &any, "");
            put_quoted(p, item->of.text);
        }
    }
    bz_put_template(p, "]");
}

static bool has_items(const bz_json_node *node, bz_json_kind kind)
{
    return bz_json_is(node, kind) && node->n > 0;
}

static void put_properties(bz_prompt *p, const bz_json_node *properties, bool of_schema);

/* The schema of an array's elements. Unlike in a property, every key is written. */
static void put_items(bz_prompt *p, const bz_json_node *items)
{
    size_t n;
    bool any = false;
    const bz_json_node **sorted = bz_json_sorted(items, &p->arena, &n);
    if (!sorted) {
        p->failed = true;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const bz_json_node *item = sorted[i];
        if (item->kind == BZ_JSON_NULL) {
            continue;
        }
        put_field(p, &any, "");
        bz_put_plain(p, item->key);
        bz_put_template(p, ":");
        if (bz_str_is(item->key, "properties")) {
            bz_put_template(p, "{");
            put_properties(p, item, false);
            bz_put_template(p, "}");
        } else if (bz_str_is(item->key, "required")) {
            put_required(p, item);
        } else if (!bz_str_is(item->key, "type")) {
            bz_put_value(p, item, true);
        } else if (item->kind == BZ_JSON_STRING) {
            put_quoted(p, upper(p, item->of.text));
        } else {
            bool more = false;
            bz_put_template(p, "[");
            for (const bz_json_node *type = bz_json_first(item); type; type = type->next) {
                put_field(p, &more, "");
                put_quoted(p, upper(p, bz_json_string(type)));
            }
            bz_put_template(p, "]");
        }
    }
}

static void put_property(bz_prompt *p, const bz_json_node *schema)
{
    bool any = false;
    bz_str type = type_text(p, schema),
           description = bz_json_string(bz_json_get(schema, "description"));
    if (description.len) {
        put_field(p, &any, "description:");
        put_quoted(p, description);
    }
    if (bz_str_is(type, "STRING") && has_items(bz_json_get(schema, "enum"), BZ_JSON_ARRAY)) {
        put_field(p, &any, "enum:");
        bz_put_value(p, bz_json_get(schema, "enum"), true);
    }
    if (bz_str_is(type, "ARRAY") && has_items(bz_json_get(schema, "items"), BZ_JSON_OBJECT)) {
        put_field(p, &any, "items:{");
        put_items(p, bz_json_get(schema, "items"));
        bz_put_template(p, "}");
    }
    if (bz_json_is(bz_json_get(schema, "nullable"), BZ_JSON_TRUE)) {
        put_field(p, &any, "nullable:true");
    }
    if (bz_str_is(type, "OBJECT")) {
        const bz_json_node *properties = bz_json_get(schema, "properties");
        bool has_properties = bz_json_is(properties, BZ_JSON_OBJECT);
        put_field(p, &any, "properties:{");
        put_properties(p, has_properties ? properties : schema, !has_properties);
        bz_put_template(p, "}");
        if (has_items(bz_json_get(schema, "required"), BZ_JSON_ARRAY)) {
            put_field(p, &any, "required:");
            put_required(p, bz_json_get(schema, "required"));
        }
    }
    put_field(p, &any, "type:");
    put_quoted(p, type);
}

static bool is_schema_keyword(bz_str key)
{
    return bz_str_is(key, "description") || bz_str_is(key, "type") ||
           bz_str_is(key, "properties") || bz_str_is(key, "required") || bz_str_is(key, "nullable");
}

/* of_schema: the properties are direct members of a schema without `properties`; the keywords that
 * the template knows are omitted, and others (title, additionalProperties: false) become properties
 * without a type, as in the template. */
static void put_properties(bz_prompt *p, const bz_json_node *properties, bool of_schema)
{
    size_t n;
    bool any = false;
    const bz_json_node **sorted = bz_json_sorted(properties, &p->arena, &n);
    if (!sorted) {
        p->failed = true;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (of_schema && is_schema_keyword(sorted[i]->key)) {
            continue;
        }
        put_field(p, &any, "");
        bz_put_plain(p, sorted[i]->key);
        bz_put_template(p, ":{");
        put_property(p, sorted[i]);
        bz_put_template(p, "}");
    }
}

/* ---- declarations ----------------------------------------------------------- */

static void put_parameters(bz_prompt *p, const bz_json_node *parameters)
{
    bool any = false;
    bz_str type = type_text(p, parameters);
    bz_put_template(p, ",parameters:{");
    if (has_items(bz_json_get(parameters, "properties"), BZ_JSON_OBJECT)) {
        put_field(p, &any, "properties:{");
        put_properties(p, bz_json_get(parameters, "properties"), false);
        bz_put_template(p, "}");
    }
    if (has_items(bz_json_get(parameters, "required"), BZ_JSON_ARRAY)) {
        put_field(p, &any, "required:");
        put_required(p, bz_json_get(parameters, "required"));
    }
    if (type.len) {
        put_field(p, &any, "type:");
        put_quoted(p, type);
    }
    bz_put_template(p, "}");
}

static void put_response(bz_prompt *p, const bz_json_node *response)
{
    bool any = false;
    bz_str type = type_text(p, response),
           description = bz_json_string(bz_json_get(response, "description"));
    bz_put_template(p, ",response:{");
    if (description.len) {
        put_field(p, &any, "description:");
        put_quoted(p, description);
    }
    if (type.len) {
        put_field(p, &any, "type:");
        put_quoted(p, type);
    }
    bz_put_template(p, "}");
}

bz_status bz_put_declarations(bz_prompt *p, const bz_json_node *tools, bz_error *err)
{
    size_t number = 0;
    for (const bz_json_node *tool = bz_json_first(tools); tool; tool = tool->next) {
        const bz_json_node *function = bz_json_get(tool, "function");
        number++;
        if (!function) {
            function = tool; /* some callers omit the enclosing object */
        }
        bz_str name = bz_json_string(bz_json_get(function, "name"));
        if (!name.len) {
            return bz_fail(err, BZ_BAD_REQUEST, "Tool %zu has no name: each needs function.name.",
                           number);
        }
        bz_put_template(p, "<|tool>declaration:");
        bz_put_plain(p, name);
        bz_put_template(p, "{description:");
        put_quoted(p, bz_json_string(bz_json_get(function, "description")));
        if (has_items(bz_json_get(function, "parameters"), BZ_JSON_OBJECT)) {
            put_parameters(p, bz_json_get(function, "parameters"));
        }
        if (bz_json_is(bz_json_get(function, "response"), BZ_JSON_OBJECT)) {
            put_response(p, bz_json_get(function, "response"));
        }
        bz_put_template(p, "}<tool|>");
    }
    return BZ_OK;
}
