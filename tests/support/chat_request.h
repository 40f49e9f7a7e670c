/* Chat requests in tests: from JSON, in which ' stands for ", to the prompt and its text. */
#ifndef BZ_TEST_CHAT_REQUEST_H
#define BZ_TEST_CHAT_REQUEST_H

#include "text/chat.h"

#define Q "<|\"|>"

typedef struct rendered {
    bz_arena arena;
    bz_conversation chat;
    bz_prompt prompt;
    bz_error err;
    bz_status status;
    char *text;
} rendered;

void render(rendered *r, const char *request, bool large);
void render_json(rendered *r, const char *json, size_t len, bool large); /* true JSON */
void drop(rendered *r);

/* Check the prompt of a request: all of it, for a model with per-layer embeddings, without, and for
 * both; its end or a part, for one with them; or the reason of a refusal. */
void gives(bool large, const char *request, const char *want);
void gives_both(const char *request, const char *want);
void ends(const char *request, const char *want);
void holds(const char *request, const char *want);
void refused(const char *request, const char *why);

#endif
