/* What cli/os_posix.c leaves to macOS. */
#include "cli/os.h"

#include <sys/sysctl.h>

void cli_os_processor(char *out, size_t room)
{
    size_t n = room;
    if (sysctlbyname("machdep.cpu.brand_string", out, &n, NULL, 0) != 0) {
        out[0] = 0;
    }
    out[room - 1] = 0;
}

uint64_t cli_os_memory_limit(void)
{
    return 0; /* there are no containers */
}
