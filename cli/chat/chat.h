/* A chat on a terminal. */
#ifndef BZ_CLI_CHAT_H
#define BZ_CLI_CHAT_H

#include "cli/chat/line.h"
#include "cli/verbs/run.h"

typedef struct chat {
    run_state *r;
    line_reader *lines;
    bool no_history; /* what is typed is not written to the history file */
    bool leave;
} chat;

/* Does what a line beginning with '/' says; false: it is no command but text. */
bool chat_command(chat *c, const char *line);

#endif
