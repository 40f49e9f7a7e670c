/* server/os.h on Linux and macOS; what differs between them is in os_linux.c and os_macos.c. */
#include "server/os_posix.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(off_t) == 8, "models are larger than 2 GB");

/* ---- sockets --------------------------------------------------------------------------- */

typedef union any_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} any_address;

static bool read_address(const char *host, uint16_t port, any_address *a, socklen_t *n)
{
    memset(a, 0, sizeof *a);
    if (strcmp(host, "localhost") == 0) {
        host = "127.0.0.1";
    }
    if (inet_pton(AF_INET, host, &a->v4.sin_addr) == 1) {
        a->v4.sin_family = AF_INET;
        a->v4.sin_port = htons(port);
        *n = sizeof a->v4;
        return true;
    }
    if (inet_pton(AF_INET6, host, &a->v6.sin6_addr) == 1) {
        a->v6.sin6_family = AF_INET6;
        a->v6.sin6_port = htons(port);
        *n = sizeof a->v6;
        return true;
    }
    return false;
}

static void tell_address(os_listener *l)
{
    any_address a;
    socklen_t n = sizeof a;
    if (getsockname(l->fd, &a.any, &n) == 0) {
        const bool v4 = a.any.sa_family == AF_INET;
        inet_ntop(a.any.sa_family, v4 ? (void *)&a.v4.sin_addr : (void *)&a.v6.sin6_addr,
                  l->address, sizeof l->address);
        l->port = ntohs(v4 ? a.v4.sin_port : a.v6.sin6_port);
    }
}

bz_status os_listen(os_listener *l, const char *host, uint16_t port, bool *taken, bz_error *err)
{
    any_address a;
    socklen_t n;
    const int yes = 1;
    *l = (os_listener){.fd = -1};
    *taken = false;
    if (!read_address(host, port, &a, &n)) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "'%s' is not a numeric address; give for example 127.0.0.1 or ::1.", host);
    }
    l->fd = socket(a.any.sa_family, SOCK_STREAM, 0);
    /* Without SO_REUSEADDR a port would stay in use for a minute after its last server. */
    if (l->fd < 0 || !os_make_ours(l->fd, true) ||
        setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        bind(l->fd, &a.any, n) != 0 || listen(l->fd, SOMAXCONN) != 0) {
        const int why = errno;
        *taken = why == EADDRINUSE;
        os_close(l->fd);
        l->fd = -1;
        return bz_fail(err, BZ_NETWORK, "%s", strerror(why));
    }
    tell_address(l);
    return BZ_OK;
}

bool os_listen_inherited(os_listener *l)
{
    enum { FIRST_FD = 3 };
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    int listening = 0;
    socklen_t n = sizeof listening;
    *l = (os_listener){.fd = -1};
    if (!pid || !count || strtol(pid, NULL, 10) != (long)getpid() || strtol(count, NULL, 10) < 1 ||
        getsockopt(FIRST_FD, SOL_SOCKET, SO_ACCEPTCONN, &listening, &n) != 0 || !listening ||
        !os_make_ours(FIRST_FD, true)) {
        return false;
    }
    l->fd = FIRST_FD;
    tell_address(l);
    return true;
}

static uint64_t client_of(const any_address *a)
{
    uint64_t network = 0;
    uint32_t v4;
    if (a->any.sa_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr)) {
        memcpy(&network, &a->v6.sin6_addr, sizeof network);
        return network;
    }
    memcpy(&v4,
           a->any.sa_family == AF_INET ? (const uint8_t *)&a->v4.sin_addr
                                       : (const uint8_t *)&a->v6.sin6_addr + 12,
           sizeof v4);
    return (uint64_t)v4 << 32 | 0xFFFF; /* a network of IPv6 that does not exist */
}

int os_accept(int listener, uint64_t *client)
{
    any_address a = {0};
    socklen_t n = sizeof a;
    const int fd = os_accept_ours(listener, &a.any, &n);
    *client = client_of(&a);
    const int yes = 1;
    if (fd < 0) {
        return errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM ? OS_FULL
                                                                                         : OS_WAIT;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes); /* send tokens at once */
    return fd;
}

