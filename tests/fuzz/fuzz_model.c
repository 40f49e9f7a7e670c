/* libFuzzer target: from files to numbers. The input describes a text model and optionally an
 * mmproj file or a drafter: sizes first, then edits of their keys and tensors. The files are built
 * in memory and opened; what opens must compute one pass of two rows and, with towers, one pass of
 * each, or with a drafter a few drafts.
 *
 * Bytes of the input: 12 for the sizes (struct shape), then 4 per edit: what, which key or tensor,
 * and two for the value. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bezel_diffusion.h"
#include "bezel_embed.h"
#include "cpu/cpu.h"
#include "session/model.h"
#include "support/gguf_build.h"
#include "support/naive_bpe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* ---- files before they are written ------------------------------------------------------- */

enum {
    NAME = 56,
    FULL_NAME = 96,
    MAX_KEYS = 48,
    MAX_TENSORS = 256,
    MAX_LIST = 8,
    MAX_TENSOR_BYTES = 1 << 18
};

typedef struct key {
    char name[NAME];
    bz_gguf_type type; /* UINT32, FLOAT32 or STRING; a BOOL is a list */
    uint32_t n;        /* elements of a list; 0: one value */
    uint64_t values[MAX_LIST];
    double real;
    const char *text;
    bool dropped;
} key;

typedef enum fill { FILL_SMALL, FILL_ZERO, FILL_ONES, FILL_RANDOM, FILLS } fill;

typedef struct tensor {
    char name[FULL_NAME];
    uint32_t type;
    uint64_t ne[3];
    fill fill;
    bool dropped;
} tensor;

typedef struct file {
    key keys[MAX_KEYS];
    tensor tensors[MAX_TENSORS];
    size_t n_keys, n_tensors;
} file;

static key *add_key(file *f, const char *name, bz_gguf_type type)
{
    key *k = &f->keys[f->n_keys++];
    must(f->n_keys <= MAX_KEYS);
    *k = (key){.type = type};
    snprintf(k->name, NAME, "%s", name);
    return k;
}

static void number(file *f, const char *name, uint64_t value)
{
    add_key(f, name, BZ_GGUF_U32)->values[0] = value;
}

static void real(file *f, const char *name, double value)
{
    add_key(f, name, BZ_GGUF_F32)->real = value;
}

static void text(file *f, const char *name, const char *value)
{
    add_key(f, name, BZ_GGUF_STRING)->text = value;
}

/* layer < 0: no layer in the name. */
static void add(file *f, const char *prefix, int layer, const char *name, uint32_t type,
                uint64_t ne0, uint64_t ne1, uint64_t ne2)
{
    tensor *t = &f->tensors[f->n_tensors++];
    must(f->n_tensors <= MAX_TENSORS);
    *t = (tensor){.type = type, .ne = {ne0, ne1, ne2}};
    if (layer >= 0) {
        snprintf(t->name, FULL_NAME, "%sblk.%d.%s", prefix, layer, name);
    } else {
        snprintf(t->name, FULL_NAME, "%s%s", prefix, name);
    }
}

/* ---- a model of given sizes ------------------------------------------------------------------ */

/* EMBEDDINGS: a text model with per-layer embeddings. ENCODER: EmbeddingGemma; with option 128 as
 * Ollama writes it. ENCODER_2: EmbeddingGemma 2. */
enum { DENSE, EMBEDDINGS, EXPERTS, EXPERTS_APART, DIFFUSION, ENCODER, ENCODER_2, KINDS };
enum { NO_TOWER, VISION, AUDIO, DIRECT, DRAFTER, TOWERS }; /* the second file */

typedef struct shape {
    uint8_t kind, tower, layers, width, heads, kv_heads, head, ffn, shared, matrix, used, options;
} shape;

static const uint32_t matrix_types[] = {BZ_F32, BZ_F16, BZ_Q8_0, BZ_Q4_0, BZ_BF16};

static uint32_t matrix_of(const shape *s)
{
    return matrix_types[s->matrix % (sizeof matrix_types / sizeof *matrix_types)];
}

