/* Shared by the verbs of the command line. */
#ifndef BZ_CLI_H
#define BZ_CLI_H

#include <stdio.h>

#include "bezel.h"
#include "store/ollama.h"
#include "cli/settings.h"

/* Exit codes users' scripts rely on. */
enum {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_NO_MODEL = 3,
    EXIT_CANNOT = 4,
    EXIT_INTERRUPTED = 130
};

/* A verb gets its own name as argv[0]. */
typedef struct cli_verb {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary; /* one line for --help */
    const char *usage;   /* the verb's own help */
} cli_verb;

extern const cli_verb cli_run_verb, cli_list_verb, cli_show_verb, cli_bench_verb, cli_doctor_verb,
    cli_tokenize_verb, cli_logits_verb, cli_diffuse_verb, cli_serve_verb, cli_encode_verb,
    cli_verify_verb, cli_pull_verb, cli_cp_verb, cli_rm_verb, cli_ps_verb, cli_stop_verb,
    cli_embed_verb, cli_search_verb, cli_setup_gpu_verb;

/* Prints "bezel: ..." to stderr and returns the exit code that fits the error. */
int cli_error(const bz_error *err);
int cli_usage_error(const char *verb, const char *format, ...) BZ_PRINTF(2, 3);

/* ---- options -------------------------------------------------------------- */

enum { CLI_STOPS = 16 };

typedef struct cli_options {
    const char *model, *prompt; /* positional */
    const char *tokens;         /* -t */
    const char *out;            /* -o */
    const char *mmproj;
    const char *kernels;
    const char *device;
    const char *system, *context_shift, *session;
    const char *ple; /* gpu: where per-layer embeddings are kept */
    const char *kv;  /* how keys and values are kept */
    const char *gpu_memory;
    const char *prompts, *shard;
    const char *format, *grammar;                                       /* run */
    const char *lora[CLI_STOPS + 1];                                    /* FILE[:SCALE] */
    const char *draft;                                                  /* run, bench */
    const char *draws, *trace, *entropy_bound, *stability, *confidence; /* diffuse */
    const char *canvas, *self_cond, *self_cond_temp;                    /* logits */
    const char *host, *dir;                                             /* serve */
    const char *api_key, *max_memory, *keep_alive;                      /* serve */
    const char *origins[CLI_STOPS + 1];                                 /* serve */
    const char *models[CLI_STOPS + 1], *hosts[CLI_STOPS + 1];
    const char *images[CLI_STOPS + 1], *sounds[CLI_STOPS + 1], *videos[CLI_STOPS + 1];
    const char *features;
    const char *sandbox;       /* auto, on, off; NULL: auto */
    int port;                  /* -1: not given */
    const char *set[SETTINGS]; /* as given, or NULL */
    const char *stop[CLI_STOPS + 1];
    unsigned threads, chunk, context, max_tokens, parallel, sequences, queue;
    unsigned prompt_tokens, repeat;   /* bench */
    const char *registry;             /* setup-gpu */
    const char *lines, *task, *title; /* embed */
    const char **texts;               /* [n_texts] embed: positional, after the model */
    size_t n_texts;
    unsigned dimensions;          /* embed */
    const char *embedder, *index; /* search */
    unsigned top;
    bool rebuild;
    bool truncate;                 /* embed */
    unsigned connections, retries; /* pull */
    bool insecure;
    unsigned rows; /* show --plan */
    unsigned image_tokens, video_tokens, video_frames;
    unsigned steps;             /* diffuse */
    bool no_animation, no_wrap; /* run */
    bool fast, exact, json, plan, special, no_bos, help, ignore_end, verbose, quiet;
    bool no_fuse; /* gpu: one kernel per step */
    bool wgsl;    /* show: a GPU kernel instead of a model; positional: its name and a block type */
    bool think, no_think, show_thinking, hide_thinking, no_color;
    bool media;  /* bench: images and audio */
    bool drafts; /* run: of the store's drafter, unless --draft says otherwise */
    bool open;   /* serve */
    bool health; /* ps */
} cli_options;

enum { CLI_MODEL_LIST = -1, CLI_MODEL_TEXTS = -2 };

/* Reads the options in `accepts`, a list of option letters as in the table of options.c.
 * max_positional: at most 2, the model and the prompt; CLI_MODEL_LIST: models only, as with
 * --model; CLI_MODEL_TEXTS: the model, then any number of texts. Returns EXIT_OK, or the exit code
 * (help was printed, or a usage error). */
int cli_parse(const cli_verb *verb, int argc, char **argv, const char *accepts, int max_positional,
              cli_options *o);

/* A comma-separated list of token ids, or @FILE with ids separated by commas or spaces; NULL
 * after a usage message. The caller frees it. */
int32_t *cli_token_list(const char *verb, const char *text, size_t *n);

/* ---- models --------------------------------------------------------------- */

typedef struct cli_model {
    bz_model *model;
    bz_store_model store;            /* where it came from, and the store's settings for it */
    struct bz_adapter_use *adapters; /* [n_adapters] of the store and of --lora: adapters.h */
    size_t n_adapters;
    bz_error err; /* why it could not be opened; already printed */
} cli_model;

/* MODEL: a path, else a name in Ollama's store, whose mmproj file is used unless --mmproj is given.
 */
bool cli_open_model(const cli_options *o, cli_model *m, int *exit_code);
void cli_close_model(cli_model *m);
/* The same for verbs that write no text: without the store's settings and adapters. */
bool cli_open(const cli_options *o, bz_model **model, int *exit_code);

/* What --draft says. */
bz_draft_kind cli_draft(const cli_options *o);

/* "8GB", "800MB", or bytes; NULL: 0. False after a message. */
bool cli_read_memory(const char *option, const char *text, uint64_t *bytes, int *exit_code);

uint64_t cli_model_bytes(const bz_model *model); /* size of all its files */

/* ---- helpers --------------------------------------------------------------- */

/* A whole stream as text; NULL after a message. The caller frees it. */
char *cli_read_stream(FILE *f, size_t *len);

double cli_seconds(void);
void cli_sort(double *values, size_t n); /* smallest first */

#endif
