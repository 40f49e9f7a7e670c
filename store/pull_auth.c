#include "store/pull_auth.h"

#include <stdio.h>
#include <string.h>

#include "base/json_read.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool same(bz_str a, const char *b)
{
    const size_t n = strlen(b);
    bool equal = a.len == n;
    for (size_t i = 0; equal && i < n; i++) {
        equal = lower(a.data[i]) == b[i];
    }
    return equal;
}

/* Cuts the next `name="value"` or `name=value` from *s. Quoted values keep their escapes, which no
 * registry uses. */
static bool next_parameter(bz_str *s, bz_str *name, bz_str *value)
{
    size_t i = 0, n = s->len;
    while (i < n && (is_space(s->data[i]) || s->data[i] == ',')) {
        i++;
    }
    size_t from = i;
    while (i < n && s->data[i] != '=' && s->data[i] != ',' && !is_space(s->data[i])) {
        i++;
    }
    *name = (bz_str){s->data + from, i - from};
    if (i >= n || s->data[i] != '=') {
        return false;
    }
    const bool quoted = ++i < n && s->data[i] == '"';
    from = i += quoted;
    while (i < n && (quoted ? s->data[i] != '"' : s->data[i] != ',' && !is_space(s->data[i]))) {
        i++;
    }
    *value = (bz_str){s->data + from, i - from};
    if (quoted && i == n) {
        return false;
    }
    i += quoted;
    *s = (bz_str){s->data + i, n - i};
    return true;
}

typedef struct writer {
    char *to;
    size_t n, cap;
    bool full;
} writer;

static void put(writer *w, char c)
{
    if (w->n + 1 >= w->cap) {
        w->full = true;
    } else {
        w->to[w->n++] = c;
    }
}

static void put_query(writer *w, const char *key, bz_str value)
{
    static const char digits[] = "0123456789ABCDEF";
    put(w, memchr(w->to, '?', w->n) ? '&' : '?');
    for (const char *p = key; *p; p++) {
        put(w, *p);
    }
    put(w, '=');
    for (size_t i = 0; i < value.len; i++) {
        const char c = value.data[i];
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            (c && strchr("-._~", c))) {
            put(w, c);
        } else {
            put(w, '%');
            put(w, digits[(unsigned char)c >> 4]);
            put(w, digits[(unsigned char)c & 15]);
        }
    }
}

/* A scope may hold several, separated by spaces. */
static void put_scopes(writer *w, bz_str scope)
{
    for (size_t i = 0; i < scope.len;) {
        const char *space = memchr(scope.data + i, ' ', scope.len - i);
        const size_t n = space ? (size_t)(space - (scope.data + i)) : scope.len - i;
        if (n) {
            put_query(w, "scope", (bz_str){scope.data + i, n});
        }
        i += n + 1;
    }
}

static bool printable(bz_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.data[i] <= 0x20 || s.data[i] >= 0x7F) {
            return false;
        }
    }
    return s.len > 0;
}

bool bz_auth_token_url(bz_str challenge, char url[BZ_AUTH_URL])
{
    bz_str rest = challenge, name, value, realm = {0}, service = {0}, scope = {0};
    while (rest.len && is_space(rest.data[0])) {
        rest = (bz_str){rest.data + 1, rest.len - 1};
    }
    size_t n = 0;
    while (n < rest.len && !is_space(rest.data[n])) {
        n++;
    }
    if (!same((bz_str){rest.data, n}, "bearer")) {
        return false;
    }
    rest = (bz_str){rest.data + n, rest.len - n};
    while (next_parameter(&rest, &name, &value)) {
        if (same(name, "realm")) {
            realm = value;
        } else if (same(name, "service")) {
            service = value;
        } else if (same(name, "scope")) {
            scope = value;
        }
    }
    if (!printable(realm) || memchr(realm.data, '#', realm.len)) {
        return false;
    }
    writer w = {.to = url, .cap = BZ_AUTH_URL};
    for (size_t i = 0; i < realm.len; i++) {
        put(&w, realm.data[i]);
    }
    if (service.len) {
        put_query(&w, "service", service);
    }
    put_scopes(&w, scope);
    url[w.n] = 0;
    return !w.full;
}

bool bz_auth_token(bz_str json, char token[BZ_AUTH_TOKEN])
{
    bz_arena arena = {0};
    const bz_json_node *root;
    bool found = false;
    if (bz_json_read(&root, json.data, json.len, &arena, NULL) == BZ_OK) {
        bz_str t = bz_json_string(bz_json_get(root, "token"));
        t = t.len ? t : bz_json_string(bz_json_get(root, "access_token"));
        if (printable(t) && t.len < BZ_AUTH_TOKEN) {
            memcpy(token, t.data, t.len);
            token[t.len] = 0;
            found = true;
        }
    }
    bz_arena_free(&arena);
    return found;
}
