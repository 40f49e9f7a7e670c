#include "server/http.h"

#include <string.h>

/* ---- characters ------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Of a method or a field's name (RFC 9110, "tchar"). */
static bool is_token(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_visible(char c)
{
    return c > 0x20 && c < 0x7F;
}

static size_t token_length(bz_str s)
{
    size_t n = 0;
    while (n < s.len && is_token(s.data[n])) {
        n++;
    }
    return n;
}

static http_answer refuse(http_refusal *r, int status, const char *why)
{
    *r = (http_refusal){status, why};
    return HTTP_BAD;
}

/* ---- the request line --------------------------------------------------------------- */

static const struct {
    const char *name;
    http_method method;
} methods[] = {{"GET", HTTP_GET},    {"HEAD", HTTP_HEAD},     {"POST", HTTP_POST},
               {"PUT", HTTP_PUT},    {"DELETE", HTTP_DELETE}, {"OPTIONS", HTTP_OPTIONS},
               {"PATCH", HTTP_PATCH}};

const char *http_method_name(http_method method)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (methods[i].method == method) {
            return methods[i].name;
        }
    }
    return "?";
}

static bool read_method(http_head *h, bz_str name)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (bz_str_is(name, methods[i].name)) { /* methods are case-sensitive */
            h->method = methods[i].method;
            return true;
        }
    }
    return false;
}

static http_span span_of(const http_head *h, bz_str s)
{
    return (http_span){(uint32_t)(s.data - h->bytes), (uint32_t)s.len};
}

static bz_str after(bz_str s, size_t n)
{
    return (bz_str){s.data + n, s.len - n};
}

/* "http://host/path", the form for proxies, which servers must accept. */
static bool read_absolute(http_head *h, bz_str *target)
{
    static const char scheme[] = "http://";
    const size_t n = sizeof scheme - 1;
    if (target->len <= n || !http_same((bz_str){target->data, n}, scheme)) {
        return false;
    }
    bz_str rest = after(*target, n);
    size_t host = 0;
    while (host < rest.len && rest.data[host] != '/' && rest.data[host] != '?') {
        host++;
    }
    h->authority = span_of(h, (bz_str){rest.data, host});
    *target = after(rest, host);
    return host > 0 && target->len > 0 && target->data[0] == '/';
}

static bool read_target(http_head *h, bz_str target)
{
    for (size_t i = 0; i < target.len; i++) {
        if (!is_visible(target.data[i]) || target.data[i] == '#') {
            return false;
        }
    }
    if (bz_str_is(target, "*") && h->method == HTTP_OPTIONS) {
        h->path = span_of(h, target);
        return true;
    }
    if (target.len == 0 || (target.data[0] != '/' && !read_absolute(h, &target))) {
        return false;
    }
    const char *mark = memchr(target.data, '?', target.len);
    const size_t n = mark ? (size_t)(mark - target.data) : target.len;
    h->path = span_of(h, (bz_str){target.data, n});
    h->query = mark ? span_of(h, after(target, n + 1)) : (http_span){h->path.at + h->path.len, 0};
    return true;
}

static http_answer read_request_line(http_head *h, bz_str line)
{
    const size_t n = token_length(line);
    const char *space = n && n < line.len && line.data[n] == ' ' ? line.data + n : NULL;
    bz_str target = space ? after(line, n + 1) : (bz_str){NULL, 0};
    const char *second = target.data ? memchr(target.data, ' ', target.len) : NULL;
    if (!second) {
        return refuse(&h->refusal, 400, "The request line is malformed.");
    }
    bz_str version = after(target, (size_t)(second - target.data) + 1);
    target.len = (size_t)(second - target.data);
    if (version.len != 8 || memcmp(version.data, "HTTP/", 5) != 0 || !is_digit(version.data[5]) ||
        version.data[6] != '.' || !is_digit(version.data[7])) {
        return refuse(&h->refusal, 400, "The request line is malformed.");
    }
    if (version.data[5] != '1') {
        return refuse(&h->refusal, 505, "This server supports HTTP/1.1.");
    }
    h->old = version.data[7] == '0';
    if (!read_method(h, (bz_str){line.data, n})) {
        return refuse(&h->refusal, 501, "The method is not supported.");
    }
    if (!read_target(h, target)) {
        return refuse(&h->refusal, 400, "The address in the request is malformed.");
    }
    h->begun = true;
    return HTTP_MORE;
}

