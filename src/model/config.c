/* Reads the keys of a Gemma 4 file and checks their values. */
#include "model/config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Far above any real model; they keep products of sizes from overflowing. */
enum {
    MAX_LAYERS = 1024,
    MAX_WIDTH = 1 << 18,
    MAX_HEADS = 1024,
    MAX_HEAD_DIM = 1024,
    MAX_EXPERTS = 4096
};
enum { MAX_DENOISING = 4096 };

#define ARCH      "gemma4"
#define NAME(key) (ARCH "." key)

typedef struct reader {
    const bz_gguf *g;
    bz_error *err;
    bool failed;      /* after the first error; later reads do nothing */
    const char *arch; /* prefix of the file's keys */
} reader;

enum { MAX_KEY = 96 };

/* The key with this file's architecture as its prefix. */
static const char *full_key(const reader *r, const char *key, char out[MAX_KEY])
{
    const size_t n = strlen(ARCH ".");
    if (strncmp(key, ARCH ".", n) != 0) {
        return key;
    }
    snprintf(out, MAX_KEY, "%s.%s", r->arch, key + n);
    return out;
}

static const bz_gguf_kv *find(reader *r, const char *key, bool required)
{
    char buf[MAX_KEY];
    key = full_key(r, key, buf);
    const bz_gguf_kv *kv = r->failed ? NULL : bz_gguf_find(r->g, key);
    if (!kv && required && !r->failed) {
        bz_fail(r->err, BZ_BAD_FILE,
                "The key %s is missing, so this is not a complete Gemma 4 file.", key);
        r->failed = true;
    }
    return kv;
}

static void refuse(reader *r, const char *key, const char *what)
{
    char buf[MAX_KEY];
    if (!r->failed) {
        bz_fail(r->err, BZ_BAD_FILE, "The key %s %s.", full_key(r, key, buf), what);
        r->failed = true;
    }
}

/* An unsigned number between low and high; `fallback` when the key is absent. */
static uint32_t number(reader *r, const char *key, uint32_t low, uint32_t high,
                       const uint32_t *fallback)
{
    const bz_gguf_kv *kv = find(r, key, fallback == NULL);
    uint64_t v = 0;
    if (!kv) {
        return fallback ? *fallback : 0;
    }
    if (kv->is_array || !bz_gguf_get_u64(kv, 0, &v)) {
        refuse(r, key, "is not a whole number");
    } else if (v < low || v > high) {
        char what[100];
        snprintf(what, sizeof what, "is %llu; it must be between %u and %u", (unsigned long long)v,
                 low, high);
        refuse(r, key, what);
        v = low;
    }
    return (uint32_t)v;
}

static double real(reader *r, const char *key, double low, double high, const double *fallback)
{
    const bz_gguf_kv *kv = find(r, key, fallback == NULL);
    double v = 0;
    if (!kv) {
        return fallback ? *fallback : low;
    }
    if (kv->is_array || !bz_gguf_get_f64(kv, 0, &v)) {
        refuse(r, key, "is not a number");
        return low;
    }
    if (!(v >= low && v <= high)) { /* also refuses NaN */
        char what[100];
        snprintf(what, sizeof what, "is %g; it must be between %g and %g", v, low, high);
        refuse(r, key, what);
        return low;
    }
    return v;
}

/* A number per layer: a scalar applies to every layer, an array has one element per layer. */
static uint32_t per_layer(reader *r, const char *key, uint32_t layers, uint32_t i, uint32_t low,
                          uint32_t high)
{
    const bz_gguf_kv *kv = find(r, key, true);
    if (!kv) {
        return low;
    }
    char what[120];
    uint64_t v = 0;
    if (kv->is_array && kv->count != layers) {
        snprintf(what, sizeof what, "has %llu elements for %u layers",
                 (unsigned long long)kv->count, layers);
        refuse(r, key, what);
        return low;
    }
    if (!bz_gguf_get_u64(kv, kv->is_array ? i : 0, &v)) {
        refuse(r, key, "does not hold whole numbers");
        return low;
    }
    if (v < low || v > high) {
        snprintf(what, sizeof what, "is %llu for layer %u; it must be between %u and %u",
                 (unsigned long long)v, i, low, high);
        refuse(r, key, what);
        return low;
    }
    return (uint32_t)v;
}

