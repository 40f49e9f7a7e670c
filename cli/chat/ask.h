/* One answer: takes a request, reports the parts of the answer as they are generated, returns
 * counts and times. */
#ifndef BZ_CLI_ASK_H
#define BZ_CLI_ASK_H

#include "base/json.h"
#include "bezel_media.h"
#include "cli/chat/media_cache.h"

const char *ask_finish_name(bz_finish finish); /* "end", ... as in JSON output */

typedef struct ask_answer {
    bz_finish finish;       /* NONE: interrupted */
    uint64_t prompt_tokens; /* of the whole prompt */
    uint64_t left_out;      /* messages, as the conversation was too long */
    uint64_t reused;        /* of them, tokens that needed no computing */
    uint64_t generated;
    uint64_t drafted, accepted; /* guesses that passes verified, and those that were right */
    double prompt_s, generate_s;
    uint64_t seed;
    bz_json_buffer text, thinking; /* all of it */
    bz_json_buffer calls;          /* see ask_answer_calls */
} ask_answer;

void ask_answer_free(ask_answer *a);
/* Appends a part that bz_turn_next returned; false: no memory. */
bool ask_answer_keep(ask_answer *a, bz_turn_part part, const char *text, size_t len);
/* A JSON array as in a message's tool_calls, [{"function": {"name", "arguments"}}]; empty if there
 * are none. */
bz_str ask_answer_calls(ask_answer *a);

typedef struct ask_options {
    bz_generate_options generate;
    uint32_t fit; /* the conversation is shortened to leave room for an answer in a context of so
                     many positions (bz_turn_fit); 0: it is not */
    bool show_progress;    /* a progress line until the first part */
    bool reports_thinking; /* thinking counts as a part: it removes the progress line */
    bz_encoder *encoder;   /* for media; NULL: they are refused */
    uint32_t video_frames; /* at most this many of a video; 0: the default */
    media_cache *cache; /* encoded media to reuse; new ones are added. NULL: all files are read */
    void (*on_shift)(void *user, const bz_turn *turn); /* it was shortened; may be NULL */
    void *shift_user;
    void (*on_part)(void *user, bz_turn_part part, const char *text, size_t len); /* may be NULL */
    void (*canvas)(void *user, const bz_job *job,
                   const bz_event *e); /* a diffusion model's step; NULL: progress line only */
    void *user;
} ask_options;

/* Ctrl-C ends it with BZ_OK and BZ_FINISH_NONE; *a then holds the answer so far. */
bz_status ask(bz_session *session, const bz_model *model, const char *request, size_t len,
              const ask_options *o, ask_answer *a, bz_error *err);

#endif
