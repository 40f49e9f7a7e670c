/* bezel.h: run Gemma 4 from a GGUF file.
 *
 * A bz_model is an opened file: immutable, shared freely between threads.
 * A bz_session is one sequence of tokens over a model: one thread at a time.
 * A bz_job is work in progress. It never blocks: step it until it is done, doing the reads it
 * requests in between. The *_file and *_run functions are short loops over the same jobs.
 *
 * Option structs begin with `size`, which the caller sets to sizeof the struct; every other member
 * may be zero, which means the default. A NULL pointer means all defaults.
 *
 *     bz_session_options o = {.size = sizeof o, .threads = 2};
 *
 * Errors: a stable code and one sentence in a bz_error. Nothing here prints, exits, or keeps global
 * state.
 *
 * What may change between versions. The shared library's name carries major and minor version
 * (libbezel.so.0.1) until version 1.0, then the major version alone; programs need not be compiled
 * again as long as it stays the same. Under one such name no function and no member goes away or
 * changes its meaning, and structs without a `size` keep their layout. Structs with one grow at
 * their end, also from one name to the next: a newer library reads the structs of an older program
 * and fills in defaults. An older library accepts a struct of a newer program if all members it
 * does not know are zero, and otherwise refuses it as a bad request. bz_sampling, which is part of
 * bz_generate_options, does not grow. Codes of bz_status, and values of every enum, never change;
 * new ones may be added. */
#ifndef BEZEL_H
#define BEZEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BZ_VERSION_MAJOR 0
#define BZ_VERSION_MINOR 1
#define BZ_VERSION_PATCH 0

#if defined(__GNUC__)
#define BZ_API __attribute__((visibility("default")))
#else
#define BZ_API
#endif

/* ---- errors ------------------------------------------------------------- */

/* Numbers and names are shared with JavaScript and HTTP and never change. */
/* clang-format off */
#define BZ_STATUS_LIST(X)                                                                         \
    X(OK, 0, "ok")                               X(OUT_OF_MEMORY, 1, "out_of_memory")             \
    X(BAD_FILE, 2, "bad_file")                   X(UNSUPPORTED_MODEL, 3, "unsupported_model")     \
    X(NOT_FOUND, 4, "not_found")                 X(BAD_REQUEST, 5, "bad_request")                 \
    X(CONTEXT_FULL, 6, "context_full")           X(ABORTED, 7, "aborted")                         \
    X(NUMERIC, 8, "numeric")                     X(NO_WEBGPU, 9, "no_webgpu")                     \
    X(NO_ADAPTER, 10, "no_adapter")              X(DEVICE_LOST, 11, "device_lost")                \
    X(CHECKSUM, 12, "checksum")                  X(NETWORK, 13, "network")                        \
    X(QUOTA, 14, "quota")                        X(BAD_SCHEMA, 15, "bad_schema")
/* clang-format on */

typedef enum bz_status {
#define BZ_STATUS_ENUM(name, number, text) BZ_##name = number,
    BZ_STATUS_LIST(BZ_STATUS_ENUM)
#undef BZ_STATUS_ENUM
} bz_status;

typedef struct bz_error {
    bz_status code;
    char text[320]; /* one sentence: the thing, the cause, the way out */
} bz_error;

BZ_API const char *bz_status_name(bz_status code); /* "bad_file", ... */
BZ_API const char *bz_version(void);               /* "0.1.0" */

/* ---- jobs --------------------------------------------------------------- */

typedef struct bz_model bz_model;
typedef struct bz_session bz_session;
typedef struct bz_job bz_job;

typedef enum bz_progress {
    BZ_JOB_AGAIN,      /* call again: there is more to compute */
    BZ_JOB_NEED_BYTES, /* do need->reads, then call again */
    BZ_JOB_NEED_GPU,   /* wait for the device, then call again */
    BZ_JOB_EVENT,      /* look at need->event, then call again */
    BZ_JOB_DONE,
    BZ_JOB_ERROR /* need->error says why; the model or session stays usable */
} bz_progress;

typedef struct bz_read {
    uint32_t file; /* index of the bz_input */
    uint64_t offset, length;
    void *to;        /* destination; NULL (only for hosts that support it): a GPU buffer */
    uint32_t buffer; /* its handle in gpu.h; the rest of the last 4-byte word is set to zero */
    uint64_t buffer_offset; /* a multiple of 4 */
} bz_read;

