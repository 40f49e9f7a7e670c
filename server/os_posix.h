/* What os_posix.c needs of os_linux.c and os_macos.c. */
#ifndef BZ_SERVER_OS_POSIX_H
#define BZ_SERVER_OS_POSIX_H

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "server/os.h"

#if defined(__linux__)
enum {
    OS_SEND_FLAGS = MSG_NOSIGNAL,
    OS_SEND_MORE = MSG_NOSIGNAL | MSG_MORE, /* more data follows at once */
    OS_POLL_LEFT = POLLRDHUP
};
#else
enum { OS_SEND_FLAGS = 0, OS_SEND_MORE = 0, OS_POLL_LEFT = 0 };
#endif

/* Not for programs that are started; without_waiting: calls return at once. */
bool os_make_ours(int fd, bool without_waiting);
/* Sending to a closed connection is an error, not a signal, where flags do not say so. */
void os_no_signal(int fd);
/* accept(), with what os_make_ours does. */
int os_accept_ours(int listener, struct sockaddr *address, socklen_t *n);
/* Sends from a file; -1: failed, with errno. */
ssize_t os_send_from(int fd, int file, off_t at, size_t n);
uint32_t os_nanoseconds_of(const struct stat *st);

#endif
