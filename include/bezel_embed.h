/* bezel_embed.h: a vector for each text, with EmbeddingGemma or EmbeddingGemma 2.
 *
 *     bz_model_open_file(&model, "embeddinggemma-300m-q8_0.gguf", NULL, NULL, &err);
 *     bz_embedder_new(&embedder, model, NULL, &err);
 *     bz_embed_input texts[2] = {{.text = "a cat", .len = 5}, {.text = "a dog", .len = 5}};
 *     bz_embed_texts(embedder, texts, 2, NULL, &job, &err);
 *     bz_job_run(job, NULL, &err);
 *     const float *v = bz_job_vectors(job, &n, &d);      // v[i * d ...] belongs to text i
 *     similarity = the sum of products of two vectors    // from -1 to 1
 *
 * A pass computes as many texts as fit into it. On the CPU a text's vector is the same, bit for
 * bit, whatever texts are computed with it; on a GPU it may differ in the last bits. */
#ifndef BEZEL_EMBED_H
#define BEZEL_EMBED_H

#include "bezel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers of a vector; 0: the model writes text and computes no vectors. */
BZ_API uint32_t bz_model_embedding(const bz_model *model);

typedef struct bz_embedder bz_embedder;

typedef struct bz_embedder_options {
    size_t size;
    unsigned threads;    /* cpu; 0: one per processor; at most four per processor */
    const char *kernels; /* cpu: "amx", "avx512bf16", "avx512", "avxvnni", "avx2", "i8mm",
                            "dotprod", "neon", "plain"; NULL: the best this machine has */
    bool no_fuse;        /* gpu: one kernel per step, for checking */
    bool exact;          /* f32 activations: slower, nothing rounded */
} bz_embedder_options;

/* options may be NULL. Free the embedder before the model. One thread at a time. */
BZ_API bz_status bz_embedder_new(bz_embedder **embedder, const bz_model *model,
                                 const bz_embedder_options *options, bz_error *err);
BZ_API void bz_embedder_free(bz_embedder *embedder);
/* Tokens that a text may have, those around it included. */
BZ_API uint32_t bz_embedder_longest(const bz_embedder *embedder);
/* What is peculiar about the file's vectors, a sentence; NULL: nothing. Valid as long as the
 * embedder. */
BZ_API const char *bz_embedder_notice(const bz_embedder *embedder);

typedef struct bz_embed_input {
    const char *text; /* UTF-8, all of it plain text; not terminated */
    size_t len;
    const int32_t *ids; /* instead: its tokens, with all that the model expects around them */
    size_t n_ids;
} bz_embed_input;

typedef struct bz_embed_options {
    size_t size;
    uint32_t dimensions; /* numbers kept of each vector, from the first on; 0: all. The model is
                            trained for 768, 512, 256 and 128 */
    bool truncate;       /* of a longer text the beginning counts; false: it is refused */
    const char *task;    /* puts the model's words for this use before every text: "query",
                            "document", ... (bz_embed_task); NULL: nothing */
    const char *title;   /* of the documents; NULL: none */
} bz_embed_options;

/* Task number i, from 0; NULL after the last. */
BZ_API const char *bz_embed_task(uint32_t i);

/* The vectors of n texts. What `inputs` points to must stay valid until the job is freed.
 * Progress events count texts. An embedder has one job at a time. */
BZ_API bz_status bz_embed_texts(bz_embedder *embedder, const bz_embed_input *inputs, size_t n,
                                const bz_embed_options *options, bz_job **job, bz_error *err);
/* Of a finished job: [n][dimensions], each of length 1. NULL if it is not finished. Valid until the
 * job is freed. */
BZ_API const float *bz_job_vectors(const bz_job *job, size_t *n, uint32_t *dimensions);
/* [n] how many tokens each text had that were computed. */
BZ_API const uint32_t *bz_job_vector_tokens(const bz_job *job, size_t *n);

#ifdef __cplusplus
}
#endif
#endif
