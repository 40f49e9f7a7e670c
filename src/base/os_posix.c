/* os.h on Linux and macOS; what differs between them is in os_linux.c and os_macos.c. */
#include "base/os.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

uint64_t bz_os_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- files --------------------------------------------------------------- */

/* The only state of the library that is not in an object of its caller: a signal handler has no
 * other way to find it. A free entry has end 0. */
enum { MAX_GUARDED = 1024 };
static struct guarded_map {
    atomic_uintptr_t begin, end; /* addresses of whole pages */
    atomic_bool taken, cut;
} guarded[MAX_GUARDED];
static uintptr_t page_bytes;
static struct sigaction other_bus_errors;

/* Calls only what may be called in a handler: mmap is a plain system call. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    const int before = errno;
    const uintptr_t at = (uintptr_t)info->si_addr, page = at / page_bytes * page_bytes;
    (void)context;
    for (size_t i = 0; i < MAX_GUARDED; i++) {
        const uintptr_t end = atomic_load(&guarded[i].end);
        /* All that follows is past the end of the file too. */
        if (at >= atomic_load(&guarded[i].begin) && at < end &&
            mmap((void *)page, end - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                 0) != MAP_FAILED) {
            atomic_store(&guarded[i].cut, true);
            errno = before;
            return;
        }
    }
    sigaction(number, &other_bus_errors, NULL); /* the instruction runs again and fails there */
    errno = before;
}

void bz_os_guard_maps(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    sigaction(SIGBUS, &action, &other_bus_errors);
}

bool bz_os_map_cut(const bz_os_map *map)
{
    struct stat st;
    return (map->guard && atomic_load(&guarded[map->guard - 1].cut)) ||
           (map->file && fstat(map->file - 1, &st) == 0 && (uint64_t)st.st_size < map->size);
}

/* A table that is full leaves the mapping unguarded. */
static void guard(bz_os_map *map)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)map->data;
    for (uint32_t i = 0; i < MAX_GUARDED && !map->guard; i++) {
        bool taken = false;
        if (atomic_compare_exchange_strong(&guarded[i].taken, &taken, true)) {
            atomic_store(&guarded[i].cut, false);
            atomic_store(&guarded[i].begin, begin);
            atomic_store(&guarded[i].end, begin + (map->size + page - 1) / page * page);
            map->guard = i + 1;
        }
    }
}

static void end_guard(const bz_os_map *map)
{
    if (map->guard) {
        struct guarded_map *g = &guarded[map->guard - 1];
        atomic_store(&g->end, 0);
        atomic_store(&g->taken, false);
    }
}

bz_status bz_os_map_file(const char *path, bz_os_map *map, bz_error *err)
{
    *map = (bz_os_map){0};
    /* Without O_NONBLOCK, opening a named pipe would block for ever. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ENXIO) { /* a socket, or a device without its hardware */
        return bz_fail(err, BZ_BAD_FILE, "%s is not a regular file.", path);
    }
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
            status = bz_fail(err, BZ_OUT_OF_MEMORY, "%s: cannot map the file: %s.", path,
                             strerror(errno));
        } else {
            *map = (bz_os_map){data, (uint64_t)st.st_size, 0, fd + 1};
            guard(map);
            return BZ_OK;
        }
    }
    close(fd);
    return status;
}

void bz_os_unmap(bz_os_map *map)
{
    if (map->data) {
        end_guard(map);
        close(map->file - 1);
        munmap((void *)(uintptr_t)map->data, (size_t)map->size);
    }
    *map = (bz_os_map){0};
}

bool bz_os_file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static bz_status fail_errno(bz_error *err)
{
    bz_status code = errno == ENOENT || errno == ENOTDIR ? BZ_NOT_FOUND : BZ_BAD_FILE;
    return bz_fail(err, code, "%s", strerror(errno));
}

bz_status bz_os_stat(const char *path, bz_os_info *info, bz_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        return fail_errno(err);
    }
    *info = (bz_os_info){S_ISDIR(st.st_mode), (uint64_t)st.st_size, (int64_t)st.st_mtime,
                         !S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)};
    return BZ_OK;
}

