#include "store/pull_http.h"

#define CURL_DISABLE_DEPRECATION /* CURLOPT_PROTOCOLS: see limit_protocols */
#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/lock.h"
#include "base/os.h"
#include "store/ollama_internal.h"
#include "store/pull_url.h"

enum {
    MAX_REDIRECTS = 10,
    MAX_AUTHORIZATIONS = 3, /* of one request */
    CONNECT_S = 30,
    STALL_S = 30,
    POLL_MS = 100,
    IDLE_NS = 10000000,       /* without a connection to wait for */
    MAX_ERROR_BODY = 1 << 16, /* of a response that is an error; its text is not needed in full */
    MAX_TOKEN_BODY = 1 << 16
};

struct bz_http {
    CURLM *multi;
    bz_http_options options;
    char *base, *agent;
    char token[BZ_AUTH_TOKEN]; /* "": none */
    unsigned token_number;     /* counts tokens; 0: none yet */
};

/* ---- one process ------------------------------------------------------------------------ */

static bool init_curl(void)
{
    static bz_lock lock;
    static bool done; /* under the lock */
    bz_lock_take(&lock);
    done = done || curl_global_init(CURL_GLOBAL_DEFAULT) == 0;
    const bool ok = done;
    bz_lock_give(&lock);
    return ok;
}

bz_status bz_http_open(bz_http **http, const bz_http_options *options, bz_error *err)
{
    bz_http *h = calloc(1, sizeof *h);
    *http = h;
    if (!h || !init_curl() || !(h->multi = curl_multi_init()) ||
        !(h->base = bz_store_text("%s", options->base)) ||
        !(h->agent = bz_store_text("bezel/%s", bz_version()))) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for connections.");
    }
    h->options = *options;
    return BZ_OK;
}

void bz_http_close(bz_http *h)
{
    if (h) {
        curl_multi_cleanup(h->multi);
        free(h->base);
        free(h->agent);
        free(h);
    }
}

bool bz_http_cancelled(const bz_http *h)
{
    return h->options.is_cancelled && h->options.is_cancelled(h->options.user);
}

/* ---- the response --------------------------------------------------------------------------- */

static bool field_is(const char *line, size_t n, const char *name, bz_str *value)
{
    const size_t len = strlen(name);
    if (n <= len || line[len] != ':' || strncasecmp(line, name, len) != 0) {
        return false;
    }
    *value = (bz_str){line + len + 1, n - len - 1};
    while (value->len && (value->data[0] == ' ' || value->data[0] == '\t')) {
        *value = (bz_str){value->data + 1, value->len - 1};
    }
    while (value->len && strchr(" \t\r\n", value->data[value->len - 1])) {
        value->len--;
    }
    return true;
}

static void copy_field(char *to, size_t cap, bz_str value)
{
    const size_t n = value.len < cap ? value.len : 0; /* a longer one is of no use */
    memcpy(to, value.data, n);
    to[n] = 0;
}

static size_t on_header(char *line, size_t size, size_t n, void *user)
{
    bz_http_request *r = user;
    bz_str value;
    n *= size;
    if (n >= 5 &&
        memcmp(line, "HTTP/", 5) == 0) { /* also after "100 Continue" or a proxy's reply */
        r->content_range[0] = r->challenge[0] = 0;
    } else if (field_is(line, n, "content-range", &value)) {
        copy_field(r->content_range, sizeof r->content_range, value);
    } else if (field_is(line, n, "www-authenticate", &value) && !r->challenge[0]) {
        copy_field(r->challenge, sizeof r->challenge, value);
    }
    return n;
}

/* Keeps the printable beginning of an error's body. */
static void keep_reason(bz_http_request *r, const char *bytes, size_t n)
{
    size_t at = strlen(r->reason);
    for (size_t i = 0; i < n && at + 1 < sizeof r->reason; i++) {
        r->reason[at++] = bytes[i] >= 0x20 && bytes[i] < 0x7F ? bytes[i] : ' ';
    }
    r->reason[at] = 0;
    r->n_reason += n;
}

