#include "store/pull_blob.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "base/units.h"
#include "store/ollama_internal.h"
#include "store/pull_hash.h"
#include "store/pull_url.h"

enum { MAX_CONNECTIONS = 64, CONNECTIONS = 8, RETRIES = 7, MAX_WAIT_S = 60 };
static const uint64_t MIN_PART_BYTES = 1u << 20, MAX_PART_BYTES = 32u << 20, MS = 1000000u,
                      FIRST_WAIT_MS = 250, MAX_WAIT_MS = 8000;
/* A flush costs time, and what is not yet flushed is fetched again after a crash. */
static const uint64_t FLUSH_NS = 1000000000u, FLUSH_BYTES = 1u << 20, FLUSH_FEW_NS = 2000000000u;
static const uint64_t REPORT_NS = 100000000u;

static const char interrupted[] = "The pull was interrupted; the next one continues.";

struct fetch;

/* A range of the blob that one request fetches. */
typedef struct part {
    bz_http_request request;
    struct fetch *f;
    uint64_t from, at, end; /* bytes from..at are in the file */
    uint64_t logged;        /* bytes from..logged are in the journal */
    unsigned tries;         /* since the last byte arrived */
    uint64_t ready;         /* time from which it may be requested again */
    bool running;
    bool direct;       /* requested from the address of an earlier redirect */
    bool ask_registry; /* and that one has expired */
} part;

typedef struct fetch {
    const bz_pull_options *o;
    bz_http *http;
    bz_partial *p;
    const char *url, *digest;
    char *direct; /* where the registry redirected to, or NULL */
    bz_pull_hash *hash;
    part *parts; /* [n] by offset */
    size_t n, running;
    bool whole; /* the server ignores ranges: one part, from the beginning */
    bz_error *err;
    bz_status status; /* an error ends the loop */
    uint64_t unflushed, flushed_at, reported_at;
} fetch;

void bz_pull_report(const bz_pull_options *o, const char *status, const char *digest,
                    uint64_t completed, uint64_t total)
{
    if (o->on_progress) {
        o->on_progress(o->user, &(bz_pull_progress){status, digest, total, completed});
    }
}

void bz_pull_report_blob(const bz_pull_options *o, const char *digest, uint64_t completed,
                         uint64_t total)
{
    char status[40];
    snprintf(status, sizeof status, "pulling %.12s", digest + strlen("sha256:"));
    bz_pull_report(o, status, digest, completed, total);
}

static unsigned connections(const fetch *f)
{
    const unsigned n = f->o->connections ? f->o->connections : CONNECTIONS;
    return n < MAX_CONNECTIONS ? n : MAX_CONNECTIONS;
}

/* ---- parts ------------------------------------------------------------------------------- */

static bool add_part(fetch *f, uint64_t from, uint64_t end)
{
    if ((f->n & (f->n - 1)) == 0) { /* capacity: the next power of two */
        part *more = realloc(f->parts, (f->n ? 2 * f->n : 1) * sizeof *more);
        if (!more) {
            return false;
        }
        f->parts = more;
    }
    f->parts[f->n++] = (part){.f = f, .from = from, .at = from, .logged = from, .end = end};
    return true;
}

/* Small enough for all connections to end at about the same time. */
static uint64_t part_bytes(const fetch *f)
{
    const uint64_t fair = f->p->size / (4u * connections(f));
    return fair < MIN_PART_BYTES ? MIN_PART_BYTES : fair > MAX_PART_BYTES ? MAX_PART_BYTES : fair;
}

static bz_status plan_parts(fetch *f)
{
    const uint64_t most = part_bytes(f);
    bz_range gap;
    for (uint64_t at = 0; bz_ranges_gap(&f->p->done, at, f->p->size, &gap); at = gap.to) {
        gap.to = gap.to - gap.from > most ? gap.from + most : gap.to;
        if (!add_part(f, gap.from, gap.to)) {
            return bz_store_no_memory(f->err);
        }
    }
    return BZ_OK;
}

static void drop_parts(fetch *f)
{
    for (size_t i = 0; i < f->n; i++) {
        bz_http_drop(&f->parts[i].request);
    }
    free(f->parts);
    f->parts = NULL;
    f->n = f->running = 0;
}

/* ---- bytes ---------------------------------------------------------------------------------- */

/* Ends the pull: a retry would not help. */
static bool give_up(part *p, const char *why)
{
    p->request.refused = true;
    snprintf(p->request.reason, sizeof p->request.reason, "%s", why);
    return false;
}

/* Does the response have the bytes that were requested? */
static bool check_head(part *p)
{
    const bz_http_request *r = &p->request;
    const uint64_t size = p->f->p->size;
    uint64_t from, to, all;
    char why[BZ_HTTP_REASON];
    if (r->code == 200 && r->content_length >= 0 && (uint64_t)r->content_length != size) {
        snprintf(why, sizeof why, "it has %" PRId64 " bytes, but the manifest says %" PRIu64,
                 r->content_length, size);
        return give_up(p, why);
    }
    if (r->code == 200) {
        return true;
    }
    if (!r->ranged || !bz_http_content_range(r->content_range, &from, &to, &all) ||
        from != r->from) {
        return give_up(p, "the response is not the range that was requested");
    }
    if (all != UINT64_MAX && all != size) {
        snprintf(why, sizeof why, "it has %" PRIu64 " bytes, but the manifest says %" PRIu64, all,
                 size);
        return give_up(p, why);
    }
    return true;
}

