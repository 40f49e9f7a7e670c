/* The token flow of registries, as text: from the challenge of a 401 response to the address that
 * issues a token, and from its answer to the token. All of it is untrusted. */
#ifndef BZ_STORE_PULL_AUTH_H
#define BZ_STORE_PULL_AUTH_H

#include "base/error.h"

enum { BZ_AUTH_URL = 4096, BZ_AUTH_TOKEN = 16384 };

/* `challenge`: the value of WWW-Authenticate, such as
 *     Bearer realm="https://host/token",service="host",scope="repository:a/b:pull"
 * url: the realm with service and scope as its query. False: not a Bearer challenge with a realm
 * of printable characters, or too long. */
bool bz_auth_token_url(bz_str challenge, char url[BZ_AUTH_URL]);

/* `json`: {"token": "..."} or {"access_token": "..."}. False: no token, or one that cannot be in a
 * header. */
bool bz_auth_token(bz_str json, char token[BZ_AUTH_TOKEN]);

#endif
