/* Opening models: by reads instead of a mapping, in parts, and some fifty kinds of file that
 * are whole as containers but no complete Gemma 4. Each refusal is one sentence that names the
 * key or tensor. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/model.h"
#include "support/check.h"
#include "support/edited.h"
#include "support/forward.h"
#include "support/gguf_build.h"
#include "support/golden.h"

#define K   "gemma4."
#define BAD BZ_BAD_FILE
#define NO  BZ_UNSUPPORTED_MODEL

/* nano-e: 8 layers (sliding but 3 and 7), width 64, 4 heads, 1 KV head, heads of 16 and 32, the
 * last 4 layers share, per-layer embedding 16, window 8, vocabulary 640. */
static const edit e_edits[] = {
    {"unchanged", NOTHING, "", 0, NULL, BZ_OK, NULL},
    {"another architecture", SET_STR, "general.architecture", 0, "llama", NO,
     "This file's architecture is 'llama'; Bezel runs Gemma 4 (architectures 'gemma4' and "
     "'diffusion-gemma') and EmbeddingGemma ('gemma-embedding')."},
    {"a drafter", SET_STR, "general.architecture", 0, "gemma4-assistant", BZ_BAD_REQUEST,
     "test.gguf holds only a drafter, which speeds up another model; add the text model's GGUF "
     "file"},
    {"no block count", DROP_KEY, K "block_count", 0, NULL, BAD,
     "The key gemma4.block_count is missing, so this is not a complete Gemma 4 file."},
    {"no layers", SET_U32, K "block_count", 0, NULL, BAD,
     "The key gemma4.block_count is 0; it must be between 1 and 1024."},
    {"more layers than tensors", SET_U32, K "block_count", 9, NULL, BAD,
     "The key gemma4.attention.sliding_window_pattern must be an array with one element per "
     "layer."},
    {"absurd layer count", SET_U32, K "block_count", 4e9, NULL, BAD,
     "The key gemma4.block_count is 4000000000; it must be between 1 and 1024."},
    {"block count as text", SET_STR, K "block_count", 0, "8", BAD,
     "The key gemma4.block_count is not a whole number."},
    {"negative width", SET_I32, K "embedding_length", -64, NULL, BAD,
     "The key gemma4.embedding_length is not a whole number."},
    {"width as a signed number", SET_I32, K "embedding_length", 64, NULL, BZ_OK, NULL},
    {"width that does not fit", SET_U32, K "embedding_length", 128, NULL, BAD,
     "The tensor token_embd.weight has shape [64, 640, 1]; the configuration needs [128, "
     "640, 1]."},
    {"no window", DROP_KEY, K "attention.sliding_window", 0, NULL, BAD,
     "The key gemma4.attention.sliding_window is missing, so this is not a complete Gemma 4 file."},
    {"window of nothing", SET_U32, K "attention.sliding_window", 0, NULL, BAD,
     "The key gemma4.attention.sliding_window is 0; it must be between 1 and 16777216."},
    {"no pattern", DROP_KEY, K "attention.sliding_window_pattern", 0, NULL, BAD,
     "The key gemma4.attention.sliding_window_pattern is missing, so this is not a complete Gemma "
     "4 file."},
    {"pattern as a period", SET_U32, K "attention.sliding_window_pattern", 4, NULL, BAD,
     "The key gemma4.attention.sliding_window_pattern must be an array with one element per "
     "layer."},
    {"only sliding layers to share with", SET_ARRAY, K "attention.sliding_window_pattern", 8, NULL,
     BAD,
     "The tensor blk.3.attn_q.weight has shape [64, 128, 1]; the configuration needs [64, "
     "64, 1]."},
    {"everything shared", SET_U32, K "attention.shared_kv_layers", 8, NULL, BAD,
     "The key gemma4.attention.shared_kv_layers leaves a layer without an earlier layer of its "
     "kind to share with."},
    {"more shared than there are", SET_U32, K "attention.shared_kv_layers", 9, NULL, BAD,
     "The key gemma4.attention.shared_kv_layers is 9; it must be between 0 and 8."},
    {"no heads", SET_U32, K "attention.head_count", 0, NULL, BAD,
     "The key gemma4.attention.head_count is 0 for layer 0; it must be between 1 and 1024."},
    {"KV heads that do not divide", SET_U32, K "attention.head_count_kv", 3, NULL, BAD,
     "The key gemma4.attention.head_count_kv does not divide the number of query heads."},
    {"heads for too few layers", SET_ARRAY, K "attention.head_count_kv", 7, NULL, BAD,
     "The key gemma4.attention.head_count_kv has 7 elements for 8 layers."},
    {"odd head size", SET_U32, K "attention.key_length", 33, NULL, BAD,
     "The key gemma4.attention.value_length differs from the key length; Gemma 4 has them equal."},
    {"rope over part of a head", SET_U32, K "rope.dimension_count", 16, NULL, BAD,
     "The key gemma4.rope.dimension_count differs from the head size; Gemma 4 rotates over the "
     "whole head."},
    {"eps is NaN", SET_F32, K "attention.layer_norm_rms_epsilon", NAN, NULL, BAD,
     "The key gemma4.attention.layer_norm_rms_epsilon is not a number."},
    {"eps above one", SET_F32, K "attention.layer_norm_rms_epsilon", 2, NULL, BAD,
     "The key gemma4.attention.layer_norm_rms_epsilon is 2; it must be between 0 and 1."},
    {"eps as text", SET_STR, K "attention.layer_norm_rms_epsilon", 0, "1e-6", BAD,
     "The key gemma4.attention.layer_norm_rms_epsilon is not a number."},
    {"negative rope base", SET_F32, K "rope.freq_base", -1, NULL, BAD,
     "The key gemma4.rope.freq_base is -1; it must be between 1 and 1e+12."},
    {"FFN widths for too few layers", SET_ARRAY, K "feed_forward_length", 3, NULL, BAD,
     "The key gemma4.feed_forward_length has 3 elements for 8 layers."},
    {"FFN width that does not fit", SET_U32, K "feed_forward_length", 96, NULL, BAD,
     "The tensor blk.4.ffn_gate.weight has shape [64, 192, 1]; the configuration needs "
     "[64, 96, 1]."},
    {"per-layer width that does not fit", SET_U32, K "embedding_length_per_layer_input", 32, NULL,
     BAD,
     "The tensor per_layer_token_embd.weight has shape [128, 640, 1]; the configuration needs "
     "[256, 640, 1]."},
    {"vocabulary size that does not fit", ADD_U32, K "vocab_size", 600, NULL, BAD,
     "The tensor token_embd.weight has shape [64, 640, 1]; the configuration needs [64, "
     "600, 1]."},
    {"no embedding", DROP_TENSOR, "token_embd.weight", 0, NULL, BAD,
     "The tensor token_embd.weight is missing."},
    {"no norm", DROP_TENSOR, "blk.2.ffn_norm.weight", 0, NULL, BAD,
     "The tensor blk.2.ffn_norm.weight is missing."},
    {"norm under its other name", RENAME_TENSOR, "blk.2.ffn_norm.weight", 0,
     "blk.2.ffn_pre_norm.weight", BZ_OK, NULL},
    {"no keys in a layer that owns its cache", DROP_TENSOR, "blk.1.attn_k.weight", 0, NULL, BAD,
     "The tensor blk.1.attn_k.weight is missing."},
    {"no frequencies: they are made", DROP_TENSOR, "rope_freqs.weight", 0, NULL, BZ_OK, NULL},
    {"too few frequencies", SET_COLS, "rope_freqs.weight", 8, NULL, BAD,
     "The tensor rope_freqs.weight has shape [8, 1, 1]; the configuration needs [16, 1, "
     "1]."},
    {"a head of its own, wrong shape", ADD_TENSOR, "output.weight", 64, NULL, BAD,
     "The tensor output.weight has shape [64, 1, 1]; the configuration needs [64, 640, "
     "1]."},
    {"queries of the wrong shape", SET_ROWS, "blk.0.attn_q.weight", 65, NULL, BAD,
     "The tensor blk.0.attn_q.weight has shape [64, 65, 1]; the configuration needs [64, "
     "64, 1]."},
    {"a norm in half precision", SET_TYPE, "blk.0.attn_norm.weight", BZ_F16, NULL, NO,
     "The tensor blk.0.attn_norm.weight has type F16; norms and scales must be F32."},
    {"a matrix of integers", SET_TYPE, "blk.0.attn_q.weight", 26, NULL, NO,
     "The tensor blk.0.attn_q.weight has type I32, which Bezel does not run."},
    {"NaN in a norm", POISON_F32, "blk.5.post_ffw_norm.weight", 0, NULL, BAD,
     "The tensor blk.5.post_ffw_norm.weight holds a value that is not a finite number (element "
     "0)."},
    {"infinite layer scale", POISON_F32, "blk.6.layer_output_scale.weight", 1, NULL, BAD,
     "The tensor blk.6.layer_output_scale.weight holds a value that is not a finite number "
     "(element 0)."},
    {"no layer scale: 1", DROP_TENSOR, "blk.6.layer_output_scale.weight", 0, NULL, BZ_OK, NULL},
    {"a router without experts", ADD_TENSOR, "blk.0.ffn_gate_inp.weight", 64, NULL, BAD,
     "The tensor blk.0.ffn_gate_inp.weight is a router, but the key gemma4.expert_count is "
     "missing."},
    {"experts without a router", ADD_U32, K "expert_count", 4, NULL, BAD,
     "The key gemma4.expert_used_count is missing, so this is not a complete Gemma 4 file."},
    {"no tokens", DROP_KEY, "tokenizer.ggml.tokens", 0, NULL, BAD,
     "The file has no list of texts tokenizer.ggml.tokens, so it holds no vocabulary."},
    {"no merges", DROP_KEY, "tokenizer.ggml.merges", 0, NULL, NO,
     "The file has no list of texts tokenizer.ggml.merges, which Gemma 4's tokenizer needs."},
    {"another tokenizer", SET_STR, "tokenizer.ggml.model", 0, "gpt2", NO,
     "tokenizer.ggml.model is 'gpt2'; Gemma 4 files have 'gemma4' or, from Ollama, 'llama'."},
    {"tokens that are numbers", SET_ARRAY, "tokenizer.ggml.tokens", 4, NULL, BAD,
     "The file has no list of texts tokenizer.ggml.tokens, so it holds no vocabulary."},
};