typedef enum bz_event_kind {
    BZ_EVENT_PROGRESS, /* done of total: bytes while opening, tokens while prefilling */
    BZ_EVENT_TOKEN,    /* a generated token */
    BZ_EVENT_LOGITS,   /* rows of logits, when requested */
    BZ_EVENT_RELOAD,   /* the GPU was lost: done of total bytes are loaded again, then the job
                          continues */
    BZ_EVENT_CANVAS,   /* done of total steps over a canvas, and its current text. See
                            bezel_diffusion.h */
    BZ_EVENT_STEP      /* bz_job_run only: a step ended without another event */
} bz_event_kind;

/* Natural logarithm of the probability that the model computed: before bias, penalties and
 * temperature. */
typedef struct bz_token_prob {
    int32_t token;
    float log_prob;
} bz_token_prob;
typedef struct bz_event {
    bz_event_kind kind;
    uint64_t done, total;
    int32_t token;
    const char *text; /* to show now: whole characters, not terminated, valid until the next step.
                         What could begin a stop string is held back until later tokens decide */
    size_t text_len;
    float log_prob;           /* of the token, when requested */
    const bz_token_prob *top; /* [n_top] likeliest tokens, best first, when requested */
    uint32_t n_top;
    const float *logits; /* [rows][vocabulary], valid until the next step */
    uint32_t position;   /* of the first row */
    uint32_t rows;
} bz_event;

enum { BZ_MAX_READS = 16 };
typedef struct bz_need {
    uint32_t n_reads;
    bz_read reads[BZ_MAX_READS];
    bz_event event;
    bz_error error;
} bz_need;

/* Does at most about 10 ms of work. */
BZ_API bz_progress bz_job_step(bz_job *job, bz_need *need);
/* Ends a job, finished or not. A cancelled job leaves its session where the last pass ended. */
BZ_API void bz_job_free(bz_job *job);

/* The loop for programs that may block. Both callbacks may be NULL; a non-zero return of `event`
 * ends the job with status aborted, of `read` with bad_file. `event` is called after every step, at
 * the latest every few hundredths of a second: to cancel from another thread or a signal handler,
 * set a flag that it returns. Does not free the job. */
typedef struct bz_host {
    size_t size;
    int (*read)(void *user, const bz_read *read);
    int (*event)(void *user, const bz_event *event);
    void *user;
} bz_host;
BZ_API bz_status bz_job_run(bz_job *job, const bz_host *host, bz_error *err);

/* ---- models ------------------------------------------------------------- */

/* One file of a model: its name (for messages), its size, and its bytes if they are in memory; with
 * data NULL the job requests reads. */
typedef struct bz_input {
    const char *name;
    uint64_t size;
    const void *data;
} bz_input;

typedef struct bz_open_options {
    size_t size;
    const char *device; /* "cpu", "gpu" or "gpu-baseline" (no features, minimum limits); NULL: cpu
                         */
    const char *ple; /* gpu: the per-layer embeddings are "resident", stay in the "file", or "auto"
                        (NULL) */
    uint64_t gpu_memory; /* gpu: bytes the weights may take; layers that do not fit are streamed
                            from the file. 0: all there is */
    bool headers_only;   /* read no weights: to inspect a model; it has no sessions */
    const bz_host *host; /* bz_model_open_file: callbacks while it is opened */
    const char *draft;   /* bz_model_open_file: path of the model's drafter (BZ_DRAFT_MODEL).
                            bz_model_open: name of the file that has to be it; NULL: any, or none */
} bz_open_options;

/* Text model in one file or all its parts, in any order, and optionally its mmproj file and its
 * drafter. Names are copied; data must outlive the model. */
BZ_API bz_status bz_model_open(bz_job **job, const bz_input *files, size_t n_files,
                               const bz_open_options *options, bz_error *err);
/* The opened model, once its job is done; the caller owns it. */
BZ_API bz_model *bz_job_model(bz_job *job);

/* Opens by path and waits: maps the file, finds the other parts of a split file beside it. mmproj
 * may be NULL. */
BZ_API bz_status bz_model_open_file(bz_model **model, const char *path, const char *mmproj,
                                    const bz_open_options *options, bz_error *err);

/* A split model is in files called "NAME-00001-of-00005.gguf" and so on. Count: the parts that the
 * name of any of them states; 1 for any other name. Path: writes the path of part `number` (from 1)
 * to out; false if there is no such part or out (strlen(path) + 1 bytes) is too small. */