static bool is_diffusion(bz_str architecture)
{
    return bz_str_is(architecture, "diffusion-gemma") || bz_str_is(architecture, "diffusion_gemma");
}

bool bz_config_knows(bz_str architecture)
{
    return bz_str_is(architecture, ARCH) || is_diffusion(architecture);
}

static void check_architecture(reader *r)
{
    const bz_gguf_kv *kv = find(r, "general.architecture", true);
    bz_str arch;
    if (!kv) {
        return;
    }
    if (!bz_gguf_get_str(kv, &arch)) {
        refuse(r, "general.architecture", "is not a string");
    } else if (is_diffusion(arch)) {
        r->arch = bz_str_is(arch, "diffusion-gemma") ? "diffusion-gemma" : "diffusion_gemma";
    } else if (!bz_str_is(arch, ARCH)) {
        char buf[200];
        bz_fail(r->err, BZ_UNSUPPORTED_MODEL,
                "This file's architecture is '%s'; Bezel runs Gemma 4 (architectures 'gemma4' and "
                "'diffusion-gemma').",
                bz_str_show(arch, buf));
        r->failed = true;
    }
}

/* Keys and values of one kind of layer have the same head size, and rope covers all of it. */
static uint32_t head_dim(reader *r, const char *key_length, const char *value_length,
                         const char *rope_length)
{
    uint32_t d = number(r, key_length, 2, MAX_HEAD_DIM, NULL);
    uint32_t v = number(r, value_length, 2, MAX_HEAD_DIM, &d);
    uint32_t rope = number(r, rope_length, 2, MAX_HEAD_DIM, &d);
    if (v != d) {
        refuse(r, value_length, "differs from the key length; Gemma 4 has them equal");
    }
    if (rope != d) {
        refuse(r, rope_length, "differs from the head size; Gemma 4 rotates over the whole head");
    }
    if (d % 2) {
        refuse(r, key_length, "is odd; rotary position needs pairs");
    }
    return d;
}

static void read_layers(reader *r, bz_config *c)
{
    const char *pattern_key = NAME("attention.sliding_window_pattern");
    const bz_gguf_kv *pattern = find(r, pattern_key, true);
    if (pattern && (!pattern->is_array || pattern->count != c->layers)) {
        refuse(r, pattern_key, "must be an array with one element per layer");
    }
    uint32_t zero = 0;
    uint32_t shared = number(r, NAME("attention.shared_kv_layers"), 0, c->layers, &zero);
    uint32_t full_dim = head_dim(r, NAME("attention.key_length"), NAME("attention.value_length"),
                                 NAME("rope.dimension_count"));
    uint32_t sliding_dim =
        head_dim(r, NAME("attention.key_length_swa"), NAME("attention.value_length_swa"),
                 NAME("rope.dimension_count_swa"));
    const char *full_kv_key = NAME("attention.global_head_count_kv"); /* an older spelling */
    for (uint32_t i = 0; !r->failed && i < c->layers; i++) {
        bz_layer_config *l = &c->layer[i];
        if (!bz_gguf_get_bool(pattern, i, &l->sliding)) {
            refuse(r, pattern_key, "does not hold true and false");
            return;
        }
        l->head_dim = l->sliding ? sliding_dim : full_dim;
        l->heads = per_layer(r, NAME("attention.head_count"), c->layers, i, 1, MAX_HEADS);
        l->kv_heads =
            !l->sliding && find(r, full_kv_key, false)
                ? number(r, full_kv_key, 1, MAX_HEADS, NULL)
                : per_layer(r, NAME("attention.head_count_kv"), c->layers, i, 1, MAX_HEADS);
        l->ffn = per_layer(r, NAME("feed_forward_length"), c->layers, i, 1, MAX_WIDTH);
        if (!r->failed && l->heads % l->kv_heads) {
            refuse(r, NAME("attention.head_count_kv"), "does not divide the number of query heads");
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
                refuse(r, NAME("attention.shared_kv_layers"),
                       "leaves a layer without an earlier layer of its kind to share with");
                return;
            }
            l->kv_layer = j - 1;
            if (c->layer[j - 1].kv_heads != l->kv_heads) {
                refuse(r, NAME("attention.head_count_kv"),
                       "differs between a layer and the one whose cache it shares");
            }
        }
    }
}

