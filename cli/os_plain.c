/* The sandbox where there is none. */
#include "cli/os_sandbox.h"

const bool sandbox_exists = false;
const char sandbox_needs[] = "only Linux has a sandbox for Bezel";

bool sandbox_confine(const sandbox_rules *r)
{
    (void)r;
    return false;
}

bool sandbox_driver_works(const char *device, sandbox_rules *r)
{
    (void)device, (void)r;
    return true;
}
