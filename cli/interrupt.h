/* Signals as flags: Ctrl-C stops an answer, not the program. */
#ifndef BZ_CLI_INTERRUPT_H
#define BZ_CLI_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

extern volatile sig_atomic_t interrupt_asked;   /* Ctrl-C since it was last set to 0 */
extern volatile sig_atomic_t interrupt_ended;   /* the signal that wants us gone, or 0 */
extern volatile sig_atomic_t interrupt_resized; /* the window has another size */
extern volatile sig_atomic_t interrupt_resumed; /* Ctrl-Z and fg: the terminal's modes are lost */

/* Ctrl-C, once: the second ends the program whatever it is doing. `restart`: a write that waits
 * goes on, so that no text is lost; else a read that waits comes back. */
void interrupt_catch(bool restart);
/* All that a program which holds the terminal must know, again and again. */
void interrupt_catch_all(void);

/* Can be read after a signal, for whoever waits by other means; -1: there is none. */
int interrupt_fd(void);

/* Waits until there is something to read; false: a signal came instead. */
bool interrupt_wait_input(int fd);

int interrupt_finish(int code); /* the exit code; ends by the signal if one wants us gone */

/* An answer should end now. */
static inline bool interrupt_stop(void)
{
    return interrupt_asked || interrupt_ended;
}

#endif