/* The diffusion keys have no architecture prefix. */
static void read_denoising(reader *r, bz_config *c)
{
    const uint32_t steps = 48, stability = 1;
    const double t_min = 0.4, t_max = 0.8, bound = 0.1, confidence = 0.005;
    bz_denoising *d = &c->denoising;
    c->canvas = number(r, "diffusion.canvas_length", 2, BZ_LONGEST_CANVAS, NULL);
    d->steps = number(r, "diffusion.eb_max_steps", 1, MAX_DENOISING, &steps);
    d->t_min = (float)real(r, "diffusion.eb_t_min", 1e-3, 1e3, &t_min);
    d->t_max = (float)real(r, "diffusion.eb_t_max", 1e-3, 1e3, &t_max);
    d->entropy_bound = (float)real(r, "diffusion.eb_entropy_bound", 0, 1e6, &bound);
    d->stability = number(r, "diffusion.eb_stability_threshold", 0, MAX_DENOISING, &stability);
    d->confidence = (float)real(r, "diffusion.eb_confidence_threshold", 0, 1e6, &confidence);
    const uint32_t none = 0;
    if (number(r, NAME("attention.shared_kv_layers"), 0, MAX_LAYERS, &none)) {
        refuse(r, NAME("attention.shared_kv_layers"),
               "is not 0; every layer of a diffusion model has its own keys and values");
    }
    if (c->ple_width) {
        refuse(r, NAME("embedding_length_per_layer_input"),
               "is not 0; diffusion models have no per-layer embeddings");
    }
}

bz_status bz_config_read(bz_config *c, const bz_gguf *gguf, bz_error *err)
{
    *c = (bz_config){0};
    reader r = {gguf, err, false, ARCH};
    const uint32_t zero = 0;
    const double off = 0, sliding_base = 1e4, quarter = 0.25;
    check_architecture(&r);
    c->layers = number(&r, NAME("block_count"), 1, MAX_LAYERS, NULL);
    c->width = number(&r, NAME("embedding_length"), 1, MAX_WIDTH, NULL);
    c->context = number(&r, NAME("context_length"), 1, 1u << 30, NULL);
    c->vocab = number(&r, NAME("vocab_size"), 1, 1u << 24, &zero);
    c->window = number(&r, NAME("attention.sliding_window"), 1, 1u << 24, NULL);
    const bool diffusion = strcmp(r.arch, ARCH) != 0;
    c->ple_width =
        number(&r, NAME("embedding_length_per_layer_input"), 0, 1u << 14, diffusion ? &zero : NULL);
    if (diffusion) {
        read_denoising(&r, c);
    }
    c->experts = number(&r, NAME("expert_count"), 0, MAX_EXPERTS, &zero);
    if (c->experts) {
        c->experts_used = number(&r, NAME("expert_used_count"), 1, c->experts, NULL);
        c->expert_ffn = number(&r, NAME("expert_feed_forward_length"), 0, MAX_WIDTH,
                               &zero); /* 0: from the tensors */
    }
    c->eps = (float)real(&r, NAME("attention.layer_norm_rms_epsilon"), 0, 1, NULL);
    c->softcap = (float)real(&r, NAME("final_logit_softcapping"), 0, 1e6, &off);
    c->rope_base = real(&r, NAME("rope.freq_base"), 1, 1e12, NULL);
    double local =
        real(&r, NAME("rope.local.freq_base"), 1, 1e12, &sliding_base); /* an older spelling */
    c->rope_base_sliding = real(&r, NAME("rope.freq_base_swa"), 1, 1e12, &local);
    c->rope_rotated = real(&r, NAME("rope.partial_rotary_factor"), 0, 1, &quarter);
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
