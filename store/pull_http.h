/* Requests to a registry, on libcurl. Redirects and tokens are handled here: a token is sent to
 * the registry only, never to the host of a redirect, and a redirect to http is refused where http
 * is not allowed. */
#ifndef BZ_STORE_PULL_HTTP_H
#define BZ_STORE_PULL_HTTP_H

#include "base/error.h"
#include "store/pull_auth.h"

typedef struct bz_http bz_http;

typedef struct bz_http_options {
    const char *base; /* of the registry: "https://host" */
    bool insecure;
    unsigned stall_s;
    bool (*is_cancelled)(void *user); /* may be NULL */
    void *user;
} bz_http_options;

bz_status bz_http_open(bz_http **http, const bz_http_options *options, bz_error *err);
void bz_http_close(bz_http *http); /* NULL is allowed */

enum { BZ_HTTP_REASON = 160, BZ_HTTP_FIELD = 1024 };

/* One GET. The caller fills the first part; it must stay at its address until it is finished. */
typedef struct bz_http_request {
    char *url; /* owned; replaced when a redirect is followed */
    const char *accept;
    bool ranged; /* request bytes from..to-1 only */
    uint64_t from, to;
    /* Next bytes of a 200 or 206 response. False ends the request: code then stays as it is. */
    bool (*on_body)(struct bz_http_request *r, const char *bytes, size_t n);
    void *user;

    /* The result. */
    long code;                   /* of the response; 0: there was none */
    bool complete;               /* the response arrived to its end */
    char reason[BZ_HTTP_REASON]; /* if not: why; for an error code: what the server says */
    char content_range[128];     /* header, or "" */
    int64_t content_length;      /* -1: not known */
    unsigned retry_after_s;      /* 0: not given */
    bool refused;                /* a retry would not help: reason says why */

    /* Private. */
    void *easy, *headers;
    char challenge[BZ_HTTP_FIELD];
    char error[256];
    bz_http *http;
    unsigned redirects, authorizations;
    unsigned token_number; /* of the token it was sent with */
    bool for_token;        /* it fetches a token */
    size_t n_reason;
} bz_http_request;

/* A small response as a whole. max: bytes it may have. BZ_OK: *text has the body of a 200 response,
 * which the caller frees; otherwise r has the result and *err a sentence without the address. */
bz_status bz_http_get(bz_http *http, bz_http_request *r, size_t max, char **text, size_t *n,
                      bz_error *err);

/* Many requests at a time: start some, then call bz_http_wait in a loop. */
bz_status bz_http_start(bz_http *http, bz_http_request *r, bz_error *err);
/* Waits up to 100 ms for events. Returns a finished request, or NULL. */
bz_http_request *bz_http_wait(bz_http *http);
/* Ends a request that was started or finished, and frees what it owns. */
void bz_http_drop(bz_http_request *r);

/* Parses "bytes FROM-TO/SIZE" (TO included; SIZE may be '*': UINT64_MAX). */
bool bz_http_content_range(const char *text, uint64_t *from, uint64_t *to, uint64_t *size);

bool bz_http_cancelled(const bz_http *http);

#endif