static size_t on_bytes(char *bytes, size_t size, size_t n, void *user)
{
    bz_http_request *r = user;
    curl_off_t length = -1;
    n *= size;
    if (r->code == 0) {
        curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &r->code);
        curl_easy_getinfo(r->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
        r->content_length = length;
    }
    if (r->code == 200 || r->code == 206) {
        return r->on_body(r, bytes, n) ? n : 0;
    }
    keep_reason(r, bytes, n);
    return r->n_reason <= MAX_ERROR_BODY ? n : 0;
}

static int on_tick(void *user, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const bz_http_request *r = user;
    (void)a, (void)b, (void)c, (void)d;
    return bz_http_cancelled(r->http);
}

bool bz_http_content_range(const char *text, uint64_t *from, uint64_t *to, uint64_t *size)
{
    char end[2];
    if (sscanf(text, "bytes %" SCNu64 "-%" SCNu64 "/%" SCNu64 "%1s", from, to, size, end) == 3) {
        return true;
    }
    *size = UINT64_MAX;
    return sscanf(text, "bytes %" SCNu64 "-%" SCNu64 "/*%1s", from, to, end) == 2;
}

/* ---- the request ---------------------------------------------------------------------------- */

static bool add_header(bz_http_request *r, const char *format, const char *value)
{
    char *line = bz_store_text(format, value);
    struct curl_slist *more = line ? curl_slist_append(r->headers, line) : NULL;
    free(line);
    r->headers = more ? more : r->headers;
    return more != NULL;
}

/* Certificates: libcurl looks where the distribution has them for which it was built. A program
 * that brings its own libcurl runs on others too. */
static void find_certificates(CURL *e)
{
    static const char *const places[] = {
        "/etc/ssl/certs/ca-certificates.crt", /* Debian, Arch, Alpine */
        "/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora, RHEL */
        "/etc/ssl/ca-bundle.pem",             /* openSUSE */
    };
    char *own = NULL;
    if (curl_easy_getinfo(e, CURLINFO_CAINFO, &own) != CURLE_OK || !own || bz_os_file_exists(own)) {
        return;
    }
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (bz_os_file_exists(places[i])) {
            curl_easy_setopt(e, CURLOPT_CAINFO, places[i]);
            return;
        }
    }
}

/* macOS has libcurl since 7.64; from 7.85 on protocols have names. */
static bool limit_protocols(CURL *e)
{
    return curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK ||
           curl_easy_setopt(e, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS) == CURLE_OK;
}

