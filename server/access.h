/* Who may ask. A page of some other site can make a browser send requests here; what such a request
 * cannot forge is the name it thinks this server has, and the page it comes from.
 *
 * Host: a site may let its own name resolve to 127.0.0.1 (DNS rebinding); its pages then are "same
 * origin" with this server, but the name in Host is still theirs.
 * Origin: sent with everything that could change something; ours, or one that was allowed.
 */
#ifndef BZ_SERVER_ACCESS_H
#define BZ_SERVER_ACCESS_H

#include "base/error.h"

typedef struct access_rules {
    const char *address; /* the address bound, as numbers: "127.0.0.1", "::1" */
    const char *const
        *names; /* [n_names] more hosts, without ports; NULL-terminated lists are fine */
    size_t n_names;
} access_rules;

/* "localhost", "x.localhost", loopback addresses, the address bound and the names; where all
 * addresses are bound, every address. With or without a port. */
bool access_host(const access_rules *rules, bz_str authority);

/* A page of this server ("http://" and the request's own authority), or of one of the names,
 * whatever its scheme and port. "null" is nobody. */
bool access_origin(const access_rules *rules, bz_str origin, bz_str authority);

bool access_is_loopback(const char *address); /* nobody outside this machine reaches it */

#endif
