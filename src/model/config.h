/* The configuration of a Gemma 4 model: sizes, and a table with one entry per layer. */
#ifndef BZ_MODEL_CONFIG_H
#define BZ_MODEL_CONFIG_H

#include "file/gguf.h"

typedef struct bz_layer_config {
    bool sliding;   /* attends to `window` positions; else to all */
    uint32_t heads; /* query heads */
    uint32_t kv_heads;
    uint32_t head_dim; /* D */
    uint32_t ffn;      /* width of the dense FFN */
    bool owns_kv;      /* false: reads the cache of an earlier layer */
    uint32_t kv_layer; /* layer whose cache it reads: its own, or the last owner of the same kind */
} bz_layer_config;

/* Default denoising schedule of a diffusion model. */
typedef struct bz_denoising {
    uint32_t steps;      /* maximum passes over a canvas */
    float t_min, t_max;  /* temperature: t_min + (t_max - t_min) * steps left / steps */
    float entropy_bound; /* nats that the tokens accepted in one step may have together */
    uint32_t stability;  /* steps during which the best tokens must not change; 0: not required */
    float confidence;    /* the canvas is done below this mean entropy */
} bz_denoising;

enum { BZ_LONGEST_CANVAS = 512 };

/* What a model of embeddings does otherwise (embedding.h). */
typedef struct bz_embedding_config {
    bool embeds;       /* false: the model writes text, and the rest is unused */
    bool raw_values;   /* values have no norm */
    float query_scale; /* of the queries, after their norm */
    bool bos, eos;     /* tokens around a text */
    uint32_t dense[4]; /* sizes of the dense layers, in and out, as the keys say; 0: they do not */
    uint32_t size;     /* numbers of a vector, as the tensors say; 0 until they are bound */
} bz_embedding_config;

typedef struct bz_config {
    uint32_t canvas; /* tokens of a diffusion model's canvas; 0: autoregressive */
    bz_denoising denoising;
    bz_embedding_config embedding;
    uint32_t layers;    /* L */
    uint32_t width;     /* d */
    uint32_t vocab;     /* V; 0 until the weights are bound if the key is missing */
    uint32_t context;   /* maximum context the model was trained for */
    uint32_t window;    /* of sliding layers, own position included; to either side of it in a model
                           of embeddings */
    uint32_t ple_width; /* P, per-layer embedding; 0: none */
    uint32_t experts, experts_used, expert_ffn; /* 0 without mixture of experts */
    float eps;
    float softcap; /* of the logits; 0: none */
    double rope_base, rope_base_sliding;
    double rope_rotated;    /* rotated fraction of a full layer's head, if rope_freqs is missing */
    bz_layer_config *layer; /* [layers], owned */
} bz_config;

bool bz_config_knows(bz_str architecture); /* gemma4, diffusion-gemma, gemma-embedding ... */

/* Reads the keys of a gemma4 file of either flavor, or of a diffusion-gemma or EmbeddingGemma file.
 * Every error message names the key. */
bz_status bz_config_read(bz_config *config, const bz_gguf *gguf, bz_error *err);
void bz_config_free(bz_config *config);

#endif
