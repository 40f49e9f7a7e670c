/* A conversation: a system prompt and messages, each kept as the JSON object it is in a request.
 * It is rendered anew for every turn, so that the template decides what the model sees of the past.
 */
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
void talk_cut(talk *t, size_t n); /* forgets all but the first n messages */

/* false: no memory */
bool talk_set_system(talk *t, const char *text); /* NULL: none */
bool talk_add_user(talk *t, const char *text, size_t len);
/* With pictures and sounds in front of the text, named by their files. */
typedef struct talk_file {
    bool sound;
    char *path;
} talk_file;
bool talk_add_user_files(talk *t, const talk_file *files, size_t n, const char *text, size_t len);
/* thinking and calls (a JSON array) may be empty. */
bool talk_add_answer(talk *t, bz_str text, bz_str thinking, bz_str calls);

/* {"messages": [...], "think": ..., "stop": [...]} for bz_turn_new. */
bool talk_request(const talk *t, bool think, const settings *s, bz_json_buffer *out);

/* As a JSON file. Saving puts a whole file in the place of an older one, or none; loading leaves
 * the conversation as it was if it fails. */
bz_status talk_save(const talk *t, const char *path, const char *model, bz_error *err);
bz_status talk_load(talk *t, const char *path, bz_error *err);

/* Whose turn message i is ("user") and what it says, for people; into the arena. */
bool talk_look(const talk *t, size_t i, bz_arena *arena, bz_str *role, bz_str *text);

#endif
