/* The keys of EmbeddingGemma's files. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/embedding.h"
#include "model/keys.h"

#define LLAMA_CPP "gemma-embedding"
#define OLLAMA    "gemma3"
#define SECOND    "gemma-embedding2"

bool bz_embedding_knows(bz_str architecture)
{
    return bz_str_is(architecture, LLAMA_CPP) || bz_str_is(architecture, OLLAMA) ||
           bz_str_is(architecture, SECOND);
}

/* A Gemma 3 file is a chat model unless it has the dense layers, or says that it pools and sees
 * both ways. */
static bool is_ollamas(const bz_gguf *g)
{
    bool causal = true;
    return bz_gguf_find_tensor(g, "dense.0.weight") ||
           (bz_gguf_get_bool(bz_gguf_find(g, OLLAMA ".attention.causal"), 0, &causal) && !causal &&
            bz_gguf_find(g, OLLAMA ".pooling_type"));
}

bool bz_embedding_is(const bz_gguf *g)
{
    bz_str arch;
    return bz_gguf_get_str(bz_gguf_find(g, "general.architecture"), &arch) &&
           (bz_str_is(arch, OLLAMA) ? is_ollamas(g) : bz_embedding_knows(arch));
}

/* Whether the name is EmbeddingGemma's, however it is spelled. */
static bool is_named_embedding_gemma(const bz_gguf *g)
{
    static const char want[] = "embeddinggemma";
    bz_str name;
    size_t at = 0;
    if (!bz_gguf_get_str(bz_gguf_find(g, "general.name"), &name)) {
        return false;
    }
    for (size_t i = 0; i < name.len && want[at]; i++) {
        const int c = tolower((unsigned char)name.data[i]);
        at = c == want[at] ? at + 1 : isalnum(c) ? (size_t)(c == 'e') : at;
    }
    return want[at] == 0;
}

/* Positions that a token of a sliding layer sees on either side, itself included. The first model's
 * key has the width of the window, of which half is on either side; the second's has the radius. */
static uint32_t window(bz_keys *r, bool second)
{
    enum { HALVED = 257, WHOLE = 512 }; /* what a converter of September 2025 wrote, and meant */
    uint32_t w = bz_key_number(r, BZ_KEY("attention.sliding_window"), 1, 1u << 24, NULL);
    if (!second && w == HALVED && is_named_embedding_gemma(r->g)) {
        w = WHOLE;
    }
    return (second ? w : w / 2) + 1;
}

static void read_pattern(bz_keys *r, bz_config *c, bool second)
{
    enum { EVERY = 6 }; /* Gemma 3: every sixth layer is full */
    const char *key = BZ_KEY("attention.sliding_window_pattern");
    const bz_gguf_kv *kv = bz_key_find(r, key, second);
    const uint32_t every_sixth = EVERY;
    const bool listed = kv && kv->is_array;
    const uint32_t period =
        listed || r->failed ? 1 : bz_key_number(r, key, 1, BZ_MOST_LAYERS, &every_sixth);
    if (listed && kv->count != c->layers) {
        bz_key_refuse(r, key, "must have one element per layer");
    }
    for (uint32_t i = 0; i < c->layers && !r->failed; i++) {
        c->layer[i].sliding = i % period != period - 1;
        if (listed && !bz_gguf_get_bool(kv, i, &c->layer[i].sliding)) {
            bz_key_refuse(r, key, "does not hold true and false");
        }
    }
}

static void read_layers(bz_keys *r, bz_config *c, bool second)
{
    const uint32_t full =
        bz_key_head_dim(r, BZ_KEY("attention.key_length"), BZ_KEY("attention.value_length"),
                        BZ_KEY("rope.dimension_count"));
    const uint32_t sliding = second ? bz_key_head_dim(r, BZ_KEY("attention.key_length_swa"),
                                                      BZ_KEY("attention.value_length_swa"),
                                                      BZ_KEY("rope.dimension_count_swa"))
                                    : full;
    read_pattern(r, c, second);
    for (uint32_t i = 0; i < c->layers && !r->failed; i++) {
        bz_layer_config *l = &c->layer[i];
        l->head_dim = l->sliding ? sliding : full;
        l->heads =
            bz_key_per_layer(r, BZ_KEY("attention.head_count"), c->layers, i, 1, BZ_MOST_HEADS);
        l->kv_heads =
            bz_key_per_layer(r, BZ_KEY("attention.head_count_kv"), c->layers, i, 1, BZ_MOST_HEADS);
        l->ffn = bz_key_per_layer(r, BZ_KEY("feed_forward_length"), c->layers, i, 1, BZ_MOST_WIDTH);
        l->owns_kv = true;
        l->kv_layer = i;
        if (!r->failed && l->heads % l->kv_heads) {
            bz_key_refuse(r, BZ_KEY("attention.head_count_kv"),
                          "does not divide the number of query heads");
        }
    }
    c->embedding.query_scale = second || !full ? 1.0f : (float)(1.0 / sqrt(full));
}

