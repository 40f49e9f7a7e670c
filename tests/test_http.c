/* HTTP requests: the result does not depend on how the bytes are split; malformed ones are refused
 * with the right status. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/access.h"
#include "server/http.h"
#include "server/path.h"
#include "support/check.h"

/* ---- helpers ---------------------------------------------------------------------------- */

/* Parses a head in a buffer of exactly its length, so that sanitizers see a read past it. With
 * `cuts`, every prefix is parsed first, each in its own memory. */
static http_answer read_cut(http_head *h, const char *text, size_t n, size_t step, char **bytes)
{
    http_answer a = HTTP_MORE;
    *h = (http_head){0};
    *bytes = NULL;
    for (size_t have = step < n ? step : n;; have = have + step < n ? have + step : n) {
        char *more = malloc(have ? have : 1);
        memcpy(more, text, have);
        free(*bytes);
        *bytes = more;
        a = http_head_read(h, *bytes, have);
        if (a != HTTP_MORE || have == n) {
            return a;
        }
    }
}

static bool same_span(http_span a, http_span b)
{
    return a.at == b.at && a.len == b.len;
}

static bool same_head(const http_head *a, const http_head *b)
{
    bool same = a->method == b->method && a->old == b->old && same_span(a->path, b->path) &&
                same_span(a->query, b->query) && same_span(a->authority, b->authority) &&
                a->n_fields == b->n_fields && a->close == b->close &&
                a->expects_continue == b->expects_continue && a->chunked == b->chunked &&
                a->sized == b->sized && a->length == b->length && a->size == b->size &&
                a->refusal.status == b->refusal.status && a->refusal.why == b->refusal.why;
    for (unsigned i = 0; same && i < a->n_fields; i++) {
        same = same_span(a->field_name[i], b->field_name[i]) &&
               same_span(a->field_value[i], b->field_value[i]);
    }
    return same;
}

/* The result for a text, which must not depend on how it is split. */
static http_answer read_text(http_head *h, const char *text, size_t n)
{
    char *bytes;
    const http_answer whole = read_cut(h, text, n, n ? n : 1, &bytes);
    for (size_t step = 1; step < 8 && step < n; step++) {
        http_head cut;
        char *piece;
        const http_answer a = read_cut(&cut, text, n, step, &piece);
        CHECKF(a == whole && same_head(h, &cut), "cut into pieces of %zu: %d instead of %d: %.60s",
               step, a, whole, text);
        free(piece);
    }
    for (size_t at = 1; at < n && n < 400; at++) { /* in two, anywhere */
        http_head cut = {0};
        http_answer a = http_head_read(&cut, text, at);
        a = a == HTTP_MORE ? http_head_read(&cut, text, n) : a;
        CHECKF(a == whole && same_head(h, &cut), "cut at %zu: %.60s", at, text);
    }
    free(bytes);
    h->bytes = text;
    return whole;
}

static void refused(int status, const char *text)
{
    http_head h;
    const http_answer a = read_text(&h, text, strlen(text));
    CHECKF(a == HTTP_BAD && h.refusal.status == status, "%d, status %d instead of %d: %.80s", a,
           h.refusal.status, status, text);
    CHECKF(a != HTTP_BAD || (h.refusal.why && strlen(h.refusal.why) > 10), "no reason: %.80s",
           text);
}

static http_head accepted(const char *text)
{
    http_head h;
    const http_answer a = read_text(&h, text, strlen(text));
    CHECKF(a == HTTP_DONE, "%d, status %d (%s): %.80s", a, h.refusal.status,
           h.refusal.why ? h.refusal.why : "", text);
    return h;
}

static bool is(const http_head *h, http_span s, const char *text)
{
    return bz_str_is(http_text(h, s), text);
}

#define HOST "Host: localhost\r\n"

/* ---- heads ----------------------------------------------------------------------------------- */

