/* `bezel show --json`: one object, with the same names for every file. */
#include "cli/show/show.h"

#include "cli/output.h"

/* Of a longer array only the first elements are written. */
enum { ARRAY_MAX = 1024, ARRAY_FIRST = 8 };

/* null for an empty string: the file does not have it. */
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

static void put_value(bz_json *j, const bz_debug_value *v)
{
    switch (v->kind) {
    case BZ_DEBUG_UINT: bz_json_uint(j, v->u); break;
    case BZ_DEBUG_INT: bz_json_int(j, v->i); break;
    case BZ_DEBUG_F32: bz_json_float(j, (float)v->f); break;
    case BZ_DEBUG_F64: bz_json_double(j, v->f); break;
    case BZ_DEBUG_BOOL: bz_json_bool(j, v->u != 0); break;
    case BZ_DEBUG_TEXT: bz_json_str(j, show_str(v->text)); break;
    case BZ_DEBUG_NOT_FINITE: bz_json_null(j); break;
    }
}

static void put_values(bz_json *j, const show_info *info, size_t file, size_t key, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        const bz_debug_value v = bz_debug_files_value(info->files, file, key, i);
        put_value(j, &v);
    }
}

/* key -> {type, value}; arrays also have their count, and "first" instead of "value" where only the
 * first elements are written. */
static void put_metadata(bz_json *j, const show_info *info, size_t file, size_t n_keys)
{
    bz_json_object(j);
    for (size_t i = 0; i < n_keys; i++) {
        const bz_debug_key key = bz_debug_files_key(info->files, file, i);
        const bool cut = key.is_array && key.count > ARRAY_MAX;
        bz_json_key_str(j, show_str(key.name));
        bz_json_object(j);
        bz_json_put_text(j, "type", key.type);
        if (key.is_array) {
            bz_json_put_uint(j, "count", key.count);
        }
        bz_json_key(j, cut ? "first" : "value");
        if (key.is_array) {
            bz_json_array(j);
        }
        put_values(j, info, file, i, cut ? ARRAY_FIRST : key.count);
        if (key.is_array) {
            bz_json_end(j);
        }
        bz_json_end(j);
    }
    bz_json_end(j);
}

static void put_tensors(bz_json *j, const show_info *info, size_t file, size_t n_tensors)
{
    bz_json_array(j);
    for (size_t i = 0; i < n_tensors; i++) {
        const bz_debug_tensor t = bz_debug_files_tensor(info->files, file, i);
        bz_json_object(j);
        bz_json_put_str(j, "name", show_str(t.name));
        bz_json_put_text(j, "type", t.type_name);
        bz_json_key(j, "shape");
        bz_json_array(j);
        for (uint32_t d = 0; d < t.n_dims; d++) {
            bz_json_uint(j, t.shape[d]);
        }
        bz_json_end(j);
        bz_json_put_uint(j, "bytes", t.bytes);
        bz_json_put_uint(j, "offset", t.offset);
        bz_json_end(j);
    }
    bz_json_end(j);
}

static void put_files(bz_json *j, const show_info *info)
{
    bz_json_array(j);
    for (size_t i = 0; i < info->set.n_files; i++) {
        const bz_debug_file file = bz_debug_files_file(info->files, i);
        bz_json_object(j);
        bz_json_put_text(j, "name", file.path);
        bz_json_put_uint(j, "bytes", file.size);
        bz_json_put_uint(j, "version", file.version);
        bz_json_put_uint(j, "alignment", file.alignment);
        bz_json_put_uint(j, "header_bytes", file.header_bytes);
        bz_json_put_uint(j, "data_offset", file.data_offset);
        bz_json_key(j, "metadata");
        put_metadata(j, info, i, file.n_keys);
        bz_json_key(j, "tensors");
        put_tensors(j, info, i, file.n_tensors);
        bz_json_end(j);
    }
    bz_json_end(j);
}

/* ---- the model ----------------------------------------------------------------------- */

