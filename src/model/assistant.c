/* Reads, binds and records a drafter.
 *
 *   u = the model's state at the position before; e = embed(token) * sqrt(b)     the model's table
 *   for each draft:
 *     x = pre_projection (e, u)
 *     for each layer: as in text.c; attention reads the model's caches, all at one position
 *     z = RMS(x)
 *     draft = the best of head z,   u = post_projection z,   e = embed(draft) * sqrt(b)
 *
 * Where the file has clusters of tokens, only those of the 32 with the greatest centroid z are
 * among the best.
 *
 * A sliding layer sees one position more than the model's own: the window's positions before the
 * one before the token. */
#include "model/assistant.h"

#include <math.h>
#include <stdlib.h>

#include "model/bind.h"
#include "model/keys.h"
#include "model/record.h"

#define ARCH "gemma4-assistant"

enum { CLUSTERS = 32 }; /* that are looked through, as in the reference implementation */

bool bz_assistant_knows(bz_str architecture)
{
    return bz_str_is(architecture, ARCH);
}

void bz_assistant_free(bz_assistant *a)
{
    if (a) {
        bz_text_model_free(&a->net);
        free(a);
    }
}

/* ---- keys ---------------------------------------------------------------------------------- */

/* The last cache of the model's for layers of that kind; 0: none. */
static uint32_t last_cache(const bz_text_model *m, bool sliding)
{
    uint32_t k = m->n_caches;
    while (k > 0 && (m->caches[k - 1].window != 0) != sliding) {
        k--;
    }
    return k;
}

static void read_layer(bz_keys *r, bz_text_model *net, const bz_text_model *m, uint32_t i)
{
    const bz_config *c = &net->config;
    bz_layer_config *l = &c->layer[i];
    const bz_gguf_kv *pattern = bz_key_find(r, BZ_KEY("attention.sliding_window_pattern"), true);
    if (!bz_gguf_get_bool(pattern, i, &l->sliding)) {
        bz_key_refuse(r, BZ_KEY("attention.sliding_window_pattern"),
                      "does not hold true or false for every layer");
        return;
    }
    l->head_dim = l->sliding ? bz_key_head_dim(r, BZ_KEY("attention.key_length_swa"),
                                               BZ_KEY("attention.value_length_swa"),
                                               BZ_KEY("rope.dimension_count_swa"))
                             : bz_key_head_dim(r, BZ_KEY("attention.key_length"),
                                               BZ_KEY("attention.value_length"),
                                               BZ_KEY("rope.dimension_count"));
    l->heads = bz_key_per_layer(r, BZ_KEY("attention.head_count"), c->layers, i, 1, BZ_MOST_HEADS);
    l->kv_heads =
        bz_key_per_layer(r, BZ_KEY("attention.head_count_kv"), c->layers, i, 1, BZ_MOST_HEADS);
    l->ffn = bz_key_per_layer(r, BZ_KEY("feed_forward_length"), c->layers, i, 1, BZ_MOST_WIDTH);
    const uint32_t cache = last_cache(m, l->sliding);
    if (r->failed) {
        return;
    }
    if (cache == 0 || m->caches[cache - 1].head_dim != l->head_dim ||
        m->caches[cache - 1].kv_heads != l->kv_heads) {
        bz_key_refuse(r, BZ_KEY("attention.head_count_kv"),
                      "does not fit the model's keys and values, so this is the drafter of another "
                      "model");
    }
    net->cache_of[i] = (bz_cache){cache};
}

static bz_status read_config(bz_text_model *net, const bz_text_model *m, const bz_gguf *gguf,
                             bz_error *err)
{
    bz_keys r = {.g = gguf, .err = err, .arch = ARCH, .family = "Gemma 4 drafter"};
    bz_config *c = &net->config;
    const uint32_t zero = 0;
    const double quarter = 0.25;
    c->layers = bz_key_number(&r, BZ_KEY("block_count"), 1, BZ_MOST_LAYERS, NULL);
    c->width = bz_key_number(&r, BZ_KEY("embedding_length"), 1, BZ_MOST_WIDTH, NULL);
    c->eps = (float)bz_key_real(&r, BZ_KEY("attention.layer_norm_rms_epsilon"), 0, 1, NULL);
    c->rope_base = bz_key_real(&r, BZ_KEY("rope.freq_base"), 1, 1e12, NULL);
    c->rope_base_sliding =
        bz_key_real(&r, BZ_KEY("rope.freq_base_swa"), 1, 1e12, &m->config.rope_base_sliding);
    c->rope_rotated = bz_key_real(&r, BZ_KEY("rope.partial_rotary_factor"), 0, 1, &quarter);
    c->vocab = m->config.vocab;
    c->window = bz_key_number(&r, BZ_KEY("attention.sliding_window"), 1, 1u << 24, NULL);
    if (!r.failed && c->window != m->config.window) {
        bz_key_refuse(&r, BZ_KEY("attention.sliding_window"),
                      "differs from the model's, so this is the drafter of another model");
    }
    c->window++;
    if (bz_key_number(&r, BZ_KEY("embedding_length_out"), 1, BZ_MOST_WIDTH, &m->config.width) !=
        m->config.width) {
        bz_key_refuse(&r, BZ_KEY("embedding_length_out"),
                      "differs from the model's width, so this is the drafter of another model");
    }
    if (bz_key_number(&r, BZ_KEY("embedding_length_per_layer_input"), 0, 1u << 14, &zero) ||
        bz_key_number(&r, BZ_KEY("expert_count"), 0, 1u << 14, &zero)) {
        bz_key_refuse(&r, BZ_KEY("embedding_length_per_layer_input"),
                      "or its number of experts is not 0; drafters have neither");
    }
    if (!r.failed) {
        c->layer = calloc(c->layers, sizeof *c->layer);
        net->cache_of = calloc(c->layers, sizeof *net->cache_of);
        net->weights.layer = calloc(c->layers, sizeof *net->weights.layer);
        if (!c->layer || !net->cache_of || !net->weights.layer) {
            return bz_fail(err, BZ_OUT_OF_MEMORY, "There is not enough memory for a drafter.");
        }
    }
    for (uint32_t i = 0; i < c->layers && !r.failed; i++) {
        read_layer(&r, net, m, i);
    }
    return r.failed ? err ? err->code : BZ_BAD_FILE : BZ_OK;
}