/* Sets the handle up for r->url. */
static bool prepare(bz_http *h, bz_http_request *r)
{
    r->code = 0;
    r->complete = r->refused = false;
    r->reason[0] = r->error[0] = r->content_range[0] = r->challenge[0] = 0;
    r->n_reason = r->retry_after_s = 0;
    r->content_length = -1;
    r->http = h;
    curl_slist_free_all(r->headers);
    r->headers = NULL;
    if (!r->easy && !(r->easy = curl_easy_init())) {
        return false;
    }
    CURL *e = r->easy;
    curl_easy_reset(e);
    bool ok = !r->accept || add_header(r, "Accept: %s", r->accept);
    if (h->token[0] && bz_url_same_origin(r->url, h->base)) {
        ok = ok && add_header(r, "Authorization: Bearer %s", h->token);
    }
    r->token_number = h->token_number;
    if (r->ranged) {
        char range[64];
        snprintf(range, sizeof range, "%" PRIu64 "-%" PRIu64, r->from, r->to - 1);
        ok = ok && curl_easy_setopt(e, CURLOPT_RANGE, range) == CURLE_OK;
    }
    ok = ok && curl_easy_setopt(e, CURLOPT_URL, r->url) == CURLE_OK;
    ok = ok && limit_protocols(e);
    curl_easy_setopt(e, CURLOPT_HTTPHEADER, r->headers);
    curl_easy_setopt(e, CURLOPT_USERAGENT, h->agent);
    /* Version 2 would put all ranges into one connection. */
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME,
                     (long)(h->options.stall_s ? h->options.stall_s : STALL_S));
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, r->error);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, r);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, r);
    curl_easy_setopt(e, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(e, CURLOPT_XFERINFOFUNCTION, on_tick);
    curl_easy_setopt(e, CURLOPT_XFERINFODATA, r);
    curl_easy_setopt(e, CURLOPT_PRIVATE, r);
    find_certificates(e);
    if (r->for_token) { /* a user's password for the host that issues tokens */
        curl_easy_setopt(e, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
    }
    if (bz_url_is_loopback(r->url)) {
        curl_easy_setopt(e, CURLOPT_PROXY, ""); /* a proxy has another loopback */
    }
    return ok;
}

/* ---- after a response ----------------------------------------------------------------------- */

typedef enum next_step { FINISHED, SEND_AGAIN } next_step;

static next_step refuse(bz_http_request *r, const char *why)
{
    r->refused = true;
    snprintf(r->reason, sizeof r->reason, "%s", why);
    return FINISHED;
}

static next_step follow(bz_http *h, bz_http_request *r)
{
    char *to = NULL;
    curl_easy_getinfo(r->easy, CURLINFO_REDIRECT_URL, &to);
    if (!to) {
        return refuse(r, "the redirect names no address");
    }
    if (++r->redirects > MAX_REDIRECTS) {
        return refuse(r, "there are more than 10 redirects");
    }
    if (!bz_url_allowed(to, h->options.insecure)) {
        return refuse(r, "it redirects to an address without encryption");
    }
    char *url = bz_store_text("%s", to);
    if (!url) {
        return refuse(r, "no memory");
    }
    free(r->url);
    r->url = url;
    return SEND_AGAIN;
}

static bool fetch_token(bz_http *h, const char *challenge)
{
    char url[BZ_AUTH_URL], *text = NULL;
    size_t n = 0;
    if (!bz_auth_token_url((bz_str){challenge, strlen(challenge)}, url) ||
        !bz_url_allowed(url, h->options.insecure)) {
        return false;
    }
    bz_http_request r = {
        .url = bz_store_text("%s", url), .accept = "application/json", .for_token = true};
    h->token[0] = 0; /* an expired one must not be sent */
    bool found = r.url && bz_http_get(h, &r, MAX_TOKEN_BODY, &text, &n, NULL) == BZ_OK &&
                 bz_auth_token((bz_str){text, n}, h->token);
    bz_http_drop(&r);
    free(text);
    h->token_number++;
    return found;
}

/* A token that another request fetched meanwhile is tried first. */
static next_step authorize(bz_http *h, bz_http_request *r)
{
    static const char denied[] =
        "the registry requires authentication; the model is private, or there is none of this name";
    if (r->for_token || !bz_url_same_origin(r->url, h->base)) {
        return FINISHED;
    }
    if (!r->challenge[0] || ++r->authorizations > MAX_AUTHORIZATIONS) {
        return refuse(r, denied);
    }
    if (r->token_number != h->token_number && h->token[0]) {
        return SEND_AGAIN;
    }
    return fetch_token(h, r->challenge) ? SEND_AGAIN : refuse(r, denied);
}

/* Registries answer {"errors":[{"message":"..."}]} or {"error":"..."}. */
static void shorten_reason(bz_http_request *r)
{
    bz_arena arena = {0};
    const bz_json_node *root = NULL;
    char shown[200];
    if (bz_json_read(&root, r->reason, strlen(r->reason), &arena, NULL) == BZ_OK) {
        const bz_json_node *first = bz_json_first(bz_json_get(root, "errors"));
        bz_str text = bz_json_string(bz_json_get(first, "message"));
        text = text.len ? text : bz_json_string(bz_json_get(root, "error"));
        snprintf(r->reason, sizeof r->reason, "%s", text.len ? bz_str_show(text, shown) : "");
    } else if (r->reason[0] == '<' || r->reason[0] == '{') { /* a page, or JSON that was cut */
        r->reason[0] = 0;
    }
    bz_arena_free(&arena);
}

static next_step look_at(bz_http *h, bz_http_request *r, CURLcode result)
{
    curl_off_t wait = 0;
    curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &r->code);
    curl_easy_getinfo(r->easy, CURLINFO_RETRY_AFTER, &wait);
    r->retry_after_s = wait > 0 && wait < 3600 ? (unsigned)wait : 0;
    r->complete = result == CURLE_OK;
    if (result != CURLE_OK && !(result == CURLE_WRITE_ERROR && r->code >= 300)) {
        if (result != CURLE_WRITE_ERROR || !r->reason[0]) {
            snprintf(r->reason, sizeof r->reason, "%.159s",
                     r->error[0] ? r->error : curl_easy_strerror(result));
        }
        r->refused = r->refused || result == CURLE_PEER_FAILED_VERIFICATION;
        return FINISHED;
    }
    switch (r->code) {
    case 301:
    case 302:
    case 303:
    case 307:
    case 308: return follow(h, r);
    case 401: return authorize(h, r);
    case 200:
    case 206: return FINISHED;
    default: shorten_reason(r); return FINISHED;
    }
}

