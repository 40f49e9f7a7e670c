/* Any bytes as a stream of requests: must not crash; how they are cut never changes what is read;
 * what is accepted lies inside the bytes and holds nothing that could end a line for somebody else;
 * a path never leaves its folder; what a file's size and a request give is a part of the file. */
#include <stdlib.h>
#include <string.h>

#include "server/access.h"
#include "server/path.h"
#include "server/static.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* ---- a head ------------------------------------------------------------------------------- */

static bool inside(const http_head *h, http_span s)
{
    return s.at <= h->size && s.len <= h->size - s.at;
}

static bool has_line_end(bz_str s)
{
    return s.len &&
           (memchr(s.data, '\r', s.len) || memchr(s.data, '\n', s.len) || memchr(s.data, 0, s.len));
}

static void check_refusal(http_refusal r)
{
    static const int known[] = {400, 413, 414, 417, 431, 501, 505};
    bool found = false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        found |= r.status == known[i];
    }
    must(found && r.why && r.why[0] && strcmp(http_reason(r.status), "Unknown") != 0);
}

static void check_head(const http_head *h)
{
    must(h->size <= HTTP_HEAD_MAX && h->n_fields <= HTTP_FIELDS_MAX);
    must(inside(h, h->path) && inside(h, h->query) && inside(h, h->authority) && h->path.len > 0);
    must(http_text(h, h->path).data[0] == '/' || bz_str_is(http_text(h, h->path), "*"));
    must(!(h->chunked && h->sized) && (h->sized || h->length == 0) &&
         (h->authority.len || h->old || http_field(h, "Host").data));
    for (unsigned i = 0; i < h->n_fields; i++) {
        must(inside(h, h->field_name[i]) && inside(h, h->field_value[i]) &&
             h->field_name[i].len > 0);
        must(!has_line_end(http_text(h, h->field_value[i])) &&
             !has_line_end(http_text(h, h->field_name[i])));
    }
}

/* In pieces, each in memory of exactly its size; `cut` decides where. */
static http_answer read_in_pieces(http_head *h, const char *bytes, size_t n, unsigned cut)
{
    http_answer a = HTTP_MORE;
    size_t have = 0;
    char *copy = NULL;
    *h = (http_head){0};
    while (a == HTTP_MORE && have < n) {
        cut = cut * 1103515245u + 12345u;
        have += 1 + (cut >> 16) % 97;
        have = have < n ? have : n;
        free(copy);
        copy = malloc(have);
        must(copy != NULL);
        memcpy(copy, bytes, have);
        a = http_head_read(h, copy, have);
    }
    free(copy);
    h->bytes = bytes;
    return a;
}

static void check_same(const http_head *a, const http_head *b)
{
    must(a->method == b->method && a->old == b->old && a->close == b->close &&
         a->chunked == b->chunked && a->sized == b->sized);
    must(a->expects_continue == b->expects_continue && a->length == b->length &&
         a->size == b->size);
    must(a->n_fields == b->n_fields && a->refusal.status == b->refusal.status &&
         a->refusal.why == b->refusal.why);
    must(memcmp(&a->path, &b->path, sizeof a->path) == 0 &&
         memcmp(&a->query, &b->query, sizeof a->query) == 0);
    must(memcmp(&a->authority, &b->authority, sizeof a->authority) == 0);
    must(memcmp(a->field_name, b->field_name, a->n_fields * sizeof *a->field_name) == 0);
    must(memcmp(a->field_value, b->field_value, a->n_fields * sizeof *a->field_value) == 0);
}

/* ---- what is made of it --------------------------------------------------------------------- */

static void check_path(const http_head *h)
{
    char out[PATH_SIZE];
    bool folder;
    if (path_decode(http_text(h, h->path), out, &folder) != PATH_OK) {
        return;
    }
    must(memchr(out, 0, sizeof out) && out[0] != '/' && !strstr(out, "//") && !strstr(out, "/.") &&
         out[0] != '.' && !strpbrk(out, "\\\r\n"));
}

static void check_plan(const http_head *h)
{
    static const uint64_t sizes[] = {0, 1, 1000, UINT64_C(1) << 40, UINT64_MAX / 2};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const static_file f = {sizes[i], 784111777, 1};
        const static_plan p = static_decide(h, &f, "");
        must(p.from <= f.size && p.length <= f.size - p.from);
        must(p.status == 200   ? p.length == f.size
             : p.status == 206 ? p.length > 0 && p.range[0] && h->method == HTTP_GET
                               : p.length == 0);
        must((p.status == 416) == (p.length == 0 && p.range[0]));
        must(!has_line_end((bz_str){p.tag, strlen(p.tag)}) && strlen(p.range) + 1 < sizeof p.range);
    }
    static_accepts(h, "br");
}

static void check_access(const http_head *h)
{
    const access_rules rules = {.address = "127.0.0.1"};
    const bz_str authority = http_text(h, h->authority), origin = http_field(h, "Origin");
    access_host(&rules, authority);
    if (origin.data) {
        access_origin(&rules, origin, authority);
    }
}

/* The body in pieces and at once; how many bytes it takes. *last: no other request can follow. */
static size_t check_body(const http_head *h, const char *bytes, size_t n, bool *last)
{
    http_body whole, pieces;
    char *out = malloc(n + 1), *copy = malloc(n + 1);
    size_t used = 0, put = 0, n_used = 0, n_put = 0;
    must(out && copy);
    http_answer a = http_body_begin(&whole, h, 4000), b = http_body_begin(&pieces, h, 4000);
    must(a == b);
    if (a == HTTP_MORE) {
        a = http_body_read(&whole, bytes, n, &used, out, &put);
        must(put <= used && used <= n && put <= 4000 && whole.got == put);
    }
    while (b == HTTP_MORE && n_used < n) { /* in place, five at a time */
        const size_t take = n - n_used < 5 ? n - n_used : 5;
        size_t piece_used, piece_put;
        memcpy(copy, bytes + n_used, take);
        b = http_body_read(&pieces, copy, take, &piece_used, copy, &piece_put);
        must(n_put + piece_put <= put && memcmp(out + n_put, copy, piece_put) == 0);
        n_used += piece_used;
        n_put += piece_put;
    }
    must(a == b && n_used == used && n_put == put && whole.refusal.status == pieces.refusal.status);
    if (a == HTTP_BAD) {
        check_refusal(whole.refusal);
    }
    *last = a != HTTP_DONE;
    free(out);
    free(copy);
    return used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;
    bool last = false;
    while (size && !last) {
        http_head h = {0}, pieces;
        const http_answer a = http_head_read(&h, bytes, size);
        must(read_in_pieces(&pieces, bytes, size, (unsigned)size) == a);
        if (a == HTTP_MORE) {
            must(size < HTTP_HEAD_MAX);
            break;
        }
        check_same(&h, &pieces);
        if (a == HTTP_BAD) {
            check_refusal(h.refusal);
            break;
        }
        check_head(&h);
        check_path(&h);
        check_plan(&h);
        check_access(&h);
        bytes += h.size;
        size -= h.size;
        const size_t body = check_body(&h, bytes, size, &last);
        bytes += body;
        size -= body;
    }
    return 0;
}
