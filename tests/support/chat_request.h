/* Chat requests in tests: from JSON, in which ' stands for ", to the prompt and its text. */
#ifndef BZ_TEST_CHAT_REQUEST_H
#define BZ_TEST_CHAT_REQUEST_H

#include "text/chat.h"

#define Q "<|\"|>"

typedef struct rendered {
    bz_arena arena;
    bz_chat chat;
    bz_prompt prompt;
    bz_error err;
    bz_status status;
    char *text;
} rendered;

void render(rendered *r, const char *request, bool large);
void render_json(rendered *r, const char *json, size_t len, bool large); /* true JSON */
void drop(rendered *r);

/* Check what a request gives: all of it, for a small, a large and for both kinds of model;
 * how it ends or what it holds, for a small one; or why it is refused. */
void gives(bool large, const char *request, const char *want);
void gives_both(const char *request, const char *want);
void ends(const char *request, const char *want);
void holds(const char *request, const char *want);
void refused(const char *request, const char *why);

#endif