/* ---- a small response ----------------------------------------------------------------------- */

typedef struct small_body {
    bz_json_buffer text;
    size_t max;
} small_body;

static bool add_small(bz_http_request *r, const char *bytes, size_t n)
{
    small_body *b = r->user;
    if (b->text.n + n > b->max) {
        r->refused = true;
        snprintf(r->reason, sizeof r->reason, "the response is longer than %zu bytes", b->max);
        return false;
    }
    return bz_json_to_buffer(&b->text, bytes, n);
}

bz_status bz_http_get(bz_http *h, bz_http_request *r, size_t max, char **text, size_t *n,
                      bz_error *err)
{
    small_body body = {.max = max};
    next_step next = SEND_AGAIN;
    r->on_body = add_small;
    r->user = &body;
    while (next == SEND_AGAIN) {
        free(body.text.text);
        body.text = (bz_json_buffer){0};
        if (!prepare(h, r)) {
            return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a request.");
        }
        next = look_at(h, r, curl_easy_perform(r->easy));
    }
    r->user = NULL;
    if (bz_http_cancelled(h)) {
        free(body.text.text);
        return bz_fail(err, BZ_ABORTED, "The pull was interrupted.");
    }
    if (r->complete && r->code == 200) {
        *text = body.text.text ? body.text.text : calloc(1, 1);
        *n = body.text.n;
        return *text ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a response.");
    }
    free(body.text.text);
    return bz_fail(err, BZ_NETWORK, "%s", r->reason);
}

/* ---- many requests ----------------------------------------------------------------------------
 */

bz_status bz_http_start(bz_http *h, bz_http_request *r, bz_error *err)
{
    return prepare(h, r) && curl_multi_add_handle(h->multi, r->easy) == CURLM_OK
               ? BZ_OK
               : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a request.");
}

/* Not curl_multi_poll, which macOS 11 does not have: unlike that this returns at once while there
 * is no connection. */
static void wait_for_bytes(CURLM *multi)
{
    int ready = 0;
    curl_multi_wait(multi, NULL, 0, POLL_MS, &ready);
    if (ready == 0) {
        bz_os_sleep(IDLE_NS);
    }
}

bz_http_request *bz_http_wait(bz_http *h)
{
    int running = 0, queued = 0;
    const CURLMsg *message;
    curl_multi_perform(h->multi, &running);
    message = curl_multi_info_read(h->multi, &queued);
    if (!message) {
        wait_for_bytes(h->multi);
        curl_multi_perform(h->multi, &running);
        message = curl_multi_info_read(h->multi, &queued);
    }
    if (!message || message->msg != CURLMSG_DONE) {
        return NULL;
    }
    const CURLcode result = message->data.result; /* not valid after the removal */
    char *user = NULL;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &user);
    bz_http_request *r = (bz_http_request *)(void *)user;
    curl_multi_remove_handle(h->multi, r->easy);
    if (look_at(h, r, result) == SEND_AGAIN && !bz_http_cancelled(h)) {
        if (bz_http_start(h, r, NULL) == BZ_OK) {
            return NULL;
        }
        refuse(r, "no memory");
    }
    return r;
}

void bz_http_drop(bz_http_request *r)
{
    if (r->easy) {
        if (r->http) {
            curl_multi_remove_handle(r->http->multi, r->easy); /* no matter if it is not there */
        }
        curl_easy_cleanup(r->easy);
    }
    curl_slist_free_all(r->headers);
    free(r->url);
    r->easy = r->headers = r->url = NULL;
}
