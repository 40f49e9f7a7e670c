/* Binds the tensors of a Gemma 4 text model. */
#include "model/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/bind.h"

typedef struct binder {
    bz_text_weights *w;
    const bz_files *files;
    bz_error *err;
    int layer; /* -1: outside the layers */
    bool failed;
} binder;

enum { OPTIONAL = 1, VECTOR = 2 };

static void refuse(binder *b, bz_status code, const char *name, const char *what)
{
    if (!b->failed) {
        bz_fail(b->err, code, "The tensor %s %s.", name, what);
        b->failed = true;
    }
}

static void full_name(const binder *b, const char *name, char out[160])
{
    if (b->layer >= 0) {
        snprintf(out, 160, "blk.%d.%s", b->layer, name);
    } else {
        snprintf(out, 160, "%s", name);
    }
}

/* The tensor `name` (or `other`, an alternative spelling) of shape [ne0, ne1, ne2]; a size
 * of 0 takes what the file has. */
static bz_weight bind(binder *b, const char *name, const char *other, int flags, uint64_t ne0,
                      uint64_t ne1, uint64_t ne2)
{
    char full[160];
    size_t file = 0;
    full_name(b, name, full);
    const bz_gguf_tensor *t = b->failed ? NULL : bz_files_find(b->files, full, &file);
    if (!t && other && !b->failed) {
        char alternative[160];
        full_name(b, other, alternative);
        t = bz_files_find(b->files, alternative, &file);
        if (t) {
            memcpy(full, alternative, sizeof full);
        }
    }
    if (!t) {
        if (!(flags & OPTIONAL)) {
            refuse(b, BZ_BAD_FILE, full, "is missing");
        }
        return BZ_NO_WEIGHT;
    }
    const uint64_t want[3] = {ne0, ne1, ne2};
    bool fits = t->ne[3] == 1;
    for (int i = 0; i < 3; i++) {
        fits = fits && (want[i] == 0 || t->ne[i] == want[i]);
    }
    char what[160];
    if (!fits) {
        snprintf(what, sizeof what,
                 "has shape [%llu, %llu, %llu]; the configuration needs [%llu, %llu, %llu]",
                 (unsigned long long)t->ne[0], (unsigned long long)t->ne[1],
                 (unsigned long long)t->ne[2], (unsigned long long)(ne0 ? ne0 : t->ne[0]),
                 (unsigned long long)(ne1 ? ne1 : t->ne[1]),
                 (unsigned long long)(ne2 ? ne2 : t->ne[2]));
        refuse(b, BZ_BAD_FILE, full, what);
        return BZ_NO_WEIGHT;
    }
    const bz_type_info *type = bz_type_of(t->type);
    if (!type->runs || ((flags & VECTOR) && t->type != BZ_F32)) {
        snprintf(what, sizeof what,
                 flags & VECTOR ? "has type %s; norms and scales must be F32"
                                : "has type %s, which Bezel does not run",
                 type->name);
        refuse(b, BZ_UNSUPPORTED_MODEL, full, what);
        return BZ_NO_WEIGHT;
    }
    const bz_weight w =
        bz_bind_add(&b->w->table, &(bz_weight_info){.name = full,
                                                    .type = (bz_type)t->type,
                                                    .ne = {t->ne[0], t->ne[1], t->ne[2]},
                                                    .file = (uint32_t)file,
                                                    .offset = t->offset,
                                                    .size = t->size,
                                                    .layer = (uint32_t)(b->layer + 1)});
    if (!w.id) {
        refuse(b, BZ_OUT_OF_MEMORY, full, "does not fit in memory");
    }
    return w;
}

static bz_weight vector(binder *b, const char *name, const char *other, uint64_t n)
{
    return bind(b, name, other, VECTOR, n, 1, 1);
}

static bz_weight matrix(binder *b, const char *name, uint64_t in, uint64_t out)
{
    return bind(b, name, NULL, 0, in, out, 1);
}

