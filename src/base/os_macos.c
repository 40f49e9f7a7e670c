/* What os_posix.c leaves to macOS. */
#include "base/os_program.h"

#include <limits.h>
#include <mach-o/dyld.h>
#include <mach/mach.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysctl.h>
#include <unistd.h>

unsigned bz_os_cpu_count(void)
{
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (unsigned)n : 1;
}

/* Free pages, and those that the system gives up without writing them anywhere. */
uint64_t bz_os_memory_available(void)
{
    vm_statistics64_data_t pages;
    mach_msg_type_number_t n = HOST_VM_INFO64_COUNT;
    const long page = sysconf(_SC_PAGESIZE);
    if (page <= 0 || host_statistics64(mach_host_self(), HOST_VM_INFO64, (host_info64_t)&pages,
                                       &n) != KERN_SUCCESS) {
        return 0;
    }
    return ((uint64_t)pages.free_count + pages.inactive_count + pages.purgeable_count) *
           (uint64_t)page;
}

/* Asked of the system, not of the processor: macOS saves the registers of AVX-512 only after their
 * first use, so that XGETBV does not show them, and translates x86-64 on Apple's processors. */
bool bz_os_cpu_has(const char *feature)
{
    static const struct {
        const char *name, *key;
    } features[] = {{"avx2", "hw.optional.avx2_0"},
                    {"fma", "hw.optional.fma"},
                    {"f16c", "hw.optional.f16c"},
                    {"avx512f", "hw.optional.avx512f"},
                    {"avx512bw", "hw.optional.avx512bw"},
                    {"avx512vl", "hw.optional.avx512vl"},
                    {"avx512dq", "hw.optional.avx512dq"},
                    {"avx512vnni", "hw.optional.avx512vnni"},
                    {"neon", "hw.optional.arm64"},
                    {"fp16", "hw.optional.arm.FEAT_FP16"},
                    {"dotprod", "hw.optional.arm.FEAT_DotProd"},
                    {"i8mm", "hw.optional.arm.FEAT_I8MM"}};
    for (size_t i = 0; i < sizeof features / sizeof *features; i++) {
        int value = 0;
        size_t n = sizeof value;
        if (strcmp(feature, features[i].name) == 0) {
            return sysctlbyname(features[i].key, &value, &n, NULL, 0) == 0 && value != 0;
        }
    }
    return false;
}

/* Without public futexes one lock serves all waiters: waiting is rare and short. */
static pthread_mutex_t wait_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wait_changed = PTHREAD_COND_INITIALIZER;

void bz_os_wait(atomic_uint *word, unsigned expected)
{
    pthread_mutex_lock(&wait_lock);
    if (atomic_load(word) == expected) {
        pthread_cond_wait(&wait_changed, &wait_lock);
    }
    pthread_mutex_unlock(&wait_lock);
}

void bz_os_wait_for(atomic_uint *word, unsigned expected, uint64_t nanoseconds)
{
    const struct timespec most = {(time_t)(nanoseconds / 1000000000u),
                                  (long)(nanoseconds % 1000000000u)};
    pthread_mutex_lock(&wait_lock);
    if (atomic_load(word) == expected) {
        pthread_cond_timedwait_relative_np(&wait_changed, &wait_lock, &most);
    }
    pthread_mutex_unlock(&wait_lock);
}

void bz_os_wake_all(atomic_uint *word)
{
    (void)word;
    pthread_mutex_lock(&wait_lock);
    pthread_cond_broadcast(&wait_changed);
    pthread_mutex_unlock(&wait_lock);
}

bool bz_os_program_path(char *out, size_t room)
{
    char path[PATH_MAX], real[PATH_MAX];
    uint32_t n = sizeof path;
    if (_NSGetExecutablePath(path, &n) != 0 || !realpath(path, real) || strlen(real) >= room) {
        return false;
    }
    memcpy(out, real, strlen(real) + 1);
    return true;
}