/* ---- fields ---------------------------------------------------------------------------- */

static http_answer read_field(http_head *h, bz_str line)
{
    const size_t n = token_length(line);
    if (n == 0 || n == line.len || line.data[n] != ':') {
        return refuse(&h->refusal, 400, "A header field is malformed.");
    }
    if (h->n_fields == HTTP_FIELDS_MAX) {
        return refuse(&h->refusal, 431, "The request has too many header fields.");
    }
    for (size_t i = n + 1; i < line.len; i++) {
        const unsigned char c = (unsigned char)line.data[i];
        if ((c < 0x20 && c != '\t') || c == 0x7F) {
            return refuse(&h->refusal, 400, "A header field holds a control character.");
        }
    }
    h->field_name[h->n_fields] = span_of(h, (bz_str){line.data, n});
    h->field_value[h->n_fields++] = span_of(h, http_trim(after(line, n + 1)));
    return HTTP_MORE;
}

bz_str http_text(const http_head *h, http_span s)
{
    return (bz_str){h->bytes + s.at, s.len};
}

bz_str http_next_field(const http_head *h, const char *name, unsigned *i)
{
    while (*i < h->n_fields) {
        const unsigned now = (*i)++;
        if (http_same(http_text(h, h->field_name[now]), name)) {
            return http_text(h, h->field_value[now]);
        }
    }
    return (bz_str){NULL, 0};
}

bz_str http_field(const http_head *h, const char *name)
{
    unsigned i = 0;
    return http_next_field(h, name, &i);
}

static unsigned count_fields(const http_head *h, const char *name)
{
    unsigned i = 0, n = 0;
    while (http_next_field(h, name, &i).data) {
        n++;
    }
    return n;
}

bool http_list_has(const http_head *h, const char *name, const char *word)
{
    unsigned i = 0;
    for (bz_str list = http_next_field(h, name, &i); list.data;
         list = http_next_field(h, name, &i)) {
        for (bz_str item = http_next_item(&list); item.data; item = http_next_item(&list)) {
            if (http_same(item, word)) {
                return true;
            }
        }
    }
    return false;
}

/* ---- what the fields mean together -------------------------------------------------------- */

/* A host and optionally a port: letters, digits and the punctuation of addresses. */
static bool good_authority(bz_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.data[i];
        if (!(is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
              strchr("-._~:[]%", c)) ||
            c == 0) {
            return false;
        }
    }
    return true;
}

static http_answer read_host(http_head *h)
{
    const unsigned n = count_fields(h, "Host");
    if (n > 1 || (n == 0 && !h->old)) {
        return refuse(&h->refusal, 400,
                      n ? "The request has more than one Host field."
                        : "The request has no Host field.");
    }
    const bz_str host = http_field(h, "Host");
    if (n == 1 && !good_authority(host)) {
        return refuse(&h->refusal, 400, "The Host field is malformed.");
    }
    if (h->authority.len == 0 && n == 1) {
        h->authority = span_of(h, host);
    }
    return good_authority(http_text(h, h->authority))
               ? HTTP_MORE
               : refuse(&h->refusal, 400, "The address in the request is malformed.");
}

