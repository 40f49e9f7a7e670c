/* What cli/os_posix.c leaves to Linux. */
#include "cli/os.h"

#include <stdio.h>
#include <string.h>

void cli_os_processor(char *out, size_t room)
{
    static const char key[] = "model name";
    FILE *f = fopen("/proc/cpuinfo", "re");
    char line[512];
    out[0] = 0;
    while (f && !out[0] && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (colon && strncmp(line, key, sizeof key - 1) == 0) {
            colon += 1 + strspn(colon + 1, " \t");
            colon[strcspn(colon, "\n")] = 0;
            snprintf(out, room, "%s", colon);
        }
    }
    if (f) {
        fclose(f);
    }
}

uint64_t cli_os_memory_limit(void)
{
    FILE *f = fopen("/sys/fs/cgroup/memory.max", "re");
    unsigned long long limit = 0;
    if (f) {
        if (fscanf(f, "%llu", &limit) != 1) {
            limit = 0;
        }
        fclose(f);
    }
    return limit;
}
