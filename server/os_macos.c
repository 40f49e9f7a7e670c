/* What os_posix.c leaves to macOS. */
#include "server/os_posix.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

const char os_browser_starter[] = "open";

void os_no_signal(int fd)
{
    const int yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &yes, sizeof yes);
}

int os_accept_ours(int listener, struct sockaddr *address, socklen_t *n)
{
    const int fd = accept(listener, address, n);
    if (fd >= 0 && !os_make_ours(fd, true)) {
        const int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    return fd;
}

/* An interrupted or full socket may have taken a part, which counts; after other errors the number
 * may be the one that was asked for. */
ssize_t os_send_from(int fd, int file, off_t at, size_t n)
{
    off_t sent = (off_t)n;
    const bool whole = sendfile(file, fd, at, &sent, NULL, 0) == 0;
    const bool in_part = !whole && (errno == EAGAIN || errno == EINTR) && sent > 0;
    return whole || in_part ? (ssize_t)sent : -1;
}

uint32_t os_nanoseconds_of(const struct stat *st)
{
    return (uint32_t)st->st_mtimespec.tv_nsec;
}