static void test_heads(void)
{
    begin("a request");
    const char *text = "GET /a/b%20c?x=1&y HTTP/1.1\r\nHost: localhost:11435\r\naccept:  text/html "
                       "\t\r\nX-Empty:\r\n\r\nGET /next";
    http_head h = accepted(text);
    CHECK(h.method == HTTP_GET && !h.old && !h.close && !h.chunked && !h.sized && h.length == 0);
    CHECK(is(&h, h.path, "/a/b%20c") && is(&h, h.query, "x=1&y") &&
          is(&h, h.authority, "localhost:11435"));
    CHECK(h.n_fields == 3 && bz_str_is(http_field(&h, "Accept"), "text/html"));
    CHECK(http_field(&h, "x-empty").data && http_field(&h, "x-empty").len == 0 &&
          !http_field(&h, "x").data);
    CHECK(h.size == strlen(text) - strlen("GET /next"));

    begin("methods, versions and targets");
    CHECK(accepted("POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n").method == HTTP_POST);
    h = accepted("HEAD / HTTP/1.0\r\n\r\n");
    CHECK(h.method == HTTP_HEAD && h.old && h.close && h.authority.len == 0);
    CHECK(!accepted("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").close);
    CHECK(!accepted("GET / HTTP/1.9\r\n" HOST "\r\n").old);
    h = accepted("OPTIONS * HTTP/1.1\r\n" HOST "\r\n");
    CHECK(is(&h, h.path, "*"));
    h = accepted("GET http://other:80/x?y HTTP/1.1\r\n" HOST "\r\n");
    CHECK(is(&h, h.path, "/x") && is(&h, h.query, "y") && is(&h, h.authority, "other:80"));
    CHECK(accepted("\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n").method == HTTP_GET);
    CHECK(accepted("GET / HTTP/1.1\r\n" HOST "Connection: x, CLOSE ,y\r\n\r\n").close);
    CHECK(accepted("GET / HTTP/1.1\r\n" HOST "Connection: a\r\nConnection: close\r\n\r\n").close);
    CHECK(!accepted("GET / HTTP/1.1\r\n" HOST "Connection: closed\r\n\r\n").close);
    CHECK(accepted("GET / HTTP/1.1\r\n" HOST "X: \x80\xFF\ttab\r\n\r\n").n_fields == 2);

    begin("announced bodies");
    h = accepted("POST / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551615\r\n\r\n");
    CHECK(h.sized && h.length == UINT64_MAX);
    h = accepted("POST / HTTP/1.1\r\n" HOST
                 "Transfer-Encoding: Chunked\r\nExpect: 100-Continue\r\n\r\n");
    CHECK(h.chunked && !h.sized && h.expects_continue);
    CHECK(!accepted("GET / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\n\r\n").expects_continue);
}