static http_answer read_length(http_head *h)
{
    const bz_str text = http_field(h, "Content-Length");
    if (!text.data) {
        return HTTP_MORE;
    }
    if (count_fields(h, "Content-Length") > 1 || text.len == 0) {
        return refuse(&h->refusal, 400, "Content-Length is malformed.");
    }
    h->sized = true;
    for (size_t i = 0; i < text.len; i++) {
        if (!is_digit(text.data[i])) {
            return refuse(&h->refusal, 400, "Content-Length is malformed.");
        }
    }
    for (size_t i = 0; i < text.len; i++) {
        const uint64_t digit = (uint64_t)(text.data[i] - '0');
        if (h->length > (UINT64_MAX - digit) / 10) {
            return refuse(&h->refusal, 413, "The request is too large.");
        }
        h->length = h->length * 10 + digit;
    }
    return HTTP_MORE;
}

static http_answer read_coding(http_head *h)
{
    const bz_str coding = http_field(h, "Transfer-Encoding");
    if (!coding.data) {
        return HTTP_MORE;
    }
    if (h->sized || h->old || count_fields(h, "Transfer-Encoding") > 1) {
        return refuse(&h->refusal, 400, "The length of the request is ambiguous.");
    }
    if (!http_same(coding, "chunked")) {
        return refuse(&h->refusal, 501, "Only the transfer coding chunked is supported.");
    }
    h->chunked = true;
    return HTTP_MORE;
}

static http_answer read_meaning(http_head *h)
{
    http_answer a = read_host(h);
    a = a == HTTP_MORE ? read_length(h) : a;
    a = a == HTTP_MORE ? read_coding(h) : a;
    if (a != HTTP_MORE) {
        return a;
    }
    h->close = http_list_has(h, "Connection", "close") ||
               (h->old && !http_list_has(h, "Connection", "keep-alive"));
    const bz_str expect = http_field(h, "Expect");
    if (expect.data && !h->old) {
        if (!http_same(expect, "100-continue") || count_fields(h, "Expect") > 1) {
            return refuse(&h->refusal, 417, "Only the expectation 100-continue is supported.");
        }
        h->expects_continue = h->chunked || h->length > 0;
    }
    return HTTP_DONE;
}

/* ---- line by line --------------------------------------------------------------------------- */

static http_answer too_long(http_head *h)
{
    return h->begun ? refuse(&h->refusal, 431, "The header fields of the request are too long.")
                    : refuse(&h->refusal, 414, "The address in the request is too long.");
}

/* A complete line, without its line end. */
static http_answer read_line(http_head *h, bz_str line)
{
    if (line.len) {
        return h->begun ? read_field(h, line) : read_request_line(h, line);
    }
    /* Some clients send an empty line after a body; skip it. */
    return h->begun ? read_meaning(h) : HTTP_MORE;
}

http_answer http_head_read(http_head *h, const char *bytes, size_t n)
{
    h->bytes = bytes;
    for (;;) {
        /* Another protocol: no need to wait for a line end. */
        if (!h->begun && h->line < n && !is_token(bytes[h->line]) && bytes[h->line] != '\r') {
            return refuse(&h->refusal, 400, "This is not an HTTP request.");
        }
        const char *end = h->scanned < n ? memchr(bytes + h->scanned, '\n', n - h->scanned) : NULL;
        const size_t at = end ? (size_t)(end - bytes) : n;
        /* The line, its \r and, if it has arrived, its \n. */
        if (at - h->line > HTTP_LINE_MAX + 1 || at >= HTTP_HEAD_MAX) {
            return too_long(h);
        }
        if (!end) {
            h->scanned = (uint32_t)n;
            return HTTP_MORE;
        }
        if (at == h->line || bytes[at - 1] != '\r') {
            return refuse(&h->refusal, 400, "A line of the request does not end with CR LF.");
        }
        const http_answer a = read_line(h, (bz_str){bytes + h->line, at - 1 - h->line});
        h->line = h->scanned = (uint32_t)at + 1;
        if (a != HTTP_MORE) {
            h->size = h->line;
            return a;
        }
    }
}