static const edit moe_edits[] = {
    {"experts unchanged", NOTHING, "", 0, NULL, BZ_OK, NULL},
    {"no used count", DROP_KEY, K "expert_used_count", 0, NULL, BAD,
     "The key gemma4.expert_used_count is missing, so this is not a complete Gemma 4 file."},
    {"more used than there are", SET_U32, K "expert_used_count", 17, NULL, BAD,
     "The key gemma4.expert_used_count is 17; it must be between 1 and 16."},
    {"wrong expert count", SET_U32, K "expert_count", 8, NULL, BAD,
     "The tensor blk.0.ffn_gate_inp.weight has shape [64, 16, 1]; the configuration needs "
     "[64, 8, 1]."},
    {"no expert width: from the tensors", DROP_KEY, K "expert_feed_forward_length", 0, NULL, BZ_OK,
     NULL},
    {"expert width that does not fit", SET_U32, K "expert_feed_forward_length", 64, NULL, BAD,
     "The tensor blk.0.ffn_down_exps.weight has shape [32, 64, 16]; the configuration needs [64, "
     "64, 16]."},
    {"no router in a layer", DROP_TENSOR, "blk.3.ffn_gate_inp.weight", 0, NULL, BAD,
     "The tensor blk.3.ffn_gate_inp.weight is missing."},
    {"no experts' gates", DROP_TENSOR, "blk.3.ffn_gate_up_exps.weight", 0, NULL, BAD,
     "The tensor blk.3.ffn_gate_exps.weight is missing."},
    {"no per-expert scale: 1", DROP_TENSOR, "blk.3.ffn_down_exps.scale", 0, NULL, BZ_OK, NULL},
};

