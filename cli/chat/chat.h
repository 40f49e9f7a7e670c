/* A chat on a terminal. */
#ifndef BZ_CLI_CHAT_H
#define BZ_CLI_CHAT_H

#include "cli/chat/line.h"
#include "cli/verbs/run.h"

typedef struct chat {
    run_state *r;
    line_reader *lines;
    bool no_history; /* typed lines are not written to the history file */
    bool leave;
} chat;

/* Runs a line that begins with '/'; false: it is text, not a command. */
bool chat_command(chat *c, const char *line);

/* chat_show.c: what Ollama's /show prints of a model. */
void chat_show_modelfile(const chat *c);
void chat_show_template(const chat *c);
void chat_show_license(const chat *c);

/* chat_set.c */
void chat_set(chat *c, const char *rest); /* the command /set */
void chat_print_settings(const chat *c, bool explain);

#endif
