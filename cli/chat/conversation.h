/* A conversation: a system prompt and messages, each as the JSON object of a request. Every turn
 * renders all of it, so that the template decides how much of the past the model sees. */
#ifndef BZ_CLI_CONVERSATION_H
#define BZ_CLI_CONVERSATION_H

#include "base/json_read.h"
#include "cli/settings.h"

typedef struct conversation {
    char **messages; /* [n] owned */
    size_t n;
    size_t n_pinned;   /* of them, the first ones, which stay when others are left out */
    size_t n_left_out; /* the next ones, which requests leave out: the oldest turns */
    char *system;      /* owned; NULL: none */
} conversation;

void conversation_free(conversation *t);
void conversation_truncate(conversation *t, size_t n); /* keeps the first n messages */

/* A message with which every conversation of a model begins: a JSON object. False: no memory. */
bool conversation_pin(conversation *t, const char *json);

/* false: no memory */
bool conversation_set_system(conversation *t, const char *text); /* NULL: none */
bool conversation_add_user(conversation *t, const char *text, size_t len);
/* With image and audio parts before the text. */
typedef struct attached_file {
    bool sound;
    char *path;
} attached_file;
bool conversation_add_user_files(conversation *t, const attached_file *files, size_t n,
                                 const char *text, size_t len);
/* thinking and calls (a JSON array) may be empty. */
bool conversation_add_answer(conversation *t, bz_str text, bz_str thinking, bz_str calls);

/* Leaves out the oldest turn: a message of the user and what follows it, up to the next one.
 * `file` is called for its images and audio. False: only the last turn is left. */
typedef void (*conversation_file)(void *user, bool sound, bz_str path);
bool conversation_leave_out_turn(conversation *t, conversation_file file, void *user);

/* {"messages": [...], "think": ..., "stop": [...]} for bz_turn_new. */
bool conversation_request(const conversation *t, bool think, const settings *s,
                          bz_json_buffer *out);

/* As a JSON file. Saving replaces an older file atomically; if loading fails, the conversation is
 * unchanged. */
bz_status conversation_save(const conversation *t, const char *path, const char *model,
                            bz_error *err);
bz_status conversation_load(conversation *t, const char *path, bz_error *err);

/* Role and readable text of message i, allocated in the arena. */
bool conversation_message(const conversation *t, size_t i, bz_arena *arena, bz_str *role,
                          bz_str *text);

#endif