BZ_API uint32_t bz_model_part_count(const char *path);
BZ_API bool bz_model_part_path(const char *path, uint32_t number, char *out, size_t size);

/* Free sessions first. */
BZ_API void bz_model_free(bz_model *model);

BZ_API uint32_t bz_model_vocab(const bz_model *model);
BZ_API uint32_t bz_model_context(const bz_model *model); /* longest the model was trained for */

/* What a file says about its model. Texts are valid as long as the model. */
typedef struct bz_model_info {
    size_t size;              /* set by the caller, as in option structs */
    const char *name;         /* as its makers call it; "": the file does not say */
    const char *architecture; /* "gemma4", "diffusion-gemma" */
    const char *file_type;    /* "Q4_K_M", "BF16" ... */
    uint64_t bytes;           /* of all its files */
    uint64_t parameters;      /* numbers in all tensors, those of vision and audio included */
    uint32_t layers;
    uint32_t width; /* of an embedding */
    uint32_t vocab;
    uint32_t context;               /* longest it was trained for */
    uint32_t window;                /* positions that a sliding layer sees */
    uint32_t experts, experts_used; /* of a layer, per token; 0: no mixture of experts */
    uint32_t canvas;                /* tokens of a canvas; 0: not a diffusion model */
    uint32_t embedding; /* numbers of a text's vector (bezel_embed.h); 0: the model writes text */
} bz_model_info;
BZ_API bz_status bz_model_get_info(const bz_model *model, bz_model_info *info, bz_error *err);

/* What a model needs on a GPU, in bytes. Known from the header alone. */
typedef struct bz_fit_options {
    size_t size;
    uint32_t context;                 /* positions; 0: the model's limit, at most 32,768 */
    const char *ple;                  /* as for opening */
    uint64_t max_buffer, max_binding; /* limits of the GPU; 0: of the one the model is on, else the
                                         minimum that WebGPU guarantees */
    uint64_t memory;                  /* of the GPU; 0: unknown */
    const char *kv;                   /* as for sessions */
} bz_fit_options;
typedef struct bz_fit {
    size_t size;      /* set by the caller, as in option structs */
    uint64_t weights; /* with the per-layer embeddings, unless they stay in the file */
    uint64_t towers;  /* weights of the vision and audio encoders */
    uint64_t ple;     /* how much smaller the weights are if the per-layer embeddings stay in the
                         file; 0: the model has none */
    uint64_t caches;  /* keys and values */
    uint64_t work;    /* activations of the largest pass, encoders included; an estimate */
    bool ple_in_file;
    uint32_t max_context; /* longest that would fit, as far as is known */
} bz_fit;
/* BZ_OK: no known limit is exceeded. Else err says why it cannot fit and what to do; *fit is filled
 * either way. */
BZ_API bz_status bz_model_fit(const bz_model *model, const bz_fit_options *options, bz_fit *fit,
                              bz_error *err);

/* ---- tokens ------------------------------------------------------------- */

/* Writes up to `cap` ids and returns how many the text has (call with cap 0 to count), or -1 with
 * *err filled. `specials`: texts of control tokens become those tokens; never set it for text from
 * outside. `bos`: begin with the token that every sequence begins with. */
BZ_API int64_t bz_tokenize(const bz_model *model, const char *text, size_t len, bool specials,
                           bool bos, int32_t *ids, size_t cap, bz_error *err);
/* The text of one token as the vocabulary spells it; may be part of a character. Not terminated,
 * valid as long as the model. */
BZ_API const char *bz_token_piece(const bz_model *model, int32_t id, size_t *len);
BZ_API bool bz_token_ends(const bz_model *model, int32_t id); /* ends an answer */

/* Text of a stream of tokens: never part of a character. Zero-initialize. */
typedef struct bz_text_stream {
    uint8_t state[16];
} bz_text_stream;
enum { BZ_TEXT_MAX = 1024 };
/* Writes what token `id` completes (not terminated) and returns its length; id -1 flushes. */
BZ_API size_t bz_text_push(bz_text_stream *stream, const bz_model *model, int32_t id,
                           bool show_control, char out[BZ_TEXT_MAX]);

/* ---- sessions ----------------------------------------------------------- */