static void bind_experts(binder *b, bz_config *c, bz_layer_weights *l)
{
    l->router_scale = vector(b, "ffn_gate_inp.scale", NULL, c->width);
    l->pre_ffw_norm_2 = vector(b, "pre_ffw_norm_2.weight", "ffn_pre_norm_2.weight", c->width);
    l->post_ffw_norm_1 = vector(b, "post_ffw_norm_1.weight", "ffn_post_norm_1.weight", c->width);
    l->post_ffw_norm_2 = vector(b, "post_ffw_norm_2.weight", "ffn_post_norm_2.weight", c->width);
    l->down_exps = bind(b, "ffn_down_exps.weight", NULL, 0, c->expert_ffn, c->width, c->experts);
    if (b->failed) {
        return;
    }
    c->expert_ffn = (uint32_t)bz_weight_of(&b->w->table, l->down_exps)->ne[0];
    l->gate_up_exps = bind(b, "ffn_gate_up_exps.weight", NULL, OPTIONAL, c->width,
                           2 * (uint64_t)c->expert_ffn, c->experts);
    if (!l->gate_up_exps.id) {
        l->gate_exps =
            bind(b, "ffn_gate_exps.weight", NULL, 0, c->width, c->expert_ffn, c->experts);
        l->up_exps = bind(b, "ffn_up_exps.weight", NULL, 0, c->width, c->expert_ffn, c->experts);
    }
    l->expert_scale = bind(b, "ffn_down_exps.scale", "ffn_gate_inp.per_expert_scale",
                           VECTOR | OPTIONAL, c->experts, 1, 1);
}

static void bind_layer(binder *b, bz_config *c, uint32_t i)
{
    bz_layer_weights *l = &b->w->layer[i];
    const bz_layer_config *lc = &c->layer[i];
    const uint64_t d = c->width, D = lc->head_dim, q = (uint64_t)lc->heads * D,
                   kv = (uint64_t)lc->kv_heads * D;
    b->layer = (int)i;
    l->attn_norm = vector(b, "attn_norm.weight", NULL, d);
    l->attn_q = matrix(b, "attn_q.weight", d, q);
    l->attn_q_norm = vector(b, "attn_q_norm.weight", NULL, D);
    if (lc->owns_kv) { /* sharing layers carry these too, unused */
        l->attn_k = matrix(b, "attn_k.weight", d, kv);
        l->attn_k_norm = vector(b, "attn_k_norm.weight", NULL, D);
        l->attn_v = bind(b, "attn_v.weight", NULL, c->embedding.embeds ? 0 : OPTIONAL, d, kv, 1);
    }
    l->attn_output = matrix(b, "attn_output.weight", q, d);
    l->post_attention_norm = vector(b, "post_attention_norm.weight", "attn_post_norm.weight", d);
    l->ffn_norm = vector(b, "ffn_norm.weight", "ffn_pre_norm.weight", d);
    l->ffn_gate = matrix(b, "ffn_gate.weight", d, lc->ffn);
    l->ffn_up = matrix(b, "ffn_up.weight", d, lc->ffn);
    l->ffn_down = matrix(b, "ffn_down.weight", lc->ffn, d);
    l->post_ffw_norm = vector(b, "post_ffw_norm.weight", "ffn_post_norm.weight", d);
    l->layer_output_scale =
        bind(b, "layer_output_scale.weight", "layer_scalar.weight", VECTOR | OPTIONAL, 1, 1, 1);
    if (c->canvas) { /* one scale for both roles where the file has one */
        l->encoder_output_scale =
            bind(b, "enc_layer_output_scale.weight", NULL, VECTOR | OPTIONAL, 1, 1, 1);
        l->encoder_output_scale =
            l->encoder_output_scale.id ? l->encoder_output_scale : l->layer_output_scale;
    }
    if (c->ple_width) {
        l->inp_gate = matrix(b, "inp_gate.weight", d, c->ple_width);
        l->proj = matrix(b, "proj.weight", c->ple_width, d);
        l->post_norm = vector(b, "post_norm.weight", NULL, d);
    }
    l->router = bind(b, "ffn_gate_inp.weight", NULL, OPTIONAL, d, c->experts, 1);
    char router[160];
    full_name(b, "ffn_gate_inp.weight", router);
    if (l->router.id && !c->experts) {
        refuse(b, BZ_BAD_FILE, router, "is a router, but the key gemma4.expert_count is missing");
    } else if (l->router.id) {
        bind_experts(b, c, l);
    } else if (c->experts) {
        refuse(b, BZ_BAD_FILE, router, "is missing");
    }
}