static void text_layer(file *f, const shape *s, int i, uint64_t d, uint64_t ffn)
{
    const uint32_t m = matrix_of(s);
    const uint64_t D = s->head, q = D * s->heads, kv = D * s->kv_heads, experts = 4;
    add(f, "", i, "attn_norm.weight", BZ_F32, d, 1, 1);
    add(f, "", i, "attn_q.weight", m, d, q, 1);
    add(f, "", i, "attn_q_norm.weight", BZ_F32, D, 1, 1);
    add(f, "", i, "attn_k.weight", m, d, kv, 1);
    add(f, "", i, "attn_k_norm.weight", BZ_F32, D, 1, 1);
    if (s->options & 1 || s->kind >= ENCODER) {
        add(f, "", i, "attn_v.weight", m, d, kv, 1);
    }
    add(f, "", i, "attn_output.weight", q % 32 ? BZ_F16 : m, q, d, 1);
    add(f, "", i, "post_attention_norm.weight", BZ_F32, d, 1, 1);
    add(f, "", i, "ffn_norm.weight", BZ_F32, d, 1, 1);
    add(f, "", i, "ffn_gate.weight", m, d, ffn, 1);
    add(f, "", i, "ffn_up.weight", m, d, ffn, 1);
    add(f, "", i, "ffn_down.weight", ffn % 32 ? BZ_F16 : m, ffn, d, 1);
    add(f, "", i, "post_ffw_norm.weight", BZ_F32, d, 1, 1);
    if (s->options & 2) {
        add(f, "", i, "layer_output_scale.weight", BZ_F32, 1, 1, 1);
    }
    if (s->kind == EMBEDDINGS || s->kind == ENCODER_2) {
        add(f, "", i, "inp_gate.weight", m, d, 8, 1);
        add(f, "", i, "proj.weight", BZ_F16, 8, d, 1);
        add(f, "", i, "post_norm.weight", BZ_F32, d, 1, 1);
    }
    if (s->kind == EXPERTS || s->kind == EXPERTS_APART) {
        add(f, "", i, "ffn_gate_inp.weight", BZ_F32, d, experts, 1);
        add(f, "", i, "ffn_gate_inp.scale", BZ_F32, d, 1, 1);
        add(f, "", i, "pre_ffw_norm_2.weight", BZ_F32, d, 1, 1);
        add(f, "", i, "post_ffw_norm_1.weight", BZ_F32, d, 1, 1);
        add(f, "", i, "post_ffw_norm_2.weight", BZ_F32, d, 1, 1);
        add(f, "", i, "ffn_down_exps.weight", m, 32, d, experts);
        if (s->kind == EXPERTS) {
            add(f, "", i, "ffn_gate_up_exps.weight", m, d, 64, experts);
        } else {
            add(f, "", i, "ffn_gate_exps.weight", m, d, 32, experts);
            add(f, "", i, "ffn_up_exps.weight", m, d, 32, experts);
        }
        if (s->options & 4) {
            add(f, "", i, "ffn_down_exps.scale", BZ_F32, experts, 1, 1);
        }
    }
}

static bool is_ollamas(const shape *s)
{
    return s->kind == ENCODER && s->options & 128;
}

static const char *arch_of(const shape *s)
{
    return s->kind == DIFFUSION   ? "diffusion-gemma"
           : s->kind == ENCODER_2 ? "gemma-embedding2"
           : is_ollamas(s)        ? "gemma3"
           : s->kind == ENCODER   ? "gemma-embedding"
                                  : "gemma4";
}

/* What only models of embeddings have. */
static void describe_encoder(file *f, const shape *s, uint64_t d);

static const char *arch_key(const shape *s, const char *name)
{
    static char out[NAME];
    snprintf(out, sizeof out, "%s.%s", arch_of(s), name);
    return out;
}

static void describe_encoder(file *f, const shape *s, uint64_t d)
{
    const bool own = is_ollamas(s);
    number(f, arch_key(s, "pooling_type"), 1);
    if (own) { /* so that it is not taken for a chat model */
        key *causal = add_key(f, arch_key(s, "attention.causal"), BZ_GGUF_BOOL);
        causal->n = 1;
        causal->values[0] = 0;
    } else if (s->options & 8) {
        number(f, arch_key(s, "dense_2_feat_in"), d);
        number(f, arch_key(s, "dense_2_feat_out"), 48);
    }
    if (s->options & 4) {
        add(f, "", -1, own ? "dense.0.weight" : "dense_2.weight", BZ_F16, d, 48, 1);
        add(f, "", -1, own ? "dense.1.weight" : "dense_3.weight", BZ_F16, 48, 24, 1);
    }
}

