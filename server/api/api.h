/* The endpoints: OpenAI's API, Ollama's, and helpers as llama.cpp's server has them. One file per
 * family; this header has what they share. docs/API.md lists the endpoints. */
#ifndef BZ_SERVER_API_H
#define BZ_SERVER_API_H

#include "base/json_read.h"
#include "server/engine/engine.h"
#include "server/server.h"
#include "store/pull.h"

typedef struct api {
    engine *engine;
    uint64_t serial; /* of the last answer, for ids */
    /* Wakes the HTTP thread, from any thread. */
    void (*wake)(void *user);
    void *wake_user;
    struct ollama_download *downloads; /* of /api/pull */
    /* Downloads a model, from any thread; NULL: bz_store_pull. */
    bz_status (*pull)(void *user, const bz_pull_options *options, bz_error *err);
    void *pull_user;
} api;

/* How an API writes errors: {"error": {"message": ...}} or {"error": "..."}. */
typedef enum api_style { API_OPENAI, API_OLLAMA } api_style;

/* ---- routes ------------------------------------------------------------------------------- */

enum { API_MAX_ROUTES = 64, API_BODY_MAX = 64 << 20, API_SMALL_BODY_MAX = 1 << 20 };

/* Fills `out` with the routes of all endpoints and returns their number. */
size_t api_routes(api *a, server_route out[API_MAX_ROUTES]);
/* Every family has a list that ends with an empty path; api_routes joins them. */
extern const server_route api_openai_routes[], api_ollama_routes[], api_helper_routes[];

/* Cancels all downloads of /api/pull and waits for them. After server_close. */
void api_end_downloads(api *a);

/* ---- requests ------------------------------------------------------------------------------ */

/* The body as a JSON object in the arena; false: it was answered with an error. An empty body is an
 * empty object. */
bool api_read_body(exchange *x, api_style style, bz_arena *arena, const bz_json_node **root);

bool api_is_absent(const bz_json_node *node); /* missing, or null */
/* True or false; absent: `otherwise`. Anything else: false and *err. */
bool api_read_bool(const bz_json_node *root, const char *key, bool otherwise, bool *out,
                   bz_error *err);
char *api_copy_text(const bz_json_node *node); /* malloc'ed; "" if it is not a string */
char *api_copy_bytes(bz_str s);                /* the same, of texts that may contain NUL */
/* The body without some members becomes the json of a request; `skip` ends with NULL. False: out of
 * memory. */
bool api_copy_without(const bz_json_node *root, const char *const *skip, engine_request *r);
/* "5m", "1h30m", "-1", or a number of seconds; in ns. False: not a duration. */
bool api_read_duration(const bz_json_node *node, int64_t *ns);

/* ---- responses ------------------------------------------------------------------------------ */

int api_status_of(const bz_error *err); /* the HTTP status */
void api_error(exchange *x, api_style style, const bz_error *err);
void api_put_error(bz_json *j, api_style style, const bz_error *err); /* the error as JSON */
/* For server_options.refuse: in the form of the path's API. */
void api_refuse_early(exchange *x, int status, const char *sentence);
/* An error with this HTTP status. */
void api_refuse(exchange *x, api_style style, int status, const char *sentence);

/* The beginning of a JSON text that is built for the engine, and its end: false: out of memory. */
typedef struct api_json {
    bz_json_buffer text;
    bz_json j;
} api_json;
void api_json_begin(api_json *b);
bool api_json_end(api_json *b, engine_request *r); /* becomes the request's json */
void api_copy_members(bz_json *j, const bz_json_node *root, const char *const *skip);

/* Answers with the JSON that `run` writes on the engine's thread; `r` is as for engine_submit, its
 * task ENGINE_RUN. */
void api_run(api *a, exchange *x, api_style style, engine_request *r);
/* The same for a function that needs no model and no argument. */
void api_run_plain(api *a, exchange *x, api_style style, engine_function run);

enum { API_TIME_SIZE = 40, API_ID_SIZE = 48 };
const char *api_time(char out[API_TIME_SIZE]); /* now: "2026-11-16T14:40:27.123456789Z" */
const char *api_time_of(int64_t seconds, char out[API_TIME_SIZE]);
const char *api_id(api *a, const char *prefix, char out[API_ID_SIZE]); /* "chatcmpl-..." */

#endif
