/* One request to a running `bezel serve`. */
#ifndef BZ_CLI_CLIENT_H
#define BZ_CLI_CLIENT_H

#include "cli/cli.h"

enum { CLIENT_PORT = 11435 }; /* where `bezel serve` listens by default */

typedef struct client_answer {
    int status;
    char *text; /* the body, terminated; the caller frees it */
    size_t n;
} client_answer;

/* body NULL: a GET, else a POST of JSON. Uses --host, --port and --api-key. An answer of any status
 * is BZ_OK; otherwise *err says that nobody answers, or not in HTTP. */
bz_status client_request(const cli_options *o, const char *path, const char *body,
                         client_answer *answer, bz_error *err);

/* The error that the server reports, as a message for users. */
int client_error(const client_answer *answer);

#endif