static void describe_text(file *f, const shape *s, uint64_t vocab)
{
    const uint64_t d = 32u * s->width, ffn = 16u * s->ffn;
    text(f, "general.architecture", arch_of(s));
    number(f, arch_key(s, "block_count"), s->layers);
    number(f, arch_key(s, "embedding_length"), d);
    number(f, arch_key(s, "context_length"), 64);
    number(f, arch_key(s, "attention.sliding_window"), 4);
    number(f, arch_key(s, "embedding_length_per_layer_input"),
           s->kind == EMBEDDINGS || s->kind == ENCODER_2 ? 8 : 0);
    number(f, arch_key(s, "attention.shared_kv_layers"), s->shared % s->layers);
    number(f, arch_key(s, "attention.key_length"), s->head);
    number(f, arch_key(s, "attention.key_length_swa"), s->head);
    number(f, arch_key(s, "attention.head_count"), s->heads);
    number(f, arch_key(s, "attention.head_count_kv"), s->kv_heads);
    number(f, arch_key(s, "feed_forward_length"), ffn);
    real(f, arch_key(s, "attention.layer_norm_rms_epsilon"), 1e-6);
    real(f, arch_key(s, "rope.freq_base"), 1e6);
    real(f, arch_key(s, "final_logit_softcapping"), s->options & 8 ? 30 : 0);
    key *pattern = add_key(f, arch_key(s, "attention.sliding_window_pattern"), BZ_GGUF_BOOL);
    pattern->n = s->layers;
    for (uint32_t i = 0; i < s->layers; i++) {
        pattern->values[i] = s->options & 16 ? i % 2 : s->options >> 5 & 1;
    }
    if (s->kind == EXPERTS || s->kind == EXPERTS_APART) {
        number(f, arch_key(s, "expert_count"), 4);
        number(f, arch_key(s, "expert_used_count"), s->used);
        number(f, arch_key(s, "expert_feed_forward_length"), 32);
    }
    if (s->kind == DIFFUSION) {
        number(f, "diffusion.canvas_length", 4);
        add(f, "", -1, "self_cond_pre_norm.weight", BZ_F32, d, 1, 1);
        add(f, "", -1, "self_cond_gate.weight", BZ_F16, d, 16, 1);
        add(f, "", -1, "self_cond_up.weight", BZ_F16, d, 16, 1);
        add(f, "", -1, "self_cond_down.weight", BZ_F16, 16, d, 1);
    }
    add(f, "", -1, "token_embd.weight", matrix_of(s), d, vocab, 1);
    add(f, "", -1, "output_norm.weight", BZ_F32, d, 1, 1);
    if (s->kind >= ENCODER) {
        describe_encoder(f, s, d);
    }
    if (s->kind == EMBEDDINGS || s->kind == ENCODER_2) {
        const uint64_t all = 8u * s->layers;
        if (s->kind == EMBEDDINGS) {
            add(f, "", -1, "per_layer_token_embd.weight", BZ_F16, all, vocab, 1);
        }
        add(f, "", -1, "per_layer_model_proj.weight", BZ_F16, d, all, 1);
        add(f, "", -1, "per_layer_proj_norm.weight", BZ_F32, 8, 1, 1);
    }
    for (int i = 0; i < s->layers; i++) {
        text_layer(f, s, i, d, ffn);
    }
}

static void vision_layer(file *f, int i, uint64_t d, uint64_t h, uint64_t head)
{
    static const char *const norms[] = {"ln1", "attn_post_norm", "ln2", "ffn_post_norm"};
    static const char *const heads[] = {"attn_q", "attn_k", "attn_v"};
    char name[NAME];
    for (int n = 0; n < 4; n++) {
        snprintf(name, NAME, "%s.weight", norms[n]);
        add(f, "v.", i, name, BZ_F32, d, 1, 1);
    }
    for (int n = 0; n < 3; n++) {
        snprintf(name, NAME, "%s.weight", heads[n]);
        add(f, "v.", i, name, BZ_F16, d, h, 1);
    }
    add(f, "v.", i, "attn_q_norm.weight", BZ_F32, head, 1, 1);
    add(f, "v.", i, "attn_k_norm.weight", BZ_F32, head, 1, 1);
    add(f, "v.", i, "attn_out.weight", BZ_F16, h, d, 1);
    add(f, "v.", i, "attn_q.input_min", BZ_F32, 1, 1, 1);
    add(f, "v.", i, "attn_q.input_max", BZ_F32, 1, 1, 1);
    add(f, "v.", i, "ffn_gate.weight", BZ_F16, d, 16, 1);
    add(f, "v.", i, "ffn_up.weight", BZ_F16, d, 16, 1);
    add(f, "v.", i, "ffn_down.weight", BZ_F16, 16, d, 1);
}

