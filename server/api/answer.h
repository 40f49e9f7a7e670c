/* A generated answer on its way from the engine to a client: as a stream, or whole. What an API
 * writes is in an answer_form; everything else is here. */
#ifndef BZ_SERVER_API_ANSWER_H
#define BZ_SERVER_API_ANSWER_H

#include "server/api/api.h"

typedef struct answer answer;

/* What was received of one choice. */
typedef struct answer_choice {
    bz_json_buffer text, thinking;
    bz_json_buffer calls;     /* JSON objects as the form wrote them, separated by commas */
    bz_json_buffer log_probs; /* JSON objects, separated by commas */
    uint32_t n_calls;
    size_t last_call;      /* where the last one begins in `calls` */
    size_t log_probs_sent; /* bytes that a stream has sent */
    bool ended;
    bz_finish finish;
} answer_choice;

/* The functions append to answer_text(a). */
typedef struct answer_form {
    api_style style;
    const char *stream_type; /* "text/event-stream" */
    void (*begin)(answer *a);
    /* `e` is already added to its choice. Of a whole answer only if `follows_events`. */
    void (*event)(answer *a, const engine_event *e);
    void (*end)(answer *a); /* after the last event: usage is known */
    void (*whole)(answer *a);
    bool follows_events;
    void (*free_settings)(void *settings); /* NULL: free */
    /* {"name", "arguments"} of a call in the API's form, appended to the choice's calls */
    void (*call)(answer *a, bz_json *j, bz_str name, const bz_json_node *arguments, uint32_t index);
} answer_form;

struct answer {
    api *api;
    const answer_form *form;
    engine_work *work;
    bool stream;
    char *model; /* as the client named it */
    char id[API_ID_SIZE];
    int64_t created;
    void *settings; /* of the API */
    void (*free_settings)(void *settings);
    answer_choice *choices; /* [n_choices] */
    uint32_t n_choices;
    uint64_t left_out; /* messages of the conversation, as it was too long */
    bool begun, failed, complete;
    bz_json_buffer out; /* to be sent */
    size_t sent;
};

/* Submits the request and answers when results come. Takes over the request, `model` and
 * `settings`; n_choices: prompts * choices. */
void answer_start(api *owner, exchange *x, const answer_form *form, engine_request *r,
                  uint32_t n_choices, bool stream, const char *id_prefix, void *settings);

/* ---- for forms ------------------------------------------------------------------------------- */

void answer_json(answer *a, bz_json *j); /* a writer that appends to the answer */
void answer_text(answer *a, const char *text);
const char *answer_model(const answer *a);
bool answer_has_log_probs(const answer_choice *c);
/* "logprobs": {"content": [...]} with what was not sent yet, or null. */
void answer_put_log_probs(bz_json *j, answer_choice *c);
/* The objects of log_probs that were not sent yet, without brackets; they count as sent. */
bz_str answer_take_log_probs(answer_choice *c);
/* "context_shift": {"left_out": messages}, if there are any. */
void answer_put_shift(bz_json *j, const answer *a);
/* Members of an object as they are: "key": [ objects ] */
void answer_put_list(bz_json *j, const char *key, const bz_json_buffer *objects);
void answer_put_raw(bz_json *j, const char *json, size_t n);

#endif
