/* One answer: a request in, what is said as it comes, and the figures afterwards. */
#ifndef BZ_CLI_ASK_H
#define BZ_CLI_ASK_H

#include "base/json.h"
#include "bezel_media.h"
#include "cli/chat/seen.h"

typedef enum ask_finish {
    ASK_END,     /* the model had said all */
    ASK_STOP,    /* a stop string came */
    ASK_LENGTH,  /* num_predict */
    ASK_CONTEXT, /* the context is full */
    ASK_INTERRUPTED
} ask_finish;

const char *ask_finish_name(ask_finish finish); /* "end", ... as in all JSON we write */
/* stopped: the turn has ended where the tokens had not, that is by a stop string. */
ask_finish ask_finish_of(bz_finish finish, bool stopped);

typedef struct ask_answer {
    ask_finish finish;
    uint64_t prompt_tokens; /* of the whole prompt */
    uint64_t reused;        /* of them, those that needed no computing */
    uint64_t generated;
    double prompt_s, generate_s;
    uint64_t seed;
    bz_json_buffer text, thinking; /* all of it */
    bz_json_buffer calls;          /* see ask_answer_calls */
} ask_answer;

void ask_answer_free(ask_answer *a);
/* Adds what bz_turn_next told; false: no memory. */
bool ask_answer_keep(ask_answer *a, bz_turn_part part, const char *text, size_t len);
/* A JSON array as in a message's tool_calls, [{"function": {"name", "arguments"}}]; empty without
 * any. */
bz_str ask_answer_calls(ask_answer *a);

typedef struct ask_options {
    bz_generate_options generate;
    bool show_progress;  /* a line on a terminal, while nothing is told */
    bool tells_thinking; /* ... which thinking is, then */
    bz_encoder *encoder; /* for pictures and sound; NULL: they are refused */
    seen_list *
        seen; /* those that need not be read again, and to keep the others in; NULL: all are read */
    void (*told)(void *user, bz_turn_part part, const char *text,
                 size_t len); /* NULL: the answer is enough */
    void (*canvas)(void *user, const bz_job *job,
                   const bz_event *e); /* a diffusion model's step; NULL: a line tells of it */
    void *user;
} ask_options;

/* Ctrl-C ends it with BZ_OK and ASK_INTERRUPTED; *a holds what was said until then. */
bz_status ask(bz_session *session, const bz_model *model, const char *request, size_t len,
              const ask_options *o, ask_answer *a, bz_error *err);

#endif
