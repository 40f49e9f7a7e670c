/* Files over HTTP: ranges, conditions, codings, types. */
#include <stdio.h>
#include <string.h>

#include "server/static.h"
#include "support/check.h"

static char request[2048];

/* A GET with these fields (each with its line end). */
static http_head asks(const char *method, const char *fields)
{
    http_head h = {0};
    const int n = snprintf(request, sizeof request, "%s / HTTP/1.1\r\nHost: localhost\r\n%s\r\n",
                           method, fields);
    CHECKF(http_head_read(&h, request, (size_t)n) == HTTP_DONE, "%s", fields);
    return h;
}

static const static_file file = {1000, 784111777, 5}; /* Sun, 06 Nov 1994 08:49:37 GMT */
#define TAG    "\"3e8-2ebc98a1-5\""
#define DATE   "Sun, 06 Nov 1994 08:49:37 GMT"
#define BEFORE "Sun, 06 Nov 1994 08:49:36 GMT"
#define AFTER  "Sun, 06 Nov 1994 08:49:38 GMT"

static static_plan plan(const char *fields)
{
    const http_head h = asks("GET", fields);
    return static_decide(&h, &file, "");
}

static void gives(const char *fields, int status, uint64_t from, uint64_t length, const char *range)
{
    const static_plan p = plan(fields);
    CHECKF(p.status == status && p.from == from && p.length == length &&
               strcmp(p.range, range) == 0,
           "%d, %llu from %llu, '%s': %s", p.status, (unsigned long long)p.length,
           (unsigned long long)p.from, p.range, fields);
}

static void whole(const char *fields)
{
    gives(fields, 200, 0, 1000, "");
}

static void test_ranges(void)
{
    begin("one range");
    whole("");
    gives("Range: bytes=0-0\r\n", 206, 0, 1, "bytes 0-0/1000");
    gives("Range: bytes=10-19\r\n", 206, 10, 10, "bytes 10-19/1000");
    gives("Range: BYTES= 10-19\r\n", 206, 10, 10, "bytes 10-19/1000");
    gives("Range: bytes=990-\r\n", 206, 990, 10, "bytes 990-999/1000");
    gives("Range: bytes=0-\r\n", 206, 0, 1000, "bytes 0-999/1000");
    gives("Range: bytes=990-5000\r\n", 206, 990, 10, "bytes 990-999/1000");
    gives("Range: bytes=-1\r\n", 206, 999, 1, "bytes 999-999/1000");
    gives("Range: bytes=-5000\r\n", 206, 0, 1000, "bytes 0-999/1000");
    gives("Range: bytes=0-99999999999999999999999\r\n", 206, 0, 1000, "bytes 0-999/1000");

    begin("ranges past the end");
    gives("Range: bytes=1000-\r\n", 416, 0, 0, "bytes */1000");
    gives("Range: bytes=1000-1001\r\n", 416, 0, 0, "bytes */1000");
    gives("Range: bytes=-0\r\n", 416, 0, 0, "bytes */1000");
    gives("Range: bytes=99999999999999999999999-\r\n", 416, 0, 0, "bytes */1000");

    begin("invalid and multiple ranges: the whole file");
    static const char *const odd[] = {"Range: bytes=\r\n",
                                      "Range: bytes=-\r\n",
                                      "Range: bytes=5-4\r\n",
                                      "Range: bytes=a-b\r\n",
                                      "Range: bytes=1-2x\r\n",
                                      "Range: bytes=1-2,4-5\r\n",
                                      "Range: chapters=1-2\r\n",
                                      "Range: bytes 1-2\r\n",
                                      "Range: bytes=1\r\n",
                                      "Range: bytes=--1\r\n",
                                      "Range: bytes=+1-2\r\n",
                                      "Range:\r\n",
                                      "Range: bytes=1-2\r\nRange: bytes=3-4\r\n"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        whole(odd[i]);
    }
    const http_head head = asks("HEAD", "Range: bytes=1-2\r\n"),
                    get = asks("GET", "Range: bytes=-5\r\n");
    CHECK(static_decide(&head, &file, "").status == 200);
    const static_file empty = {0, 0, 0}, huge = {UINT64_C(1) << 40, 0, 0};
    CHECK(static_decide(&get, &empty, "").status == 416);
    const static_plan p = static_decide(&get, &huge, "");
    CHECK(p.from == huge.size - 5 && p.length == 5 &&
          strcmp(p.range, "bytes 1099511627771-1099511627775/1099511627776") == 0);
    const http_head plain = asks("GET", "");
    CHECK(static_decide(&plain, &empty, "").status == 200 &&
          static_decide(&plain, &empty, "").length == 0);

    begin("If-Range");
    gives("Range: bytes=1-2\r\nIf-Range: " TAG "\r\n", 206, 1, 2, "bytes 1-2/1000");
    gives("Range: bytes=1-2\r\nIf-Range: " DATE "\r\n", 206, 1, 2, "bytes 1-2/1000");
    whole("Range: bytes=1-2\r\nIf-Range: \"other\"\r\n");
    whole("Range: bytes=1-2\r\nIf-Range: W/" TAG "\r\n");
    whole("Range: bytes=1-2\r\nIf-Range: " BEFORE "\r\n");
    whole("Range: bytes=1-2\r\nIf-Range: " AFTER "\r\n");
    whole("Range: bytes=1-2\r\nIf-Range: nonsense\r\n");
    whole("Range: bytes=5000-\r\nIf-Range: \"other\"\r\n");
}

