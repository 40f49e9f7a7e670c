/* The facts for programs: one object, the same names whatever the file is. */
#include "cli/show/show.h"

#include "cli/output.h"
#include "plan/print.h"

enum { ARRAY_MOST = 1024, ARRAY_FIRST = 8 };

/* An empty string is one that the file does not have. */
static void key_str(bz_json *j, const char *key, bz_str value)
{
    bz_json_key(j, key);
    if (value.len) {
        bz_json_str(j, value);
    } else {
        bz_json_null(j);
    }
}

/* ---- metadata --------------------------------------------------------------------- */

static void put_number(bz_json *j, const bz_gguf_kv *kv, uint64_t index)
{
    uint64_t u;
    int64_t i;
    double d;
    bool b;
    if (kv->type == BZ_GGUF_BOOL && bz_gguf_get_bool(kv, index, &b)) {
        bz_json_bool(j, b);
    } else if (kv->type == BZ_GGUF_F32 && bz_gguf_get_f64(kv, index, &d)) {
        bz_json_float(j, (float)d);
    } else if (kv->type == BZ_GGUF_F64 && bz_gguf_get_f64(kv, index, &d)) {
        bz_json_double(j, d);
    } else if (bz_gguf_get_u64(kv, index, &u)) {
        bz_json_uint(j, u);
    } else if (bz_gguf_get_i64(kv, index, &i)) {
        bz_json_int(j, i);
    } else {
        bz_json_null(j); /* not a finite number */
    }
}

static void put_array(bz_json *j, const bz_gguf_kv *kv)
{
    uint64_t n = kv->count > ARRAY_MOST ? ARRAY_FIRST : kv->count;
    size_t cursor = 0;
    bz_json_array(j);
    for (uint64_t i = 0; i < n; i++) {
        bz_str s;
        if (kv->type != BZ_GGUF_STRING) {
            put_number(j, kv, i);
        } else if (bz_gguf_next_str(kv, &cursor, &s)) {
            bz_json_str(j, s);
        }
    }
    bz_json_end(j);
}

/* key -> {type, value}; arrays also have their count, and "first" instead of "value" where
 * only the beginning is given. */
static void put_metadata(bz_json *j, const bz_gguf *g)
{
    bz_json_object(j);
    for (size_t i = 0; i < g->n_kv; i++) {
        const bz_gguf_kv *kv = &g->kv[i];
        bz_str s;
        bz_json_key_str(j, kv->key);
        bz_json_object(j);
        bz_json_put_text(j, "type", show_value_type(kv->type));
        if (kv->is_array) {
            bz_json_put_uint(j, "count", kv->count);
            bz_json_key(j, kv->count > ARRAY_MOST ? "first" : "value");
            put_array(j, kv);
        } else {
            bz_json_key(j, "value");
            if (bz_gguf_get_str(kv, &s)) {
                bz_json_str(j, s);
            } else {
                put_number(j, kv, 0);
            }
        }
        bz_json_end(j);
    }
    bz_json_end(j);
}

static void put_tensors(bz_json *j, const bz_gguf *g)
{
    bz_json_array(j);
    for (size_t i = 0; i < g->n_tensors; i++) {
        const bz_gguf_tensor *t = &g->tensors[i];
        bz_json_object(j);
        bz_json_put_str(j, "name", t->name);
        bz_json_put_text(j, "type", bz_type_of(t->type)->name);
        bz_json_key(j, "shape");
        bz_json_array(j);
        for (uint32_t d = 0; d < t->n_dims && d < 4; d++) {
            bz_json_uint(j, t->ne[d]);
        }
        bz_json_end(j);
        bz_json_put_uint(j, "bytes", t->size);
        bz_json_put_uint(j, "offset", t->offset);
        bz_json_end(j);
    }
    bz_json_end(j);
}

static void put_files(bz_json *j, const show_facts *f)
{
    bz_json_array(j);
    for (size_t i = 0; i < f->n_files; i++) {
        const bz_gguf *g = &f->headers[i];
        bz_json_object(j);
        bz_json_put_text(j, "name", f->names[i]);
        bz_json_put_uint(j, "bytes", f->files[i].size);
        bz_json_put_uint(j, "version", g->version);
        bz_json_put_uint(j, "alignment", g->alignment);
        bz_json_put_uint(j, "header_bytes", g->header_size);
        bz_json_put_uint(j, "data_offset", g->data_start);
        bz_json_key(j, "metadata");
        put_metadata(j, g);
        bz_json_key(j, "tensors");
        put_tensors(j, g);
        bz_json_end(j);
    }
    bz_json_end(j);
}

/* ---- the model ----------------------------------------------------------------------- */

