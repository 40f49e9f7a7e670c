#include "support/e2b_shape.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    LAYERS = 35,
    OWNERS = 15, /* of caches: the first layers */
    FULL_EVERY = 5,
    WIDTH = 1536,
    HEADS = 8,
    HEAD = 256,
    FULL_HEAD = 512,
    FFN = 6144,
    SHARED_FFN = 12288,
    PLE = 256,
    VOCAB = 512
};

/* Layers whose values and down matrices have more bits in Q4_K_M. */
static bool more_bits(int i, int n)
{
    return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
}

static void tensor(gguf_build *b, int layer, const char *name, bz_type type, uint64_t cols,
                   uint64_t rows)
{
    char full[80];
    if (layer < 0) {
        snprintf(full, sizeof full, "%s.weight", name);
    } else {
        snprintf(full, sizeof full, "blk.%d.%s.weight", layer, name);
    }
    gb_tensor(b, full, type, rows ? 2 : 1, (const uint64_t[]){cols, rows}, NULL);
}

static void keys(gguf_build *b)
{
    int32_t ffn[LAYERS];
    uint8_t sliding[LAYERS];
    for (int i = 0; i < LAYERS; i++) {
        ffn[i] = i < OWNERS ? FFN : SHARED_FFN;
        sliding[i] = i % FULL_EVERY != FULL_EVERY - 1;
    }
    gb_str(b, "general.architecture", "gemma4");
    gb_u32(b, "gemma4.block_count", LAYERS);
    gb_u32(b, "gemma4.context_length", 131072);
    gb_u32(b, "gemma4.embedding_length", WIDTH);
    gb_array(b, "gemma4.feed_forward_length", BZ_GGUF_I32, ffn, LAYERS);
    gb_u32(b, "gemma4.attention.head_count", HEADS);
    gb_u32(b, "gemma4.attention.head_count_kv", 1);
    gb_f32(b, "gemma4.rope.freq_base", 1e6f);
    gb_f32(b, "gemma4.rope.freq_base_swa", 1e4f);
    gb_f32(b, "gemma4.attention.layer_norm_rms_epsilon", 1e-6f);
    gb_u32(b, "gemma4.attention.key_length", FULL_HEAD);
    gb_u32(b, "gemma4.attention.value_length", FULL_HEAD);
    gb_f32(b, "gemma4.final_logit_softcapping", 30);
    gb_u32(b, "gemma4.attention.sliding_window", 512);
    gb_u32(b, "gemma4.attention.shared_kv_layers", LAYERS - OWNERS);
    gb_u32(b, "gemma4.embedding_length_per_layer_input", PLE);
    gb_array(b, "gemma4.attention.sliding_window_pattern", BZ_GGUF_BOOL, sliding, LAYERS);
    gb_u32(b, "gemma4.attention.key_length_swa", HEAD);
    gb_u32(b, "gemma4.attention.value_length_swa", HEAD);
    gb_u32(b, "gemma4.rope.dimension_count", FULL_HEAD);
    gb_u32(b, "gemma4.rope.dimension_count_swa", HEAD);
}

static void layer(gguf_build *b, int i)
{
    const uint64_t head = i % FULL_EVERY == FULL_EVERY - 1 ? FULL_HEAD : HEAD,
                   ffn = i < OWNERS ? FFN : SHARED_FFN;
    tensor(b, i, "attn_norm", BZ_F32, WIDTH, 0);
    tensor(b, i, "attn_q", BZ_Q4_K, WIDTH, head * HEADS);
    tensor(b, i, "attn_q_norm", BZ_F32, head, 0);
    if (i < OWNERS) {
        tensor(b, i, "attn_k", BZ_Q4_K, WIDTH, head);
        tensor(b, i, "attn_k_norm", BZ_F32, head, 0);
        tensor(b, i, "attn_v", more_bits(i, OWNERS) ? BZ_Q6_K : BZ_Q4_K, WIDTH, head);
    }
    tensor(b, i, "attn_output", BZ_Q4_K, head * HEADS, WIDTH);
    tensor(b, i, "post_attention_norm", BZ_F32, WIDTH, 0);
    tensor(b, i, "ffn_norm", BZ_F32, WIDTH, 0);
    tensor(b, i, "ffn_gate", BZ_Q4_K, WIDTH, ffn);
    tensor(b, i, "ffn_up", BZ_Q4_K, WIDTH, ffn);
    tensor(b, i, "ffn_down", more_bits(i, LAYERS) ? BZ_Q6_K : BZ_Q4_K, ffn, WIDTH);
    tensor(b, i, "post_ffw_norm", BZ_F32, WIDTH, 0);
    tensor(b, i, "inp_gate", BZ_Q4_K, WIDTH, PLE);
    tensor(b, i, "proj", BZ_Q4_K, PLE, WIDTH);
    tensor(b, i, "post_norm", BZ_F32, WIDTH, 0);
    tensor(b, i, "layer_output_scale", BZ_F32, 1, 0);
}

static void ended(const char *what, const bz_error *err)
{
    printf("FAIL %s of E2B's shape: %s\n", what, err->text);
    exit(1);
}

void e2b_shape_open(e2b_shape *e)
{
    bz_error err = {0};
    uint64_t at_least = 0;
    *e = (e2b_shape){.file = {.name = "e2b"}};
    gb_init(&e->header);
    e->header.header_only = true;
    keys(&e->header);
    tensor(&e->header, -1, "rope_freqs", BZ_F32, FULL_HEAD / 2, 0);
    tensor(&e->header, -1, "token_embd", BZ_Q6_K, WIDTH, VOCAB);
    tensor(&e->header, -1, "per_layer_token_embd", BZ_Q6_K, PLE * LAYERS, VOCAB);
    tensor(&e->header, -1, "per_layer_model_proj", BZ_BF16, WIDTH, PLE * LAYERS);
    tensor(&e->header, -1, "per_layer_proj_norm", BZ_F32, PLE, 0);
    tensor(&e->header, -1, "output_norm", BZ_F32, WIDTH, 0);
    for (int i = 0; i < LAYERS; i++) {
        layer(&e->header, i);
    }
    gb_finish(&e->header);
    if (bz_gguf_parse(&e->gguf, e->header.bytes, e->header.size, e->header.file_size, &at_least,
                      &err) != BZ_GGUF_DONE) {
        ended("the header", &err);
    }
    e->file.gguf = &e->gguf;
    e->file.size = e->header.file_size;
    if (bz_files_init(&e->model.set, &e->file, 1, &err) != BZ_OK ||
        bz_text_model_new(&e->model.text, &e->model.set, &err) != BZ_OK) {
        ended("the model", &err);
    }
    const uint32_t n = e->model.text.weights.table.n;
    e->model.weight_bytes = calloc(n, sizeof *e->model.weight_bytes);
    for (uint32_t i = 0; i < n; i++) { /* the host reads factors of rope tables */
        static const float ones[FULL_HEAD / 2] = {1};
        e->model.weight_bytes[i] =
            i + 1 == e->model.text.weights.rope_freqs.id ? (const uint8_t *)ones : NULL;
    }
}

void e2b_shape_close(e2b_shape *e)
{
    bz_text_model_free(&e->model.text);
    free(e->model.weight_bytes);
    bz_gguf_free(&e->gguf);
    gb_free(&e->header);
}