static void audio_layer(file *f, int i, uint64_t d, uint64_t head)
{
    static const char *const norms[] = {"ffn_norm",       "ffn_post_norm",   "attn_pre_norm",
                                        "attn_post_norm", "conv_norm",       "norm_conv",
                                        "ffn_norm_1",     "ffn_post_norm_1", "ln2"};
    static const struct {
        const char *name;
        int in, out; /* times d */
    } matrices[] = {{"ffn_up", 1, 2},   {"ffn_down", 2, 1},  {"attn_q", 1, 1},
                    {"attn_k", 1, 1},   {"attn_v", 1, 1},    {"attn_k_rel", 1, 1},
                    {"attn_out", 1, 1}, {"conv_pw1", 1, 2},  {"conv_pw2", 1, 1},
                    {"ffn_up_1", 1, 2}, {"ffn_down_1", 2, 1}};
    char name[NAME];
    for (size_t n = 0; n < sizeof norms / sizeof *norms; n++) {
        snprintf(name, NAME, "%s.weight", norms[n]);
        add(f, "a.", i, name, BZ_F32, d, 1, 1);
    }
    for (size_t n = 0; n < sizeof matrices / sizeof *matrices; n++) {
        snprintf(name, NAME, "%s.weight", matrices[n].name);
        add(f, "a.", i, name, BZ_F16, d * (uint64_t)matrices[n].in, d * (uint64_t)matrices[n].out,
            1);
    }
    add(f, "a.", i, "per_dim_scale.weight", BZ_F32, head, 1, 1);
    add(f, "a.", i, "conv_dw.weight", BZ_F32, 5, d, 1);
}

static void describe_towers(file *f, const shape *s)
{
    const uint64_t d = 16, heads = 2, head = 8, width = 32u * s->width;
    const int layers = 2;
    text(f, "general.architecture", "clip");
    if (s->tower == VISION) {
        text(f, "clip.vision.projector_type", "gemma4v");
        number(f, "clip.vision.block_count", (uint64_t)layers);
        number(f, "clip.vision.embedding_length", d);
        number(f, "clip.vision.feed_forward_length", 16);
        number(f, "clip.vision.attention.head_count", heads);
        add(f, "v.", -1, "patch_embd.weight", BZ_F16, 768, d, 1);
        add(f, "v.", -1, "position_embd.weight", BZ_F32, d, 8, 2);
        add(f, "mm.", -1, "input_projection.weight", BZ_F16, d, width, 1);
        for (int i = 0; i < layers; i++) {
            /* Heads of two sizes must be refused. */
            const uint64_t own = i == 0 && s->options & 64 ? 4 : head;
            vision_layer(f, i, d, heads * own, own);
        }
    } else if (s->tower == AUDIO) {
        text(f, "clip.audio.projector_type", "gemma4a");
        number(f, "clip.audio.block_count", (uint64_t)layers);
        number(f, "clip.audio.embedding_length", d);
        number(f, "clip.audio.feed_forward_length", 2 * d);
        number(f, "clip.audio.attention.head_count", heads);
        add(f, "a.", -1, "conv1d.0.weight", BZ_F16, 9, 4, 1);
        add(f, "a.", -1, "conv1d.0.norm.weight", BZ_F32, 4, 1, 1);
        add(f, "a.", -1, "conv1d.1.weight", BZ_F16, 36, 2, 1);
        add(f, "a.", -1, "conv1d.1.norm.weight", BZ_F32, 2, 1, 1);
        add(f, "a.", -1, "input_projection.weight", BZ_F16, 64, d, 1);
        add(f, "a.", -1, "pre_encode.out.weight", BZ_F16, d, 24, 1);
        add(f, "a.", -1, "pre_encode.out.bias", BZ_F32, 24, 1, 1);
        add(f, "mm.a.", -1, "input_projection.weight", BZ_F16, 24, width, 1);
        for (int i = 0; i < layers; i++) {
            audio_layer(f, i, d, head);
        }
    } else {
        text(f, "clip.vision.projector_type", "gemma4uv");
        text(f, "clip.audio.projector_type", "gemma4ua");
        add(f, "v.", -1, "patch_embd.weight", BZ_F16, 6912, 8, 1);
        add(f, "v.", -1, "patch_embd.bias", BZ_F32, 8, 1, 1);
        add(f, "v.", -1, "position_embd.weight", BZ_F32, 8, 6, 2);
        add(f, "mm.", -1, "input_projection.weight", BZ_F16, 8, width, 1);
        add(f, "mm.a.", -1, "input_projection.weight", BZ_F16, 640, width, 1);
        for (int i = 1; i <= 3; i++) {
            char name[NAME];
            snprintf(name, NAME, "patch_norm.%d.weight", i);
            add(f, "v.", -1, name, BZ_F32, i == 1 ? 6912 : 8, 1, 1);
            snprintf(name, NAME, "patch_norm.%d.bias", i);
            add(f, "v.", -1, name, BZ_F32, i == 1 ? 6912 : 8, 1, 1);
        }
    }
}

/* A drafter of that model, whose layers read the cache of its first one; with option 64 with
 * clusters of tokens. */
