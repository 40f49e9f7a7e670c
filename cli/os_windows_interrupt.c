/* interrupt.h on Windows: the console calls a handler on a thread of its own. */
#include "cli/interrupt.h"

#include <stdlib.h>

#include "base/os_windows.h"
#include "server/os.h"

volatile sig_atomic_t interrupt_asked, interrupt_ended, interrupt_resized, interrupt_resumed;

static int wake[2] = {-1, -1};
static bool every_time; /* else the second Ctrl-C ends the program */
enum { PATIENCE_MS = 5000, INTERRUPTED_CODE = 130 };

static BOOL WINAPI on_event(DWORD event)
{
    if (event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT) {
        if (!every_time && interrupt_asked) {
            return FALSE; /* the system's handler ends the program */
        }
        interrupt_asked = 1;
    } else {
        interrupt_ended = SIGTERM; /* the window is closed, or the user logs off */
    }
    if (wake[1] >= 0) {
        os_alarm_ring(wake[1]);
    }
    if (!every_time || interrupt_ended) {
        Sleep(PATIENCE_MS); /* the program ends when this thread returns, if not earlier */
        _exit(INTERRUPTED_CODE);
    }
    return TRUE;
}

void interrupt_catch(bool restart)
{
    (void)restart; /* nothing is interrupted by the handler */
    every_time = false;
    SetConsoleCtrlHandler(on_event, TRUE);
}

void interrupt_catch_all(void)
{
    every_time = true;
    if (wake[0] < 0 && !os_alarm_open(wake)) {
        wake[0] = wake[1] = -1;
    }
    SetConsoleCtrlHandler(on_event, TRUE);
}

void interrupt_catch_to_serve(void)
{
    interrupt_catch_all();
}

int interrupt_fd(void)
{
    return wake[0];
}

bool interrupt_wait_input(int fd)
{
    (void)fd;
    return !interrupt_stop(); /* reading ends by itself */
}

int interrupt_finish(int code)
{
    return code;
}
