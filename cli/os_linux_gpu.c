#include "cli/sandbox_gpu.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bezel_debug.h"

/* Entries of /dev: Mesa's drivers and Intel's, NVIDIA's, AMD's compute, Windows', Mali, Adreno. */
static const char *const device_prefixes[] = {"dri",  "nvidia", "kfd",      "dxg",
                                              "mali", "kgsl",   "dma_heap", "udmabuf"};

static bool is_device(const char *name)
{
    for (size_t i = 0; i < sizeof device_prefixes / sizeof *device_prefixes; i++) {
        if (strncmp(name, device_prefixes[i], strlen(device_prefixes[i])) == 0) {
            return true;
        }
    }
    return false;
}

typedef struct listing {
    void (*allow)(void *user, const char *path, bool folder);
    void *user;
} listing;

static void allow_devices(const listing *l)
{
    DIR *devices = opendir("/dev");
    const struct dirent *e;
    while (devices && (e = readdir(devices)) != NULL) {
        char path[PATH_MAX];
        const int n = snprintf(path, sizeof path, "/dev/%s", e->d_name);
        if (n < (int)sizeof path && is_device(e->d_name)) {
            l->allow(l->user, path, false);
        }
    }
    if (devices) {
        closedir(devices);
    }
}

/* A cache in the folder `base`, if that exists; created as its driver would. */
static void allow_cache(const listing *l, const char *base, const char *name)
{
    char path[PATH_MAX];
    const int n = base && base[0] ? snprintf(path, sizeof path, "%s%s", base, name) : 0;
    if (n > 0 && n < (int)sizeof path) {
        mkdir(path, 0700); /* it may exist */
        l->allow(l->user, path, true);
    }
}

void sandbox_gpu_paths(void (*allow)(void *user, const char *path, bool folder), void *user)
{
    const listing l = {allow, user};
    const char *home = getenv("HOME"), *cache = getenv("XDG_CACHE_HOME");
    char usual[PATH_MAX] = "";
    if (!cache || !cache[0]) {
        const int n = snprintf(usual, sizeof usual, "%s/.cache", home ? home : "");
        cache = home && n < (int)sizeof usual ? usual : NULL;
    }
    allow_devices(&l);
    allow_cache(&l, cache, "/mesa_shader_cache");
    allow_cache(&l, cache, "/mesa_shader_cache_db");
    if (access("/dev/nvidiactl", F_OK) == 0) {
        allow_cache(&l, cache, "/nvidia");
        allow_cache(&l, home, "/.nv");
    }
    allow_cache(&l, getenv("MESA_SHADER_CACHE_DIR"), "");
    allow_cache(&l, getenv("__GL_SHADER_DISK_CACHE_PATH"), "");
    allow(user, "/dev/shm", true);    /* shared with the kernel's driver or a display server */
    allow(user, "/proc/self", false); /* names of threads */
}

bool sandbox_gpu_works(bool (*confine)(void *user), void *user)
{
    /* Ignored, the child's status would be lost; opening a browser ignores it. */
    void (*const before)(int) = signal(SIGCHLD, SIG_DFL);
    const pid_t child = fork();
    int status = 1;
    if (child == 0) {
        bz_debug_gpu *gpu = NULL;
        bz_error err = {0};
        const int silent = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (silent >= 0) { /* what a driver prints comes again when the model is opened */
            dup2(silent, STDERR_FILENO);
            dup2(silent, STDOUT_FILENO);
        }
        const bool works = confine(user) && bz_debug_gpu_open(&gpu, &err) == BZ_OK;
        _exit(works ? 0 : 1); /* without the handlers of the parent, or the driver's */
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    signal(SIGCHLD, before);
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
