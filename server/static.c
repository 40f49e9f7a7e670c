#include "server/static.h"

#include <stdio.h>
#include <string.h>

const char static_headers[] =
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Embedder-Policy: require-corp\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Content-Security-Policy: default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; "
    "worker-src 'self'; img-src 'self' blob:; media-src 'self' blob:; "
    "connect-src 'self' https: http://localhost:* http://127.0.0.1:*; object-src 'none'; base-uri "
    "'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n";

const char static_worker_policy[] =
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; "
    "connect-src 'self' https: http://localhost:* http://127.0.0.1:*";

bool static_is_worker(const char *path)
{
    static const char name[] = "worker.js";
    const size_t n = strlen(path), len = sizeof name - 1;
    return n >= len && strcmp(path + n - len, name) == 0 && (n == len || path[n - len - 1] == '/');
}

const char *static_cache(const char *path)
{
    return strncmp(path, "v/", 2) == 0 ? "public, max-age=31536000, immutable" : "no-cache";
}

/* ---- types ------------------------------------------------------------------------- */

const static_type *static_type_of(const char *path)
{
    static const struct {
        const char *ending;
        static_type type;
    } types[] = {
        {".html", {"text/html; charset=utf-8", true}},
        {".htm", {"text/html; charset=utf-8", true}},
        {".js", {"text/javascript; charset=utf-8", true}},
        {".mjs", {"text/javascript; charset=utf-8", true}},
        {".css", {"text/css; charset=utf-8", true}},
        {".json", {"application/json", true}},
        {".map", {"application/json", true}},
        {".webmanifest", {"application/manifest+json", true}},
        {".wasm", {"application/wasm", true}},
        {".svg", {"image/svg+xml; charset=utf-8", true}},
        {".txt", {"text/plain; charset=utf-8", true}},
        {".md", {"text/markdown; charset=utf-8", true}},
        {".wgsl", {"text/plain; charset=utf-8", true}},
        {".xml", {"application/xml", true}},
        {".png", {"image/png", false}},
        {".jpg", {"image/jpeg", false}},
        {".jpeg", {"image/jpeg", false}},
        {".gif", {"image/gif", false}},
        {".webp", {"image/webp", false}},
        {".avif", {"image/avif", false}},
        {".ico", {"image/vnd.microsoft.icon", false}},
        {".woff2", {"font/woff2", false}},
        {".woff", {"font/woff", false}},
        {".ttf", {"font/ttf", false}},
        {".wav", {"audio/wav", false}},
        {".mp3", {"audio/mpeg", false}},
        {".ogg", {"audio/ogg", false}},
        {".flac", {"audio/flac", false}},
        {".mp4", {"video/mp4", false}},
        {".webm", {"video/webm", false}},
        {".pdf", {"application/pdf", false}},
    };
    static const static_type other = {"application/octet-stream", false}; /* also GGUF */
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    for (size_t i = 0; dot && i < sizeof types / sizeof *types; i++) {
        if (http_same((bz_str){dot, strlen(dot)}, types[i].ending)) {
            return &types[i].type;
        }
    }
    return &other;
}

/* ---- codings -------------------------------------------------------------------------- */

/* "q=0", "q=0.000": not acceptable. */
static bool forbids(bz_str weight)
{
    weight = http_trim(weight);
    if (weight.len < 3 || (weight.data[0] != 'q' && weight.data[0] != 'Q') ||
        weight.data[1] != '=') {
        return false;
    }
    for (size_t i = 2; i < weight.len; i++) {
        if (weight.data[i] != '0' && weight.data[i] != '.') {
            return false;
        }
    }
    return true;
}

bool static_accepts(const http_head *h, const char *coding)
{
    unsigned i = 0;
    for (bz_str list = http_next_field(h, "Accept-Encoding", &i); list.data;
         list = http_next_field(h, "Accept-Encoding", &i)) {
        for (bz_str item = http_next_item(&list); item.data; item = http_next_item(&list)) {
            const char *mark = item.len ? memchr(item.data, ';', item.len) : NULL;
            const size_t n = mark ? (size_t)(mark - item.data) : item.len;
            if (http_same(http_trim((bz_str){item.data, n}), coding)) {
                return !mark || !forbids((bz_str){mark + 1, item.len - n - 1});
            }
        }
    }
    return false;
}

/* ---- conditions -------------------------------------------------------------------------- */

/* Whether the tags in the fields of that name include ours, or are "*". Our tags have no comma.
 * Weak tags ("W/...") do not promise the same bytes and are ignored unless weak_too. */