static void describe_drafter(file *f, const shape *s, uint64_t vocab)
{
    enum { LAYERS = 2, D = 32, FFN = 32 };
    static const char *const norms[] = {"attn_norm", "post_attention_norm", "ffn_norm",
                                        "post_ffw_norm"};
    const uint64_t width = 32u * s->width, q = (uint64_t)s->heads * s->head;
    text(f, "general.architecture", "gemma4-assistant");
    number(f, "gemma4-assistant.block_count", LAYERS);
    number(f, "gemma4-assistant.embedding_length", D);
    number(f, "gemma4-assistant.embedding_length_out", width);
    number(f, "gemma4-assistant.embedding_length_per_layer_input", 0);
    number(f, "gemma4-assistant.feed_forward_length", FFN);
    number(f, "gemma4-assistant.attention.sliding_window", 4);
    number(f, "gemma4-assistant.attention.head_count", s->heads);
    number(f, "gemma4-assistant.attention.head_count_kv", s->kv_heads);
    number(f, "gemma4-assistant.attention.key_length", s->head);
    number(f, "gemma4-assistant.attention.key_length_swa", s->head);
    real(f, "gemma4-assistant.attention.layer_norm_rms_epsilon", 1e-6);
    real(f, "gemma4-assistant.rope.freq_base", 1e6);
    key *pattern = add_key(f, "gemma4-assistant.attention.sliding_window_pattern", BZ_GGUF_BOOL);
    pattern->n = LAYERS;
    pattern->values[0] = pattern->values[1] = s->options & 16 ? 0 : s->options >> 5 & 1;
    add(f, "", -1, "token_embd.weight", BZ_Q8_0, D, vocab, 1);
    add(f, "", -1, "output_norm.weight", BZ_F32, D, 1, 1);
    add(f, "nextn.", -1, "pre_projection.weight", BZ_F16, 2 * width, D, 1);
    add(f, "nextn.", -1, "post_projection.weight", BZ_F16, D, width, 1);
    if (s->options & 64) {
        uint64_t clusters = 48; /* or the next smaller number that divides the vocabulary */
        while (vocab % clusters) {
            clusters--;
        }
        add(f, "", -1, "masked_embd_centroids.weight", BZ_F16, D, clusters, 1);
        add(f, "", -1, "masked_embd_ordering", s->options & 128 ? BZ_I64 : BZ_I32, vocab, 1, 1);
        f->tensors[f->n_tensors - 1].fill = FILL_ZERO; /* ids */
    }
    for (int i = 0; i < LAYERS; i++) {
        char name[NAME];
        for (size_t n = 0; n < sizeof norms / sizeof *norms; n++) {
            snprintf(name, NAME, "%s.weight", norms[n]);
            add(f, "", i, name, BZ_F32, D, 1, 1);
        }
        add(f, "", i, "attn_q.weight", BZ_Q8_0, D, q, 1);
        add(f, "", i, "attn_q_norm.weight", BZ_F32, s->head, 1, 1);
        add(f, "", i, "attn_output.weight", BZ_F16, q, D, 1);
        add(f, "", i, "ffn_gate.weight", BZ_Q8_0, D, FFN, 1);
        add(f, "", i, "ffn_up.weight", BZ_Q8_0, D, FFN, 1);
        add(f, "", i, "ffn_down.weight", BZ_Q8_0, FFN, D, 1);
        add(f, "", i, "layer_output_scale.weight", BZ_F32, 1, 1, 1);
    }
}

/* ---- edits ---------------------------------------------------------------------------------- */

static uint64_t interesting(unsigned n)
{
    static const uint64_t odd[] = {0,          1,          2,
                                   3,          4,          5,
                                   6,          7,          8,
                                   9,          12,         15,
                                   16,         17,         24,
                                   31,         32,         33,
                                   48,         63,         64,
                                   65,         96,         127,
                                   128,        129,        255,
                                   256,        257,        512,
                                   513,        1023,       1024,
                                   1025,       4096,       65535,
                                   65536,      1u << 18,   (1u << 18) + 1,
                                   1u << 24,   1u << 30,   INT32_MAX,
                                   1u << 31,   UINT32_MAX, 1ull << 32,
                                   1ull << 33, INT64_MAX,  UINT64_MAX};
    return odd[n % (sizeof odd / sizeof *odd)];
}

static uint64_t bytes_of(const tensor *t)
{
    const bz_type_info *type = bz_type_of(t->type);
    const uint64_t values = t->ne[0] * t->ne[1] * t->ne[2];
    return type ? (values / type->block_values + 1) * type->block_bytes : values * 4;
}

static void edit_tensor(file *f, tensor *t, unsigned what, unsigned value)
{
    const tensor before = *t;
    switch (what % 7) {
    case 0: t->ne[value >> 8 & 1] = interesting(value & 0xFF) % 8192; break;
    case 1: t->ne[2] = interesting(value) % 64; break;
    case 2: t->type = value % 48; break;
    case 3: t->dropped = true; break;
    case 4: t->fill = (fill)(value % FILLS); break;
    case 5: memcpy(t->ne, f->tensors[value % f->n_tensors].ne, sizeof t->ne); break;
    default: {
        const uint64_t first = t->ne[0];
        t->ne[0] = t->ne[1];
        t->ne[1] = first;
    }
    }
    if (t->ne[0] > 8192 || t->ne[1] > 8192 || t->ne[2] > 64 || bytes_of(t) > MAX_TENSOR_BYTES) {
        *t = before; /* what it costs to build says nothing about the engine */
    }
}