static void put_layers(bz_json *j, const bz_config *c)
{
    bz_json_array(j);
    for (uint32_t i = 0; i < c->layers; i++) {
        const bz_layer_config *l = &c->layer[i];
        bz_json_object(j);
        bz_json_put_text(j, "kind", l->sliding ? "sliding" : "full");
        bz_json_put_uint(j, "heads", l->heads);
        bz_json_put_uint(j, "kv_heads", l->kv_heads);
        bz_json_put_uint(j, "head_dim", l->head_dim);
        bz_json_put_uint(j, "ffn", l->ffn);
        bz_json_put_bool(j, "owns_kv", l->owns_kv);
        bz_json_put_uint(j, "kv_layer", l->kv_layer);
        bz_json_end(j);
    }
    bz_json_end(j);
}

static void put_model(bz_json *j, const show_facts *f)
{
    const bz_config *c = f->config;
    uint32_t sliding = 0, shared = 0;
    if (!c) {
        bz_json_null(j);
        return;
    }
    for (uint32_t i = 0; i < c->layers; i++) {
        sliding += c->layer[i].sliding;
        shared += !c->layer[i].owns_kv;
    }
    bz_json_object(j);
    bz_json_put_text(j, "published_size", f->published);
    bz_json_put_uint(j, "layers", c->layers);
    bz_json_put_uint(j, "sliding_layers", sliding);
    bz_json_put_uint(j, "full_layers", c->layers - sliding);
    bz_json_put_uint(j, "shared_kv_layers", shared);
    bz_json_put_uint(j, "width", c->width);
    bz_json_put_uint(j, "vocabulary", c->vocab);
    bz_json_put_uint(j, "context", c->context);
    bz_json_put_uint(j, "window", c->window);
    bz_json_put_uint(j, "ple_width", c->ple_width);
    bz_json_put_uint(j, "experts", c->experts);
    bz_json_put_uint(j, "experts_used", c->experts_used);
    bz_json_put_uint(j, "expert_ffn", c->expert_ffn);
    bz_json_put_uint(j, "canvas", c->canvas);
    bz_json_put_float(j, "softcap", c->softcap);
    bz_json_put_float(j, "rms_epsilon", c->eps);
    bz_json_key(j, "rope_base");
    bz_json_double(j, c->rope_base);
    bz_json_key(j, "rope_base_sliding");
    bz_json_double(j, c->rope_base_sliding);
    bz_json_key(j, "layer");
    put_layers(j, c);
    bz_json_end(j);
}

static void put_tower(bz_json *j, const char *key, const show_tower *t, const show_sum *sum)
{
    bz_json_key(j, key);
    if (!t->there) {
        bz_json_null(j);
        return;
    }
    bz_json_object(j);
    bz_json_put_uint(j, "layers", t->layers);
    bz_json_put_uint(j, "width", t->width);
    key_str(j, "projector", t->projector);
    bz_json_put_uint(j, "tensors", sum->tensors);
    bz_json_put_uint(j, "bytes", sum->bytes);
    bz_json_end(j);
}

static void put_tokenizer(bz_json *j, const show_facts *f)
{
    const bz_gguf *g = show_main(f);
    const bz_gguf_kv *tokens = bz_gguf_find(g, "tokenizer.ggml.tokens");
    const bz_gguf_kv *merges = bz_gguf_find(g, "tokenizer.ggml.merges");
    bz_str kind = {"", 0}, template = {"", 0};
    if (!tokens) {
        bz_json_null(j);
        return;
    }
    bz_gguf_get_str(bz_gguf_find(g, "tokenizer.ggml.model"), &kind);
    bz_gguf_get_str(bz_gguf_find(g, "tokenizer.chat_template"), &template);
    bz_json_object(j);
    key_str(j, "kind", kind);
    bz_json_put_uint(j, "tokens", tokens->count);
    bz_json_put_uint(j, "merges", merges ? merges->count : 0);
    bz_json_put_uint(j, "chat_template_bytes", template.len);
    if (f->model) {
        const bz_tokenizer *t = f->model->tokenizer;
        int32_t control = 0, size = bz_tokenizer_size(t);
        for (int32_t id = 0; id < size; id++) {
            control += bz_tokenizer_is_control(t, id);
        }
        bz_json_put_int(j, "control_tokens", control);
        bz_json_put_int(j, "bos", bz_tokenizer_special(t)->bos);
        bz_json_key(j, "end_tokens");
        bz_json_array(j);
        for (int32_t id = 0; id < size; id++) {
            if (bz_tokenizer_is_end(t, id)) {
                bz_json_object(j);
                bz_json_put_int(j, "id", id);
                bz_json_put_str(j, "text", bz_tokenizer_piece(t, id));
                bz_json_end(j);
            }
        }
        bz_json_end(j);
    }
    bz_json_end(j);
}

