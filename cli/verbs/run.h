/* Shared by the forms of `bezel run`: one answer, a chat, a file of prompts. */
#ifndef BZ_CLI_RUN_H
#define BZ_CLI_RUN_H

#include "cli/chat/animate.h"
#include "cli/chat/ask.h"
#include "cli/cli.h"
#include "cli/chat/media_cache.h"
#include "cli/chat/conversation.h"
#include "cli/chat/wrap.h"

typedef struct run_state {
    const cli_options *o;
    cli_model m;
    const char *name; /* of the model, for messages */
    bz_session *session;
    uint32_t context; /* of the session */
    settings given;   /* by options and /set */
    settings made;    /* from Ollama's store */
    conversation conversation;
    bz_encoder *encoder;  /* made when first needed */
    attached_file *files; /* [n_files] images and audio attached to the next message */
    size_t n_files;
    media_cache cache; /* encoded media of the conversation and of `files` */
    bool think, show_thinking, verbose;
    bool shift; /* when the context is full, the oldest turns are left out */
    bool wrap;  /* lines end between words before the right edge of a terminal */
    double load_s;
} run_state;

/* The prompt, which the caller frees; NULL: there is none, for a chat or a file of prompts. Text
 * that is piped in beside a prompt is appended to it. False: after a message. */
bool run_read_prompt(const cli_options *o, char **prompt, size_t *len);

/* The settings that apply: given, else from the store; a random seed if none is set. Free them. */
bz_status run_settings(const run_state *r, settings *out, bz_error *err);

/* Whether a setting has an effect with this model; prints a note if it has none. */
bool setting_applies(const run_state *r, setting id);

/* Makes the session. Its context is the requested one, else the smallest of the model's limit, what
 * fits in memory, and 32,768. */
bz_status run_session(run_state *r, bz_error *err);
uint32_t run_context(const run_state *r, const settings *s);

/* run_saved.c: the conversation as a JSON file, and in FILE.state what the model has computed of
 * it. If only the latter cannot be used, the user is told and it is computed again. */
bz_status run_save(const run_state *r, const char *path, bz_error *err);
bz_status run_load(run_state *r, const char *path, bz_error *err);

/* run_shift.c: `ask` for the conversation, which loses its oldest turns if it leaves no room for an
 * answer in the context; the user is told. */
bz_status run_ask(run_state *r, const settings *s, ask_options *o, ask_answer *a, bz_error *err);

/* Answers the conversation in r->conversation and prints the answer as text or, with --json, as
 * events. */
bz_status run_answer(run_state *r, ask_answer *a, bz_error *err);

bz_status run_encoder(run_state *r, bz_error *err); /* makes r->encoder unless it exists */
/* Attaches a file to the next message. It is encoded now, so that errors show at
 * once. */
bz_status run_attach(run_state *r, bz_media_kind kind, const char *path, uint32_t *tokens,
                     bz_error *err);
void run_detach(run_state *r);    /* clears the attached files; r->cache keeps them encoded */
void run_set_aside(run_state *r); /* clears them and forgets their encoding */
/* If a message only names a file, prints how to attach it: with the command of its kind. */
void run_hint_files(const run_state *r, const char *text, size_t len, const char *commands[3]);
/* Adds a user message with the attached files to r->conversation. They stay attached until
 * run_detach, as the message may be removed again. False: no memory. */
bool run_add_user(run_state *r, const char *text, size_t len);

int run_chat(run_state *r);    /* on a terminal; returns an exit code */
int run_prompts(run_state *r); /* --prompts */

/* ---- printing (run_print.c, run_json.c) ---------------------------------------- */

typedef struct run_printer {
    const run_state *r;
    bool thinking;       /* is being printed */
    bool open_line;      /* the last line on stdout has no newline yet */
    wrap wrap;           /* holds back the last word */
    animation animation; /* of a diffusion model's canvas */
} run_printer;

void run_printer_init(run_printer *p, const run_state *r);
void run_print_canvas(void *printer, const bz_job *job, const bz_event *e);

void run_print_part(void *printer, bz_turn_part part, const char *text, size_t len);
void run_print_end(run_printer *p);
/* Prints a note if the answer is empty; `how`: the option that avoids thinking. */
void run_print_silence(const run_state *r, const ask_answer *a, const char *how);
void run_print_timings(const run_state *r, const ask_answer *a); /* --verbose */

void run_json_part(void *printer, bz_turn_part part, const char *text, size_t len);
void run_json_end(const run_state *r, const ask_answer *a);
void run_json_error(const bz_error *err);

#endif