typedef struct bz_session_options {
    size_t size;
    uint32_t context;    /* positions; 0: the model's limit, at most 32,768 */
    uint32_t chunk;      /* prompt tokens per pass, at most 512; 0: 512 */
    unsigned threads;    /* cpu; 0: one per processor; at most four per processor */
    const char *kernels; /* cpu: "amx", "avx512bf16", "avx512", "avxvnni", "avx2", "i8mm",
                            "dotprod", "neon", "plain"; NULL: the best this machine has */
    bool no_fuse;        /* gpu: one kernel per step, for checking */
    bool exact;         /* f32 activations and, unless kv is set, caches: slower, nothing rounded */
    uint32_t snapshots; /* positions a conversation can return to; 0: 4 */
    const char *kv;     /* how keys and values are kept: "f16", "q8" or "q4", in about half and a
                           quarter of f16's memory; NULL: f16 */
} bz_session_options;

BZ_API bz_status bz_session_new(bz_session **session, const bz_model *model,
                                const bz_session_options *options, bz_error *err);
BZ_API void bz_session_free(bz_session *session);

/* Saves what a session holds (tokens, images and audio; on the CPU also the caches, so that nothing
 * is computed again) to a file that only its owner can read; an older file is replaced atomically.
 * Loading gives it to a session of the same model, on any device, which is unchanged after an
 * error: bad_file for a damaged file, bad_request for one of another model, of other adapters or,
 * if either is q8 or q4, of another type of keys and values, context_full for one that is too long.
 * Without caches the next job computes the tokens again. */
BZ_API bz_status bz_session_save(const bz_session *session, const char *path, bz_error *err);
BZ_API bz_status bz_session_load(bz_session *session, const char *path, bz_error *err);
/* Another session that holds the same and continues on its own. Nothing is computed again, unless
 * the GPU was lost in the meantime. */
BZ_API bz_status bz_session_fork(bz_session **fork, const bz_session *session, bz_error *err);

typedef enum bz_logits { BZ_LOGITS_LAST, BZ_LOGITS_ALL } bz_logits;
typedef struct bz_prefill_options {
    size_t size;
    uint32_t snapshot_at; /* keep a snapshot after this many tokens; 0: none */
    bz_logits logits;     /* ALL: events with the logits of every new token */
} bz_prefill_options;

/* Makes the session hold exactly these tokens: it keeps the longest prefix it can and computes the
 * rest. Ids are copied. */
BZ_API bz_status bz_session_prefill(bz_session *session, const int32_t *ids, size_t n,
                                    const bz_prefill_options *options, bz_job **job, bz_error *err);

/* Added to the logit of a token; -INFINITY: never chosen. */
typedef struct bz_bias {
    int32_t token;
    float bias;
} bz_bias;

/* How a token is chosen, in this order: bias, penalties, top-k, top-p, min-p, temperature, draw.
 * Zero: what the file recommends, else the number given here. */
typedef struct bz_sampling {
    bool greedy;       /* the likeliest token, the first of equals; also with top_k 1 */
    float temperature; /* 1.0; below 0: greedy */
    int32_t top_k;     /* 64 likeliest tokens; below 0: off */
    float top_p;       /* 0.95 of the probability; below 0, or 1: off */
    float min_p;       /* off; 0.1: a tenth of the likeliest token's probability or more */
    float repetition;  /* 1, off; above: positive logits of seen tokens are divided by it, others
                          multiplied */
    float presence;    /* 0; subtracted from the logit of a seen token */
    float frequency;   /* 0; the same for each time it was seen */
    int32_t window; /* last tokens, the prompt's included, that count as seen: 64; below 0: all */
    uint64_t seed;  /* together with the position it determines the draw: same seed, same text. 0 is
                       a seed like any other */
    const bz_bias *bias; /* [n_bias], copied */
    size_t n_bias;
} bz_sampling;

/* What an answer may be. A grammar is immutable, and shared freely between models, jobs and
 * threads. While an answer is generated only tokens are chosen with which a text of the grammar can
 * begin; what has one continuation is not sampled. It works with all other settings, except
 * ignore_end, and not with diffusion models. */
typedef struct bz_grammar bz_grammar;
typedef enum bz_grammar_kind {
    BZ_GRAMMAR_JSON,   /* any JSON object; the text is not looked at */
    BZ_GRAMMAR_SCHEMA, /* a JSON Schema (docs/STRUCTURED.md lists the keywords) */
    BZ_GRAMMAR_GBNF,   /* llama.cpp's notation, with a rule named root */
    BZ_GRAMMAR_REGEX,  /* a regular expression for the whole answer */
    BZ_GRAMMAR_CHOICES /* a JSON list of texts, of which the answer is one */
} bz_grammar_kind;
/* Fails with bad_schema and a sentence that names the place if it cannot be obeyed. */
BZ_API bz_status bz_grammar_new(bz_grammar **grammar, bz_grammar_kind kind, const char *text,
                                size_t len, bz_error *err);