/* tests/golden/diffusion: 4 layers, width 96, canvas of 16. */
static const edit diffusion_edits[] = {
    {"diffusion unchanged", NOTHING, "", 0, NULL, BZ_OK, NULL},
    {"no canvas", DROP_KEY, "diffusion.canvas_length", 0, NULL, BAD,
     "The key diffusion.canvas_length is missing, so this is not a complete Gemma 4 file."},
    {"a canvas of one", SET_U32, "diffusion.canvas_length", 1, NULL, BAD,
     "The key diffusion.canvas_length is 1; it must be between 2 and 512."},
    {"a canvas beyond a pass", SET_U32, "diffusion.canvas_length", 513, NULL, BAD,
     "The key diffusion.canvas_length is 513; it must be between 2 and 512."},
    {"a canvas of a prime", SET_U32, "diffusion.canvas_length", 97, NULL, BZ_OK, NULL},
    {"no steps", SET_U32, "diffusion.eb_max_steps", 0, NULL, BAD,
     "The key diffusion.eb_max_steps is 0; it must be between 1 and 4096."},
    {"steps left to us", DROP_KEY, "diffusion.eb_max_steps", 0, NULL, BZ_OK, NULL},
    {"a temperature of nothing", SET_F32, "diffusion.eb_t_min", 0, NULL, BAD,
     "The key diffusion.eb_t_min is 0; it must be between 0.001 and 1000."},
    {"a bound is NaN", SET_F32, "diffusion.eb_entropy_bound", NAN, NULL, BAD,
     "The key diffusion.eb_entropy_bound is not a number."},
    {"no layers, by another name", DROP_KEY, "diffusion-gemma.block_count", 0, NULL, BAD,
     "The key diffusion-gemma.block_count is missing, so this is not a complete Gemma 4 file."},
    {"per-layer embeddings", SET_U32, "diffusion-gemma.embedding_length_per_layer_input", 16, NULL,
     BAD,
     "The key diffusion-gemma.embedding_length_per_layer_input is not 0; diffusion models have no "
     "per-layer embeddings."},
    {"its keys spelt otherwise", SET_STR, "general.architecture", 0, "diffusion_gemma", BAD,
     "The key diffusion_gemma.block_count is missing, so this is not a complete Gemma 4 file."},
    {"no self-conditioning", DROP_TENSOR, "self_cond_down.weight", 0, NULL, BAD,
     "The tensor self_cond_down.weight is missing."},
    {"no norm of it", DROP_TENSOR, "self_cond_pre_norm.weight", 0, NULL, BAD,
     "The tensor self_cond_pre_norm.weight is missing."},
    {"no scale of the encoder's own: the decoder's", DROP_TENSOR,
     "blk.1.enc_layer_output_scale.weight", 0, NULL, BZ_OK, NULL},
};

