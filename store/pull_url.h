/* Addresses of a registry. They are parsed by libcurl, which also fetches them. */
#ifndef BZ_STORE_PULL_URL_H
#define BZ_STORE_PULL_URL_H

#include "store/ollama_name.h"

enum { BZ_URL_BASE = BZ_NAME_HOST + 16 };

/* "https://host", or "http://host" for a loopback address or with `insecure`. `text`: the name as
 * the user wrote it, which may begin with a scheme. bad_request: http where it is not allowed. */
bz_status bz_url_base(const char *text, const bz_store_name *name, bool insecure,
                      char base[BZ_URL_BASE], bz_error *err);

/* May this address be fetched? https always, http for a loopback address or with `insecure`. */
bool bz_url_allowed(const char *url, bool insecure);
bool bz_url_is_loopback(const char *url);
/* Same scheme, host and port. */
bool bz_url_same_origin(const char *a, const char *b);

#endif
