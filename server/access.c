#include "server/access.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "server/http.h"
#include "server/os.h"

enum { HOST_SIZE = 256 };

/* The host of "host", "host:port" or "[v6]:port", without brackets and a final dot. */
static bool read_host(bz_str authority, char host[HOST_SIZE])
{
    bz_str name = authority, port = {NULL, 0};
    const bool bracket = name.len && name.data[0] == '[';
    const char *end = name.len ? memchr(name.data, bracket ? ']' : ':', name.len) : NULL;
    if (bracket && !end) {
        return false;
    }
    if (end) {
        const char *after = end + bracket;
        port = (bz_str){after, authority.len - (size_t)(after - authority.data)};
        name = (bz_str){authority.data + bracket, (size_t)(end - authority.data) - bracket};
    }
    if (port.len && (port.data[0] != ':' || port.len > 6)) {
        return false;
    }
    for (size_t i = 1; i < port.len; i++) {
        if (port.data[i] < '0' || port.data[i] > '9') {
            return false;
        }
    }
    name.len -= name.len > 1 && !bracket && name.data[name.len - 1] == '.';
    if (name.len == 0 || name.len >= HOST_SIZE) {
        return false;
    }
    memcpy(host, name.data, name.len);
    host[name.len] = 0;
    return true;
}

/* An address in 16 bytes, IPv4 mapped to IPv6, so that each address has one form. */
static bool read_address(const char *text, uint8_t out[16])
{
    static const uint8_t v4[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
    memcpy(out, v4, sizeof v4);
    return os_parse_v4(text, out + 12) || os_parse_v6(text, out);
}

static bool is_v4(const uint8_t a[16])
{
    uint8_t mapped[16];
    return read_address("0.0.0.0", mapped) && memcmp(a, mapped, 12) == 0;
}

static bool is_loopback(const uint8_t a[16])
{
    static const uint8_t v6[16] = {[15] = 1};
    return is_v4(a) ? a[12] == 127 : memcmp(a, v6, 16) == 0;
}

static bool is_everywhere(const uint8_t a[16])
{
    static const uint8_t zeros[16];
    return memcmp(a + (is_v4(a) ? 12 : 0), zeros, is_v4(a) ? 4 : 16) == 0;
}

bool access_is_loopback(const char *address)
{
    uint8_t a[16];
    return read_address(address, a) && is_loopback(a);
}

static bool is_named(const access_rules *rules, const char *host)
{
    const bz_str s = {host, strlen(host)};
    for (size_t i = 0; i < rules->n_names && rules->names[i]; i++) {
        if (http_same(s, rules->names[i])) {
            return true;
        }
    }
    return false;
}

static bool is_localhost(const char *host)
{
    static const char name[] = "localhost";
    const size_t n = strlen(host), m = sizeof name - 1;
    return n >= m && http_same((bz_str){host + n - m, m}, name) &&
           (n == m || host[n - m - 1] == '.');
}

bool access_host(const access_rules *rules, bz_str authority)
{
    char host[HOST_SIZE];
    uint8_t asked[16], bound[16];
    if (!read_host(authority, host)) {
        return false;
    }
    if (is_localhost(host) || is_named(rules, host)) {
        return true;
    }
    if (!read_address(host, asked)) {
        return false;
    }
    return is_loopback(asked) || (read_address(rules->address, bound) &&
                                  (is_everywhere(bound) || memcmp(asked, bound, 16) == 0));
}

/* "*" matches any text. */
static bool matches(const char *pattern, bz_str text)
{
    const char *star = NULL; /* the last one seen, and what it had matched */
    size_t at = 0, tried = 0;
    while (at < text.len) {
        if (*pattern == '*') {
            star = pattern++;
            tried = at;
        } else if (*pattern && (*pattern | 32) == (text.data[at] | 32)) {
            pattern++;
            at++;
        } else if (star) {
            pattern = star + 1;
            at = ++tried;
        } else {
            return false;
        }
    }
    pattern += strspn(pattern, "*");
    return *pattern == 0;
}

/* The pattern is a host: of pages by http and https, on any port. */
static bool matches_host(const char *pattern, bz_str origin)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (int i = 0; i < 2; i++) {
        const size_t n = strlen(schemes[i]);
        char host[HOST_SIZE];
        if (origin.len > n && http_same((bz_str){origin.data, n}, schemes[i]) &&
            read_host((bz_str){origin.data + n, origin.len - n}, host) &&
            matches(pattern, (bz_str){host, strlen(host)})) {
            return true;
        }
    }
    return false;
}

bool access_foreign_origin(const access_rules *rules, bz_str origin)
{
    for (size_t i = 0; i < rules->n_origins; i++) {
        const char *pattern = rules->origins[i];
        if (strcmp(pattern, "*") == 0 || matches(pattern, origin) ||
            (!strstr(pattern, "://") && matches_host(pattern, origin))) {
            return true;
        }
    }
    return false;
}

bool access_key(const access_rules *rules, bz_str authorization)
{
    static const char scheme[] = "Bearer ";
    const size_t n = sizeof scheme - 1;
    if (!rules->key) {
        return true;
    }
    if (authorization.len < n || !http_same((bz_str){authorization.data, n}, scheme)) {
        return false;
    }
    const bz_str given = http_trim((bz_str){authorization.data + n, authorization.len - n});
    const size_t length = strlen(rules->key);
    unsigned char differs = given.len != length;
    for (size_t i = 0; i < length; i++) {
        const char c = given.len ? given.data[i % given.len] : 0;
        differs |= (unsigned char)(c ^ rules->key[i]);
    }
    return !differs;
}

bool access_origin(const access_rules *rules, bz_str origin, bz_str authority)
{
    const char *mark = origin.len > 3 ? bz_text_find(origin.data, origin.len, "://") : NULL;
    char host[HOST_SIZE], own[HOST_SIZE + 16];
    if (access_foreign_origin(rules, origin)) {
        return true;
    }
    if (!mark) {
        return false;
    }
    const bz_str rest = {mark + 3, origin.len - (size_t)(mark + 3 - origin.data)};
    if (!read_host(rest, host)) {
        return false;
    }
    if (authority.len < HOST_SIZE && authority.len > 0) {
        snprintf(own, sizeof own, "http://%.*s", (int)authority.len, authority.data);
        if (http_same(origin, own)) {
            return true;
        }
    }
    return is_named(rules, host);
}