static void test_edits(const char *file, const edit *edits, size_t n)
{
    golden from;
    golden_open(&from, file);
    for (size_t i = 0; i < n; i++) {
        const edit *e = &edits[i];
        gguf_build b;
        bz_model *m = NULL;
        bz_error err = {0};
        begin("%s", e->title);
        build_edited(&b, &from, e);
        bz_status status = open_bytes(b.bytes, b.size, &m, &err);
        CHECKF(status == e->code, "status %s: %s", bz_status_name(status), err.text);
        CHECKF(strcmp(err.text, e->expected ? e->expected : "") == 0, "says: %s", err.text);
        CHECK((m != NULL) == (status == BZ_OK));
        bz_model_free(m);
        gb_free(&b);
    }
    golden_close(&from);
}

/* ---- broken numbers inside -------------------------------------------------------------- */

static void test_numeric(void)
{
    begin("a NaN scale in a matrix is a numeric error, not a token");
    golden from;
    golden_open(&from, model_path("nano-e-q8_0.gguf"));
    uint8_t *copy = malloc(from.map.size);
    memcpy(copy, from.map.data, from.map.size);
    const bz_gguf_tensor *t = bz_gguf_find_tensor(&from.gguf, "blk.0.attn_output.weight");
    copy[t->offset] = 0xFF; /* the first block's f16 scale becomes NaN */
    copy[t->offset + 1] = 0x7F;
    bz_model *m = NULL;
    bz_error err = {0};
    CHECK(open_bytes(copy, from.map.size, &m, &err) == BZ_OK);
    bz_session *s =
        session_or_fail(m, &(bz_session_options){.size = sizeof(bz_session_options), .threads = 1});
    const int32_t ids[] = {2, 500, 501};
    CHECK(prefill(s, ids, 3, 0, NULL, &err) == BZ_NUMERIC);
    CHECKF(
        strcmp(
            err.text,
            "The model computed no finite number after token 3; the file is probably damaged.") ==
            0,
        "%s", err.text);
    bz_job *job = NULL;
    CHECK(bz_session_generate(s, NULL, &job, &err) == BZ_BAD_REQUEST);
    bz_session_free(s);
    bz_model_free(m);
    free(copy);
    golden_close(&from);
}

/* ---- reads instead of a mapping, parts ----------------------------------------------------- */

typedef struct disk {
    bz_os_map maps[4];
    uint64_t bytes, largest;
    int fail_at; /* the read that fails; -1: none */
} disk;

static int on_read(void *user, const bz_read *r)
{
    disk *d = user;
    if (d->fail_at >= 0 && d->fail_at-- == 0) {
        return 1;
    }
    if (r->offset + r->length > d->maps[r->file].size) {
        return 1;
    }
    memcpy(r->to, d->maps[r->file].data + r->offset, r->length);
    d->bytes += r->length;
    d->largest = r->length > d->largest ? r->length : d->largest;
    return 0;
}

