/* Words of a chat command, and messages to the user. */
#ifndef BZ_CLI_CHAT_WORDS_H
#define BZ_CLI_CHAT_WORDS_H

#include "base/error.h"

/* Removes the next word from *rest; len 0: there is none. */
bz_str chat_next_word(const char **rest);
bool chat_word_is(bz_str word, const char *text);
/* The rest without enclosing quotation marks, and as a path; the caller frees it. */
char *chat_rest(const char *rest);
char *chat_rest_path(const char *rest);

/* Print a line to stderr. */
void chat_say(const char *text);
void chat_complain(const bz_error *err);

#endif