static void test_conditions(void)
{
    begin("tags and dates");
    const static_plan p = plan("");
    CHECKF(strcmp(p.tag, TAG) == 0 && strcmp(p.modified, DATE) == 0, "%s %s", p.tag, p.modified);
    const http_head h = asks("GET", "");
    CHECK(strcmp(static_decide(&h, &file, "br").tag, TAG) != 0);
    const static_file later = {1000, 784111777, 6};
    CHECK(strcmp(static_decide(&h, &later, "").tag, TAG) != 0);

    begin("not modified");
    static const char *const known[] = {"If-None-Match: " TAG "\r\n",
                                        "If-None-Match: W/" TAG "\r\n",
                                        "If-None-Match: \"a\", " TAG " ,\"b\"\r\n",
                                        "If-None-Match: *\r\n",
                                        "If-Modified-Since: " DATE "\r\n",
                                        "If-Modified-Since: " AFTER "\r\n",
                                        "If-None-Match: \"a\"\r\nIf-None-Match: " TAG "\r\n",
                                        "If-None-Match: " TAG "\r\nIf-Modified-Since: " BEFORE
                                        "\r\n",
                                        "If-None-Match: " TAG "\r\nRange: bytes=1-2\r\n"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        gives(known[i], 304, 0, 0, "");
    }
    begin("modified, or unknown");
    whole("If-None-Match: \"a\"\r\n");
    whole("If-None-Match:\r\n");
    whole("If-None-Match: "
          "3e8-2ebc98a1-5"
          "\r\n");
    whole("If-Modified-Since: " BEFORE "\r\n");
    whole("If-Modified-Since: yesterday\r\n");
    whole("If-None-Match: \"a\"\r\nIf-Modified-Since: " AFTER
          "\r\n"); /* the tag takes precedence */

    begin("If-Match and If-Unmodified-Since");
    whole("If-Match: " TAG "\r\n");
    whole("If-Match: *\r\n");
    whole("If-Unmodified-Since: " DATE "\r\n");
    gives("If-Match: \"a\"\r\n", 412, 0, 0, "");
    gives("If-Match: W/" TAG "\r\n", 412, 0, 0, "");
    gives("If-Unmodified-Since: " BEFORE "\r\n", 412, 0, 0, "");
    whole("If-Match: " TAG "\r\nIf-Unmodified-Since: " BEFORE "\r\n");
}

static void test_codings(void)
{
    static const struct {
        const char *fields;
        bool br, gzip;
    } cases[] = {
        {"", false, false},
        {"Accept-Encoding: gzip, deflate, br\r\n", true, true},
        {"Accept-Encoding: BR;q=1.0, gzip;q=0\r\n", true, false},
        {"Accept-Encoding: br; q=0.000 ,gzip ; q=0.1\r\n", false, true},
        {"Accept-Encoding: gzip\r\nAccept-Encoding: br\r\n", true, true},
        {"Accept-Encoding: *\r\n", false, false},
        {"Accept-Encoding: brotli, xgzip\r\n", false, false},
        {"Accept-Encoding: ,,;,br;\r\n", true, false},
    };
    begin("codings");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const http_head h = asks("GET", cases[i].fields);
        CHECKF(static_accepts(&h, "br") == cases[i].br &&
                   static_accepts(&h, "gzip") == cases[i].gzip,
               "%s", cases[i].fields);
    }

    static const char *const types[][2] = {
        {"index.html", "text/html; charset=utf-8"},
        {"a.JS", "text/javascript; charset=utf-8"},
        {"a/b.mjs", "text/javascript; charset=utf-8"},
        {"a.css", "text/css; charset=utf-8"},
        {"a.json", "application/json"},
        {"a.wasm", "application/wasm"},
        {"a.svg", "image/svg+xml; charset=utf-8"},
        {"a.png", "image/png"},
        {"a.ico", "image/vnd.microsoft.icon"},
        {"app.webmanifest", "application/manifest+json"},
        {"a.gguf", "application/octet-stream"},
        {"a.txt", "text/plain; charset=utf-8"},
        {"a.js.map", "application/json"},
        {"a", "application/octet-stream"},
        {"a.html/b", "application/octet-stream"},
        {"a.", "application/octet-stream"},
        {"", "application/octet-stream"},
        {"a.js.br", "application/octet-stream"},
    };
    begin("types");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        CHECKF(strcmp(static_type_of(types[i][0])->name, types[i][1]) == 0, "%s", types[i][0]);
    }
}

int main(void)
{
    test_ranges();
    test_conditions();
    test_codings();
    return finish();
}