/* ---- sums ------------------------------------------------------------------------------ */

static void put_parameters(bz_json *j, const show_facts *f)
{
    static const char *const names[SHOW_GROUPS] = {"text", "vision", "audio", "projector"};
    uint64_t total = 0;
    bz_json_object(j);
    for (int i = 0; i < SHOW_GROUPS; i++) {
        total += f->groups[i].values;
        bz_json_put_uint(j, names[i], f->groups[i].values);
    }
    bz_json_put_uint(j, "total", total);
    bz_json_end(j);
}

static void put_types(bz_json *j, const show_facts *f)
{
    uint64_t total = 0;
    for (size_t i = 0; i < f->n_types; i++) {
        total += f->types[i].sum.bytes;
    }
    bz_json_array(j);
    for (size_t i = 0; i < f->n_types; i++) {
        const show_sum *s = &f->types[i].sum;
        const bz_type_info *info = bz_type_of(f->types[i].id);
        bz_json_object(j);
        bz_json_put_text(j, "type", info->name);
        bz_json_put_uint(j, "tensors", s->tensors);
        bz_json_put_uint(j, "values", s->values);
        bz_json_put_uint(j, "bytes", s->bytes);
        bz_json_put_float(j, "share", total ? (float)((double)s->bytes / (double)total) : 0);
        bz_json_put_bool(j, "runs", info->runs);
        bz_json_end(j);
    }
    bz_json_end(j);
}

static void put_memory(bz_json *j, const show_facts *f)
{
    const bz_memory *m = &f->memory;
    if (!f->model) {
        bz_json_null(j);
        return;
    }
    bz_json_object(j);
    bz_json_put_uint(j, "weight_bytes", m->weight_bytes);
    bz_json_put_uint(j, "table_bytes", m->table_bytes);
    bz_json_put_uint(j, "weight_bytes_per_token", m->token_bytes);
    bz_json_put_uint(j, "activation_bytes", m->arena_bytes);
    bz_json_put_uint(j, "snapshot_bytes", m->snapshot_bytes);
    bz_json_put_uint(j, "chunk", m->chunk);
    bz_json_key(j, "by_context");
    bz_json_array(j);
    for (size_t i = 0; i < f->n_contexts; i++) {
        uint64_t cache = bz_memory_cache(&f->model->text, f->contexts[i], m->chunk);
        bz_json_object(j);
        bz_json_put_uint(j, "context", f->contexts[i]);
        bz_json_put_uint(j, "cache_bytes", cache);
        bz_json_put_uint(j, "total_bytes", cache + m->arena_bytes + m->weight_bytes);
        bz_json_end(j);
    }
    bz_json_end(j);
    bz_json_end(j);
}

static void put_gpu(bz_json *j, const show_facts *f)
{
    const bz_fit *g = &f->gpu;
    if (!f->model) {
        bz_json_null(j);
        return;
    }
    bz_json_object(j);
    bz_json_put_uint(j, "context", f->gpu_context);
    bz_json_put_uint(j, "weight_bytes", g->weights);
    bz_json_put_uint(j, "tower_bytes", g->towers);
    bz_json_put_uint(j, "ple_bytes", g->ple);
    bz_json_put_uint(j, "cache_bytes", g->caches);
    bz_json_put_uint(j, "activation_bytes", g->work);
    bz_json_put_uint(j, "most_context", g->most_context);
    bz_json_put_text(j, "code", bz_status_name(f->gpu_refusal.code));
    bz_json_put_text(j, "text", f->gpu_refusal.text);
    bz_json_end(j);
}

int show_as_json(const show_facts *f)
{
    bz_json j;
    cli_json_begin(&j);
    bz_json_object(&j);
    bz_json_key(&j, "verdict");
    bz_json_object(&j);
    bz_json_put_bool(&j, "runs", f->model != NULL);
    bz_json_put_text(&j, "code", bz_status_name(f->model ? BZ_OK : f->refusal.code));
    bz_json_put_text(&j, "text", f->verdict);
    bz_json_end(&j);
    bz_json_put_uint(&j, "bytes", f->total_size);
    key_str(&j, "architecture", f->architecture);
    key_str(&j, "name", f->title);
    bz_json_put_text(&j, "flavour", f->flavour);
    bz_json_key(&j, "parameters");
    put_parameters(&j, f);
    bz_json_key(&j, "model");
    put_model(&j, f);
    put_tower(&j, "vision", &f->vision, &f->groups[SHOW_VISION]);
    put_tower(&j, "audio", &f->audio, &f->groups[SHOW_AUDIO]);
    bz_json_key(&j, "tokenizer");
    put_tokenizer(&j, f);
    bz_json_key(&j, "types");
    put_types(&j, f);
    bz_json_key(&j, "memory");
    put_memory(&j, f);
    bz_json_key(&j, "gpu");
    put_gpu(&j, f);
    bz_json_key(&j, "files");
    put_files(&j, f);
    bz_json_end(&j);
    return cli_json_end(&j);
}