static void put_layers(bz_json *j, const bz_debug_config *c)
{
    bz_json_array(j);
    for (uint32_t i = 0; i < c->layers; i++) {
        const bz_debug_layer *l = &c->layer[i];
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

static void put_model(bz_json *j, const show_info *info)
{
    const bz_debug_config *c = info->config;
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
    bz_json_put_text(j, "published_size", info->published);
    bz_json_put_uint(j, "layers", c->layers);
    bz_json_put_uint(j, "sliding_layers", sliding);
    bz_json_put_uint(j, "full_layers", c->layers - sliding);
    bz_json_put_uint(j, "shared_kv_layers", shared);
    bz_json_put_uint(j, "width", c->width);
    bz_json_put_uint(j, "vocabulary", c->vocabulary);
    bz_json_put_uint(j, "context", c->context);
    bz_json_put_uint(j, "window", c->window);
    bz_json_put_uint(j, "ple_width", c->ple_width);
    bz_json_put_uint(j, "experts", c->experts);
    bz_json_put_uint(j, "experts_used", c->experts_used);
    bz_json_put_uint(j, "expert_ffn", c->expert_ffn);
    bz_json_put_uint(j, "canvas", c->canvas);
    bz_json_put_float(j, "softcap", c->softcap);
    bz_json_put_float(j, "rms_epsilon", c->rms_epsilon);
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
    if (!t->present) {
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

static void put_end_tokens(bz_json *j, const bz_model *model)
{
    const int32_t size = (int32_t)bz_model_vocab(model);
    bz_json_array(j);
    for (int32_t id = 0; id < size; id++) {
        if (bz_token_ends(model, id)) {
            bz_str piece;
            piece.data = bz_token_piece(model, id, &piece.len);
            bz_json_object(j);
            bz_json_put_int(j, "id", id);
            bz_json_put_str(j, "text", piece);
            bz_json_end(j);
        }
    }
    bz_json_end(j);
}

static void put_tokenizer(bz_json *j, const show_info *info)
{
    const uint64_t tokens = show_count_key(info, "tokenizer.ggml.tokens");
    if (!tokens) {
        bz_json_null(j);
        return;
    }
    bz_json_object(j);
    key_str(j, "kind", show_text_key(info, "tokenizer.ggml.model"));
    bz_json_put_uint(j, "tokens", tokens);
    bz_json_put_uint(j, "merges", show_count_key(info, "tokenizer.ggml.merges"));
    bz_json_put_uint(j, "chat_template_bytes", show_text_key(info, "tokenizer.chat_template").len);
    if (info->model) {
        bz_json_put_int(j, "control_tokens", show_control_tokens(info->model));
        bz_json_put_int(j, "bos", show_first_token(info->model));
        bz_json_key(j, "end_tokens");
        put_end_tokens(j, info->model);
    }
    bz_json_end(j);
}

/* ---- sums ------------------------------------------------------------------------------ */

static void put_parameters(bz_json *j, const show_info *info)
{
    static const char *const names[SHOW_GROUPS] = {"text", "vision", "audio", "projector"};
    uint64_t total = 0;
    bz_json_object(j);
    for (int i = 0; i < SHOW_GROUPS; i++) {
        total += info->groups[i].values;
        bz_json_put_uint(j, names[i], info->groups[i].values);
    }
    bz_json_put_uint(j, "total", total);
    bz_json_end(j);
}

static void put_types(bz_json *j, const show_info *info)
{
    uint64_t total = 0;
    for (size_t i = 0; i < info->n_types; i++) {
        total += info->types[i].sum.bytes;
    }
    bz_json_array(j);
    for (size_t i = 0; i < info->n_types; i++) {
        const show_sum *s = &info->types[i].sum;
        const show_type *type = &info->types[i];
        bz_json_object(j);
        bz_json_put_text(j, "type", type->name);
        bz_json_put_uint(j, "tensors", s->tensors);
        bz_json_put_uint(j, "values", s->values);
        bz_json_put_uint(j, "bytes", s->bytes);
        bz_json_put_float(j, "share", total ? (float)((double)s->bytes / (double)total) : 0);
        bz_json_put_bool(j, "runs", type->runs);
        bz_json_end(j);
    }
    bz_json_end(j);
}

static void put_memory(bz_json *j, const show_info *info)
{
    const bz_debug_memory *m = &info->memory;
    if (!info->model) {
        bz_json_null(j);
        return;
    }
    bz_json_object(j);
    bz_json_put_uint(j, "weight_bytes", m->weight_bytes);
    bz_json_put_uint(j, "table_bytes", m->table_bytes);
    bz_json_put_uint(j, "weight_bytes_per_token", m->token_bytes);
    bz_json_put_uint(j, "activation_bytes", m->activation_bytes);
    bz_json_put_uint(j, "snapshot_bytes", m->snapshot_bytes);
    bz_json_put_uint(j, "chunk", m->chunk);
    bz_json_key(j, "by_context");
    bz_json_array(j);
    for (size_t i = 0; i < info->n_contexts; i++) {
        uint64_t cache = bz_debug_cache_bytes(info->model, info->kv, info->contexts[i], m->chunk);
        bz_json_object(j);
        bz_json_put_uint(j, "context", info->contexts[i]);
        bz_json_put_uint(j, "cache_bytes", cache);
        bz_json_put_uint(j, "total_bytes", cache + m->activation_bytes + m->weight_bytes);
        bz_json_end(j);
    }
    bz_json_end(j);
    bz_json_end(j);
}

static void put_gpu(bz_json *j, const show_info *info)
{
    const bz_fit *g = &info->gpu;
    if (!info->model) {
        bz_json_null(j);
        return;
    }
    bz_json_object(j);
    bz_json_put_uint(j, "context", info->gpu_context);
    bz_json_put_uint(j, "weight_bytes", g->weights);
    bz_json_put_uint(j, "tower_bytes", g->towers);
    bz_json_put_uint(j, "ple_bytes", g->ple);
    bz_json_put_uint(j, "cache_bytes", g->caches);
    bz_json_put_uint(j, "activation_bytes", g->work);
    bz_json_put_uint(j, "most_context", g->max_context);
    bz_json_put_text(j, "code", bz_status_name(info->gpu_refusal.code));
    bz_json_put_text(j, "text", info->gpu_refusal.text);
    bz_json_end(j);
}

static void put_adapter(bz_json *j, const show_adapter *a)
{
    if (!a->present) {
        bz_json_null(j);
        return;
    }
    bz_json_object(j);
    bz_json_put_uint(j, "pairs", a->pairs);
    bz_json_put_uint(j, "least_rank", a->least_rank);
    bz_json_put_uint(j, "most_rank", a->most_rank);
    bz_json_key(j, "alpha");
    bz_json_double(j, a->alpha);
    bz_json_end(j);
}

int show_as_json(const show_info *info)
{
    bz_json j;
    cli_json_begin(&j);
    bz_json_object(&j);
    bz_json_key(&j, "verdict");
    bz_json_object(&j);
    bz_json_put_bool(&j, "runs", info->model != NULL);
    bz_json_put_text(&j, "code", bz_status_name(info->model ? BZ_OK : info->refusal.code));
    bz_json_put_text(&j, "text", info->verdict);
    bz_json_end(&j);
    bz_json_put_uint(&j, "bytes", info->set.bytes);
    key_str(&j, "architecture", info->architecture);
    key_str(&j, "name", info->title);
    bz_json_put_text(&j, "flavor", info->set.flavor);
    bz_json_key(&j, "parameters");
    put_parameters(&j, info);
    bz_json_key(&j, "model");
    put_model(&j, info);
    bz_json_key(&j, "adapter");
    put_adapter(&j, &info->adapter);
    put_tower(&j, "vision", &info->vision, &info->groups[SHOW_VISION]);
    put_tower(&j, "audio", &info->audio, &info->groups[SHOW_AUDIO]);
    bz_json_key(&j, "tokenizer");
    put_tokenizer(&j, info);
    bz_json_key(&j, "types");
    put_types(&j, info);
    bz_json_key(&j, "memory");
    put_memory(&j, info);
    bz_json_key(&j, "gpu");
    put_gpu(&j, info);
    bz_json_key(&j, "files");
    put_files(&j, info);
    bz_json_end(&j);
    return cli_json_end(&j);
}
