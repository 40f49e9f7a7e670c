/* A conversation: a system prompt and messages, each as the JSON object of a request. Every turn
 * renders all of it, so that the template decides how much of the past the model sees. */
#ifndef BZ_CLI_TALK_H
#define BZ_CLI_TALK_H

#include "base/json_read.h"
#include "cli/settings.h"

typedef struct talk {
    char **messages; /* [n] owned */
    size_t n;
    char *system; /* owned; NULL: none */
} talk;

void talk_free(talk *t);
void talk_cut(talk *t, size_t n); /* keeps the first n messages */

/* false: no memory */
bool talk_set_system(talk *t, const char *text); /* NULL: none */
bool talk_add_user(talk *t, const char *text, size_t len);
/* With image and audio parts before the text. */
typedef struct talk_file {
    bool sound;
    char *path;
} talk_file;
bool talk_add_user_files(talk *t, const talk_file *files, size_t n, const char *text, size_t len);
/* thinking and calls (a JSON array) may be empty. */
bool talk_add_answer(talk *t, bz_str text, bz_str thinking, bz_str calls);

/* {"messages": [...], "think": ..., "stop": [...]} for bz_turn_new. */
bool talk_request(const talk *t, bool think, const settings *s, bz_json_buffer *out);

/* As a JSON file. Saving replaces an older file atomically; if loading fails, the conversation is
 * unchanged. */
bz_status talk_save(const talk *t, const char *path, const char *model, bz_error *err);
bz_status talk_load(talk *t, const char *path, bz_error *err);

/* Role and readable text of message i, allocated in the arena. */
bool talk_look(const talk *t, size_t i, bz_arena *arena, bz_str *role, bz_str *text);

#endif
