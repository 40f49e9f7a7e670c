#include <stdlib.h>

#include "server/engine/engine.h"

void engine_request_free(engine_request *r)
{
    free(r->model);
    free(r->json);
    for (size_t i = 0; i < r->n_prompts; i++) {
        free(r->prompts[i].text);
        free(r->prompts[i].ids);
    }
    free(r->prompts);
    free(r->before);
    if (r->free_user) {
        r->free_user(r->user);
    }
    *r = (engine_request){0};
}
