/* How the answer to a request is to be chosen: OpenAI's fields, or Ollama's under `options`. */
#ifndef BZ_TEXT_REQUEST_H
#define BZ_TEXT_REQUEST_H

#include "base/json_read.h"

/* Lists lie in the arena. Stop strings are not read here: a bz_turn looks for them in the answer
 * alone. What is not there keeps its default; without a seed *seeded is false, and the caller draws
 * one. What cannot be done (several answers, a forced tool, a schema) is refused, never ignored. */
bz_status bz_request_read(bz_generate_options *o, bool *seeded, const bz_json_node *request,
                          bz_arena *arena, bz_error *err);

#endif
