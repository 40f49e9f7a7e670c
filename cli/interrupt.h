/* Signals as flags: Ctrl-C stops an answer, not the program. */
#ifndef BZ_CLI_INTERRUPT_H
#define BZ_CLI_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

extern volatile sig_atomic_t interrupt_asked;   /* Ctrl-C since it was last set to 0 */
extern volatile sig_atomic_t interrupt_ended;   /* the signal that ends the program, or 0 */
extern volatile sig_atomic_t interrupt_resized; /* the window was resized */
extern volatile sig_atomic_t
    interrupt_resumed; /* after Ctrl-Z and fg: terminal modes must be set again */

/* Catches one Ctrl-C; the second ends the program, and so do five seconds after the first.
 * `restart`: an interrupted write is resumed, so that no text is lost; otherwise an interrupted
 * read returns. */
void interrupt_catch(bool restart);
/* Catches every signal that a program which controls the terminal needs, any number of times. */
void interrupt_catch_all(void);
/* The same for a server, which runs on without its terminal where it was started so (nohup). */
void interrupt_catch_to_serve(void);

/* Becomes readable after a signal, for callers with their own poll; -1: there is none. */
int interrupt_fd(void);

/* Waits until fd is readable; false: a signal came first. */
bool interrupt_wait_input(int fd);

int interrupt_finish(int code); /* returns the code, or ends the program by the signal it got */

/* The current answer should end. */
static inline bool interrupt_stop(void)
{
    return interrupt_asked || interrupt_ended;
}

#endif