static long result(ssize_t n)
{
    if (n >= 0) {
        return (long)n;
    }
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? OS_WAIT : OS_GONE;
}

long os_receive(int fd, char *bytes, size_t n)
{
    return result(recv(fd, bytes, n, 0));
}

long os_send(int fd, const char *bytes, size_t n, bool more)
{
    return result(send(fd, bytes, n, more ? OS_SEND_MORE : OS_SEND_FLAGS));
}

long os_send_file(int fd, int file, uint64_t from, size_t n)
{
    const ssize_t sent = os_send_from(fd, file, (off_t)from, n);
    return sent == 0 && n > 0 ? OS_GONE : result(sent);
}

void os_finish_sending(int fd)
{
    shutdown(fd, SHUT_WR);
}

void os_close(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

void os_close_file(int file)
{
    os_close(file);
}

bool os_make_ours(int fd, bool without_waiting)
{
    return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 &&
           (!without_waiting || fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
}

int os_connect(const char *host, uint16_t port, unsigned patience_s)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    const struct timeval patience = {.tv_sec = (time_t)patience_s};
    struct addrinfo *list = NULL;
    char service[16];
    int fd = -1;
    snprintf(service, sizeof service, "%u", port);
    if (getaddrinfo(host, service, &hints, &list) != 0) {
        return -1;
    }
    for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
        if (fd >= 0 && (!os_make_ours(fd, false) || connect(fd, a->ai_addr, a->ai_addrlen) != 0)) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(list);
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        os_no_signal(fd);
    }
    return fd;
}

bool os_parse_v4(const char *text, uint8_t out[4])
{
    return inet_pton(AF_INET, text, out) == 1;
}

bool os_parse_v6(const char *text, uint8_t out[16])
{
    return inet_pton(AF_INET6, text, out) == 1;
}

void os_wait(os_watch *watches, size_t n, int milliseconds)
{
    struct pollfd fixed[64], *p = n <= 64 ? fixed : malloc(n * sizeof *p);
    if (!p) {
        const struct timespec pause = {.tv_nsec = 10000000};
        nanosleep(&pause, NULL);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const short w = watches[i].wanted;
        p[i] = (struct pollfd){.fd = watches[i].fd,
                               .events = (short)((w & OS_READ ? POLLIN : 0) |
                                                 (w & OS_WRITE ? POLLOUT : 0) |
                                                 (w & OS_LEFT ? OS_POLL_LEFT : 0))};
        watches[i].seen = 0;
    }
    if (poll(p, (nfds_t)n, milliseconds) > 0) {
        for (size_t i = 0; i < n; i++) {
            const short r = p[i].revents;
            const bool failed = r & (POLLERR | POLLHUP | POLLNVAL);
            watches[i].seen =
                (short)((failed ? watches[i].wanted | OS_LEFT : 0) | (r & POLLIN ? OS_READ : 0) |
                        (r & POLLOUT ? OS_WRITE : 0) | (r & OS_POLL_LEFT ? OS_LEFT : 0));
        }
    }
    if (p != fixed) {
        free(p);
    }
}

bool os_alarm_open(int ends[2])
{
    if (pipe(ends) != 0) {
        return false;
    }
    if (!os_make_ours(ends[0], true) || !os_make_ours(ends[1], true)) {
        close(ends[0]);
        close(ends[1]);
        return false;
    }
    return true;
}

void os_alarm_ring(int end)
{
    const int before = errno;
    if (write(end, "", 1) < 0) {
        /* the pipe is full, so poll returns anyway */
    }
    errno = before;
}

void os_alarm_clear(int end)
{
    char bytes[64];
    while (read(end, bytes, sizeof bytes) == (ssize_t)sizeof bytes) {
    }
}

