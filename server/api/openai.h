/* Shared by the endpoints of OpenAI's API. */
#ifndef BZ_SERVER_API_OPENAI_H
#define BZ_SERVER_API_OPENAI_H

#include "server/api/answer.h"

enum { OPENAI_MAX_CHOICES = 32 };

void openai_embeddings(void *api, exchange *x); /* embeddings.c */
void openai_chat(void *api, exchange *x);
void openai_completions(void *api, exchange *x);
void openai_responses(void *api, exchange *x);
void openai_models(void *api, exchange *x);
void openai_model(void *api, exchange *x); /* /v1/models/ID */
/* Arguments of a call as JSON in a string. */
void openai_put_arguments(answer *a, bz_json *j, const bz_json_node *arguments);

/* Settings of a request that the engine does not read. */
typedef struct openai_settings {
    bool include_usage;
} openai_settings;

/* Reads stream, n, stream_options. */
bz_status openai_read_common(const bz_json_node *root, bool *stream, uint32_t *n,
                             openai_settings *settings, bz_error *err);
const char *openai_finish(const answer_choice *c); /* finish_reason */
void openai_put_usage(bz_json *j, const answer *a);
/* {"id", "object", "created", "model": the beginning of an object. */
void openai_begin_object(bz_json *j, const answer *a, const char *object);
/* "data: " before and two line ends after an object of a stream. */
void openai_begin_event(answer *a, bz_json *j);
void openai_end_event(answer *a, bz_json *j);
/* The end of a stream of `object`s: usage if it was requested, then [DONE]. */
void openai_end_stream(answer *a, const char *object);

#endif
