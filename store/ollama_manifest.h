/* Parses the JSON files of Ollama's store: text in, structs out.
 *
 * The files are untrusted: a digest is checked before it becomes a file name, and texts for
 * messages are printable ASCII only. An error is bad_file with half a sentence, such as "layer 2
 * has no size". */
#ifndef BZ_STORE_OLLAMA_MANIFEST_H
#define BZ_STORE_OLLAMA_MANIFEST_H

#include "base/error.h"

/* ---- manifest: the files a model consists of ------------------------------------ */

typedef enum bz_layer_kind {
    BZ_LAYER_MODEL,     /* the GGUF to run */
    BZ_LAYER_PROJECTOR, /* mmproj GGUF */
    BZ_LAYER_DRAFT,     /* drafter GGUF */
    BZ_LAYER_ADAPTER,   /* LoRA GGUF */
    BZ_LAYER_PARAMS,    /* JSON, see below */
    BZ_LAYER_SYSTEM,    /* text */
    BZ_LAYER_MESSAGES,  /* JSON, see below */
    BZ_LAYER_TENSOR,    /* of a model stored as safetensors */
    BZ_LAYER_OTHER      /* template, license and unknown ones */
} bz_layer_kind;

enum { BZ_DIGEST_TEXT = 72 };

typedef struct bz_store_layer {
    bz_layer_kind kind;
    char digest[BZ_DIGEST_TEXT]; /* "sha256:" and 64 hexadecimal digits */
    uint64_t size;
} bz_store_layer;

typedef struct bz_store_manifest {
    bz_store_layer config;  /* digest "": the manifest names none */
    bz_store_layer *layers; /* [n_layers], owned */
    size_t n_layers;
    uint64_t size; /* bytes of all layers and of the config, as Ollama counts */
} bz_store_manifest;

bz_status bz_store_manifest_parse(bz_store_manifest *m, const char *json, size_t len,
                                  bz_error *err);
void bz_store_manifest_free(bz_store_manifest *m);

/* ---- config: what kind of model it is --------------------------------------------- */

/* "": not in the file. */
typedef struct bz_store_config {
    char format[32];       /* "gguf", "safetensors" */
    char family[64];       /* "gemma4" */
    char parameters[32];   /* "25.8B" */
    char quantization[32]; /* "Q4_K_M" */
    char renderer[64];     /* "gemma4-small" */
    char parser[64];       /* "gemma4-no-thinking" */
    char remote_host[128]; /* set for a model that runs on a remote server */
} bz_store_config;

bz_status bz_store_config_parse(bz_store_config *c, const char *json, size_t len, bz_error *err);

/* ---- params: default settings -------------------------------------------------------- */

typedef struct bz_store_number {
    bool set;
    double value; /* finite; a whole number where the option is one */
} bz_store_number;

/* Names are Ollama's; other options are ignored. */
typedef struct bz_store_params {
    bz_store_number temperature, top_p, min_p, typical_p;
    bz_store_number repeat_penalty, presence_penalty, frequency_penalty;
    bz_store_number top_k, repeat_last_n, seed, num_ctx, num_predict, num_keep; /* whole */
    char **stop; /* [n_stop], owned */
    size_t n_stop;
} bz_store_params;

bz_status bz_store_params_parse(bz_store_params *p, const char *json, size_t len, bz_error *err);
void bz_store_params_free(bz_store_params *p);

/* ---- messages: the beginning of every conversation ------------------------------------- */

typedef struct bz_store_messages {
    char **json; /* [n] owned: {"role": ..., "content": ...}, roles system, user and assistant */
    size_t n;
} bz_store_messages;

bz_status bz_store_messages_parse(bz_store_messages *m, const char *json, size_t len,
                                  bz_error *err);
void bz_store_messages_free(bz_store_messages *m);

#endif
