/* Finds stop strings in text that arrives in pieces: for prompts, as turns have their own. */
#ifndef BZ_SERVER_ENGINE_STOP_H
#define BZ_SERVER_ENGINE_STOP_H

#include "base/json_read.h"

typedef struct text_stop text_stop;

/* The `stop` of a request: a string or a list. *out NULL: there is none. */
bz_status text_stop_new(text_stop **out, const bz_json_node *stop, bz_error *err);
void text_stop_free(text_stop *s);

/* Appends text and returns what can be shown now, valid until the next call: everything before a
 * stop string, without what could begin one. `last`: no more text comes. *found: a stop string was
 * found. NULL: out of memory. */
const char *text_stop_push(text_stop *s, const char *text, size_t n, bool last, size_t *shown,
                           bool *found);

#endif
