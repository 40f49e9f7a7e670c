/* interrupt.h on Linux and macOS. */
#include "cli/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <unistd.h>

#include "server/os.h"

volatile sig_atomic_t interrupt_asked, interrupt_ended, interrupt_resized, interrupt_resumed;

/* The handler, on any thread, writes to this pipe. That wakes a thread in poll, also if the signal
 * arrives just before poll is called. */
static int wake[2] = {-1, -1};

/* After a Ctrl-C that ends the program: seconds until it ends even if it waits for something, such
 * as a reader of its output. 0: it may continue. */
static unsigned patience_s;
enum { PATIENCE_S = 5, INTERRUPTED_CODE = 130 };

static void on_signal(int number)
{
    const int before = errno;
    switch (number) {
    case SIGALRM: _exit(INTERRUPTED_CODE);
    case SIGINT:
        interrupt_asked = 1;
        alarm(patience_s);
        break;
    case SIGWINCH: interrupt_resized = 1; break;
    case SIGCONT: interrupt_resumed = 1; break;
    default: interrupt_ended = number;
    }
    if (wake[1] >= 0) {
        os_alarm_ring(wake[1]);
    }
    errno = before;
}

static void catch_one(int number, int flags)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

void interrupt_catch(bool restart)
{
    patience_s = PATIENCE_S;
    catch_one(SIGALRM, 0);
    catch_one(SIGINT, (int)SA_RESETHAND | (restart ? SA_RESTART : 0));
}

void interrupt_catch_all(void)
{
    patience_s = 0;
    static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGCONT};
    if (wake[0] < 0 && !os_alarm_open(wake)) {
        wake[0] = wake[1] = -1; /* poll ignores it; a signal may then wait for the next key */
    }
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) {
        catch_one(caught[i], SA_RESTART);
    }
}

void interrupt_catch_to_serve(void)
{
    struct sigaction before;
    const bool nohup = sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler == SIG_IGN;
    interrupt_catch_all();
    if (nohup) {
        signal(SIGHUP, SIG_IGN);
    }
}

int interrupt_fd(void)
{
    return wake[0];
}

bool interrupt_wait_input(int fd)
{
    struct pollfd both[2] = {{.fd = wake[0], .events = POLLIN}, {.fd = fd, .events = POLLIN}};
    const int ready = poll(both, 2, -1);
    if (ready < 0 || both[0].revents) {
        if (wake[0] >= 0) {
            os_alarm_clear(wake[0]);
        }
        return false;
    }
    return true;
}

int interrupt_finish(int code)
{
    if (interrupt_ended) {
        signal(interrupt_ended, SIG_DFL);
        raise(interrupt_ended);
    }
    return code;
}
