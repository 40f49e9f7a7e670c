/* What os_posix.c leaves to Linux. */
#include "base/os_program.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#endif

unsigned bz_os_cpu_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) {
        return (unsigned)CPU_COUNT(&set);
    }
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (unsigned)n : 1;
}

uint64_t bz_os_memory_available(void)
{
    uint64_t bytes = 0;
    FILE *f = fopen("/proc/meminfo", "re");
    if (f) {
        char line[200];
        unsigned long long kib;
        while (fgets(line, sizeof line, f)) {
            if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) {
                bytes = kib * 1024u;
                break;
            }
        }
        fclose(f);
    }
    return bytes;
}

#if defined(__x86_64__)

static bool has_f16c(void)
{
    unsigned a, b, c, d; /* some compilers do not know "f16c" */
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
}

/* Leaf 7, subleaf 1: EAX bit 4. Leaf 7 says in EAX which subleaf is the last. */
static bool has_avxvnni(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && a >= 1 &&
           __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 4) != 0;
}

/* Leaf 7: EDX bit 24 is AMX-TILE, bit 25 AMX-INT8. XCR0 has bits 17 and 18 if the system saves the
 * configuration and the data of tiles; it can be read if leaf 1 has OSXSAVE. */
static bool has_amx_int8(void)
{
    const unsigned instructions = 3u << 24, registers = 3u << 17;
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) ||
        !__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & instructions) != instructions) {
        return false;
    }
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & registers) == registers;
}

bool bz_os_allow_tiles(void)
{
    enum { REQUEST_PERMISSION = 0x1023 /* ARCH_REQ_XCOMP_PERM of newer headers */, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

/* The builtin also checks that the system saves the registers of AVX. */
bool bz_os_cpu_has(const char *feature)
{
    const struct {
        const char *name;
        bool there;
    } features[] = {{"avx2", __builtin_cpu_supports("avx2")},
                    {"fma", __builtin_cpu_supports("fma")},
                    {"f16c", __builtin_cpu_supports("avx") && has_f16c()},
                    {"avxvnni", __builtin_cpu_supports("avx2") && has_avxvnni()},
                    {"avx512f", __builtin_cpu_supports("avx512f")},
                    {"avx512bw", __builtin_cpu_supports("avx512bw")},
                    {"avx512vl", __builtin_cpu_supports("avx512vl")},
                    {"avx512dq", __builtin_cpu_supports("avx512dq")},
                    {"avx512vnni", __builtin_cpu_supports("avx512vnni")},
                    {"avx512bf16", __builtin_cpu_supports("avx512bf16")},
                    {"amxint8", has_amx_int8()}};
    for (size_t i = 0; i < sizeof features / sizeof *features; i++) {
        if (strcmp(feature, features[i].name) == 0) {
            return features[i].there;
        }
    }
    return false;
}

#elif defined(__aarch64__)

bool bz_os_cpu_has(const char *feature)
{
    const unsigned long has = getauxval(AT_HWCAP), more = getauxval(AT_HWCAP2);
    const struct {
        const char *name;
        bool there;
    } features[] = {{"neon", true},
                    {"fp16", (has & HWCAP_FPHP) != 0},
                    {"dotprod", (has & HWCAP_ASIMDDP) != 0},
                    {"sve", (has & HWCAP_SVE) != 0},
                    {"i8mm", (more & HWCAP2_I8MM) != 0}};
    for (size_t i = 0; i < sizeof features / sizeof *features; i++) {
        if (strcmp(feature, features[i].name) == 0) {
            return features[i].there;
        }
    }
    return false;
}

#else

bool bz_os_cpu_has(const char *feature)
{
    (void)feature;
    return false;
}

#endif

void bz_os_wait(atomic_uint *word, unsigned expected)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

void bz_os_wait_for(atomic_uint *word, unsigned expected, uint64_t nanoseconds)
{
    const struct timespec most = {(time_t)(nanoseconds / 1000000000u),
                                  (long)(nanoseconds % 1000000000u)};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, &most, NULL, 0);
}

void bz_os_wake_all(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 0x7FFFFFFF, NULL, NULL, 0);
}

bool bz_os_program_path(char *out, size_t room)
{
    const ssize_t n = readlink("/proc/self/exe", out, room);
    if (n <= 0 || (size_t)n >= room) {
        return false;
    }
    out[n] = 0;
    return true;
}
