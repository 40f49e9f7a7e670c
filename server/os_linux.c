/* What os_posix.c leaves to Linux. */
#include "server/os_posix.h"

#include <sys/sendfile.h>

const char os_browser_starter[] = "xdg-open";

void os_no_signal(int fd)
{
    (void)fd; /* OS_SEND_FLAGS */
}

int os_accept_ours(int listener, struct sockaddr *address, socklen_t *n)
{
    return accept4(listener, address, n, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

ssize_t os_send_from(int fd, int file, off_t at, size_t n)
{
    return sendfile(fd, file, &at, n);
}

uint32_t os_nanoseconds_of(const struct stat *st)
{
    return (uint32_t)st->st_mtim.tv_nsec;
}
