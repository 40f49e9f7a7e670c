/* Reads the keys of a Gemma 4 file and checks their values. */
#include "model/config.h"

#include <stdlib.h>
#include <string.h>

#include "model/embedding.h"
#include "model/keys.h"

enum { MAX_EXPERTS = 4096, MAX_DENOISING = 4096 };

#define ARCH "gemma4"

static bool is_diffusion(bz_str architecture)
{
    return bz_str_is(architecture, "diffusion-gemma") || bz_str_is(architecture, "diffusion_gemma");
}

bool bz_config_knows(bz_str architecture)
{
    return bz_str_is(architecture, ARCH) || is_diffusion(architecture) ||
           bz_embedding_knows(architecture);
}

static void check_architecture(bz_keys *r)
{
    const bz_gguf_kv *kv = bz_key_find(r, "general.architecture", true);
    bz_str arch;
    if (!kv) {
        return;
    }
    if (!bz_gguf_get_str(kv, &arch)) {
        bz_key_refuse(r, "general.architecture", "is not a string");
    } else if (is_diffusion(arch)) {
        r->arch = bz_str_is(arch, "diffusion-gemma") ? "diffusion-gemma" : "diffusion_gemma";
    } else if (!bz_str_is(arch, ARCH)) {
        char buf[200];
        bz_fail(r->err, BZ_UNSUPPORTED_MODEL,
                "This file's architecture is '%s'; Bezel runs Gemma 4 (architectures 'gemma4' and "
                "'diffusion-gemma') and EmbeddingGemma ('gemma-embedding').",
                bz_str_show(arch, buf));
        r->failed = true;
    }
}

static void read_layers(bz_keys *r, bz_config *c)
{
    const char *pattern_key = BZ_KEY("attention.sliding_window_pattern");
    const bz_gguf_kv *pattern = bz_key_find(r, pattern_key, true);
    if (pattern && (!pattern->is_array || pattern->count != c->layers)) {
        bz_key_refuse(r, pattern_key, "must be an array with one element per layer");
    }
    uint32_t zero = 0;
    uint32_t shared = bz_key_number(r, BZ_KEY("attention.shared_kv_layers"), 0, c->layers, &zero);
    uint32_t full_dim =
        bz_key_head_dim(r, BZ_KEY("attention.key_length"), BZ_KEY("attention.value_length"),
                        BZ_KEY("rope.dimension_count"));
    uint32_t sliding_dim =
        bz_key_head_dim(r, BZ_KEY("attention.key_length_swa"), BZ_KEY("attention.value_length_swa"),
                        BZ_KEY("rope.dimension_count_swa"));
    const char *full_kv_key = BZ_KEY("attention.global_head_count_kv"); /* an older spelling */
    for (uint32_t i = 0; !r->failed && i < c->layers; i++) {
        bz_layer_config *l = &c->layer[i];
        if (!bz_gguf_get_bool(pattern, i, &l->sliding)) {
            bz_key_refuse(r, pattern_key, "does not hold true and false");
            return;
        }
        l->head_dim = l->sliding ? sliding_dim : full_dim;
        l->heads =
            bz_key_per_layer(r, BZ_KEY("attention.head_count"), c->layers, i, 1, BZ_MOST_HEADS);
        l->kv_heads = !l->sliding && bz_key_find(r, full_kv_key, false)
                          ? bz_key_number(r, full_kv_key, 1, BZ_MOST_HEADS, NULL)
                          : bz_key_per_layer(r, BZ_KEY("attention.head_count_kv"), c->layers, i, 1,
                                             BZ_MOST_HEADS);
        l->ffn = bz_key_per_layer(r, BZ_KEY("feed_forward_length"), c->layers, i, 1, BZ_MOST_WIDTH);
        if (!r->failed && l->heads % l->kv_heads) {
            bz_key_refuse(r, BZ_KEY("attention.head_count_kv"),
                          "does not divide the number of query heads");
        }
        l->owns_kv = i < c->layers - shared;
        l->kv_layer = i;
        if (!l->owns_kv) {
            /* the last owner of the same kind */
            uint32_t j = c->layers - shared;
            while (j > 0 && c->layer[j - 1].sliding != l->sliding) {
                j--;
            }
            if (j == 0) {
                bz_key_refuse(r, BZ_KEY("attention.shared_kv_layers"),
                              "leaves a layer without an earlier layer of its kind to share with");
                return;
            }
            l->kv_layer = j - 1;
            if (c->layer[j - 1].kv_heads != l->kv_heads) {
                bz_key_refuse(r, BZ_KEY("attention.head_count_kv"),
                              "differs between a layer and the one whose cache it shares");
            }
        }
    }
}

