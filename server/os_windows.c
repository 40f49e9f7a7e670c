/* Sockets of server/os.h on Windows. Handles of sockets are small numbers there, so that they fit
 * the descriptors of the rest of the server. */
#include <winsock2.h>
#include <ws2tcpip.h>

#include "base/os_windows.h"
#include "server/os.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- sockets ----------------------------------------------------------------------------------
 */

typedef union any_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} any_address;

/* Winsock must be started before any other call. */
static bool start_winsock(void)
{
    static INIT_ONCE once = INIT_ONCE_STATIC_INIT;
    static WSADATA data;
    static int failed;
    BOOL first;
    if (InitOnceBeginInitialize(&once, 0, &first, NULL) && first) {
        failed = WSAStartup(MAKEWORD(2, 2), &data);
        InitOnceComplete(&once, 0, NULL);
    }
    return failed == 0;
}

/* -1: none. Programs that are started do not get it. */
static int new_socket(int family, int type)
{
    const SOCKET s = start_winsock() ? WSASocketW(family, type, 0, NULL, 0,
                                                  WSA_FLAG_OVERLAPPED | WSA_FLAG_NO_HANDLE_INHERIT)
                                     : INVALID_SOCKET;
    return s == INVALID_SOCKET ? -1 : (int)s;
}

static SOCKET socket_of(int fd)
{
    return (SOCKET)fd;
}

static bool do_not_wait(int fd)
{
    u_long yes = 1;
    return ioctlsocket(socket_of(fd), (long)FIONBIO, &yes) == 0;
}

static bool read_address(const char *host, uint16_t port, any_address *a, int *n)
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
    int n = sizeof a;
    if (getsockname(socket_of(l->fd), &a.any, &n) == 0) {
        const bool v4 = a.any.sa_family == AF_INET;
        inet_ntop(a.any.sa_family, v4 ? (void *)&a.v4.sin_addr : (void *)&a.v6.sin6_addr,
                  l->address, sizeof l->address);
        l->port = ntohs(v4 ? a.v4.sin_port : a.v6.sin6_port);
    }
}

static bz_status fail_socket(bz_error *err, int why)
{
    wchar_t text[160];
    const DWORD n = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL,
                                   (DWORD)why, 0, text, sizeof text / sizeof *text, NULL);
    char *reason = n ? bz_os_narrow(text) : NULL;
    if (reason) {
        reason[strcspn(reason, ".\r\n")] = 0;
    }
    bz_fail(err, BZ_NETWORK, "%s", reason && reason[0] ? reason : "the network does not work");
    free(reason);
    return BZ_NETWORK;
}

bz_status os_listen(os_listener *l, const char *host, uint16_t port, bool *taken, bz_error *err)
{
    any_address a;
    int n;
    /* SO_REUSEADDR would let a second program take the same port here. */
    const int yes = 1;
    *l = (os_listener){.fd = -1};
    *taken = false;
    start_winsock();
    if (!read_address(host, port, &a, &n)) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "'%s' is not a numeric address; give for example 127.0.0.1 or ::1.", host);
    }
    l->fd = new_socket(a.any.sa_family, SOCK_STREAM);
    if (l->fd < 0 || !do_not_wait(l->fd) ||
        setsockopt(socket_of(l->fd), SOL_SOCKET, SO_EXCLUSIVEADDRUSE, (const char *)&yes,
                   sizeof yes) != 0 ||
        bind(socket_of(l->fd), &a.any, n) != 0 || listen(socket_of(l->fd), SOMAXCONN) != 0) {
        const int why = WSAGetLastError();
        *taken = why == WSAEADDRINUSE || why == WSAEACCES;
        os_close(l->fd);
        l->fd = -1;
        return fail_socket(err, why);
    }
    tell_address(l);
    return BZ_OK;
}

bool os_listen_inherited(os_listener *l)
{
    *l = (os_listener){.fd = -1};
    return false; /* there is no systemd */
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
    int n = sizeof a;
    const SOCKET s = accept(socket_of(listener), &a.any, &n);
    *client = client_of(&a);
    const int yes = 1;
    if (s == INVALID_SOCKET) {
        const int why = WSAGetLastError();
        return why == WSAEMFILE || why == WSAENOBUFS ? OS_FULL : OS_WAIT;
    }
    SetHandleInformation((HANDLE)s, HANDLE_FLAG_INHERIT, 0);
    do_not_wait((int)s);
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, (const char *)&yes, sizeof yes); /* tokens at once */
    return (int)s;
}

static long result(int n)
{
    if (n >= 0) {
        return n;
    }
    const int why = WSAGetLastError();
    return why == WSAEWOULDBLOCK || why == WSAEINTR ? OS_WAIT : OS_GONE;
}