static void edit_key(key *k, unsigned what, unsigned value)
{
    switch (what % 6) {
    case 0: k->values[0] = interesting(value); break;
    case 1: k->values[0] = value; break;
    case 2: k->dropped = true; break;
    case 3: /* one value per layer */
        k->n = k->n ? k->n : 1 + value % MAX_LIST;
        for (uint32_t i = 1; i < k->n; i++) {
            k->values[i] = k->values[0];
        }
        k->values[value / 8 % k->n] = interesting(value);
        break;
    case 4: k->real = value & 1 ? (double)interesting(value) * 1e-3 : NAN; break;
    default: k->type = value % 2 ? BZ_GGUF_F32 : BZ_GGUF_U32;
    }
}

static void edit(file *f, const uint8_t *e)
{
    const unsigned what = e[0] >> 1, which = e[1], value = (unsigned)(e[2] | e[3] << 8);
    if (e[0] & 1) {
        edit_tensor(f, &f->tensors[which % f->n_tensors], what, value);
    } else {
        edit_key(&f->keys[which % f->n_keys], what, value);
    }
}

/* ---- writing -------------------------------------------------------------------------------- */

static const void *data_of(const tensor *t)
{
    static float small[MAX_TENSOR_BYTES / 4];
    static uint8_t blocks[MAX_TENSOR_BYTES], zeros[MAX_TENSOR_BYTES], ones[MAX_TENSOR_BYTES],
        random[MAX_TENSOR_BYTES];
    if (ones[0] == 0) {
        uint32_t x = 1;
        for (size_t i = 0; i < MAX_TENSOR_BYTES; i++) {
            x = x * 1664525u + 1013904223u;
            random[i] = (uint8_t)(x >> 24);
            blocks[i] = 0x1C; /* a small scale in f16 and bf16 */
            ones[i] = 0xFF;
            small[i / 4] = (float)((int)(i / 4 % 7) - 3) * 0.1f;
        }
    }
    switch (t->fill) {
    case FILL_ZERO: return zeros;
    case FILL_ONES: return ones;
    case FILL_RANDOM: return random;
    default: return t->type == BZ_F32 ? (const void *)small : blocks;
    }
}

static void write_key(gguf_build *b, const key *k)
{
    if (k->type == BZ_GGUF_STRING) {
        gb_str(b, k->name, k->text);
    } else if (k->type == BZ_GGUF_F32) {
        gb_f32(b, k->name, (float)k->real);
    } else if (k->type == BZ_GGUF_BOOL) {
        uint8_t values[MAX_LIST];
        for (uint32_t i = 0; i < k->n; i++) {
            values[i] = k->values[i] & 1;
        }
        gb_array(b, k->name, BZ_GGUF_BOOL, values, k->n);
    } else if (k->n) {
        gb_array(b, k->name, BZ_GGUF_U64, k->values, k->n);
    } else if (k->values[0] > UINT32_MAX) {
        gb_u64(b, k->name, k->values[0]);
    } else {
        gb_u32(b, k->name, (uint32_t)k->values[0]);
    }
}

static void write_file(gguf_build *b, const file *f)
{
    for (size_t i = 0; i < f->n_keys; i++) {
        if (!f->keys[i].dropped) {
            write_key(b, &f->keys[i]);
        }
    }
    for (size_t i = 0; i < f->n_tensors; i++) {
        const tensor *t = &f->tensors[i];
        if (!t->dropped) {
            gb_tensor(b, t->name, t->type, t->ne[2] == 1 ? t->ne[1] == 1 ? 1 : 2 : 3, t->ne,
                      data_of(t));
        }
    }
    gb_finish(b);
}

/* The vocabulary's keys: the same in all files, written once. */
static uint64_t begin_file(gguf_build *b, bool with_vocab)
{
    static const char *const specials[] = {"<pad>",   "<eos>",   "<bos>",     "<unk>",    "<mask>",
                                           "<|turn>", "<turn|>", "<|image|>", "<|audio|>"};
    static gguf_build vocab;
    static uint64_t tokens;
    if (!tokens) {
        naive_vocab v = {0};
        for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
            naive_add_token(&v, specials[i], strlen(specials[i]), CONTROL);
        }
        naive_add_bytes(&v, BYTE);
        gb_init(&vocab);
        naive_put_keys(&v, false, &vocab);
        tokens = v.n_tokens;
        naive_free(&v);
    }
    gb_init(b);
    if (with_vocab) {
        /* without the first, which names the architecture: 8 + 20 bytes of name, 4 of type, 8 + 6
         */
        const size_t skip = 8 + strlen("general.architecture") + 4 + 8 + strlen("gemma4");
        const size_t n = vocab.keys.size - skip;
        b->keys.data = malloc(n);
        must(b->keys.data != NULL);
        memcpy(b->keys.data, vocab.keys.data + skip, n);
        b->keys.size = b->keys.room = n;
        b->n_keys = vocab.n_keys - 1;
    }
    return tokens;
}