/* ---- weights ------------------------------------------------------------------------------- */

static bz_weight vector(bz_binder *b, uint64_t n, uint32_t layer, const char *name)
{
    return bz_bind(b, BZ_BIND_VECTOR, n, 1, 1, "blk.%u.%s.weight", layer, name);
}

static bz_weight matrix(bz_binder *b, uint64_t in, uint64_t out, uint32_t layer, const char *name)
{
    return bz_bind(b, 0, in, out, 1, "blk.%u.%s.weight", layer, name);
}

static void bind_layer(bz_binder *b, const bz_text_model *net, uint32_t i)
{
    const bz_layer_config *l = &net->config.layer[i];
    const uint64_t d = net->config.width, q = (uint64_t)l->heads * l->head_dim;
    net->weights.layer[i] =
        (bz_layer_weights){.attn_norm = vector(b, d, i, "attn_norm"),
                           .attn_q = matrix(b, d, q, i, "attn_q"),
                           .attn_q_norm = vector(b, l->head_dim, i, "attn_q_norm"),
                           .attn_output = matrix(b, q, d, i, "attn_output"),
                           .post_attention_norm = vector(b, d, i, "post_attention_norm"),
                           .ffn_norm = vector(b, d, i, "ffn_norm"),
                           .ffn_gate = matrix(b, d, l->ffn, i, "ffn_gate"),
                           .ffn_up = matrix(b, d, l->ffn, i, "ffn_up"),
                           .ffn_down = matrix(b, l->ffn, d, i, "ffn_down"),
                           .post_ffw_norm = vector(b, d, i, "post_ffw_norm"),
                           .layer_output_scale = bz_bind(b, BZ_BIND_OPTIONAL | BZ_BIND_VECTOR, 1, 1,
                                                         1, "blk.%u.layer_output_scale.weight", i)};
}

/* Clusters of tokens, all of one size. The ids are checked once they are in memory (api/open.c).
 * Older converters may have written them as floats: then the whole head is used, which finds the
 * same draft or a better one. */
static void bind_clusters(bz_binder *b, bz_assistant *a, uint64_t vocab)
{
    static const char centroids[] = "masked_embd_centroids.weight",
                      ordering[] = "masked_embd_ordering";
    const bool present = bz_bind_has(b, centroids) || bz_bind_has(b, ordering);
    if (!present || bz_bind_type(b, ordering) == BZ_F32) {
        return;
    }
    a->centroids = bz_bind(b, 0, a->net.config.width, 0, 1, centroids);
    a->ordering = bz_bind(b, BZ_BIND_IDS, vocab, 1, 1, ordering);
    if (b->failed) {
        return;
    }
    const uint64_t clusters = bz_weight_of(b->table, a->centroids)->ne[1];
    if (vocab % clusters) {
        bz_bind_refuse(b, BZ_BAD_FILE,
                       "The tensor %s has %llu rows, but %llu tokens do not divide into as many "
                       "clusters.",
                       centroids, (unsigned long long)clusters, (unsigned long long)vocab);
        return;
    }
    bz_weight_info *info = &b->table->info[a->ordering.id - 1];
    info->ne[0] = vocab / clusters;
    info->ne[1] = clusters;
}

