/* Downloads of a server, in a process of their own: it makes connections and reads no model, while
 * the server reads models and makes no connection. The process ends with the server. */
#ifndef BZ_CLI_SERVE_PULL_H
#define BZ_CLI_SERVE_PULL_H

#include "cli/cli.h"
#include "store/pull.h"

typedef struct serve_puller {
    int control; /* to the process; -1: there is none */
    long child;
} serve_puller;

/* Starts the process, which confines itself as --sandbox says; while this one has one thread.
 * `listener` is closed in it. Returns an exit code, after a message. */
int serve_puller_start(serve_puller *p, const cli_options *o, int listener);
/* bz_store_pull() in that process. Any thread. */
bz_status serve_puller_pull(void *puller, const bz_pull_options *o, bz_error *err);
void serve_puller_end(serve_puller *p); /* after the last pull */

#endif