/* The dense layers after the mean. Without them the vector is the mean itself. */
static void bind_dense(binder *b, bz_config *c)
{
    bz_embedding_config *e = &c->embedding;
    e->size = c->width;
    for (int i = 0; i < 2; i++) {
        bz_weight *w = i ? &b->w->dense_3 : &b->w->dense_2;
        const uint32_t in = e->dense[2 * i], out = e->dense[2 * i + 1];
        char name[32], other[32];
        snprintf(name, sizeof name, "dense_%d.weight", i + 2);
        snprintf(other, sizeof other, "dense.%d.weight", i);
        *w = bind(b, name, other, in || out ? 0 : OPTIONAL, e->size, out, 1);
        if (in && in != e->size && !b->failed) {
            refuse(b, BZ_BAD_FILE, name, "has another input than its key says");
        }
        e->size = w->id ? (uint32_t)bz_weight_of(&b->w->table, *w)->ne[1] : e->size;
    }
}

bz_status bz_text_weights_bind(bz_text_weights *w, bz_config *c, const bz_files *files,
                               bz_error *err)
{
    *w = (bz_text_weights){0};
    binder b = {.w = w, .files = files, .err = err, .layer = -1};
    w->layer = calloc(c->layers, sizeof *w->layer);
    if (!w->layer) {
        return bz_fail(err, BZ_OUT_OF_MEMORY,
                       "There is not enough memory for the table of %u layers.", c->layers);
    }
    w->token_embd = bind(&b, "token_embd.weight", NULL, 0, c->width, c->vocab, 1);
    if (!b.failed) {
        c->vocab = (uint32_t)bz_weight_of(&w->table, w->token_embd)->ne[1];
    }
    const bool embeds = c->embedding.embeds;
    if (!embeds) {
        w->output = bind(&b, "output.weight", NULL, OPTIONAL, c->width, c->vocab, 1);
    }
    w->output = w->output.id ? w->output : w->token_embd;
    w->output_norm = vector(&b, "output_norm.weight", embeds ? "norm.weight" : NULL, c->width);
    if (c->ple_width) {
        const uint64_t all = (uint64_t)c->ple_width * c->layers;
        if (!embeds) {
            w->per_layer_token_embd = matrix(&b, "per_layer_token_embd.weight", all, c->vocab);
        }
        w->per_layer_model_proj = matrix(&b, "per_layer_model_proj.weight", c->width, all);
        w->per_layer_proj_norm = vector(&b, "per_layer_proj_norm.weight", NULL, c->ple_width);
    }
    if (embeds) {
        bind_dense(&b, c);
    }
    if (c->canvas) {
        w->self_cond_norm =
            vector(&b, "self_cond_pre_norm.weight", "self_cond_norm.weight", c->width);
        w->self_cond_gate = matrix(&b, "self_cond_gate.weight", c->width, 0);
        const uint64_t inner = b.failed ? 0 : bz_weight_of(&w->table, w->self_cond_gate)->ne[1];
        w->self_cond_up = matrix(&b, "self_cond_up.weight", c->width, inner);
        w->self_cond_down = matrix(&b, "self_cond_down.weight", inner, c->width);
    }
    for (uint32_t i = 0; i < c->layers && !w->rope_freqs.id && !b.failed && !embeds; i++) {
        if (!c->layer[i].sliding) { /* one tensor serves every full layer */
            w->rope_freqs = bind(&b, "rope_freqs.weight", NULL, VECTOR | OPTIONAL,
                                 c->layer[i].head_dim / 2, 1, 1);
            break;
        }
    }
    for (uint32_t i = 0; i < c->layers && !b.failed; i++) {
        bind_layer(&b, c, i);
    }
    if (b.failed) {
        bz_text_weights_free(w);
        return err ? err->code : BZ_BAD_FILE;
    }
    return BZ_OK;
}

void bz_text_weights_free(bz_text_weights *w)
{
    bz_bind_free(&w->table);
    free(w->layer);
    *w = (bz_text_weights){0};
}