BZ_API void bz_grammar_free(bz_grammar *grammar); /* jobs that use it keep it */

/* Drafts: guesses of the next tokens, which one pass verifies together. They change how fast an
 * answer comes, never its text (on a GPU up to rounding). */
typedef enum bz_draft_kind {
    BZ_DRAFT_DEFAULT, /* MODEL if the model was opened with a drafter, else OFF */
    BZ_DRAFT_OFF,
    BZ_DRAFT_LOOKUP, /* what followed the last tokens where they occurred before, in the prompt or
                        the answer */
    BZ_DRAFT_MODEL   /* the drafter's: a small model, made for the large one, whose file is opened
                        with it */
} bz_draft_kind;

typedef struct bz_generate_options {
    size_t size;
    uint32_t max_tokens;    /* 0: until an end token or the end of the context */
    bool ignore_end;        /* continue past end tokens */
    bool show_control;      /* the event's text has control tokens too */
    bool log_probs;         /* report the token's log-probability */
    uint32_t top_log_probs; /* and those of this many likeliest tokens */
    bz_sampling sampling;
    const int32_t *stop_ids; /* tokens that end the answer, besides the model's own; copied */
    size_t n_stop_ids;
    const char *const *stop; /* strings that end it and are not shown; copied */
    size_t n_stop;
    bz_grammar *grammar; /* what the answer may be; NULL: anything */
    bz_draft_kind draft;
    uint32_t drafts; /* per pass, at most 7; 0: as many as pay, measured while generating */
} bz_generate_options;

/* Continues after the prefilled tokens: one token event each, with the text that can be shown. A
 * token that ends the answer is reported but not fed back; of its text only what comes before a
 * stop string is shown. */
BZ_API bz_status bz_session_generate(bz_session *session, const bz_generate_options *options,
                                     bz_job **job, bz_error *err);

typedef enum bz_finish {
    BZ_FINISH_NONE,   /* not finished, cancelled or failed */
    BZ_FINISH_END,    /* the model's end token */
    BZ_FINISH_STOP,   /* a stop id or stop string */
    BZ_FINISH_LENGTH, /* max_tokens */
    BZ_FINISH_CONTEXT /* the context is full */
} bz_finish;

/* Why generating ended; known from its last token event on. */
BZ_API bz_finish bz_job_finish(const bz_job *job);

typedef struct bz_session_stats {
    uint32_t position;  /* tokens held */
    uint64_t prefilled; /* prompt tokens computed since the session began */
    uint64_t reused;    /* prompt tokens that were already computed */
    uint64_t generated;
    uint64_t restores; /* times a snapshot was restored */
    uint64_t cache_bytes;
    uint64_t ple_hits, ple_misses; /* rows of per-layer embeddings in the file: cached, fetched */
} bz_session_stats;

BZ_API bz_session_stats bz_session_get_stats(const bz_session *session);

/* Drafts since the session began. */
typedef struct bz_draft_stats {
    uint64_t passes;   /* of answers with drafts switched on, also those without a draft */
    uint64_t drafted;  /* tokens */
    uint64_t accepted; /* of them: those that were chosen */
} bz_draft_stats;

BZ_API bz_draft_stats bz_session_get_draft_stats(const bz_session *session);
/* Logits after the last token held, [vocabulary]; NULL before the first prefill, and on a GPU after
 * generating: there they are not read back. */
BZ_API const float *bz_session_logits(const bz_session *session);

/* ---- chat --------------------------------------------------------------- */

/* Requests are JSON in the form of OpenAI's chat API, or of Ollama's: messages, tools, temperature,
 * top_p, top_k, seed, stop, max_tokens ... Every setting that OpenAI's API has is obeyed or refused
 * with a sentence that names it; keys that neither API has are not looked at. Without think,
 * reasoning_effort or the like the model answers without thinking. */

