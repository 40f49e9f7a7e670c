/* Reads an adapter's header against a model. */
#include "model/adapter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 160 };

typedef struct reader {
    const bz_text_model *m;
    const bz_files *files;
    const bz_gguf *adapter;
    bz_pairs *out;
    bz_error *err;
} reader;

static const char suffix_a[] = ".lora_a", suffix_b[] = ".lora_b";

/* ---- keys ------------------------------------------------------------------------------- */

static bool has_text(const bz_gguf *g, const char *key, bz_str want)
{
    bz_str text;
    return bz_gguf_get_str(bz_gguf_find(g, key), &text) && text.len == want.len &&
           memcmp(text.data, want.data, want.len) == 0;
}

static bz_status check_text(const reader *r, const char *key, bz_str want, const char *what)
{
    if (has_text(r->adapter, key, want)) {
        return BZ_OK;
    }
    bz_str is = {"missing", 7};
    bz_gguf_get_str(bz_gguf_find(r->adapter, key), &is);
    return bz_fail(r->err, BZ_BAD_FILE, "This is no %s: the key %s is '%.*s', not '%.*s'.", what,
                   key, is.len < 60 ? (int)is.len : 60, is.data, (int)want.len, want.data);
}

static bz_status check_keys(const reader *r)
{
    const bz_gguf *g = r->adapter;
    bz_str architecture = {"", 0};
    bz_gguf_get_str(bz_gguf_find(r->files->main, "general.architecture"), &architecture);
    bz_status status =
        check_text(r, "general.type", (bz_str){"adapter", 7}, "adapter that Bezel reads");
    if (status == BZ_OK) {
        status = check_text(r, "adapter.type", (bz_str){"lora", 4}, "LoRA adapter");
    }
    if (status == BZ_OK) {
        status = check_text(r, "general.architecture", architecture, "adapter for this model");
    }
    if (status != BZ_OK) {
        return status;
    }
    if (bz_gguf_find(g, "adapter.alora.invocation_tokens")) {
        return bz_fail(r->err, BZ_UNSUPPORTED_MODEL,
                       "The adapter acts only after certain tokens (the key "
                       "adapter.alora.invocation_tokens); Bezel applies adapters to all tokens.");
    }
    double alpha = 0;
    const bz_gguf_kv *kv = bz_gguf_find(g, "adapter.lora.alpha");
    if (kv && (!bz_gguf_get_f64(kv, 0, &alpha) || !(fabs(alpha) <= 1e6))) {
        return bz_fail(r->err, BZ_BAD_FILE, "The key adapter.lora.alpha is not a usable number.");
    }
    r->out->alpha = (float)alpha;
    return BZ_OK;
}

/* ---- which weights can be adapted -------------------------------------------------------- */

typedef enum weight_kind { NO_PRODUCT, LINEAR, EXPERTS, TABLE } weight_kind;

static weight_kind kind_in_layer(const bz_layer_weights *l, uint32_t id)
{
    const bz_weight linear[] = {l->attn_q, l->attn_k,   l->attn_v,   l->attn_output, l->ffn_gate,
                                l->ffn_up, l->ffn_down, l->inp_gate, l->proj,        l->router};
    const bz_weight experts[] = {l->gate_up_exps, l->gate_exps, l->up_exps, l->down_exps};
    for (size_t i = 0; i < sizeof linear / sizeof *linear; i++) {
        if (linear[i].id == id) {
            return LINEAR;
        }
    }
    for (size_t i = 0; i < sizeof experts / sizeof *experts; i++) {
        if (experts[i].id == id) {
            return EXPERTS;
        }
    }
    return NO_PRODUCT;
}

static weight_kind kind_of(const bz_text_model *m, uint32_t id)
{
    const bz_text_weights *w = &m->weights;
    const uint32_t layer = bz_weight_of(&w->table, (bz_weight){id})->layer;
    if (layer) {
        return kind_in_layer(&w->layer[layer - 1], id);
    }
    if (id == w->token_embd.id) {
        return m->config.canvas ? NO_PRODUCT : TABLE; /* a canvas mixes rows of the table */
    }
    return id == w->per_layer_token_embd.id                         ? TABLE
           : id == w->output.id || id == w->per_layer_model_proj.id ? LINEAR
                                                                    : NO_PRODUCT;
}

bool bz_is_table(const bz_text_model *m, bz_weight w)
{
    return kind_of(m, w.id) == TABLE;
}

bz_weight bz_input_group(const bz_text_model *m, bz_weight w)
{
    const uint32_t layer = bz_weight_of(&m->weights.table, w)->layer;
    if (!layer) {
        return w;
    }
    const bz_layer_weights *l = &m->weights.layer[layer - 1];
    return w.id == l->attn_k.id || w.id == l->attn_v.id ? l->attn_q
           : w.id == l->ffn_up.id                       ? l->ffn_gate
                                                        : w;
}

