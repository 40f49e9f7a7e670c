/* What we may do to the user's terminal: colours, and one line that says what takes so long. */
#ifndef BZ_CLI_TERM_H
#define BZ_CLI_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Looks at stderr, TERM, NO_COLOR and CLICOLOR_FORCE. */
void term_setup(bool no_color, bool quiet);

bool term_talks(void); /* stdout and stderr are terminals: somebody is watching the answer */
int term_width(void);  /* columns of stderr; 80 if nobody knows */

/* Sequences for stderr; empty without colours. */
const char *term_dim(void);
const char *term_bold(void);
const char *term_plain(void);

/* After a second of this, a line on stderr tells it, redrawn at most ten times a second, until
 * term_idle takes it away. Nothing happens where stderr is no terminal. `what` must stay. */
void term_busy(const char *what);
void term_progress(uint64_t done, uint64_t total, const char *unit);
void term_idle(void);

/* Text that a model made, to a stream that is a terminal or not: on a terminal, what could move
 * the cursor or recolour the screen is shown as U+FFFD. */
void term_write_model_text(int fd, const char *text, size_t len);

#endif
