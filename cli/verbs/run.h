/* What the ways to run a model share: one answer, a chat, a file of prompts. */
#ifndef BZ_CLI_RUN_H
#define BZ_CLI_RUN_H

#include "cli/chat/animate.h"
#include "cli/chat/ask.h"
#include "cli/cli.h"
#include "cli/chat/seen.h"
#include "cli/chat/talk.h"

typedef struct run_state {
    const cli_options *o;
    cli_model m;
    const char *name; /* of the model, as its user knows it */
    bz_session *session;
    settings given; /* by options and /set */
    settings made;  /* by the model's makers */
    talk talk;
    bz_encoder *encoder; /* made when first needed */
    talk_file *files;    /* [n_files] pictures and sounds that go with the next message */
    size_t n_files;
    seen_list seen; /* all of the conversation, and those */
    bool think, show_thinking, verbose;
    double load_s;
} run_state;

/* What counts: given, else made; with a seed of its own where nobody gave one. Free it. */
bz_status run_settings(const run_state *r, settings *out, bz_error *err);

/* Whether it changes anything for this model; that it does not, is said. */
bool run_heeds(const run_state *r, setting id);

/* A session of the size that was asked for, else the largest that makes sense here: the model's
 * limit, what fits into memory, 32,768. */
bz_status run_session(run_state *r, bz_error *err);
uint32_t run_context(const run_state *r, const settings *s);

/* Asks what stands in r->talk and prints the answer as text or, with --json, as events. */
bz_status run_answer(run_state *r, ask_answer *a, bz_error *err);

bz_status run_encoder(run_state *r, bz_error *err); /* there is one afterwards */
/* A picture or sound for the next message, looked at now: what is wrong with it is said at once. */
bz_status run_attach(run_state *r, bz_media_kind kind, const char *path, uint32_t *tokens,
                     bz_error *err);
void run_detach(run_state *r);    /* none waits any longer: they are in the talk, or not wanted */
void run_set_aside(run_state *r); /* nor is it remembered what they were like */
/* A file that is only named in a message: how it would be attached, by `commands` for pictures and
 * for sounds. */
void run_hint_files(const run_state *r, const char *text, size_t len, const char *commands[2]);
/* To the talk, with what is attached, which waits on until run_detach: the talk may be cut again.
 * False: no memory. */
bool run_add_user(run_state *r, const char *text, size_t len);

int run_chat(run_state *r);    /* on a terminal; returns an exit code */
int run_prompts(run_state *r); /* --prompts */

/* ---- printing (run_print.c, run_json.c) ---------------------------------------- */

typedef struct run_printer {
    const run_state *r;
    bool thinking;       /* its text is being shown */
    bool open_line;      /* stdout does not stand at the beginning of a line */
    animation animation; /* of a diffusion model's canvas */
} run_printer;

void run_print_canvas(void *printer, const bz_job *job, const bz_event *e);

void run_print_told(void *printer, bz_turn_part part, const char *text, size_t len);
void run_print_end(run_printer *p);
/* Where nothing was said at all, that is said; `how` it could be otherwise. */
void run_print_silence(const run_state *r, const ask_answer *a, const char *how);
void run_print_timings(const run_state *r, const ask_answer *a); /* --verbose */

void run_json_told(void *printer, bz_turn_part part, const char *text, size_t len);
void run_json_end(const run_state *r, const ask_answer *a);
void run_json_error(const bz_error *err);

#endif