static bz_status open_by_reads(disk *d, const char *const *names, size_t n, bz_model **m,
                               bz_error *err)
{
    bz_input inputs[4];
    for (size_t i = 0; i < n; i++) {
        if (bz_os_map_file(model_path(names[i]), &d->maps[i], err) != BZ_OK) {
            return err->code;
        }
        inputs[i] = (bz_input){names[i], d->maps[i].size, NULL};
    }
    bz_job *job = NULL;
    bz_status status = bz_model_open(&job, inputs, n, NULL, err);
    if (status == BZ_OK) {
        status =
            bz_job_run(job, &(bz_host){.size = sizeof(bz_host), .read = on_read, .user = d}, err);
        *m = bz_job_model(job);
        bz_job_free(job);
    }
    for (size_t i = 0; i < n; i++) {
        bz_os_unmap(&d->maps[i]); /* the model must not need them */
    }
    return status;
}

static void check_same_model(const bz_model *a, const bz_model *b)
{
    const int32_t ids[] = {2, 500, 501, 502, 503, 2, 600, 610, 620};
    bz_session *s =
        session_or_fail(a, &(bz_session_options){.size = sizeof(bz_session_options), .threads = 1});
    bz_session *t =
        session_or_fail(b, &(bz_session_options){.size = sizeof(bz_session_options), .threads = 1});
    bz_error err = {0};
    CHECK(prefill(s, ids, 9, 0, NULL, &err) == BZ_OK && prefill(t, ids, 9, 0, NULL, &err) == BZ_OK);
    CHECK(memcmp(bz_session_logits(s), bz_session_logits(t), bz_model_vocab(a) * sizeof(float)) ==
          0);
    bz_session_free(s);
    bz_session_free(t);
}

static void test_sources(void)
{
    bz_model *whole = open_or_fail(model_path("nano-e-f32.gguf")), *m = NULL;
    bz_error err = {0};
    const char *const one[] = {"nano-e-f32.gguf"};
    const char *const parts[] = {"nano-e-f32-00003-of-00003.gguf", "nano-e-f32-00001-of-00003.gguf",
                                 "nano-e-f32-00002-of-00003.gguf"};

    begin("a file read piece by piece");
    disk d = {.fail_at = -1};
    CHECKF(open_by_reads(&d, one, 1, &m, &err) == BZ_OK, "%s", err.text);
    check_same_model(whole, m);
    CHECKF(d.largest <= 4 << 20, "a read of %llu bytes", (unsigned long long)d.largest);
    bz_model_free(m);

    begin("three parts in any order, read piece by piece");
    d = (disk){.fail_at = -1};
    CHECKF(open_by_reads(&d, parts, 3, &m, &err) == BZ_OK, "%s", err.text);
    check_same_model(whole, m);
    bz_model_free(m);

    begin("any part's path opens all of them");
    for (int i = 0; i < 3; i++) {
        bz_model *split = open_or_fail(model_path(parts[i]));
        check_same_model(whole, split);
        bz_model_free(split);
    }

    begin("a part alone reports which are missing");
    d = (disk){.fail_at = -1};
    m = NULL;
    CHECK(open_by_reads(&d, parts + 1, 1, &m, &err) == BZ_NOT_FOUND && m == NULL);
    CHECKF(strstr(err.text, "00002-of-00003") != NULL, "%s", err.text);

    begin("a read that fails, at every point, loses nothing but the model");
    for (int at = 0; at < 6; at++) {
        d = (disk){.fail_at = at};
        m = NULL;
        CHECK(open_by_reads(&d, one, 1, &m, &err) == BZ_BAD_FILE && m == NULL);
    }

    begin("paths that are not a model");
    CHECK(bz_model_open_file(&m, "no/such/file.gguf", NULL, NULL, &err) == BZ_NOT_FOUND);
    CHECK(bz_model_open_file(&m, ".", NULL, NULL, &err) == BZ_BAD_FILE);
    CHECKF(strcmp(err.text, ". is not a regular file.") == 0, "%s", err.text);
    CHECK(bz_model_open_file(&m, "/dev/null", NULL, NULL, &err) != BZ_OK);
    bz_model_free(whole);
}

int main(void)
{
    test_edits(model_path("nano-e-f32.gguf"), e_edits, sizeof e_edits / sizeof *e_edits);
    test_edits(model_path("nano-moe-f32.gguf"), moe_edits, sizeof moe_edits / sizeof *moe_edits);
    test_edits(golden_path("diffusion/text.gguf"), diffusion_edits,
               sizeof diffusion_edits / sizeof *diffusion_edits);
    test_numeric();
    test_sources();
    return finish();
}