/* The weight of that name, or none. */
static bz_weight find_weight(const bz_text_model *m, const char *name)
{
    const bz_weights *table = &m->weights.table;
    for (uint32_t i = 0; i < table->n; i++) {
        if (strcmp(table->info[i].name, name) == 0) {
            return (bz_weight){i + 1};
        }
    }
    return BZ_NO_WEIGHT;
}

/* Keys and values of a layer that reads another layer's cache: files have them, nothing reads them.
 */
static bool is_unread(const bz_text_model *m, const char *name)
{
    unsigned layer;
    int end = 0;
    if (sscanf(name, "blk.%9u.attn_%*1[kv].weight%n", &layer, &end) != 1 || name[end] || !end) {
        return false;
    }
    return layer < m->config.layers && !m->config.layer[layer].owns_kv;
}

static bz_status refuse_tensor(const reader *r, const char *name, const char *why)
{
    return bz_fail(r->err, BZ_UNSUPPORTED_MODEL, "The adapter changes %s, %s.", name, why);
}

/* The base tensor of a pair: its weight, or none for one that nothing reads, and its shape. */
static bz_status find_base(const reader *r, const char *name, bz_pair *pair)
{
    size_t file;
    const bz_gguf_tensor *t = bz_files_find(r->files, name, &file);
    const bz_text_weights *w = &r->m->weights;
    weight_kind kind = LINEAR;
    if (strncmp(name, "v.", 2) == 0 || strncmp(name, "a.", 2) == 0 ||
        strncmp(name, "mm.", 3) == 0) {
        return refuse_tensor(r, name,
                             "which belongs to the vision or audio encoder; Bezel applies "
                             "adapters to the text model only");
    }
    if (!t && strcmp(name, "output.weight") == 0 && w->output.id == w->token_embd.id) {
        return refuse_tensor(r, name,
                             "which this model does not have: its embeddings are its output "
                             "matrix, too");
    }
    if (!t) {
        return bz_fail(r->err, BZ_BAD_FILE,
                       "The adapter changes %s, which this model does not have. It was made for "
                       "another model, or for another form of this one's file.",
                       name);
    }
    pair->weight = find_weight(r->m, name);
    if (pair->weight.id) {
        kind = kind_of(r->m, pair->weight.id);
    } else if (!is_unread(r->m, name)) {
        kind = NO_PRODUCT;
    }
    if (kind == NO_PRODUCT) {
        return refuse_tensor(r, name, "which Bezel cannot change by an adapter");
    }
    pair->is_table = kind == TABLE;
    pair->in = t->ne[0];
    pair->out = t->ne[1];
    pair->experts = t->ne[2];
    if (pair->is_table) {
        pair->in = t->ne[1];
        pair->out = t->ne[0];
    }
    return BZ_OK;
}

/* ---- pairs --------------------------------------------------------------------------------- */

static bool has_shape(const bz_gguf_tensor *t, uint64_t ne0, uint64_t ne1, uint64_t ne2)
{
    return t->ne[0] == ne0 && t->ne[1] == ne1 && t->ne[2] == ne2 && t->ne[3] == 1;
}

static bool is_plain_type(const bz_gguf_tensor *t)
{
    return t->type == BZ_F32 || t->type == BZ_F16 || t->type == BZ_BF16 || t->type == BZ_Q8_0;
}

static bz_status wrong_shape(const reader *r, const bz_pair *p, const char *name)
{
    const uint64_t *a = p->a->ne, *b = p->b->ne;
    return bz_fail(r->err, BZ_BAD_FILE,
                   "The adapter's tensors for %s have shapes [%llu, %llu, %llu] and [%llu, %llu, "
                   "%llu], which do not fit the model's %llu x %llu%s.",
                   name, (unsigned long long)a[0], (unsigned long long)a[1],
                   (unsigned long long)a[2], (unsigned long long)b[0], (unsigned long long)b[1],
                   (unsigned long long)b[2], (unsigned long long)p->in, (unsigned long long)p->out,
                   p->is_table      ? " embeddings"
                   : p->experts > 1 ? " experts"
                                    : "");
}