/* ---- computing --------------------------------------------------------------------------------
 */

/* An error is one sentence. */
static bool ended_well(bz_status status, const bz_error *err)
{
    must(status == BZ_OK || (err->text[0] && !strchr(err->text, '\n')));
    return status == BZ_OK;
}

/* Drafts of the model's drafter, whatever they are worth. */
static void run_drafts(bz_session *s)
{
    const bz_generate_options o = {.size = sizeof o,
                                   .max_tokens = 6,
                                   .ignore_end = true,
                                   .draft = BZ_DRAFT_MODEL,
                                   .drafts = 2,
                                   .sampling = {.greedy = true}};
    bz_job *job = NULL;
    bz_error err = {0};
    if (ended_well(bz_session_generate(s, &o, &job, &err), &err)) {
        ended_well(bz_job_run(job, NULL, &err), &err);
        bz_job_free(job);
    }
}

static void run_text(const bz_model *m)
{
    const uint32_t chunk = m->text.assistant ? 9 : 8; /* drafts need rings of more rows */
    const bz_session_options o = {.size = sizeof o, .context = 16, .chunk = chunk, .threads = 1};
    const int32_t ids[2] = {2, 3};
    bz_session *s = NULL;
    bz_job *job = NULL;
    bz_error err = {0};
    if (!ended_well(bz_session_new(&s, m, &o, &err), &err)) {
        return;
    }
    const bz_prefill_options p = {.size = sizeof p,
                                  .logits = bz_model_canvas(m) ? BZ_LOGITS_LAST : BZ_LOGITS_ALL};
    bz_status status = bz_session_prefill(s, ids, 2, &p, &job, &err);
    if (ended_well(status, &err)) {
        status = bz_job_run(job, NULL, &err);
        bz_job_free(job);
    }
    if (ended_well(status, &err) && bz_model_canvas(m)) {
        const bz_generate_options g = {.size = sizeof g, .max_tokens = 1};
        const bz_denoise_options d = {.size = sizeof d, .steps = 2};
        status = bz_session_diffuse(s, &g, &d, &job, &err);
        if (ended_well(status, &err)) {
            ended_well(bz_job_run(job, NULL, &err), &err);
            bz_job_free(job);
        }
    }
    if (status == BZ_OK && m->text.assistant) {
        run_drafts(s);
    }
    bz_session_free(s);
}

/* Two texts in one pass. */
static void run_embedder(const bz_model *m)
{
    const bz_embedder_options o = {.size = sizeof o, .threads = 1};
    const int32_t ids[3] = {2, 3, 1};
    const bz_embed_input inputs[2] = {{.ids = ids, .n_ids = 3}, {.text = "ab", .len = 2}};
    const bz_embed_options eo = {.size = sizeof eo, .truncate = true};
    bz_embedder *e = NULL;
    bz_job *job = NULL;
    bz_error err = {0};
    if (!ended_well(bz_embedder_new(&e, m, &o, &err), &err)) {
        return;
    }
    if (ended_well(bz_embed_texts(e, inputs, 2, &eo, &job, &err), &err)) {
        size_t n;
        uint32_t d;
        if (ended_well(bz_job_run(job, NULL, &err), &err)) {
            const float *v = bz_job_vectors(job, &n, &d);
            must(v && n == 2 && d == bz_model_embedding(m) && isfinite(v[0]) && isfinite(v[d]));
        }
        bz_job_free(job);
    }
    bz_embedder_free(e);
}

