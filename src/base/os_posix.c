#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#endif

uint64_t bz_os_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- files --------------------------------------------------------------- */

bz_status bz_os_map_file(const char *path, bz_os_map *map, bz_error *err)
{
    *map = (bz_os_map){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        bz_status code = errno == ENOENT || errno == ENOTDIR ? BZ_NOT_FOUND : BZ_BAD_FILE;
        return bz_fail(err, code, "%s: %s.", path, strerror(errno));
    }
    struct stat st;
    bz_status status = BZ_OK;
    if (fstat(fd, &st) != 0) {
        status = bz_fail(err, BZ_BAD_FILE, "%s: %s.", path, strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        status = bz_fail(err, BZ_BAD_FILE, "%s is not a regular file.", path);
    } else if (st.st_size > 0) {
        void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (data == MAP_FAILED) {
            status = bz_fail(err, BZ_OUT_OF_MEMORY, "%s: cannot map the file: %s.", path, strerror(errno));
        } else {
            *map = (bz_os_map){data, (uint64_t)st.st_size};
        }
    }
    close(fd);
    return status;
}

void bz_os_unmap(bz_os_map *map)
{
    if (map->data) {
        munmap((void *)(uintptr_t)map->data, (size_t)map->size);
    }
    *map = (bz_os_map){0};
}

bool bz_os_file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* ---- the machine --------------------------------------------------------- */

unsigned bz_os_cpu_count(void)
{
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) {
        return (unsigned)CPU_COUNT(&set);
    }
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (unsigned)n : 1;
}

uint64_t bz_os_memory_available(void)
{
    uint64_t bytes = 0;
#if defined(__linux__)
    FILE *f = fopen("/proc/meminfo", "r");
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
#endif
    return bytes;
}

/* ---- threads ------------------------------------------------------------- */

struct bz_os_thread {
    pthread_t id;
    void (*run)(void *);
    void *argument;
};

static void *thread_main(void *p)
{
    bz_os_thread *t = p;
    t->run(t->argument);
    return NULL;
}

bz_os_thread *bz_os_thread_start(void (*run)(void *), void *argument)
{
    bz_os_thread *t = malloc(sizeof *t);
    if (!t) {
        return NULL;
    }
    *t = (bz_os_thread){.run = run, .argument = argument};
    if (pthread_create(&t->id, NULL, thread_main, t) != 0) {
        free(t);
        return NULL;
    }
    return t;
}

void bz_os_thread_join(bz_os_thread *t)
{
    if (t) {
        pthread_join(t->id, NULL);
        free(t);
    }
}

#if defined(__linux__)

void bz_os_wait(atomic_uint *word, unsigned expected)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

void bz_os_wake_all(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 0x7FFFFFFF, NULL, NULL, 0);
}

#else

/* Elsewhere one lock serves every waiter: waiting is rare and short. */
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

void bz_os_wake_all(atomic_uint *word)
{
    (void)word;
    pthread_mutex_lock(&wait_lock);
    pthread_cond_broadcast(&wait_changed);
    pthread_mutex_unlock(&wait_lock);
}

#endif
