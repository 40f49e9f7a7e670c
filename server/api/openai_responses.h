/* Shared by the two halves of POST /v1/responses. */
#ifndef BZ_SERVER_API_OPENAI_RESPONSES_H
#define BZ_SERVER_API_OPENAI_RESPONSES_H

#include "server/api/openai.h"

/* Writes the request as a chat request: instructions and items of the input become messages. */
bz_status responses_read(const bz_json_node *root, engine_request *r, bz_error *err);

#endif
