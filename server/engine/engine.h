/* Answers requests with models, on a thread of its own: the only one that touches models.
 *
 *   HTTP thread                               engine thread
 *   engine_submit  -- queue -->               loads the model, renders the prompt, waits for a slot
 *   engine_poll    <-- events, wake --        decodes with others, appends parts of the answer
 *   engine_release -- cancels -->             ends the sequence
 *
 * Nothing here knows HTTP or an API's form. Functions may be called from any thread unless noted.
 */
#ifndef BZ_SERVER_ENGINE_H
#define BZ_SERVER_ENGINE_H

#include "base/json.h"
#include "bezel_media.h"

typedef struct engine engine;
typedef struct engine_model engine_model; /* models.h */
typedef struct engine_work engine_work;   /* a request, from submitting to releasing it */

/* Pixels or samples of an image or audio file. The engine frees rgb with free, pcm with bz_free. */
typedef struct engine_decoded {
    uint8_t *rgb; /* [height][width][3] */
    uint32_t width, height;
    float *pcm; /* [samples] */
    size_t samples;
    uint32_t rate;
} engine_decoded;

/* Whether conversations that are too long lose their oldest turns. */
typedef enum engine_shift {
    ENGINE_SHIFT_BY_API, /* as the request's API has it */
    ENGINE_SHIFT_ON,
    ENGINE_SHIFT_OFF
} engine_shift;

/* Zero means the default. */
typedef struct engine_options {
    const char *device;  /* "cpu", "gpu", "auto" (the GPU, else the CPU); NULL: cpu */
    unsigned threads;    /* one per processor */
    uint32_t context;    /* positions of a sequence; the model's limit, at most 32,768 */
    uint32_t parallel;   /* sequences of a model at the same time; 16 */
    uint32_t queue;      /* requests that may wait; 512 */
    const char *kv;      /* how keys and values are kept: "f16", "q8", "q4"; f16 */
    uint64_t max_memory; /* bytes of models and caches; 0: what is free at the start, but a model
                            that is alone may be larger */
    int64_t keep_alive;  /* ns that an unused model stays loaded; 5 minutes; below 0: forever */
    engine_shift shift;  /* for requests that do not say */
    bool no_store;       /* only the models added, not those of Ollama's store */
    bz_status (*decode)(bz_media_kind kind, const uint8_t *bytes, size_t n, engine_decoded *out,
                        bz_error *err);   /* NULL: requests with media are refused */
    void (*notice)(const char *sentence); /* for whoever runs the server; may be NULL */
} engine_options;

engine *engine_new(const engine_options *options, bz_error *err);
/* A model that requests may name. Before engine_start. mmproj may be NULL. */
bz_status engine_add_model(engine *e, const char *name, const char *path, const char *mmproj,
                           bz_error *err);
/* The same for a name of Ollama's store: all of them can be requested, but the model that was added
 * first is the default. */
bz_status engine_add_stored(engine *e, const char *name, bz_error *err);
/* Applies an adapter to all answers of the model that was added last. Before engine_start. */
bz_status engine_add_adapter(engine *e, const char *path, float scale, bz_error *err);
/* `wake` is called on the engine's thread after results were added. */
bz_status engine_start(engine *e, void (*wake)(void *user), void *user, bz_error *err);
void engine_stop(engine *e); /* ends all sequences with an error, soon; from any thread */
void engine_free(engine *e); /* release all work first */

/* ---- requests --------------------------------------------------------------------------- */

typedef enum engine_task {
    ENGINE_CHAT,   /* json: a chat request as bz_turn_new takes it */
    ENGINE_PROMPT, /* prompts as they are; json: settings, in the form of a chat request */
    ENGINE_EMBED,  /* vectors of the prompts */
    ENGINE_LOAD,   /* loads the model */
    ENGINE_UNLOAD, /* unloads it when its sequences have ended */
    ENGINE_RUN     /* calls `run` */
} engine_task;

typedef struct engine_prompt {
    char *text;   /* [len]; NULL: ids */
    int32_t *ids; /* [len] */
    size_t len;
} engine_prompt;

/* Runs on the engine's thread and writes one JSON value. `m` is loaded, or NULL if the request
 * named no model and needs none. */
typedef bz_status (*engine_function)(void *user, engine *e, engine_model *m, bz_json *out,
                                     bz_error *err);

