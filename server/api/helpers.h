/* Handlers of helpers.c and metrics.c. */
#ifndef BZ_SERVER_API_HELPERS_H
#define BZ_SERVER_API_HELPERS_H

#include "server/api/api.h"
#include "server/engine/models.h"

void helper_metrics(void *api, exchange *x);
void helper_props(void *api, exchange *x);
void helper_slots(void *api, exchange *x);
void helper_tokenize(void *api, exchange *x);
void helper_detokenize(void *api, exchange *x);
void helper_apply_template(void *api, exchange *x);

#endif