/* ---- the plan ---------------------------------------------------------------------------- */

static void put_step(bz_json *j, const bz_plan *p, const bz_step *s)
{
    const bz_tensor *lists[2] = {s->in, s->out};
    bz_json_object(j);
    bz_json_put_text(j, "name", s->name);
    bz_json_put_text(j, "op", bz_op_name(s->op));
    bz_json_key(j, "layer");
    if (s->layer < 0) {
        bz_json_null(j);
    } else {
        bz_json_int(j, s->layer);
    }
    for (int k = 0; k < 2 && s->op != BZ_OP_CUT; k++) {
        bz_json_key(j, k ? "out" : "in");
        bz_json_array(j);
        for (int i = 0; i < (k ? 2 : 3); i++) {
            if (lists[k][i].id) {
                bz_json_array(j);
                bz_json_uint(j, bz_plan_rows_of(p, lists[k][i]));
                bz_json_uint(j, bz_plan_tensor(p, lists[k][i])->cols);
                bz_json_end(j);
            }
        }
        bz_json_end(j);
    }
    if (s->cache.id) {
        bz_json_put_int(j, "cache_layer", p->caches[s->cache.id - 1].layer);
    }
    if (s->op == BZ_OP_ATTEND) {
        bz_json_put_uint(j, "heads", s->heads);
        bz_json_put_uint(j, "window", s->window);
    }
    if (s->w[0].id) {
        const bz_weight_info *w = bz_weight_of(p->weights, s->w[0]);
        bz_json_put_text(j, "weight", w->name);
        bz_json_put_text(j, "type", bz_type_of((uint32_t)w->type)->name);
        bz_json_put_uint(j, "weight_bytes", bz_step_weight_bytes(p, s));
    }
    if (s->op != BZ_OP_CUT) {
        bz_json_put_uint(j, "output_bytes", bz_step_output_bytes(p, s));
    }
    bz_json_end(j);
}

static void put_dispatches(bz_json *j, const show_gpu *g)
{
    bz_json_put_text(j, "adapter", g->adapter);
    bz_json_key(j, "dispatches");
    bz_json_array(j);
    for (size_t i = 0; i < g->n; i++) {
        const bz_gpu_dispatch *d = &g->dispatches[i];
        bz_json_object(j);
        bz_json_put_text(j, "kernel", d->name);
        bz_json_put_uint(j, "first_step", d->first_step); /* of "plan", from 0 */
        bz_json_put_uint(j, "steps", d->steps);
        bz_json_key(j, "early_steps"); /* further on in it */
        bz_json_array(j);
        for (uint32_t k = 0; k < d->n_early; k++) {
            bz_json_uint(j, d->early[k]);
        }
        bz_json_end(j);
        bz_json_key(j, "workgroups");
        bz_json_array(j);
        bz_json_uint(j, d->x);
        bz_json_uint(j, d->y);
        bz_json_end(j);
        bz_json_end(j);
    }
    bz_json_end(j);
}

int show_plan_as_json(const bz_plan *p, const show_gpu *g)
{
    const bz_plan_totals t = bz_plan_count(p);
    bz_json j;
    cli_json_begin(&j);
    bz_json_object(&j);
    bz_json_put_uint(&j, "rows", p->rows);
    bz_json_put_uint(&j, "logit_rows", p->out_rows);
    bz_json_put_uint(&j, "steps", t.steps);
    bz_json_put_uint(&j, "segments", t.segments);
    bz_json_put_uint(&j, "weight_bytes", t.weight_bytes);
    bz_json_put_uint(&j, "table_row_bytes", t.row_bytes);
    bz_json_put_uint(&j, "output_bytes", t.output_bytes);
    bz_json_put_uint(&j, "arena_bytes", t.arena_bytes);
    bz_json_key(&j, "plan");
    bz_json_array(&j);
    for (size_t i = 0; i < p->n_steps; i++) {
        put_step(&j, p, &p->steps[i]);
    }
    bz_json_end(&j);
    if (g) {
        put_dispatches(&j, g);
    }
    bz_json_end(&j);
    return cli_json_end(&j);
}