uint64_t os_prepare(void)
{
    struct rlimit limit;
    signal(SIGPIPE, SIG_IGN); /* sendfile has no flag against it */
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return 256;
    }
    if (limit.rlim_cur < limit.rlim_max) {
        const rlim_t enough = 8192;
        struct rlimit more = limit;
        more.rlim_cur =
            limit.rlim_max > enough && limit.rlim_cur < enough ? enough : limit.rlim_max;
        if (limit.rlim_cur < more.rlim_cur && setrlimit(RLIMIT_NOFILE, &more) == 0) {
            limit = more;
        }
    }
    return limit.rlim_cur;
}

int64_t os_clock(void)
{
    return (int64_t)time(NULL);
}

/* ---- files ------------------------------------------------------------------------------- */

/* Describes an open file; false, and closes it, if it is neither a regular file nor a folder. */
static bool look(int fd, os_file *file)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) {
        close(fd);
        return false;
    }
    *file = (os_file){fd, S_ISDIR(st.st_mode), (uint64_t)st.st_size, (int64_t)st.st_mtime,
                      os_nanoseconds_of(&st)};
    return true;
}

bz_status os_open_folder(const char *path, int *fd, bz_error *err)
{
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *fd >= 0
               ? BZ_OK
               : bz_fail(err, errno == ENOENT ? BZ_NOT_FOUND : BZ_BAD_FILE, "%s", strerror(errno));
}

bz_status os_open_file(const char *path, os_file *file, bz_error *err)
{
    /* O_NONBLOCK: opening a pipe would wait for its writer. */
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        const bool full = errno == EMFILE || errno == ENFILE;
        return bz_fail(err,
                       full              ? BZ_OUT_OF_MEMORY
                       : errno == ENOENT ? BZ_NOT_FOUND
                                         : BZ_BAD_FILE,
                       "%s", strerror(errno));
    }
    if (!look(fd, file)) {
        return bz_fail(err, BZ_BAD_FILE, "It is not a regular file");
    }
    if (file->folder) {
        os_close(fd);
        return bz_fail(err, BZ_BAD_FILE, "It is a folder");
    }
    return BZ_OK;
}

os_found os_open_below(int folder, const char *path, os_file *file)
{
    int at = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (at >= 0 && *path) {
        const size_t n = strcspn(path, "/");
        char name[NAME_MAX + 1];
        int next = -1;
        errno = ENOENT;
        if (n > 0 && n <= NAME_MAX) {
            memcpy(name, path, n);
            name[n] = 0;
            next = openat(at, name,
                          O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC |
                              (path[n] ? O_DIRECTORY : 0));
        }
        const int why = errno;
        close(at);
        errno = why;
        at = next;
        path += n + (path[n] == '/');
    }
    if (at < 0) {
        return errno == EMFILE || errno == ENFILE ? OS_TOO_MANY : OS_NOTHING;
    }
    return look(at, file) ? OS_FOUND : OS_NOTHING;
}

bool os_open_browser(const char *url)
{
    extern char **environ;
    char *argv[] = {strdup(os_browser_starter), strdup(url), NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t defaults;
    bool started = false;
    pid_t child;
    if (!argv[0] || !argv[1] || posix_spawn_file_actions_init(&files) != 0) {
        free(argv[0]);
        free(argv[1]);
        return false;
    }
    if (posix_spawnattr_init(&how) == 0) {
        /* Without our output, and not affected by Ctrl-C here. */
        sigemptyset(&defaults);
        sigaddset(&defaults, SIGPIPE);
        sigaddset(&defaults, SIGXFSZ);
        sigaddset(&defaults, SIGCHLD);
        signal(SIGCHLD, SIG_IGN); /* no zombie */
        started =
            posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0) == 0 &&
            posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0) == 0 &&
            posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0) == 0 &&
            posix_spawnattr_setsigdefault(&how, &defaults) == 0 &&
            posix_spawnattr_setpgroup(&how, 0) == 0 &&
            posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP) == 0 &&
            posix_spawnp(&child, argv[0], &files, &how, argv, environ) == 0;
        posix_spawnattr_destroy(&how);
    }
    posix_spawn_file_actions_destroy(&files);
    free(argv[0]);
    free(argv[1]);
    return started;
}