static bool names_tag(const http_head *h, const char *name, const char *tag, bool weak_too)
{
    unsigned i = 0;
    for (bz_str list = http_next_field(h, name, &i); list.data;
         list = http_next_field(h, name, &i)) {
        for (bz_str item = http_next_item(&list); item.data; item = http_next_item(&list)) {
            if (weak_too && item.len > 2 && memcmp(item.data, "W/", 2) == 0) {
                item = (bz_str){item.data + 2, item.len - 2};
            }
            if (bz_str_is(item, "*") || bz_str_is(item, tag)) {
                return true;
            }
        }
    }
    return false;
}

/* -1: the file is older than the date in that field, 1: newer, 0: the same, or there is no date. */
static int against_date(const http_head *h, const char *name, int64_t modified, bool *there)
{
    int64_t date;
    const bz_str text = http_field(h, name);
    *there = text.data && http_date_read(text, &date);
    return !*there || modified == date ? 0 : modified < date ? -1 : 1;
}

/* Evaluates conditions in the order of RFC 9110, section 13.2.2. 200: none applies. */
static int check_conditions(const http_head *h, const static_file *f, const char *tag)
{
    bool there;
    if (http_field(h, "If-Match").data) {
        if (!names_tag(h, "If-Match", tag, false)) {
            return 412;
        }
    } else if (against_date(h, "If-Unmodified-Since", f->modified, &there) > 0) {
        return 412;
    }
    if (http_field(h, "If-None-Match").data) {
        return names_tag(h, "If-None-Match", tag, true) ? 304 : 200;
    }
    return against_date(h, "If-Modified-Since", f->modified, &there) <= 0 && there ? 304 : 200;
}

/* ---- ranges -------------------------------------------------------------------------------- */

/* Reads a number; one that is too large becomes UINT64_MAX. False: no digit. */
static bool read_number(bz_str *s, uint64_t *value)
{
    size_t n = 0;
    *value = 0;
    for (; n < s->len && s->data[n] >= '0' && s->data[n] <= '9'; n++) {
        const uint64_t digit = (uint64_t)(s->data[n] - '0');
        *value = *value > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *value * 10 + digit;
    }
    *s = (bz_str){s->data + n, s->len - n};
    return n > 0;
}

/* "bytes=0-99", "bytes=100-", "bytes=-100". False: anything else, also several ranges; the whole
 * file is a valid answer then. */
static bool read_range(bz_str text, uint64_t size, uint64_t *from, uint64_t *length)
{
    static const char unit[] = "bytes=";
    const size_t n = sizeof unit - 1;
    uint64_t first = 0, last = UINT64_MAX;
    if (text.len <= n || !http_same((bz_str){text.data, n}, unit)) {
        return false;
    }
    text = http_trim((bz_str){text.data + n, text.len - n});
    const bool has_first = read_number(&text, &first);
    if (text.len == 0 || text.data[0] != '-') {
        return false;
    }
    text = (bz_str){text.data + 1, text.len - 1};
    const bool has_last = read_number(&text, &last);
    last = has_last ? last : UINT64_MAX;
    if (text.len || (!has_first && !has_last) || (has_first && last < first)) {
        return false;
    }
    if (!has_first) { /* the last N bytes */
        *length = last < size ? last : size;
        *from = size - *length;
    } else {
        *from = first;
        *length = first >= size ? 0 : (last < size - 1 ? last : size - 1) - first + 1;
    }
    return true;
}

/* If-Range: the client wants the rest of a file if it has not changed. */
static bool range_holds(const http_head *h, const static_file *f, const char *tag)
{
    const bz_str condition = http_field(h, "If-Range");
    bool there;
    if (!condition.data) {
        return true;
    }
    return bz_str_is(condition, tag) ||
           (against_date(h, "If-Range", f->modified, &there) == 0 && there);
}

/* ---- together -------------------------------------------------------------------------------- */

static_plan static_decide(const http_head *h, const static_file *f, const char *coding)
{
    static_plan p = {0};
    snprintf(p.tag, sizeof p.tag, "\"%llx-%llx-%x%s\"", (unsigned long long)f->size,
             (unsigned long long)f->modified, f->nanoseconds, coding);
    http_date_write(f->modified, p.modified);
    p.status = check_conditions(h, f, p.tag);
    if (p.status != 200) {
        return p;
    }
    p.length = f->size;
    unsigned i = 0;
    const bz_str range = http_next_field(h, "Range", &i);
    const bool one = range.data && !http_next_field(h, "Range", &i).data;
    uint64_t from, length;
    if (one && h->method == HTTP_GET && range_holds(h, f, p.tag) &&
        read_range(range, f->size, &from, &length)) {
        p.status = length ? 206 : 416;
        p.from = length ? from : 0;
        p.length = length;
        if (length) {
            snprintf(p.range, sizeof p.range, "bytes %llu-%llu/%llu", (unsigned long long)from,
                     (unsigned long long)(from + length - 1), (unsigned long long)f->size);
        } else {
            snprintf(p.range, sizeof p.range, "bytes */%llu", (unsigned long long)f->size);
        }
    }
    return p;
}
