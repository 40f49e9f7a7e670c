/* The settings of a chat request: OpenAI's keys, or Ollama's under `options`.
 *
 * Every setting that OpenAI's chat API knows is obeyed or refused with a sentence that names it,
 * also by its value: nothing is rounded, clamped or dropped. Keys that cannot change the answer
 * (model, user, stream, metadata ...) are accepted. Keys that neither API has are not looked at. */
#ifndef BZ_TEXT_REQUEST_H
#define BZ_TEXT_REQUEST_H

#include "base/json_read.h"

/* How an answer is constrained. Texts and nodes are the request's. */
typedef enum bz_request_form {
    BZ_FORM_FREE,
    BZ_FORM_JSON,   /* response_format json_object, format "json" */
    BZ_FORM_SCHEMA, /* response_format json_schema, format {...}: `schema` */
    BZ_FORM_GBNF,   /* grammar: `text` */
    BZ_FORM_REGEX,  /* regex: `text` */
    BZ_FORM_CHOICES /* choices: `schema`, a list of texts */
} bz_request_form;

typedef struct bz_request_answer {
    bz_request_form form;
    const bz_json_node *schema;
    bz_str text;
    bool must_call; /* tool_choice required, or a tool: */
    bz_str tool;    /* its name; empty: any */
    bool one_call;  /* parallel_tool_calls false */
} bz_request_answer;

/* Lists are allocated in the arena. What the request does not have keeps its default. */
typedef struct bz_request {
    bz_generate_options generate; /* without stop strings: see below */
    bool has_seed;                /* false: the caller chooses one */
    const char *const *stop;      /* [n_stop] to be searched in the answer, not in thinking */
    size_t n_stop;
    bz_request_answer answer;
    bool has_context_shift; /* context_shift, in */
    bool context_shift;
} bz_request;

/* "model", "lookup" or "off"; false: another name, and *kind is unchanged. */
bool bz_draft_named(bz_draft_kind *kind, bz_str name);

bz_status bz_request_read(bz_request *out, const bz_json_node *request, bz_arena *arena,
                          bz_error *err);

#endif
