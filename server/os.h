/* The operating system for the server: non-blocking sockets, files below a folder. Only os_*.c make
 * system calls; the Makefile chooses them by their names, as those of base/os.h. */
#ifndef BZ_SERVER_OS_H
#define BZ_SERVER_OS_H

#include "base/error.h"

/* ---- sockets --------------------------------------------------------------------------- */

enum { OS_ADDRESS_SIZE = 64 };

typedef struct os_listener {
    int fd;
    char address[OS_ADDRESS_SIZE]; /* as numbers: "127.0.0.1", "::1" */
    uint16_t port;                 /* the actual port, also if 0 was requested */
} os_listener;

/* `host`: an address as numbers, or "localhost"; anything else is bad_request. If the
 * system refuses (network), *err has only the reason; *taken: another program listens there. */
bz_status os_listen(os_listener *l, const char *host, uint16_t port, bool *taken, bz_error *err);

/* The socket that systemd passes to a program it starts for it (sd_listen_fds(3)); false: none. */
bool os_listen_inherited(os_listener *l);

enum { OS_WAIT = -1, OS_GONE = -2, OS_FULL = -3 };

/* A connection; OS_WAIT: there is none; OS_FULL: no more files may be open. *client identifies the
 * other side's IPv4 address, or the network (/64) of its IPv6 address. */
int os_accept(int listener, uint64_t *client);
/* Returns the number of bytes, 0 at the end of the input, OS_WAIT or OS_GONE. */
long os_receive(int fd, char *bytes, size_t n);
/* Returns the number of bytes sent, OS_WAIT or OS_GONE. `more`: more data follows at once. */
long os_send(int fd, const char *bytes, size_t n, bool more);
/* The same from a file; OS_GONE if the file has become too short. */
long os_send_file(int fd, int file, uint64_t from, size_t n);
void os_finish_sending(int fd); /* closes our sending side only */
void os_close(int fd);          /* of a socket or an alarm; -1 is fine */

/* A connection to another program, whose calls wait up to `patience_s` seconds; -1: none answers.
 */
int os_connect(const char *host, uint16_t port, unsigned patience_s);

/* An address as numbers to its 4 or 16 bytes; false: it is none. */
bool os_parse_v4(const char *text, uint8_t out[4]);
bool os_parse_v6(const char *text, uint8_t out[16]);

enum {
    OS_READ = 1,
    OS_WRITE = 2,
    OS_LEFT = 4
}; /* the other side has stopped sending, or is gone */

typedef struct os_watch {
    int fd;       /* -1: nothing */
    short wanted; /* of the above; an error sets all wanted bits and OS_LEFT */
    short seen;
} os_watch;

/* Waits for an event or a signal; milliseconds < 0: without limit. */
void os_wait(os_watch *watches, size_t n, int milliseconds);

/* What wakes os_wait, from any thread or signal handler. */
bool os_alarm_open(int ends[2]);
void os_alarm_ring(int end);
void os_alarm_clear(int end);

/* Makes closed sockets errors instead of signals, raises the limit on open files as far as allowed
 * and returns it. */
uint64_t os_prepare(void);

int64_t os_clock(void); /* seconds since 1970, for dates */

/* ---- files ------------------------------------------------------------------------------- */

typedef struct os_file {
    int fd;
    bool folder;
    uint64_t size;
    int64_t modified; /* seconds since 1970 */
    uint32_t nanoseconds;
} os_file;

void os_close_file(int file); /* -1 is fine */
/* *err has only the reason. */
bz_status os_open_folder(const char *path, int *fd, bz_error *err);
/* A regular file. */
bz_status os_open_file(const char *path, os_file *file, bz_error *err);

typedef enum os_found { OS_FOUND, OS_NOTHING, OS_TOO_MANY } os_found;

/* A regular file or a folder at "a/b/c" below an open folder; "" is the folder itself. Symbolic
 * links are never followed, so nothing outside can be reached; pipes and devices are not found. */
os_found os_open_below(int folder, const char *path, os_file *file);

/* Starts the user's browser; false: there is none. The name is for messages. */
bool os_open_browser(const char *url);
extern const char os_browser_starter[];

#endif