/* The diffusion keys have no architecture prefix. */
static void read_denoising(bz_keys *r, bz_config *c)
{
    const uint32_t steps = 48, stability = 1;
    const double t_min = 0.4, t_max = 0.8, bound = 0.1, confidence = 0.005;
    bz_denoising *d = &c->denoising;
    c->canvas = bz_key_number(r, "diffusion.canvas_length", 2, BZ_LONGEST_CANVAS, NULL);
    d->steps = bz_key_number(r, "diffusion.eb_max_steps", 1, MAX_DENOISING, &steps);
    d->t_min = (float)bz_key_real(r, "diffusion.eb_t_min", 1e-3, 1e3, &t_min);
    d->t_max = (float)bz_key_real(r, "diffusion.eb_t_max", 1e-3, 1e3, &t_max);
    d->entropy_bound = (float)bz_key_real(r, "diffusion.eb_entropy_bound", 0, 1e6, &bound);
    d->stability =
        bz_key_number(r, "diffusion.eb_stability_threshold", 0, MAX_DENOISING, &stability);
    d->confidence = (float)bz_key_real(r, "diffusion.eb_confidence_threshold", 0, 1e6, &confidence);
    const uint32_t none = 0;
    if (bz_key_number(r, BZ_KEY("attention.shared_kv_layers"), 0, BZ_MOST_LAYERS, &none)) {
        bz_key_refuse(r, BZ_KEY("attention.shared_kv_layers"),
                      "is not 0; every layer of a diffusion model has its own keys and values");
    }
    if (c->ple_width) {
        bz_key_refuse(r, BZ_KEY("embedding_length_per_layer_input"),
                      "is not 0; diffusion models have no per-layer embeddings");
    }
}

bz_status bz_config_read(bz_config *c, const bz_gguf *gguf, bz_error *err)
{
    *c = (bz_config){0};
    if (bz_embedding_is(gguf)) {
        return bz_embedding_config_read(c, gguf, err);
    }
    bz_keys r = {.g = gguf, .err = err, .arch = ARCH, .family = "Gemma 4"};
    const uint32_t zero = 0;
    const double off = 0, sliding_base = 1e4, quarter = 0.25;
    check_architecture(&r);
    c->layers = bz_key_number(&r, BZ_KEY("block_count"), 1, BZ_MOST_LAYERS, NULL);
    c->width = bz_key_number(&r, BZ_KEY("embedding_length"), 1, BZ_MOST_WIDTH, NULL);
    c->context = bz_key_number(&r, BZ_KEY("context_length"), 1, 1u << 30, NULL);
    c->vocab = bz_key_number(&r, BZ_KEY("vocab_size"), 1, 1u << 24, &zero);
    c->window = bz_key_number(&r, BZ_KEY("attention.sliding_window"), 1, 1u << 24, NULL);
    const bool diffusion = strcmp(r.arch, ARCH) != 0;
    c->ple_width = bz_key_number(&r, BZ_KEY("embedding_length_per_layer_input"), 0, 1u << 14,
                                 diffusion ? &zero : NULL);
    if (diffusion) {
        read_denoising(&r, c);
    }
    c->experts = bz_key_number(&r, BZ_KEY("expert_count"), 0, MAX_EXPERTS, &zero);
    if (c->experts) {
        c->experts_used = bz_key_number(&r, BZ_KEY("expert_used_count"), 1, c->experts, NULL);
        c->expert_ffn = bz_key_number(&r, BZ_KEY("expert_feed_forward_length"), 0, BZ_MOST_WIDTH,
                                      &zero); /* 0: from the tensors */
    }
    c->eps = (float)bz_key_real(&r, BZ_KEY("attention.layer_norm_rms_epsilon"), 0, 1, NULL);
    c->softcap = (float)bz_key_real(&r, BZ_KEY("final_logit_softcapping"), 0, 1e6, &off);
    c->rope_base = bz_key_real(&r, BZ_KEY("rope.freq_base"), 1, 1e12, NULL);
    double local = bz_key_real(&r, BZ_KEY("rope.local.freq_base"), 1, 1e12,
                               &sliding_base); /* an older spelling */
    c->rope_base_sliding = bz_key_real(&r, BZ_KEY("rope.freq_base_swa"), 1, 1e12, &local);
    c->rope_rotated = bz_key_real(&r, BZ_KEY("rope.partial_rotary_factor"), 0, 1, &quarter);
    if (!r.failed) {
        c->layer = calloc(c->layers, sizeof *c->layer);
        if (!c->layer) {
            return bz_fail(err, BZ_OUT_OF_MEMORY,
                           "There is not enough memory for the table of %u layers.", c->layers);
        }
        read_layers(&r, c);
    }
    if (r.failed) {
        bz_config_free(c);
        return err ? err->code : BZ_BAD_FILE;
    }
    return BZ_OK;
}

void bz_config_free(bz_config *c)
{
    free(c->layer);
    *c = (bz_config){0};
}
