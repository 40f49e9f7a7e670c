/* A conversation: a system prompt and messages, each as the JSON object of a request. Every turn
 * renders all of it, so that the template decides how much of the past the model sees. */
#ifndef BZ_CLI_CONVERSATION_H
#define BZ_CLI_CONVERSATION_H

#include "base/json_read.h"
#include "bezel_media.h"
#include "cli/settings.h"

typedef struct conversation {
    char **messages; /* [n] owned */
    bool *left_out;  /* [n] requests do without them, as the context was full */
    size_t n;
    size_t n_pinned; /* of them, the first ones, which stay when others are left out */
    char *system;    /* owned; NULL: none */
} conversation;

void conversation_free(conversation *t);
void conversation_truncate(conversation *t, size_t n); /* keeps the first n messages */

/* A message with which every conversation of a model begins: a JSON object. False: no memory. */
bool conversation_pin(conversation *t, const char *json);

/* false: no memory */
bool conversation_set_system(conversation *t, const char *text); /* NULL: none */
bool conversation_add_user(conversation *t, const char *text, size_t len);
/* With parts for images, audio and videos before the text. */
typedef struct attached_file {
    bz_media_kind kind;
    char *path;
} attached_file;
bool conversation_add_user_files(conversation *t, const attached_file *files, size_t n,
                                 const char *text, size_t len);
/* thinking and calls (a JSON array) may be empty. */
bool conversation_add_answer(conversation *t, bz_str text, bz_str thinking, bz_str calls);

/* Leaves out the messages of the last request that `turn` leaves out. `file` is called for their
 * files. */
typedef void (*conversation_file)(void *user, bz_media_kind kind, bz_str path);
void conversation_leave_out(conversation *t, const bz_turn *turn, conversation_file file,
                            void *user);
void conversation_see_all(conversation *t);          /* no message is left out */
size_t conversation_left_out(const conversation *t); /* how many are */

/* {"messages": [...], "think": ..., "stop": [...]} for bz_turn_new. `shift`: whether it may be
 * shortened. */
bool conversation_request(const conversation *t, bool think, bool shift, const settings *s,
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
