/* Shared by work.c (the border between the threads), schedule.c (the engine's thread), sequence.c
 * and session_job.c (one answer). */
#ifndef BZ_SERVER_ENGINE_INTERNAL_H
#define BZ_SERVER_ENGINE_INTERNAL_H

#include "base/lock.h"
#include "base/os.h"
#include "server/engine/engine.h"
#include "server/engine/models.h"
#include "server/engine/stop.h"

struct engine_work {
    engine *e;
    atomic_uint refs;
    atomic_bool cancelled;
    engine_request r;
    uint64_t submitted; /* ns */

    /* under the engine's lock */
    engine_event *first, **last;
    engine_state state;

    /* the engine's thread until the state is DONE or FAILED, then constant */
    engine_work *next; /* in the queue */
    bz_error error;
    engine_usage usage;
    engine_model *m;
    char *model_name;
    uint32_t left; /* sequences that have not ended */
    uint32_t held; /* sequences that are not freed */
};

typedef enum sequence_phase {
    SEQUENCE_WAITING,    /* for its model or a slot */
    SEQUENCE_BATCH,      /* in a slot of the model's batch */
    SEQUENCE_ENCODING,   /* media */
    SEQUENCE_PREFILL,    /* in a session */
    SEQUENCE_GENERATING, /* in a session */
    SEQUENCE_EMBEDDING   /* in the model's embedder */
} sequence_phase;

/* One answer. */
typedef struct sequence {
    struct sequence *next;
    engine_work *w;
    uint32_t choice;
    sequence_phase phase;
    bool done;  /* to be removed */
    bool tried; /* in this round of starting sequences */

    bz_turn *turn; /* chat, or the settings of a prompt; NULL: not prepared */
    bz_generate_options options;
    int32_t *ids; /* [n_ids] the prompt */
    size_t n_ids;
    bz_text_stream text; /* of a prompt's answer */
    text_stop *stop;     /* NULL: none */
    bool ended;          /* the turn, or a stop string was found */
    bz_finish finish;

    uint32_t slot; /* BATCH */
    model_session *session;
    bz_job *job;
    bz_embed_input *inputs; /* of an embedding; owned */
    size_t next_media;
    engine_decoded decoded;

    uint64_t began, first_token; /* ns; 0: not yet */
    uint32_t generated, reused, thinking;
    uint64_t reused_before; /* of the session */
    int32_t *answer;        /* [generated] tokens, if requested */
} sequence;

/* Of the last sequences that were started, for fairness. */
enum { RECENT_STARTS = 32 };

typedef struct recent_start {
    uint64_t client, program; /* of engine_request */
} recent_start;

struct engine {
    engine_options o;
    models models;
    bz_os_thread *thread;
    int alarm[2]; /* wakes the engine's thread */
    void (*wake)(void *user);
    void *wake_user;
    atomic_bool stop;

    bz_lock lock; /* of what follows */
    engine_work *queue, **queue_end;
    engine_figures figures;
    bool news; /* results were added since the last wake */

    /* the engine's thread */
    sequence *sequences; /* waiting and running, in order of arrival */
    recent_start recent[RECENT_STARTS];
    uint64_t n_started;                /* sequences */
    bool admit;                        /* a waiting sequence may be able to start */
    uint64_t n_steps, n_opening_steps; /* of batches; of them, while a model was being opened */
    uint32_t n_waiting;                /* sequences, at the last sweep */
    uint64_t seed;                     /* for requests without one */
};

/* ---- work.c ---- */

void work_set_state(engine_work *w, engine_state state);
bool work_event(engine_work *w, engine_event_kind kind, uint32_t choice, bz_finish finish,
                const char *text, size_t len); /* false: out of memory */
void work_fail(engine_work *w, const bz_error *err);
void work_drop(engine_work *w); /* one reference */

/* ---- sequence.c ---- */

sequence *sequence_new(engine_work *w, uint32_t choice);
void sequence_free(sequence *s);
/* Renders the prompt; the model is loaded. */
bz_status sequence_prepare(engine *e, sequence *s, bz_error *err);
/* It is prepared and needs a slot of its model's batch, which has none that is free. */
bool sequence_must_wait(const sequence *s);
/* Starts a prepared sequence if there is a slot or a session for it, or encodes its media; else it
 * stays WAITING. */
bz_status sequence_start(engine *e, sequence *s, bz_error *err);
/* A generated token, or none (-1) with the reason in `finish`. Returns whether the sequence has
 * ended. */
bool sequence_token(sequence *s, int32_t token, bz_finish finish, bz_error *err);
void sequence_report_end(engine *e, sequence *s); /* usage, figures, ENGINE_END */
void sequence_stop(sequence *s);                  /* its slot or session becomes free */

/* ---- session_job.c ---- */

bz_status session_job_start(engine *e, sequence *s, bz_error *err);
/* About 10 ms of work; *ended: the answer is complete. *idle: it waits for the GPU. */
bz_status session_job_step(engine *e, sequence *s, bool *ended, bool *idle, bz_error *err);
void session_job_stop(sequence *s);

/* ---- embed_job.c ---- */

/* Starts computing the vectors of a request; if the embedder is in use, it stays WAITING. */
bz_status embed_job_start(sequence *s, bz_error *err);
bz_status embed_job_step(sequence *s, bool *ended, bool *idle, bz_error *err);
void embed_job_stop(sequence *s);

/* ---- defaults.c ---- */

/* The request with the default settings and system prompt of a model of the store, where the
 * request does not have its own, and with the model's messages after the system prompt unless it
 * continues a conversation. samples: false for a model that settings of sampling do not apply to.
 * *out is malloc'ed; NULL: nothing to add. */
bz_status defaults_apply(const bz_store_model *store, bool samples, bool continues,
                         const char *json, size_t n, char **out, size_t *n_out, bz_error *err);

#endif