static int as_length(size_t n)
{
    return n < INT_MAX ? (int)n : INT_MAX;
}

long os_receive(int fd, char *bytes, size_t n)
{
    return result(recv(socket_of(fd), bytes, as_length(n), 0));
}

long os_send(int fd, const char *bytes, size_t n, bool more)
{
    (void)more;
    return result(send(socket_of(fd), bytes, as_length(n), 0));
}

void os_finish_sending(int fd)
{
    shutdown(socket_of(fd), SD_SEND);
}

void os_close(int fd)
{
    if (fd >= 0) {
        closesocket(socket_of(fd));
    }
}

int os_connect(const char *host, uint16_t port, unsigned patience_s)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    const DWORD patience = patience_s * 1000;
    struct addrinfo *list = NULL;
    char service[16];
    int fd = -1;
    snprintf(service, sizeof service, "%u", port);
    if (!start_winsock() || getaddrinfo(host, service, &hints, &list) != 0) {
        return -1;
    }
    for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
        fd = new_socket(a->ai_family, a->ai_socktype);
        if (fd >= 0 && connect(socket_of(fd), a->ai_addr, (int)a->ai_addrlen) != 0) {
            os_close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(list);
    if (fd >= 0) {
        setsockopt(socket_of(fd), SOL_SOCKET, SO_RCVTIMEO, (const char *)&patience,
                   sizeof patience);
        setsockopt(socket_of(fd), SOL_SOCKET, SO_SNDTIMEO, (const char *)&patience,
                   sizeof patience);
    }
    return fd;
}

bool os_parse_v4(const char *text, uint8_t out[4])
{
    start_winsock();
    return inet_pton(AF_INET, text, out) == 1;
}

bool os_parse_v6(const char *text, uint8_t out[16])
{
    start_winsock();
    return inet_pton(AF_INET6, text, out) == 1;
}

/* ---- waiting ----------------------------------------------------------------------------------
 */

/* WSAPoll takes no empty entries, and reports a side that has stopped sending as POLLHUP. */
void os_wait(os_watch *watches, size_t n, int milliseconds)
{
    struct pollfd fixed[64], *p = n <= 64 ? fixed : malloc(n * sizeof *p);
    ULONG used = 0;
    if (!p) {
        Sleep(10);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const short w = watches[i].wanted;
        watches[i].seen = 0;
        if (watches[i].fd >= 0) {
            p[used++] = (struct pollfd){.fd = socket_of(watches[i].fd),
                                        .events = (short)((w & OS_READ ? POLLRDNORM : 0) |
                                                          (w & OS_WRITE ? POLLWRNORM : 0))};
        }
    }
    if (used == 0) {
        Sleep(milliseconds < 0 ? INFINITE : (DWORD)milliseconds);
    } else if (WSAPoll(p, used, milliseconds) > 0) {
        for (size_t i = 0, k = 0; i < n; i++) {
            if (watches[i].fd < 0) {
                continue;
            }
            const short r = p[k++].revents;
            const bool failed = r & (POLLERR | POLLHUP | POLLNVAL);
            watches[i].seen =
                (short)((failed ? watches[i].wanted | OS_LEFT : 0) |
                        (r & POLLRDNORM ? OS_READ : 0) | (r & POLLWRNORM ? OS_WRITE : 0));
        }
    }
    if (p != fixed) {
        free(p);
    }
}

/* Two sockets that are connected to each other: only sockets can be waited for with others. */
bool os_alarm_open(int ends[2])
{
    any_address at[2] = {0};
    bool ok = true;
    for (int i = 0; i < 2; i++) {
        int n = sizeof at[i];
        ends[i] = new_socket(AF_INET, SOCK_DGRAM);
        at[i].v4.sin_family = AF_INET;
        at[i].v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ok = ok && ends[i] >= 0 && do_not_wait(ends[i]) &&
             bind(socket_of(ends[i]), &at[i].any, sizeof at[i].v4) == 0 &&
             getsockname(socket_of(ends[i]), &at[i].any, &n) == 0;
    }
    for (int i = 0; i < 2; i++) {
        ok = ok && connect(socket_of(ends[i]), &at[1 - i].any, sizeof at[i].v4) == 0;
    }
    if (!ok) {
        os_close(ends[0]);
        os_close(ends[1]);
        ends[0] = ends[1] = -1;
    }
    return ok;
}

void os_alarm_ring(int end)
{
    send(socket_of(end), "", 1, 0); /* full: it rings already */
}

void os_alarm_clear(int end)
{
    char bytes[64];
    while (recv(socket_of(end), bytes, sizeof bytes, 0) > 0) {
    }
}

uint64_t os_prepare(void)
{
    start_winsock();
    return 8192; /* sockets and files have no common limit */
}

int64_t os_clock(void)
{
    return (int64_t)time(NULL);
}
