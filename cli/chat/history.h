/* The history of typed lines: $XDG_STATE_HOME/bezel/history, one JSON string per line, so that an
 * entry can have several lines and an incomplete one is skipped. */
#ifndef BZ_CLI_HISTORY_H
#define BZ_CLI_HISTORY_H

#include <stdbool.h>

enum { HISTORY_MAX = 1000 }; /* entries that are read, and kept when the file is rewritten */

/* Calls `each` for the newest entries, oldest first; for none if there is no file. */
void history_load(void (*each)(void *user, const char *text), void *user);
void history_add(const char *text); /* errors are ignored; only the owner can read the file */

#endif