static bool take_bytes(bz_http_request *r, const char *bytes, size_t n)
{
    part *p = r->user;
    fetch *f = p->f;
    if (p->at == r->from && !check_head(p)) {
        return false;
    }
    if (r->code == 200 && r->ranged) {
        f->whole = true; /* the loop sees it and begins again */
        return false;
    }
    if (n > p->end - p->at) {
        return give_up(p, "the response is longer than what was requested");
    }
    f->status = bz_partial_write(f->p, p->at, bytes, n, f->err);
    if (f->status != BZ_OK) {
        return false;
    }
    p->at += n;
    p->tries = f->whole ? p->tries : 0;
    f->unflushed += n;
    return true;
}

/* Bytes first, then the journal that lists them. */
static void flush(fetch *f)
{
    bz_status status = f->unflushed ? bz_partial_flush(f->p, f->err) : BZ_OK;
    for (size_t i = 0; i < f->n && status == BZ_OK; i++) {
        part *p = &f->parts[i];
        if (p->at > p->logged) {
            status = bz_partial_log(f->p, (bz_range){p->logged, p->at}, f->err);
            p->logged = p->at;
        }
    }
    f->unflushed = 0;
    f->flushed_at = bz_os_now();
    f->status = f->status == BZ_OK ? status : f->status;
}

static void report(fetch *f)
{
    uint64_t done = bz_ranges_bytes(&f->p->done);
    for (size_t i = 0; i < f->n; i++) {
        done += f->parts[i].at - f->parts[i].logged;
    }
    /* Bytes that are fetched again count once. */
    bz_pull_report_blob(f->o, f->digest, done < f->p->size ? done : f->p->size, f->p->size);
    f->reported_at = bz_os_now();
}

/* ---- requests ---------------------------------------------------------------------------------
 */

static void start(fetch *f, part *p)
{
    bz_http_request *r = &p->request;
    bz_http_drop(r);
    p->direct = f->direct && !p->ask_registry;
    p->ask_registry = false;
    *r = (bz_http_request){.url = bz_store_text("%s", p->direct ? f->direct : f->url),
                           .ranged = !(p->at == 0 && p->end == f->p->size),
                           .from = p->at,
                           .to = p->end,
                           .on_body = take_bytes,
                           .user = p};
    f->status = r->url ? bz_http_start(f->http, r, f->err) : bz_store_no_memory(f->err);
    p->running = f->status == BZ_OK;
    f->running += p->running;
}

static void fail(fetch *f, const part *p, bz_status code)
{
    const bz_http_request *r = &p->request;
    char what[BZ_HTTP_REASON + 40];
    if (r->code >= 300) {
        snprintf(what, sizeof what, "HTTP status %ld%s%s", r->code, r->reason[0] ? ", " : "",
                 r->reason);
    } else {
        snprintf(what, sizeof what, "%s", r->reason[0] ? r->reason : "the connection ended early");
    }
    f->status = bz_fail(f->err, code,
                        "The file %.12s could not be fetched: %s. What has arrived is kept for the "
                        "next pull.",
                        f->digest + strlen("sha256:"), what);
}

/* Milliseconds until the next attempt: doubled each time, unless the server names a time. */
static uint64_t wait_ms(const part *p)
{
    const unsigned told =
        p->request.retry_after_s < MAX_WAIT_S ? p->request.retry_after_s : MAX_WAIT_S;
    uint64_t ms = FIRST_WAIT_MS << (p->tries < 6 ? p->tries - 1 : 5);
    ms = ms > MAX_WAIT_MS ? MAX_WAIT_MS : ms;
    return told ? told * 1000u : ms;
}

static void try_later(fetch *f, part *p)
{
    const unsigned most = f->o->retries ? f->o->retries : RETRIES;
    if (p->tries++ >= most) {
        fail(f, p, BZ_NETWORK);
        return;
    }
    if (f->whole) { /* it cannot continue in the middle */
        p->at = p->logged = p->from;
    }
    p->ready = bz_os_now() + wait_ms(p) * MS;
}

static void finish(fetch *f, part *p)
{
    bz_http_request *r = &p->request;
    const bool good = r->code == 200 || r->code == 206;
    p->running = false;
    f->running--;
    if (f->status != BZ_OK) {
        return;
    }
    if (good && p->at == p->end) {
        if (!f->direct && !bz_url_same_origin(r->url, f->url)) {
            f->direct = r->url;
            r->url = NULL;
        }
        bz_http_drop(r);
    } else if (p->direct && r->code >= 400 && r->code < 500 && r->code != 429) {
        if (f->direct && strcmp(f->direct, r->url) == 0) { /* expired: the registry knows another */
            free(f->direct);
            f->direct = NULL;
        }
        p->ask_registry = true;
    } else if (r->refused) {
        fail(f, p, BZ_NETWORK);
    } else if (r->code >= 400 && r->code < 500 && r->code != 408 && r->code != 429) {
        fail(f, p, r->code == 404 ? BZ_NOT_FOUND : BZ_NETWORK);
    } else {
        try_later(f, p);
    }
}