static void bind(bz_binder *b, bz_assistant *a, const bz_text_model *m)
{
    bz_text_weights *w = &a->net.weights;
    const uint64_t d = a->net.config.width, width = m->config.width;
    uint32_t full = 0; /* head size of full layers */
    for (uint32_t i = 0; i < a->net.config.layers; i++) {
        const bz_layer_config *l = &a->net.config.layer[i];
        full = l->sliding ? full : l->head_dim;
        bind_layer(b, &a->net, i);
    }
    w->token_embd = bz_bind(b, 0, d, m->config.vocab, 1, "token_embd.weight");
    w->output_norm = bz_bind(b, BZ_BIND_VECTOR, d, 1, 1, "output_norm.weight");
    if (full) {
        w->rope_freqs =
            bz_bind(b, BZ_BIND_OPTIONAL | BZ_BIND_VECTOR, full / 2, 1, 1, "rope_freqs.weight");
    }
    a->pre_projection = bz_bind(b, 0, 2 * width, d, 1, "nextn.pre_projection.weight");
    a->post_projection = bz_bind(b, 0, d, width, 1, "nextn.post_projection.weight");
    bind_clusters(b, a, m->config.vocab);
}

bz_status bz_assistant_new(bz_assistant **out, bz_text_model *m, const bz_files *files,
                           bz_error *err)
{
    *out = NULL;
    if (files->assistant < 0) {
        return BZ_OK;
    }
    const bz_file *file = &files->files[files->assistant];
    bz_assistant *a = calloc(1, sizeof *a);
    if (!a) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "There is not enough memory for a drafter.");
    }
    bz_error why = {0};
    bz_binder b = {.table = &m->weights.table,
                   .files = files,
                   .only = file->gguf,
                   .only_file = (uint32_t)files->assistant,
                   .err = &why};
    bz_status status = m->config.canvas || m->config.embedding.embeds
                           ? bz_fail(&why, BZ_BAD_REQUEST,
                                     "Only models that write text token by token have a drafter.")
                           : read_config(&a->net, m, file->gguf, &why);
    if (status == BZ_OK) {
        bind(&b, a, m);
        status = b.failed ? why.code : BZ_OK;
    }
    if (status != BZ_OK) {
        bz_assistant_free(a);
        return bz_fail(err, why.code, "%.100s: %s", file->name ? file->name : "drafter", why.text);
    }
    *out = a;
    return BZ_OK;
}

/* ---- passes -------------------------------------------------------------------------------- */

/* Draft k of `count`: the best token for z. */
static void choose(bz_plan *p, const bz_assistant *a, bz_tensor z, uint32_t count, uint32_t k,
                   bz_tensor *ids)
{
    const bz_weight head = a->net.weights.token_embd;
    if (!a->centroids.id) {
        bz_best(p, bz_linear(p, z, head, "draft_head"), count, k, ids, "draft");
        return;
    }
    const uint32_t clusters = bz_weight_size(p, a->centroids, 1, "draft_centroids");
    bz_tensor top = bz_linear(p, z, a->centroids, "draft_centroids");
    top = bz_top(p, top, clusters < CLUSTERS ? clusters : CLUSTERS, "draft_clusters");
    const bz_tensor listed = bz_list_rows(p, top, a->ordering, "draft_list");
    bz_best_listed(p, bz_linear_listed(p, z, listed, head, "draft_head"), listed, count, k, ids,
                   "draft");
}

bz_status bz_assistant_record(const bz_text_model *m, uint32_t count, bz_plan **out, bz_error *err)
{
    const bz_assistant *a = m->assistant;
    const bz_text_model *net = &a->net;
    const bz_text_weights *w = &net->weights;
    const float scale = (float)sqrt(m->config.width);
    bz_plan *p = NULL;
    bz_status status = bz_plan_new(&p, &m->weights.table, m->caches, m->n_caches, 1, 1, err);
    if (status != BZ_OK) {
        return status;
    }
    p->drafts = true;
    const bz_ropes rope = bz_record_ropes(p, net);
    bz_tensor shared = bz_shared_tensor(p, m->config.width, true), ids = BZ_NO_TENSOR;
    bz_tensor state = bz_take_rows(p, shared, "draft_state");
    bz_tensor token = bz_embed(p, m->weights.token_embd, scale, "draft_embed");
    for (uint32_t k = 0; k < count; k++) {
        bz_tensor x = bz_concat(p, token, state, "draft_input");
        x = bz_linear(p, x, a->pre_projection, "draft_pre");
        for (uint32_t i = 0; i < net->config.layers; i++) {
            p->layer = (int32_t)i;
            x = bz_record_layer(p, net, i, x, BZ_NO_TENSOR, &rope, BZ_LAYER_OF_TEXT);
        }
        p->layer = -1;
        x = bz_rms_norm(p, x, w->output_norm, net->config.width, net->config.eps, "draft_norm");
        choose(p, a, x, count, k, &ids);
        if (k + 1 < count) {
            state = bz_linear(p, x, a->post_projection, "draft_post");
            token = bz_embed_best(p, ids, k, m->weights.token_embd, scale, "draft_embed");
        }
    }
    status = bz_plan_finish(p, ids, err);
    if (status != BZ_OK) {
        bz_plan_free(p);
        return status;
    }
    *out = p;
    return BZ_OK;
}
