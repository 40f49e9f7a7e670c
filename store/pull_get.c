/* One file by its address, into memory. */
#include <stdlib.h>
#include <string.h>

#include "store/ollama_internal.h"
#include "store/pull.h"
#include "store/pull_http.h"
#include "store/pull_url.h"

bz_status bz_store_get(const bz_get_options *o, char **bytes, size_t *n, bz_error *err)
{
    bz_error why = {0};
    bz_http *http = NULL;
    bz_http_request r = {.url = bz_store_text("%s", o->url), .accept = "*/*"};
    *bytes = NULL;
    if (!r.url) {
        return bz_store_no_memory(err);
    }
    if (!bz_url_allowed(o->url, false)) {
        free(r.url);
        return bz_fail(err, BZ_BAD_REQUEST, "\"%.120s\" is not an address with https.", o->url);
    }
    const bz_http_options options = {
        .base = o->url, .is_cancelled = o->is_cancelled, .user = o->user};
    bz_status status = bz_http_open(&http, &options, err);
    if (status != BZ_OK) {
        free(r.url);
        return status;
    }
    status = bz_http_get(http, &r, o->max, bytes, n, &why);
    if (status == BZ_ABORTED) {
        bz_fail(err, status, "The download was interrupted.");
    } else if (status != BZ_OK && r.code >= 400) {
        bz_fail(err, status, "%.200s answers HTTP status %ld.", o->url, r.code);
    } else if (status != BZ_OK) {
        bz_fail(err, status, "Cannot fetch %.200s: %s.", o->url, why.text);
    }
    bz_http_drop(&r);
    bz_http_close(http);
    return status;
}
