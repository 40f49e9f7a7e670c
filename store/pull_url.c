#include "store/pull_url.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef struct parts {
    CURLU *url;
    char *scheme, *host, *port;
} parts;

static bool split(parts *p, const char *url)
{
    *p = (parts){.url = curl_url()};
    return p->url &&
           curl_url_set(p->url, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
           curl_url_get(p->url, CURLUPART_SCHEME, &p->scheme, 0) == CURLUE_OK &&
           curl_url_get(p->url, CURLUPART_HOST, &p->host, 0) == CURLUE_OK &&
           curl_url_get(p->url, CURLUPART_PORT, &p->port, CURLU_DEFAULT_PORT) == CURLUE_OK;
}

static void parts_free(parts *p)
{
    curl_free(p->scheme);
    curl_free(p->host);
    curl_free(p->port);
    curl_url_cleanup(p->url);
}

/* libcurl connects to a loopback address for "localhost", whatever DNS says. */
static bool is_loopback(const char *host)
{
    unsigned a, b, c, d;
    char rest;
    return strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
           (host[strspn(host, "0123456789.")] == 0 &&
            sscanf(host, "%3u.%3u.%3u.%3u%c", &a, &b, &c, &d, &rest) == 4 && a == 127 && b < 256 &&
            c < 256 && d < 256);
}

bool bz_url_is_loopback(const char *url)
{
    parts p;
    const bool loopback = split(&p, url) && is_loopback(p.host);
    parts_free(&p);
    return loopback;
}

bool bz_url_allowed(const char *url, bool insecure)
{
    parts p;
    const bool allowed =
        split(&p, url) && (strcmp(p.scheme, "https") == 0 ||
                           (strcmp(p.scheme, "http") == 0 && (insecure || is_loopback(p.host))));
    parts_free(&p);
    return allowed;
}

bool bz_url_same_origin(const char *a, const char *b)
{
    parts p, q;
    const bool first = split(&p, a), second = split(&q, b);
    const bool same = first && second && strcmp(p.scheme, q.scheme) == 0 &&
                      strcasecmp(p.host, q.host) == 0 && strcmp(p.port, q.port) == 0;
    parts_free(&p);
    parts_free(&q);
    return same;
}

bz_status bz_url_base(const char *text, const bz_store_name *name, bool insecure,
                      char base[BZ_URL_BASE], bz_error *err)
{
    snprintf(base, BZ_URL_BASE, "http://%s", name->host);
    const bool asks_http = strncmp(text, "http://", strlen("http://")) == 0;
    const bool asks_https = strncmp(text, "https://", strlen("https://")) == 0;
    const bool http = asks_http || (!asks_https && (insecure || bz_url_is_loopback(base)));
    if (http && !bz_url_allowed(base, insecure)) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "%.80s would be fetched without encryption; use https, or --insecure if you "
                       "trust every network on the way.",
                       text);
    }
    if (!http) {
        snprintf(base, BZ_URL_BASE, "https://%s", name->host);
    }
    if (!bz_url_allowed(base, insecure)) {
        return bz_fail(err, BZ_BAD_REQUEST, "\"%.80s\" is not the address of a registry.",
                       name->host);
    }
    return BZ_OK;
}