/* Parts of an answer, in the order in which they come. */
typedef enum bz_turn_part {
    BZ_TURN_NOTHING,
    BZ_TURN_THINKING,    /* text: more of it */
    BZ_TURN_ANSWER,      /* text: more of it */
    BZ_TURN_CALL_BEGIN,  /* text: the name of the tool */
    BZ_TURN_CALL,        /* text: {"name": ..., "arguments": {...}} */
    BZ_TURN_BROKEN_CALL, /* text: what the model wrote, which is not a call */
    BZ_TURN_END
} bz_turn_part;

struct bz_media; /* bezel_media.h */

typedef struct bz_chat_options {
    size_t size;
    bz_session *session; /* reuses what it has computed of the conversation; NULL: a new one, */
    const bz_session_options *session_options; /* with these options, freed afterwards */
    /* Called for every part as it comes (never NOTHING or END); non-zero cancels. May be NULL. */
    int (*part)(void *user, bz_turn_part part, const char *text, size_t len);
    void *user;
    const bz_host *host; /* callbacks of the jobs: progress, canvases, steps; NULL: none */
    uint64_t seed;       /* for a request without one */
    /* [n_media] the request's images, audio and videos, encoded, in order (bezel_media.h). */
    struct bz_media *const *media;
    size_t n_media;
} bz_chat_options;

/* Answers a request, and waits for it. *answer is JSON, terminated, in the form of OpenAI's
 * chat.completion (without id and created), to be freed with bz_free:
 *
 *   {"object": "chat.completion", "model": "...", "choices": [{"index": 0, "message":
 *    {"role": "assistant", "content": "...", "reasoning_content": "...", "tool_calls": [...]},
 *    "finish_reason": "stop"}], "usage": {"prompt_tokens": ..., "completion_tokens": ..., ...}}
 *
 * finish_reason is "stop", "length" (max_tokens, or the context is full) or "tool_calls". To
 * continue the conversation, append the message to the request's messages. Cancelled: status
 * aborted and no answer.
 *
 * Of a conversation that leaves no room for an answer in the session's context the oldest turns are
 * left out (bz_turn_fit), and the answer has "context_shift": {"left_out": messages}. With
 * "context_shift": false in the request it is context_full instead. */
BZ_API bz_status bz_chat(const bz_model *model, const char *request, size_t len,
                         const bz_chat_options *options, char **answer, bz_error *err);
BZ_API void bz_free(void *memory); /* free() of the library's C runtime; may be NULL */

/* The same step by step. Prefill the turn's prompt with a snapshot where it says, generate with its
 * options, push every token, then -1; take the parts after each push. After END free the job. */
typedef struct bz_turn bz_turn;
BZ_API bz_status bz_turn_new(bz_turn **turn, const bz_model *model, const char *request, size_t len,
                             bz_error *err);
BZ_API void bz_turn_free(bz_turn *turn);
BZ_API const int32_t *bz_turn_prompt(const bz_turn *turn, size_t *n, uint32_t *snapshot_at);
/* Shortens a conversation that leaves no room for an answer in a context of that many positions (a
 * quarter of it, at most 1,024; max_tokens, at most half of it): whole turns, the oldest first. The
 * system prompt stays, and so do turns with a message that has "pinned": true; a tool's call and
 * its results go together. Before the prompt is used, once all media are attached. `shift`: whether
 * to do so for a request without "context_shift": true or false. If it may not be shortened, or
 * not enough, the prompt stays too long, which prefilling refuses. */
BZ_API bz_status bz_turn_fit(bz_turn *turn, uint32_t context, bool shift, bz_error *err);
BZ_API size_t bz_turn_left_out(const bz_turn *turn);                 /* messages of the request */
BZ_API bool bz_turn_leaves_out(const bz_turn *turn, size_t message); /* its index, from 0 */
/* The request's settings for bz_session_generate, valid as long as the turn. Stop strings are not
 * among them: the turn finds them itself, in the answer but not in thinking. */
BZ_API const bz_generate_options *bz_turn_options(const bz_turn *turn, bool *has_seed);
BZ_API bz_status bz_turn_push(bz_turn *turn, int32_t token, bz_error *err);
BZ_API bz_turn_part bz_turn_next(bz_turn *turn, const char **text, size_t *len);
/* Why the answer ended. STOP: a stop string was found. END: the model's end token was pushed. Else
 * `generated`: the finish of the tokens, which bz_job_finish or a bz_batch_event reports. */
BZ_API bz_finish bz_turn_finish(const bz_turn *turn, bz_finish generated);

#ifdef __cplusplus
}
#endif
#endif