/* Refuses other kinds of attention and of pooling, which no file of these models has. */
static void check_kind(bz_keys *r)
{
    enum { MEAN = 1 };
    const uint32_t mean = MEAN;
    if (bz_key_flag(r, BZ_KEY("attention.causal"), false)) {
        bz_key_refuse(r, BZ_KEY("attention.causal"),
                      "is true; in a model of embeddings every token sees the others");
    }
    if (bz_key_number(r, BZ_KEY("pooling_type"), 0, UINT32_MAX, &mean) != MEAN && !r->failed) {
        bz_key_refuse(r, BZ_KEY("pooling_type"), "is not 1, the mean of all tokens");
    }
}

bz_status bz_embedding_config_read(bz_config *c, const bz_gguf *gguf, bz_error *err)
{
    *c = (bz_config){.embedding = {.embeds = true}};
    bz_str arch = {"", 0};
    bz_gguf_get_str(bz_gguf_find(gguf, "general.architecture"), &arch);
    const bool second = bz_str_is(arch, SECOND);
    bz_keys r = {.g = gguf,
                 .err = err,
                 .arch = second                       ? SECOND
                         : bz_str_is(arch, LLAMA_CPP) ? LLAMA_CPP
                                                      : OLLAMA,
                 .family = second ? "EmbeddingGemma 2" : "EmbeddingGemma"};
    const uint32_t zero = 0;
    const double base = 1e4;
    c->layers = bz_key_number(&r, BZ_KEY("block_count"), 1, BZ_MOST_LAYERS, NULL);
    c->width = bz_key_number(&r, BZ_KEY("embedding_length"), 1, BZ_MOST_WIDTH, NULL);
    c->context = bz_key_number(&r, BZ_KEY("context_length"), 1, 1u << 30, NULL);
    c->vocab = bz_key_number(&r, BZ_KEY("vocab_size"), 1, 1u << 24, &zero);
    c->window = window(&r, second);
    c->eps = (float)bz_key_real(&r, BZ_KEY("attention.layer_norm_rms_epsilon"), 0, 1, NULL);
    c->rope_base = bz_key_real(&r, BZ_KEY("rope.freq_base"), 1, 1e12, NULL);
    const double local = bz_key_real(&r, BZ_KEY("rope.local.freq_base"), 1, 1e12, &base);
    c->rope_base_sliding = bz_key_real(&r, BZ_KEY("rope.freq_base_swa"), 1, 1e12, &local);
    c->rope_rotated = 1;
    c->ple_width =
        second ? bz_key_number(&r, BZ_KEY("embedding_length_per_layer_input"), 1, 1u << 14, NULL)
               : 0;
    static const char *const dense[4] = {BZ_KEY("dense_2_feat_in"), BZ_KEY("dense_2_feat_out"),
                                         BZ_KEY("dense_3_feat_in"), BZ_KEY("dense_3_feat_out")};
    for (size_t i = 0; i < 4; i++) {
        c->embedding.dense[i] = bz_key_number(&r, dense[i], 0, BZ_MOST_WIDTH, &zero);
    }
    c->embedding.raw_values = !second;
    c->embedding.bos = bz_key_flag(&r, "tokenizer.ggml.add_bos_token", true);
    c->embedding.eos = bz_key_flag(&r, "tokenizer.ggml.add_eos_token", !second);
    check_kind(&r);
    if (!r.failed) {
        c->layer = calloc(c->layers, sizeof *c->layer);
        if (!c->layer) {
            return bz_fail(err, BZ_OUT_OF_MEMORY,
                           "There is not enough memory for the table of %u layers.", c->layers);
        }
        read_layers(&r, c, second);
    }
    if (r.failed) {
        bz_config_free(c);
        return err ? err->code : BZ_BAD_FILE;
    }
    return BZ_OK;
}
