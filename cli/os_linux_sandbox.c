/* The sandbox of Linux: Landlock for files, seccomp for system calls. */
#include "cli/os_sandbox.h"

#include <string.h>
#include <sys/prctl.h>

#include "cli/os_linux.h"
#include "cli/sandbox_gpu.h"

const bool sandbox_exists = true;
const char sandbox_needs[] = "it needs Linux 5.13 or later with Landlock and seccomp";

/* Both, as far as the kernel has them. */
bool sandbox_confine(const sandbox_rules *r)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return false;
    }
    const bool files = sandbox_confine_files(r);
    return sandbox_filter_calls(r) && files;
}

static bool confine(void *user)
{
    return sandbox_confine(user);
}

static bool stay_free(void *user)
{
    (void)user;
    return true;
}

/* Drivers differ; one that does not work inside must not be lost by being confined. With "auto"
 * there may be none at all. */
bool sandbox_driver_works(const char *device, sandbox_rules *r)
{
    const bool only_gpu = device && strcmp(device, "gpu") == 0;
    const bool maybe_gpu = device && strcmp(device, "auto") == 0;
    if (!only_gpu && !maybe_gpu) {
        return true;
    }
    sandbox_rules with_gpu = *r;
    with_gpu.gpu = true;
    with_gpu.reads_listed = false; /* a driver's own files may be anywhere */
    if (sandbox_gpu_works(confine, &with_gpu)) {
        *r = with_gpu;
        return true;
    }
    return maybe_gpu && !sandbox_gpu_works(stay_free, NULL);
}