/* All pointers but `user` are malloc'ed and owned by the work from engine_submit on. */
typedef struct engine_request {
    engine_task task;
    char *model; /* name; NULL or "": the default model */
    char *json;  /* [n_json] */
    size_t n_json;
    engine_prompt *prompts; /* [n_prompts] of ENGINE_PROMPT and ENGINE_EMBED */
    size_t n_prompts;
    int32_t *before; /* [n_before] ENGINE_CHAT: tokens of the conversation so far */
    size_t n_before;
    uint32_t dimensions;  /* ENGINE_EMBED: numbers of a vector; 0: all */
    bool any_dimensions;  /* more than there are mean all of them; else they are refused */
    bool truncate;        /* the beginning of texts that are too long; else they are refused */
    bool report_ids;      /* usage has the tokens of prompt and answer */
    uint32_t choices;     /* answers per prompt; 0: 1 */
    bool shift;           /* ENGINE_CHAT: what its API does for ENGINE_SHIFT_BY_API */
    uint32_t min_context; /* positions that the client wants; more than there are is an error */
    bool has_keep_alive;  /* replaces the engine's for this model */
    int64_t keep_alive;   /* ns; below 0: forever */
    uint64_t client;      /* the machine that asks, for fairness */
    uint64_t program;     /* which program there */
    bool without_model;   /* ENGINE_RUN: `run` needs none */
    engine_function run;
    void *user;                    /* of `run` */
    void (*free_user)(void *user); /* may be NULL */
} engine_request;

void engine_request_free(engine_request *r); /* what was not submitted */

/* NULL: *err says why; code quota: the queue is full. Either way the request is taken over. */
engine_work *engine_submit(engine *e, engine_request *r, bz_error *err);

typedef enum engine_event_kind {
    ENGINE_THINKING,
    ENGINE_ANSWER,
    ENGINE_CALL_BEGIN,  /* text: the name of the tool */
    ENGINE_CALL,        /* text: {"name": ..., "arguments": {...}} */
    ENGINE_BROKEN_CALL, /* text: what the model wrote, which is not a call */
    ENGINE_LOG_PROB, /* text: JSON, {"token": ..., "logprob": ..., "bytes": ..., "top_logprobs"} */
    ENGINE_LEFT_OUT, /* text: how many messages, before the answer */
    ENGINE_VECTORS,  /* text: float32 [prompts][dimensions] */
    ENGINE_END       /* of a choice */
} engine_event_kind;

typedef struct engine_event {
    struct engine_event *next;
    engine_event_kind kind;
    uint32_t choice;  /* prompt * choices + answer */
    bz_finish finish; /* of ENGINE_END */
    size_t len;
    char text[]; /* terminated */
} engine_event;

typedef enum engine_state {
    ENGINE_WAITING,
    ENGINE_RUNNING, /* the prompt was accepted: from now on there are events */
    ENGINE_DONE,
    ENGINE_FAILED /* engine_error says why; events before it may have been sent */
} engine_state;

/* Takes the events since the last call; free them with engine_events_free. */
engine_state engine_poll(engine_work *w, engine_event **events);
void engine_events_free(engine_event *events);

typedef struct engine_usage {
    uint64_t prompt_tokens, cached_tokens, answer_tokens; /* of all choices */
    uint64_t thinking_tokens;                             /* among those of the answer */
    uint64_t total_ns, load_ns, prompt_ns, answer_ns;
    int32_t *ids; /* [n_ids] of the first choice, if requested */
    size_t n_ids;
} engine_usage;

/* Once the state is DONE or FAILED; valid until the work is released. */
const engine_usage *engine_usage_of(const engine_work *w);
const bz_error *engine_error(const engine_work *w);
const char *engine_model_name(const engine_work *w); /* as the engine lists it */
void engine_release(engine_work *w);                 /* cancels it, if it is not done */

/* ---- figures ------------------------------------------------------------------------------ */

typedef struct engine_figures {
    uint64_t requests, failed, refused; /* refused: the queue was full */
    uint64_t prompt_tokens, cached_tokens, answer_tokens;
    uint64_t prompt_ns, answer_ns; /* summed over sequences */
    uint64_t decode_steps;
    uint64_t steps_while_opening; /* of them, while a model was being opened */
    uint32_t running, waiting;    /* sequences */
} engine_figures;

engine_figures engine_get_figures(engine *e);

#endif
