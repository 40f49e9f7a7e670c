/* Which requests are allowed. A page of another site can make a browser send requests here, but it
 * cannot forge the fields Host and Origin.
 *
 * Host: a site may let its own name resolve to 127.0.0.1 (DNS rebinding); its pages then are "same
 * origin" with this server, but the name in Host is still theirs.
 * Origin: sent with every request that could change something; it must be ours or an allowed one.
 */
#ifndef BZ_SERVER_ACCESS_H
#define BZ_SERVER_ACCESS_H

#include "base/error.h"

typedef struct access_rules {
    const char *address;      /* the address bound, as numbers: "127.0.0.1", "::1" */
    const char *const *names; /* [n_names] more hosts, without ports */
    size_t n_names;
    const char *const *origins; /* [n_origins] patterns of origins, see access_origin */
    size_t n_origins;
    const char *key; /* routes that need it are open without one (NULL) */
} access_rules;

/* "localhost", "x.localhost", loopback addresses, the address bound and the names; where all
 * addresses are bound, every address. With or without a port. */
bool access_host(const access_rules *rules, bz_str authority);

/* A page of this server ("http://" and the request's own authority), or of one of the names,
 * whatever its scheme and port, or an origin that a pattern matches: "*" stands for any text,
 * "https://a.example" matches only that, and "a.example" also with http, https and any port. "null"
 * is refused, unless a pattern is "*" alone. */
bool access_origin(const access_rules *rules, bz_str origin, bz_str authority);
/* Whether it is a page of another origin that may read our answers. */
bool access_foreign_origin(const access_rules *rules, bz_str origin);

/* Whether the value of Authorization has the key, compared in constant time. */
bool access_key(const access_rules *rules, bz_str authorization);

bool access_is_loopback(const char *address); /* only this machine can reach it */

#endif