/* name: of the base tensor. */
static bz_status read_pair(const reader *r, const char *name, bz_pair *p)
{
    const bz_status status = find_base(r, name, p);
    if (status != BZ_OK) {
        return status;
    }
    const uint64_t rank = p->b->ne[0];
    const bool fits =
        p->is_table
            ? has_shape(p->a, rank, p->in, 1) && has_shape(p->b, rank, p->out, 1)
            : has_shape(p->a, p->in, rank, p->experts) && has_shape(p->b, rank, p->out, p->experts);
    if (!fits) {
        return wrong_shape(r, p, name);
    }
    if (rank == 0 || rank > BZ_MAX_RANK) {
        return bz_fail(r->err, BZ_UNSUPPORTED_MODEL,
                       "The adapter's tensors for %s have rank %llu; Bezel runs ranks up to %d.",
                       name, (unsigned long long)rank, BZ_MAX_RANK);
    }
    if (!is_plain_type(p->a) || !is_plain_type(p->b)) {
        return bz_fail(r->err, BZ_UNSUPPORTED_MODEL,
                       "The adapter's tensors for %s have type %s and %s; adapters are F32, F16, "
                       "BF16 or Q8_0.",
                       name, bz_type_of(p->a->type)->name, bz_type_of(p->b->type)->name);
    }
    p->rank = (uint32_t)rank;
    return BZ_OK;
}

static bool ends_with(bz_str name, const char *suffix)
{
    const size_t n = strlen(suffix);
    return name.len >= n && memcmp(name.data + name.len - n, suffix, n) == 0;
}

/* The other half of the pair that `t` belongs to; NULL: it is missing. name: the base tensor. */
static const bz_gguf_tensor *other_half(const reader *r, const bz_gguf_tensor *t, const char *other,
                                        char name[NAME_BYTES])
{
    char full[NAME_BYTES + sizeof suffix_a];
    const int stem = (int)(t->name.len - strlen(suffix_a));
    snprintf(name, NAME_BYTES, "%.*s", stem, t->name.data);
    snprintf(full, sizeof full, "%s%s", name, other);
    return bz_gguf_find_tensor(r->adapter, full);
}

static bz_status read_tensor(const reader *r, const bz_gguf_tensor *t)
{
    bz_pairs *out = r->out;
    char name[NAME_BYTES];
    const bool is_a = ends_with(t->name, suffix_a), is_b = ends_with(t->name, suffix_b);
    const int shown = t->name.len < 100 ? (int)t->name.len : 100;
    if (ends_with(t->name, "_norm.weight")) {
        out->norms++;
        return BZ_OK;
    }
    if ((!is_a && !is_b) || t->name.len > 100) {
        return bz_fail(r->err, BZ_BAD_FILE,
                       "The adapter's tensor %.*s is neither half of a pair (.lora_a, .lora_b).",
                       shown, t->name.data);
    }
    const bz_gguf_tensor *other = other_half(r, t, is_a ? suffix_b : suffix_a, name);
    if (!other) {
        return bz_fail(r->err, BZ_BAD_FILE, "The adapter has %.*s, but not the other half.", shown,
                       t->name.data);
    }
    if (is_b) {
        return BZ_OK; /* read with the first half */
    }
    bz_pair *p = &out->list[out->n];
    *p = (bz_pair){.a = t, .b = other};
    const bz_status status = read_pair(r, name, p);
    if (status == BZ_OK) {
        out->least_rank = out->n && out->least_rank < p->rank ? out->least_rank : p->rank;
        out->most_rank = out->most_rank > p->rank ? out->most_rank : p->rank;
        out->idle += p->weight.id == 0;
        out->n++;
    }
    return status;
}

bz_status bz_pairs_read(bz_pairs *out, const bz_text_model *m, const bz_files *files,
                        const bz_gguf *adapter, bz_error *err)
{
    const reader r = {m, files, adapter, out, err};
    *out = (bz_pairs){0};
    if (m->config.embedding.embeds) {
        return bz_fail(err, BZ_UNSUPPORTED_MODEL,
                       "The model computes vectors of texts; Bezel applies adapters to models "
                       "that write text.");
    }
    bz_status status = check_keys(&r);
    if (status != BZ_OK) {
        return status;
    }
    out->list = calloc(adapter->n_tensors / 2 + 1, sizeof *out->list);
    if (!out->list) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the adapter's table of tensors.");
    }
    for (size_t i = 0; i < adapter->n_tensors && status == BZ_OK; i++) {
        status = read_tensor(&r, &adapter->tensors[i]);
    }
    if (status == BZ_OK && out->n == 0) {
        status =
            bz_fail(err, BZ_BAD_FILE, "The adapter changes nothing: it has no pair of tensors.");
    }
    if (status != BZ_OK) {
        bz_pairs_free(out);
    }
    return status;
}

void bz_pairs_free(bz_pairs *pairs)
{
    free(pairs->list);
    *pairs = (bz_pairs){0};
}

float bz_pair_factor(const bz_pairs *pairs, const bz_pair *pair)
{
    return pairs->alpha != 0.0f ? pairs->alpha / (float)pair->rank : 1.0f;
}
