/* Shared by the endpoints of Ollama's API. */
#ifndef BZ_SERVER_API_OLLAMA_H
#define BZ_SERVER_API_OLLAMA_H

#include "server/api/answer.h"
#include "server/engine/models.h"

void ollama_chat(void *api, exchange *x);
void ollama_generate(void *api, exchange *x);
void ollama_show(void *api, exchange *x);
void ollama_ps(void *api, exchange *x);
void ollama_tags(void *api, exchange *x);
void ollama_version(void *api, exchange *x);
void ollama_embed(void *api, exchange *x); /* embeddings.c */
void ollama_embeddings(void *api, exchange *x);
void ollama_pull(void *api, exchange *x);
void ollama_copy(void *api, exchange *x);
void ollama_delete(void *api, exchange *x);
void ollama_no_creation(void *api, exchange *x); /* 501 */

/* Reads model, keep_alive and options, which are obeyed or refused. */
bz_status ollama_read_common(const bz_json_node *root, engine_request *r, bz_error *err);
/* Appends {"model", "created_at": the beginning of a line. */
void ollama_begin_line(bz_json *j, const answer *a);
/* "done_reason" and the durations of the last line. */
void ollama_put_end(bz_json *j, const answer *a, const char *reason);
const char *ollama_finish(const answer_choice *c);
/* A tool call: arguments are an object. */
void ollama_put_call(answer *a, bz_json *j, bz_str name, const bz_json_node *arguments,
                     uint32_t index);
void ollama_put_log_probs(bz_json *j, answer_choice *c); /* "logprobs", if there are new ones */
void ollama_put_details(bz_json *j, const engine_model *m);
void ollama_put_capabilities(bz_json *j, const model_abilities *takes);

#endif