static void run_tower(const bz_towers *t, const uint8_t *const *bytes, bool vision)
{
    enum { ROWS = 9 };
    const bool layers = (vision ? t->vision.kind : t->audio.kind) == BZ_TOWER_LAYERS;
    const int32_t across[ROWS] = {0, 1, 2, 0, 1, 2, 0, 1, 2},
                  down[ROWS] = {0, 0, 0, 1, 1, 1, 2, 2, 2};
    const uint32_t n = vision && layers ? ROWS : 2;
    bz_backend *cpu = NULL;
    bz_plan *plan = NULL;
    bz_schedule *schedule = NULL;
    bz_error err = {0};
    const bz_cpu_options options = {.threads = 1, .exact = true};
    bz_status status =
        vision ? bz_vision_record(t, n, 1, &plan, &err) : bz_audio_record(t, n, &plan, &err);
    if (status == BZ_OK) {
        status = bz_cpu_new(&cpu, &t->table, bytes, &options, &err);
    }
    if (status == BZ_OK) {
        status = cpu->prepare(cpu, plan, &schedule, &err);
    }
    if (ended_well(status, &err) && !(vision && t->vision.positions < 3)) {
        const uint32_t cols = vision   ? 3 * t->vision.side * t->vision.side
                              : layers ? 4 * t->audio.bins
                                       : 640;
        float *input = calloc((size_t)n * cols, sizeof *input);
        const bz_rows rows = {.n = n,
                              .n_out = !layers  ? 0
                                       : vision ? 1
                                                : BZ_AUDIO_WINDOW,
                              .pos = across,
                              .pos_y = down,
                              .patch_cols = 3,
                              .frames = 8,
                              .input = input};
        cpu->begin(cpu, schedule, &rows);
        bz_pass_state state;
        while ((state = cpu->step(cpu, UINT64_MAX, &err)) == BZ_PASS_AGAIN) {
        }
        must(state == BZ_PASS_DONE);
        free(input);
    }
    if (schedule) {
        cpu->release(cpu, schedule);
    }
    if (cpu) {
        cpu->free(cpu);
    }
    bz_plan_free(plan);
}

static void run_towers(bz_model *m)
{
    const uint32_t n = m->towers.table.n;
    const uint8_t **bytes = calloc(n + 1, sizeof *bytes);
    bz_error err = {0};
    for (uint32_t i = 0; i < n; i++) {
        const bz_weight_info *w = &m->towers.table.info[i];
        bytes[i] = m->files[w->file].data + w->offset;
    }
    if (ended_well(bz_towers_bounds(&m->towers, bytes, &err), &err)) {
        if (m->towers.vision.kind != BZ_TOWER_NONE) {
            run_tower(&m->towers, bytes, true);
        }
        if (m->towers.audio.kind != BZ_TOWER_NONE) {
            run_tower(&m->towers, bytes, false);
        }
    }
    free(bytes);
}

static void run_model(const bz_input *inputs, size_t n)
{
    bz_job *job = NULL;
    bz_error err = {0};
    bz_model *m = NULL;
    bz_status status = bz_model_open(&job, inputs, n, NULL, &err);
    if (ended_well(status, &err)) {
        status = bz_job_run(job, NULL, &err);
        m = ended_well(status, &err) ? bz_job_model(job) : NULL;
        bz_job_free(job);
    }
    if (m) {
        if (bz_model_embedding(m)) {
            run_embedder(m);
        } else {
            run_text(m);
        }
        run_towers(m);
    }
    bz_model_free(m);
}

static uint8_t in_range(uint8_t byte, uint8_t low, uint8_t high)
{
    return (uint8_t)(low + byte % (high - low + 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    shape s;
    if (size < sizeof s || size > 256) {
        return 0;
    }
    memcpy(&s, data, sizeof s);
    s.kind %= KINDS;
    s.tower %= TOWERS;
    s.layers = in_range(s.layers, 1, 4);
    s.width = in_range(s.width, 1, 2);
    s.kv_heads = in_range(s.kv_heads, 1, 3);
    s.heads = (uint8_t)(s.kv_heads * in_range(s.heads, 1, 2));
    s.head = (uint8_t)(2 * in_range(s.head, 1, 12));
    s.ffn = in_range(s.ffn, 1, 4);
    s.used = in_range(s.used, 1, 4);
    static file f, second;
    gguf_build b, t;
    f.n_keys = f.n_tensors = second.n_keys = second.n_tensors = 0;
    const uint64_t tokens = begin_file(&b, true);
    describe_text(&f, &s, tokens);
    if (s.tower == DRAFTER) {
        describe_drafter(&second, &s, tokens);
    } else if (s.tower != NO_TOWER) {
        describe_towers(&second, &s);
    }
    for (size_t at = sizeof s; at + 4 <= size; at += 4) {
        const bool tower = s.tower != NO_TOWER && data[at] & 0x80;
        edit(tower ? &second : &f, data + at);
    }
    write_file(&b, &f);
    bz_input inputs[2] = {{"text.gguf", b.size, b.bytes}};
    if (s.tower != NO_TOWER) {
        begin_file(&t, false);
        write_file(&t, &second);
        inputs[1] =
            (bz_input){s.tower == DRAFTER ? "drafter.gguf" : "mmproj.gguf", t.size, t.bytes};
    }
    run_model(inputs, s.tower != NO_TOWER ? 2 : 1);
    gb_free(&b);
    if (s.tower != NO_TOWER) {
        gb_free(&t);
    }
    return 0;
}