static void start_more(fetch *f)
{
    const uint64_t now = bz_os_now();
    for (size_t i = 0; i < f->n && f->status == BZ_OK; i++) {
        part *p = &f->parts[i];
        if (f->running == connections(f)) {
            return;
        }
        if (!p->running && p->at < p->end && p->ready <= now) {
            start(f, p);
        }
    }
}

static bool done(const fetch *f)
{
    for (size_t i = 0; i < f->n; i++) {
        if (f->parts[i].at < f->parts[i].end) {
            return false;
        }
    }
    return true;
}

/* The server answered a range with the whole blob. */
static void begin_whole(fetch *f)
{
    drop_parts(f);
    f->p->resumed = false;
    f->p->done.n = 0;
    if (!add_part(f, 0, f->p->size)) {
        f->status = bz_store_no_memory(f->err);
    }
}

/* ---- the digest -------------------------------------------------------------------------------
 */

/* How many bytes are complete from the beginning. */
static uint64_t complete_bytes(const fetch *f)
{
    bz_range gap = {0};
    bool missing = bz_ranges_gap(&f->p->done, 0, f->p->size, &gap);
    for (size_t i = 0; missing && i < f->n; i++) {
        const part *p = &f->parts[i];
        if (p->from <= gap.from && p->at > gap.from) { /* bytes that are not in the journal yet */
            missing = bz_ranges_gap(&f->p->done, p->at, f->p->size, &gap);
        }
    }
    return missing ? gap.from : f->p->size;
}

static void check_digest(fetch *f, bool *good)
{
    char text[BZ_SHA256_TEXT];
    bz_pull_hash_limit(f->hash, f->p->size);
    while (f->status == BZ_OK && bz_pull_hash_done(f->hash) < f->p->size) {
        if (bz_os_now() - f->reported_at >= REPORT_NS) { /* not for small files */
            bz_pull_report(f->o, "verifying sha256 digest", NULL, bz_pull_hash_done(f->hash),
                           f->p->size);
            f->reported_at = bz_os_now();
        }
        bz_os_sleep(5 * MS);
        if (bz_http_cancelled(f->http)) {
            f->status = bz_fail(f->err, BZ_ABORTED, "%s", interrupted);
        } else if (bz_pull_hash_failed(f->hash)) {
            f->status =
                bz_fail(f->err, BZ_BAD_FILE, "Cannot read %.*s.", BZ_SHOWN_PATH, f->p->part_path);
        }
    }
    if (f->status == BZ_OK) {
        bz_pull_hash_text(f->hash, text);
        *good = strcasecmp(text, f->digest + strlen("sha256:")) == 0;
    }
}

static void start_hash(fetch *f)
{
    bz_pull_hash_stop(f->hash);
    f->hash = bz_pull_hash_start(f->p->part);
    if (!f->hash && f->status == BZ_OK) {
        f->status = bz_store_no_memory(f->err);
    }
}

/* ---- all of it ----------------------------------------------------------------------------------
 */

bz_status bz_pull_fetch(const bz_pull_options *o, bz_http *http, bz_partial *p, const char *url,
                        const char digest[BZ_DIGEST_TEXT], bool *good, bz_error *err)
{
    fetch f = {.o = o, .http = http, .p = p, .url = url, .digest = digest, .err = err};
    f.status = plan_parts(&f);
    f.flushed_at = bz_os_now();
    start_hash(&f);
    report(&f);
    while (f.status == BZ_OK && !done(&f)) {
        const bool whole = f.whole;
        start_more(&f);
        bz_http_request *r = bz_http_wait(http);
        if (f.whole && !whole) {
            begin_whole(&f);
            start_hash(&f); /* bytes that it has read will be written again */
            continue;
        }
        if (r) {
            finish(&f, r->user);
        }
        if (bz_http_cancelled(http)) {
            f.status = bz_fail(err, BZ_ABORTED, "%s", interrupted);
        }
        const uint64_t now = bz_os_now();
        if (now - f.flushed_at >= (f.unflushed >= FLUSH_BYTES ? FLUSH_NS : FLUSH_FEW_NS)) {
            flush(&f);
        }
        if (now - f.reported_at >= REPORT_NS) {
            if (!f.whole) { /* which may begin again */
                bz_pull_hash_limit(f.hash, complete_bytes(&f));
            }
            report(&f);
        }
    }
    flush(&f); /* also after an error */
    report(&f);
    if (f.status == BZ_OK) {
        check_digest(&f, good);
    }
    bz_pull_hash_stop(f.hash);
    drop_parts(&f);
    free(f.direct);
    return f.status;
}
