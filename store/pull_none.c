/* Stands in for pulling where libcurl was not there when this program was built. The build defines
 * MISSING_CURL as its Debian package (tools/libraries.sh). */
#include "store/pull.h"

#ifdef __linux__
#define WAY_OUT ": install " MISSING_CURL " and run make again."
#else
#define WAY_OUT ", as it has no libcurl; the program of a release has it."
#endif

bool bz_store_can_pull(void)
{
    return false;
}

bz_status bz_store_get(const bz_get_options *options, char **bytes, size_t *n, bz_error *err)
{
    (void)options, (void)bytes, (void)n;
    return bz_fail(err, BZ_UNSUPPORTED_MODEL, "This build cannot download" WAY_OUT);
}

bz_status bz_store_pull(const bz_pull_options *options, bz_error *err)
{
    (void)options;
    return bz_fail(err, BZ_UNSUPPORTED_MODEL, "This build cannot pull models" WAY_OUT);
}
