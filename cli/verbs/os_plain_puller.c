/* serve_pull.h where programs have no sandbox: a process for downloads would have the same rights,
 * so they are threads of the server. */
#include "cli/verbs/serve_pull.h"

int serve_puller_start(serve_puller *p, const cli_options *o, int listener)
{
    (void)o, (void)listener;
    *p = (serve_puller){.control = -1};
    return EXIT_OK;
}

bz_status serve_puller_pull(void *puller, const bz_pull_options *o, bz_error *err)
{
    (void)puller;
    return bz_store_pull(o, err);
}

void serve_puller_end(serve_puller *p)
{
    (void)p;
}
