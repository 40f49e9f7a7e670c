/* Loses the GPU device of a program again and again, as a driver reset does: a library for
 * LD_PRELOAD.
 *
 *   LOSE_DEVICE_AFTER=N  after every N submits
 *   LOSE_DEVICE_LOG=F    a byte is appended to this file each time
 *
 * The program looks the functions of its WebGPU library up with dlsym, which this replaces. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

/* The version of dlsym that every C library of the architecture has had. */
#if defined(__x86_64__)
#define DLSYM_VERSION "GLIBC_2.2.5"
#else
#define DLSYM_VERSION "GLIBC_2.17"
#endif

typedef void *(*find_function)(void *, const char *);

static void *device; /* the newest */
static void *(*get_queue)(void *device);
static void (*submit)(void *queue, size_t n, void *const *commands);
static void (*destroy)(void *device);
static long submits;

static void log_loss(void)
{
    const char *path = getenv("LOSE_DEVICE_LOG");
    const int file = path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
    if (file >= 0) {
        if (write(file, "x", 1) != 1) {
            abort();
        }
        close(file);
    }
}

static void *get_queue_and_note(void *of)
{
    device = of;
    return get_queue(of);
}

static void submit_and_lose(void *queue, size_t n, void *const *commands)
{
    const char *after = getenv("LOSE_DEVICE_AFTER");
    const long each = after ? atol(after) : 0;
    submit(queue, n, commands);
    if (each > 0 && ++submits >= each && device) {
        submits = 0;
        log_loss();
        destroy(device);
        device = NULL;
    }
}

API void *dlsym(void *library, const char *name);

API void *dlsym(void *library, const char *name)
{
    static find_function real;
    if (!real) {
        real = (find_function)(uintptr_t)dlvsym(RTLD_NEXT, "dlsym", DLSYM_VERSION);
    }
    void *found = real(library, name);
    if (found && strcmp(name, "wgpuDeviceGetQueue") == 0) {
        get_queue = (void *(*)(void *))(uintptr_t)found;
        return (void *)(uintptr_t)get_queue_and_note;
    }
    if (found && strcmp(name, "wgpuQueueSubmit") == 0) {
        submit = (void (*)(void *, size_t, void *const *))(uintptr_t)found;
        destroy = (void (*)(void *))(uintptr_t)real(library, "wgpuDeviceDestroy");
        return (void *)(uintptr_t)submit_and_lose;
    }
    return found;
}
