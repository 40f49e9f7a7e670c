/* What was typed into chats, kept from one to the next: $XDG_STATE_HOME/bezel/history, one JSON
 * string per line, so that an entry can have several lines and a torn one is passed over. */
#ifndef BZ_CLI_HISTORY_H
#define BZ_CLI_HISTORY_H

#include <stdbool.h>

enum { HISTORY_MOST = 1000 }; /* entries that are read, and kept when the file is rewritten */

/* Calls `each` for the newest entries, oldest first. No file, no entries. */
void history_load(void (*each)(void *user, const char *text), void *user);
void history_add(const char *text); /* best effort, readable by its owner only */

#endif
