#include "interrupt.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>

volatile sig_atomic_t interrupt_asked, interrupt_ended, interrupt_resized, interrupt_resumed;

static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGCONT};
enum { N_CAUGHT = sizeof caught / sizeof *caught };

static void on_signal(int number)
{
    switch (number) {
    case SIGINT: interrupt_asked = 1; break;
    case SIGWINCH: interrupt_resized = 1; break;
    case SIGCONT: interrupt_resumed = 1; break;
    default: interrupt_ended = number;
    }
}

static void catch_one(int number, int flags)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

void interrupt_catch(bool restart)
{
    catch_one(SIGINT, (int)SA_RESETHAND | (restart ? SA_RESTART : 0));
}

void interrupt_catch_all(void)
{
    for (int i = 0; i < N_CAUGHT; i++) {
        catch_one(caught[i], SA_RESTART);
    }
}

/* The signals are let in only while we wait: one that comes between looking at the flags and waiting
 * would else be noticed with the next key. */
bool interrupt_wait_input(int fd)
{
    sigset_t ours, before;
    sigemptyset(&ours);
    for (int i = 0; i < N_CAUGHT; i++) {
        sigaddset(&ours, caught[i]);
    }
    sigprocmask(SIG_BLOCK, &ours, &before);
    struct pollfd one = {.fd = fd, .events = POLLIN};
    int ready = -1;
    if (!interrupt_stop() && !interrupt_resized && !interrupt_resumed) {
        ready = ppoll(&one, 1, NULL, &before);
    } else {
        errno = EINTR;
    }
    const bool signalled = ready < 0 && errno == EINTR;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return !signalled;
}

int interrupt_finish(int code)
{
    if (interrupt_ended) {
        signal(interrupt_ended, SIG_DFL);
        raise(interrupt_ended);
    }
    return code;
}