bz_status bz_os_read_small(const char *path, size_t max, char **text, size_t *n, bz_error *err)
{
    /* Without O_NONBLOCK, opening a named pipe would block for ever. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0 && errno == ENXIO) { /* a socket, or a device without its hardware */
        return bz_fail(err, BZ_BAD_FILE, "not a regular file");
    }
    if (fd < 0 || fstat(fd, &st) != 0) {
        bz_status status = fail_errno(err);
        if (fd >= 0) {
            close(fd);
        }
        return status;
    }
    bz_status status = BZ_OK;
    char *buf = NULL;
    size_t got = 0;
    if (!S_ISREG(st.st_mode)) {
        status = bz_fail(err, BZ_BAD_FILE, "not a regular file");
    } else if ((uint64_t)st.st_size > max) {
        status = bz_fail(err, BZ_BAD_FILE, "larger than %zu bytes", max);
    } else if (!(buf = malloc((size_t)st.st_size + 1))) {
        status = bz_fail(err, BZ_OUT_OF_MEMORY, "no memory for %zu bytes", (size_t)st.st_size);
    }
    while (status == BZ_OK && got < (size_t)st.st_size) {
        ssize_t r = read(fd, buf + got, (size_t)st.st_size - got);
        if (r > 0) {
            got += (size_t)r;
        } else if (r == 0) {
            break; /* the file was truncated meanwhile: return what there is */
        } else if (errno != EINTR) {
            status = fail_errno(err);
        }
    }
    close(fd);
    if (status != BZ_OK) {
        free(buf);
        return status;
    }
    buf[got] = 0;
    *text = buf;
    *n = got;
    return BZ_OK;
}

bz_status bz_os_list(const char *folder, bool (*each)(void *user, const char *name), void *user,
                     bz_error *err)
{
    DIR *dir = opendir(folder);
    if (!dir) {
        return fail_errno(err);
    }
    bz_status status = BZ_OK;
    for (bool more = true; more;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (!entry) {
            status = errno ? fail_errno(err) : BZ_OK;
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            more = each(user, entry->d_name);
        }
    }
    closedir(dir);
    return status;
}

const char *bz_os_env(const char *name)
{
    return getenv(name);
}

/* ---- the machine --------------------------------------------------------- */

void *bz_os_aligned_alloc(size_t alignment, size_t n)
{
    return aligned_alloc(alignment, n);
}

void bz_os_aligned_free(void *p)
{
    free(p);
}

void bz_os_sleep(uint64_t nanoseconds)
{
    struct timespec t = {(time_t)(nanoseconds / 1000000000u), (long)(nanoseconds % 1000000000u)};
    nanosleep(&t, NULL);
}

bool bz_os_user_folder(bz_os_folder kind, char *out, size_t room)
{
    static const struct {
        const char *variable, *below_home;
    } places[] = {[BZ_OS_STATE] = {"XDG_STATE_HOME", "/.local/state"},
                  [BZ_OS_DATA] = {"XDG_DATA_HOME", "/.local/share"}};
    const char *given = getenv(places[kind].variable), *home = getenv("HOME");
    /* relative paths are ignored, as the specification says */
    const bool use = given && given[0] == '/';
    if (!use && (!home || home[0] != '/')) {
        return false;
    }
    const int n =
        snprintf(out, room, "%s%s/bezel", use ? given : home, use ? "" : places[kind].below_home);
    return n > 0 && n < (int)room;
}

/* ---- libraries ------------------------------------------------------------- */

static bz_os_function function_at(void *address)
{
    /* POSIX guarantees the same representation for both kinds of pointers; ISO C has no cast. */
    bz_os_function function = NULL;
    _Static_assert(sizeof function == sizeof address, "pointers to functions are pointers");
    memcpy(&function, &address, sizeof function);
    return function;
}

bz_os_library *bz_os_library_open(const char *name, bz_error *err)
{
    /* dlopen is looked up at run time: a static program then links without glibc's warning and
     * finds nothing here, which is right, since it cannot run a library with another libc. */
    void *(*open_it)(const char *, int) =
        (void *(*)(const char *, int))function_at(dlsym(RTLD_DEFAULT, "dlopen"));
    if (!open_it) {
        bz_fail(err, BZ_NOT_FOUND, "this program is linked statically and cannot load libraries");
        return NULL;
    }
    void *handle = open_it(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) {
        const char *reason = dlerror();
        bz_fail(err, BZ_NOT_FOUND, "%s", reason ? reason : "cannot be loaded");
    }
    return handle;
}

bz_os_function bz_os_library_symbol(bz_os_library *library, const char *name)
{
    return function_at(dlsym(library, name));
}

void bz_os_library_close(bz_os_library *library)
{
    if (library) {
        dlclose(library);
    }
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
    static const int of_terminal[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGCONT, SIGALRM};
    sigset_t blocked, before; /* inherited by the thread */
    sigemptyset(&blocked);
    for (size_t i = 0; i < sizeof of_terminal / sizeof *of_terminal; i++) {
        sigaddset(&blocked, of_terminal[i]);
    }
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    const bool started = pthread_create(&t->id, NULL, thread_main, t) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!started) {
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