static void test_refusals(void)
{
    begin("text that is not a request");
    refused(400, "\x16\x03\x01\x02"); /* a TLS hello: refused before a line end arrives */
    refused(400, "\nGET / HTTP/1.1\r\n" HOST "\r\n");
    refused(400, "GET\r\n");
    refused(400, "GET /\r\n");
    refused(400, "GET / \r\n");
    refused(400, "GET  / HTTP/1.1\r\n");
    refused(400, "GET / HTTP/1.1 \r\n");
    refused(400, "GET / http/1.1\r\n");
    refused(400, "GET / HTTP/1.10\r\n");
    refused(400, "GET /a b HTTP/1.1\r\n");
    refused(400, "GET /\x01 HTTP/1.1\r\n");
    refused(400, "GET /\xC3\xA4 HTTP/1.1\r\n");
    refused(400, "GET /#a HTTP/1.1\r\n");
    refused(400, "GET x HTTP/1.1\r\n");
    refused(400, "GET * HTTP/1.1\r\n");
    refused(400, "GET http:///x HTTP/1.1\r\n");
    refused(400, "GET http://host HTTP/1.1\r\n");
    refused(400, "GET http://a@b/ HTTP/1.1\r\n" HOST "\r\n");
    refused(400, "G\tT / HTTP/1.1\r\n");
    refused(501, "BREW / HTTP/1.1\r\n");
    refused(501, "get / HTTP/1.1\r\n");
    refused(501, "CONNECT localhost:80 HTTP/1.1\r\n");
    refused(505, "GET / HTTP/2.0\r\n");

    begin("ambiguous line ends and fields");
    refused(400, "GET / HTTP/1.1\n" HOST "\r\n");
    refused(400, "GET / HTTP/1.1\r\nHost: localhost\n\r\n");
    refused(400, "GET / HTTP/1.1\r\nHost: localhost\r\n\n");
    refused(400, "GET / HTTP/1.1\r\nA: b\rc\r\n");
    refused(400, "GET / HTTP/1.1\r\nA : b\r\n");
    refused(400, "GET / HTTP/1.1\r\nA\r\n");
    refused(400, "GET / HTTP/1.1\r\n: b\r\n");
    refused(400, "GET / HTTP/1.1\r\nA: b\r\n folded\r\n");
    refused(400, "GET / HTTP/1.1\r\n A: b\r\n");
    refused(400, "GET / HTTP/1.1\r\nA: \x01\r\n");
    refused(400, "GET / HTTP/1.1\r\nA: \x7F\r\n");
    http_head h;
    static const char zero[] = "GET / HTTP/1.1\r\nA: b\0c\r\n" HOST "\r\n";
    CHECK(read_text(&h, zero, sizeof zero - 1) == HTTP_BAD && h.refusal.status == 400);

    begin("hosts");
    refused(400, "GET / HTTP/1.1\r\n\r\n");
    refused(400, "GET / HTTP/1.1\r\n" HOST HOST "\r\n");
    refused(400, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n");
    refused(400, "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n");
    refused(400, "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n");

    begin("ambiguous lengths");
    refused(400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n");
    refused(400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 1, 1\r\n\r\n");
    refused(400, "POST / HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n");
    refused(400, "POST / HTTP/1.1\r\n" HOST "Content-Length: +1\r\n\r\n");
    refused(400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 0x1\r\n\r\n");
    refused(400, "POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n");
    refused(413, "POST / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551616\r\n\r\n");
    refused(400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551616x\r\n\r\n");
    refused(400,
            "POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n");
    refused(400, "POST / HTTP/1.1\r\n" HOST
                 "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n");
    refused(400, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n");
    refused(501, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n");
    refused(501, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n");
    refused(417, "POST / HTTP/1.1\r\n" HOST "Expect: a miracle\r\n\r\n");
}

/* `n` times c. */
static char *grow(char *at, char c, size_t n)
{
    memset(at, c, n);
    return at + n;
}

static char *append(char *at, const char *text)
{
    memcpy(at, text, strlen(text));
    return at + strlen(text);
}

static void test_limits(void)
{
    static char text[4 * HTTP_HEAD_MAX];
    begin("a line of the maximum length, and one longer");
    for (size_t extra = 0; extra < 2; extra++) {
        char *at = append(text, "GET /");
        at = grow(at, 'a', HTTP_LINE_MAX - strlen("GET / HTTP/1.1") + extra);
        at = append(at, " HTTP/1.1\r\n" HOST "\r\n");
        *at = 0;
        if (extra) {
            refused(414, text);
            *strchr(text, '\r') = 0; /* and without waiting for its end */
            strcat(text, "a");
            refused(414, text);
        } else {
            accepted(text);
        }
        at = append(text, "GET / HTTP/1.1\r\n" HOST "A:");
        at = grow(at, 'a', HTTP_LINE_MAX - 2 + extra);
        at = append(at, "\r\n\r\n");
        *at = 0;
        if (extra) {
            refused(431, text);
        } else {
            accepted(text);
        }
    }

    begin("a head of the maximum length, and one longer");
    for (size_t extra = 0; extra < 2; extra++) {
        char *at = append(text, "GET / HTTP/1.1\r\n" HOST);
        for (int i = 0; i < 2; i++) {
            at = append(at, "A:");
            at = grow(at, 'a', 8000);
            at = append(at, "\r\n");
        }
        const size_t left = HTTP_HEAD_MAX - (size_t)(at - text) - strlen("A:\r\n\r\n") + extra;
        at = append(at, "A:");
        at = grow(at, 'a', left);
        at = append(at, "\r\n\r\n");
        *at = 0;
        if (extra) {
            refused(431, text);
        } else {
            CHECK(accepted(text).size == HTTP_HEAD_MAX);
        }
    }
    char *at = grow(text, '\r', 0);
    for (int i = 0; i < HTTP_HEAD_MAX / 2; i++) {
        at = append(at, "\r\n");
    }
    *append(at, "GET / HTTP/1.1\r\n") = 0;
    refused(414, text);

    begin("the maximum number of fields, and one more");
    for (size_t extra = 0; extra < 2; extra++) {
        at = append(text, "GET / HTTP/1.1\r\n" HOST);
        for (size_t i = 1; i < HTTP_FIELDS_MAX + extra; i++) {
            at = append(at, "A: b\r\n");
        }
        *append(at, "\r\n") = 0;
        if (extra) {
            refused(431, text);
        } else {
            CHECK(accepted(text).n_fields == HTTP_FIELDS_MAX);
        }
    }
}

/* ---- bodies ------------------------------------------------------------------------------------
 */

/* A chunked body, read in pieces of `step` bytes and in place; the bytes after it stay. */
static http_answer read_chunks(const char *text, uint64_t most, size_t step, char *out,
                               size_t *n_out, size_t *n_used, int *status)
{
    const http_head h = {.chunked = true};
    http_body b;
    http_answer a = http_body_begin(&b, &h, most);
    const size_t n = strlen(text);
    *n_out = *n_used = 0;
    while (a == HTTP_MORE && *n_used < n) {
        const size_t take = n - *n_used < step ? n - *n_used : step;
        char *piece = malloc(take);
        size_t used, put;
        memcpy(piece, text + *n_used, take);
        a = http_body_read(&b, piece, take, &used, piece, &put);
        memcpy(out + *n_out, piece, put);
        *n_out += put;
        *n_used += used;
        CHECK(put <= used && used <= take && (used == take || a != HTTP_MORE));
        free(piece);
    }
    *status = b.refusal.status;
    CHECK(b.got == *n_out);
    return a;
}

/* The decoded body ("" with a status: refused) and the number of bytes after it. */
static void chunks(const char *text, int status, const char *want, size_t rest)
{
    for (size_t step = 1; step < 40; step++) {
        char out[200];
        size_t n, used;
        int got;
        const http_answer a = read_chunks(text, 30, step, out, &n, &used, &got);
        if (status) {
            CHECKF(a == (status == 1 ? HTTP_MORE : HTTP_BAD) && got == (status == 1 ? 0 : status),
                   "%d %d in pieces of %zu: %s", a, got, step, text);
        } else {
            CHECKF(a == HTTP_DONE && n == strlen(want) && memcmp(out, want, n) == 0,
                   "%d in pieces of %zu: %s", a, step, text);
            CHECKF(strlen(text) - used == rest, "%zu bytes used: %s", used, text);
        }
    }
}

static void test_bodies(void)
{
    begin("chunks");
    chunks("0\r\n\r\n", 0, "", 0);
    chunks("3\r\nabc\r\n00c\r\nde\r\n0\r\nfghij\r\n0\r\n\r\nGET", 0, "abcde\r\n0\r\nfghij", 3);
    chunks("3;name=\"v;\" ;x\r\nabc\r\n0;y\r\nTrailer: z\r\nMore:\r\n\r\n", 0, "abc", 0);
    chunks("1E\r\n123456789012345678901234567890\r\n0\r\n\r\n", 0, "123456789012345678901234567890",
           0);

    begin("invalid chunks");
    chunks("3\r\nabc\r\n0\r\n", 1, "", 0); /* there must be more */
    chunks("\r\n", 400, "", 0);
    chunks("x\r\n", 400, "", 0);
    chunks("-1\r\n", 400, "", 0);
    chunks(" 3\r\nabc", 400, "", 0);
    chunks("3 \r\nabc", 400, "", 0);
    chunks("0x3\r\nabc", 400, "", 0);
    chunks("3\nabc\r\n0\r\n\r\n", 400, "", 0);
    chunks("3\r\rabc", 400, "", 0);
    chunks("3\r\nabcd\r\n", 400, "", 0);
    chunks("3\r\nabc\n0\r\n\r\n", 400, "", 0);
    chunks("0\r\nA: b\n\r\n", 400, "", 0);
    chunks("3;\x01\r\nabc", 400, "", 0);
    chunks("0000000000000000000000000003\r\n", 400, "", 0);
    chunks("1F\r\n", 413, "", 0);
    chunks("FFFFFFFFFFFFFFFF\r\n", 413, "", 0);
    chunks("10\r\n1234567890123456\r\n0F\r\n", 413, "", 0);

    begin("counted bodies");
    http_body b;
    http_head h = {.sized = true, .length = 5};
    size_t used, put;
    char out[8];
    CHECK(http_body_begin(&b, &h, 4) == HTTP_BAD && b.refusal.status == 413);
    CHECK(http_body_begin(&b, &h, 5) == HTTP_MORE);
    CHECK(http_body_read(&b, "ab", 2, &used, out, &put) == HTTP_MORE && used == 2 && put == 2);
    CHECK(http_body_read(&b, "cdeGET", 6, &used, out, &put) == HTTP_DONE && used == 3 && put == 3 &&
          memcmp(out, "cde", 3) == 0);
    h = (http_head){0};
    CHECK(http_body_begin(&b, &h, 0) == HTTP_DONE);

    begin("endless trailers");
    static char text[10000];
    *append(grow(append(text, "0\r\nA: "), 'a', 9000), "\r\n\r\n") = 0;
    h = (http_head){.chunked = true};
    CHECK(http_body_begin(&b, &h, 10) == HTTP_MORE);
    CHECK(http_body_read(&b, text, strlen(text), &used, text, &put) == HTTP_BAD &&
          b.refusal.status == 431);
}

/* ---- paths, hosts, dates
 * --------------------------------------------------------------------------- */

static void path(const char *text, path_answer want, const char *name, bool folder)
{
    char out[PATH_SIZE];
    bool slash = !folder;
    char *exact = malloc(strlen(text) + 1);
    memcpy(exact, text, strlen(text));
    const path_answer a = path_decode((bz_str){exact, strlen(text)}, out, &slash);
    free(exact);
    CHECKF(a == want, "%s: %d", text, a);
    if (want == PATH_OK) {
        CHECKF(strcmp(out, name) == 0 && slash == folder, "%s: '%s' %d", text, out, slash);
    }
}

static void test_paths(void)
{
    begin("paths");
    path("/", PATH_OK, "", true);
    path("/index.html", PATH_OK, "index.html", false);
    path("/a/b/", PATH_OK, "a/b", true);
    path("/a%20b/%C3%A4.js", PATH_OK, "a b/\xC3\xA4.js", false);
    path("/a+b:c@d", PATH_OK, "a+b:c@d", false);
    path("/%41", PATH_OK, "A", false);
    path("/a..b/c.", PATH_OK, "a..b/c.", false);
    path("/%2525", PATH_OK, "%25", false);

    begin("paths that leave the folder, or hide that they do");
    static const char *const hidden[] = {
        "/..",       "/../",         "/../x",   "/a/../b",   "/a/..",        "/.",
        "/./a",      "/.git/config", "/a/.env", "//",        "//etc/passwd", "/a//b",
        "/%2e%2e/x", "/%2E./x",      "/.%2e/x", "/a/%2e%2e", "/.../x",       "/%2egit"};
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
        path(hidden[i], PATH_HIDDEN, NULL, false);
    }
    static const char *const bad[] = {
        "",       "a",         "*",      "/a%2fb", "/a%2Fb",     "/..%2f..%2fetc",
        "/a%5Cb", "/a\\..\\b", "/a%00b", "/a%0Ab", "/a%7F",      "/%",
        "/%2",    "/%zz",      "/a%4",   "/%%41",  "/..%c0%af%", "/../%00"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        path(bad[i], PATH_BAD, NULL, false);
    }
    static char text[2 * PATH_SIZE + 2];
    text[0] = '/';
    *grow(text + 1, 'a', PATH_SIZE - 1) = 0;
    path(text, PATH_OK, text + 1, false);
    *grow(text + 1, 'a', PATH_SIZE) = 0;
    path(text, PATH_HIDDEN, NULL, false);
    *grow(text + 1, 'a', 2 * PATH_SIZE) = 0;
    path(text, PATH_HIDDEN, NULL, false);
}

static bz_str text_of(const char *text)
{
    return (bz_str){text, strlen(text)};
}

static void test_access(void)
{
    static const char *const names[] = {"box.local", NULL};
    const access_rules near = {.address = "127.0.0.1", .names = names, .n_names = 1},
                       far = {.address = "192.168.1.5"}, all = {.address = "0.0.0.0"},
                       six = {.address = "::"};
    static const char *const good[] = {"localhost",       "LocalHost:80",    "localhost.",
                                       "app.localhost:1", "127.0.0.1:11435", "127.9.9.9",
                                       "[::1]",           "[::1]:80",        "box.local",
                                       "BOX.local:8080",  "box.local."};
    static const char *const bad[] = {"",
                                      ":80",
                                      "evil.com",
                                      "localhost.evil.com",
                                      "evillocalhost",
                                      "127.0.0.1.evil.com",
                                      "192.168.1.5",
                                      "[::2]",
                                      "::1",
                                      "[::1",
                                      "[::1]x",
                                      "localhost:x",
                                      "localhost:123456",
                                      "sub.box.local",
                                      "127.1",
                                      "0x7f.0.0.1",
                                      "2130706433"};
    begin("accepted hosts");
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CHECKF(access_host(&near, text_of(good[i])), "%s", good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECKF(!access_host(&near, text_of(bad[i])), "%s", bad[i]);
    }
    CHECK(access_host(&far, text_of("192.168.1.5:80")) &&
          !access_host(&far, text_of("192.168.1.6")) && access_host(&far, text_of("localhost")));
    CHECK(access_host(&all, text_of("10.1.2.3:80")) && !access_host(&all, text_of("evil.com")) &&
          access_host(&six, text_of("[fe80::1]:80")));
    CHECK(access_host(&six, text_of("10.1.2.3")) && access_is_loopback("127.0.0.1") &&
          access_is_loopback("::1"));
    CHECK(!access_is_loopback("0.0.0.0") && !access_is_loopback("::") &&
          !access_is_loopback("10.0.0.1"));

    begin("accepted origins");
    const bz_str own = text_of("localhost:11435");
    CHECK(access_origin(&near, text_of("http://localhost:11435"), own) &&
          access_origin(&near, text_of("HTTP://LOCALHOST:11435"), own));
    CHECK(access_origin(&near, text_of("https://box.local:9"), own) &&
          access_origin(&near, text_of("http://box.local"), own));
    CHECK(!access_origin(&near, text_of("null"), own) && !access_origin(&near, text_of(""), own) &&
          !access_origin(&near, text_of("://"), own));
    CHECK(!access_origin(&near, text_of("http://localhost:1"), own) &&
          !access_origin(&near, text_of("http://evil.com"), own));
    CHECK(!access_origin(&near, text_of("http://localhost:11435.evil.com"), own) &&
          !access_origin(&near, text_of("https://localhost:11435"), own));
    CHECK(!access_origin(&near, text_of("http://"), (bz_str){"", 0}));
}

static void test_dates(void)
{
    begin("dates");
    char out[HTTP_DATE_SIZE];
    int64_t t = 0;
    CHECK(strcmp(http_date_write(784111777, out), "Sun, 06 Nov 1994 08:49:37 GMT") == 0);
    for (int64_t s = -4102444800; s < 32503680000; s += 86413007) {
        CHECKF(http_date_read(text_of(http_date_write(s, out)), &t) && t == s, "%lld: %s",
               (long long)s, out);
    }
    CHECK(strcmp(http_date_write(INT64_MAX, out), "") == 0);
    static const char *const bad[] = {"",
                                      "Sun, 06 Nov 1994 08:49:37",
                                      "Sun, 06 Nov 1994 08:49:37 UTC",
                                      "Sun, 06 Now 1994 08:49:37 GMT",
                                      "Sun, 00 Nov 1994 08:49:37 GMT",
                                      "Sun, 06 Nov 1994 24:49:37 GMT",
                                      "Sun, 06 Nov 1994 08:60:37 GMT",
                                      "Sun, 06 Nov 1994 08:49:-1 GMT",
                                      "Sunday, 06-Nov-94 08:49:37 GMT"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECKF(!http_date_read(text_of(bad[i]), &t), "%s", bad[i]);
    }
}

int main(void)
{
    test_heads();
    test_refusals();
    test_limits();
    test_bodies();
    test_paths();
    test_access();
    test_dates();
    return finish();
}
