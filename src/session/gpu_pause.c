#include "base/os.h"
#include "session/job.h"

enum { SHORTEST_NS = 20 * 1000, LONGEST_NS = 200 * 1000, LOOKS = 64 };

void bz_gpu_pause(uint64_t *since)
{
    const uint64_t now = bz_os_now();
    *since = *since ? *since : now;
    const uint64_t pause = (now - *since) / LOOKS;
    bz_os_sleep(pause < SHORTEST_NS ? SHORTEST_NS : pause > LONGEST_NS ? LONGEST_NS : pause);
}
