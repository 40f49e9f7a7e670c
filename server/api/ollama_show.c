/* POST /api/show and GET /api/ps: what a model is, and which are loaded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "bezel_debug.h"
#include "server/api/ollama.h"

/* ---- show --------------------------------------------------------------------------------------
 */

typedef struct show {
    char *model;
    bool verbose;
} show;

static void free_show(void *user)
{
    show *s = user;
    free(s->model);
    free(s);
}

static void put_value(bz_json *j, const bz_debug_value *v)
{
    switch (v->kind) {
    case BZ_DEBUG_UINT: bz_json_uint(j, v->u); break;
    case BZ_DEBUG_INT: bz_json_int(j, v->i); break;
    case BZ_DEBUG_F32: bz_json_float(j, (float)v->f); break;
    case BZ_DEBUG_F64: bz_json_double(j, v->f); break;
    case BZ_DEBUG_BOOL: bz_json_bool(j, v->u != 0); break;
    case BZ_DEBUG_TEXT: bz_json_str(j, (bz_str){v->text.data, v->text.len}); break;
    case BZ_DEBUG_NOT_FINITE: bz_json_null(j); break;
    }
}

static const char TEMPLATE_KEY[] = "tokenizer.chat_template", NAME_KEY[] = "general.name";

/* The keys of a file. Arrays are null unless the request is verbose, and name and template are left
 * out, as in Ollama's answer. */
static void put_info(bz_json *j, const char *member, const bz_debug_files *files, size_t index,
                     bool verbose)
{
    const bz_debug_file file = bz_debug_files_file(files, index);
    bz_json_key(j, member);
    bz_json_object(j);
    for (size_t i = 0; i < file.n_keys; i++) {
        const bz_debug_key key = bz_debug_files_key(files, index, i);
        const bz_str name = {key.name.data, key.name.len};
        if (bz_str_is(name, TEMPLATE_KEY) || bz_str_is(name, NAME_KEY)) {
            continue;
        }
        bz_json_key_str(j, name);
        if (!key.is_array) {
            const bz_debug_value v = bz_debug_files_value(files, index, i, 0);
            put_value(j, &v);
        } else if (!verbose) {
            bz_json_null(j);
        } else {
            bz_json_array(j);
            for (uint64_t k = 0; k < key.count; k++) {
                const bz_debug_value v = bz_debug_files_value(files, index, i, k);
                put_value(j, &v);
            }
            bz_json_end(j);
        }
    }
    bz_json_end(j);
}

static void put_tensor(bz_json *j, const bz_debug_tensor *t)
{
    bz_json_object(j);
    bz_json_put_str(j, "name", (bz_str){t->name.data, t->name.len});
    bz_json_put_text(j, "type", t->type_name);
    bz_json_key(j, "shape");
    bz_json_array(j);
    for (uint32_t i = 0; i < t->n_dims; i++) {
        bz_json_uint(j, t->shape[i]);
    }
    bz_json_end(j);
    bz_json_end(j);
}

/* Of the model's own files [0, n_files). */
static void put_tensors(bz_json *j, const bz_debug_files *files, size_t n_files)
{
    bz_json_key(j, "tensors");
    bz_json_array(j);
    for (size_t i = 0; i < n_files; i++) {
        const bz_debug_file file = bz_debug_files_file(files, i);
        for (size_t k = 0; k < file.n_tensors; k++) {
            const bz_debug_tensor t = bz_debug_files_tensor(files, i, k);
            put_tensor(j, &t);
        }
    }
    bz_json_end(j);
}

static void put_template(bz_json *j, const bz_debug_files *files)
{
    const size_t main = bz_debug_files_set(files).main;
    size_t key;
    bz_debug_value v = {0};
    if (bz_debug_files_find(files, main, TEMPLATE_KEY, &key)) {
        v = bz_debug_files_value(files, main, key, 0);
    }
    bz_json_put_str(j, "template", (bz_str){v.text.data ? v.text.data : "", v.text.len});
}

static bool append_parameter(bz_json_buffer *text, const char *name, bz_store_number n)
{
    char line[80];
    const int len = n.set ? snprintf(line, sizeof line, "%-30s %g\n", name, n.value) : 0;
    return bz_json_to_buffer(text, line, (size_t)len);
}

/* "temperature 1", one a line. */
static void put_parameters(bz_json *j, const bz_store_params *p)
{
    bz_json_buffer text = {0};
    append_parameter(&text, "temperature", p->temperature);
    append_parameter(&text, "top_k", p->top_k);
    append_parameter(&text, "top_p", p->top_p);
    append_parameter(&text, "min_p", p->min_p);
    append_parameter(&text, "repeat_penalty", p->repeat_penalty);
    append_parameter(&text, "num_ctx", p->num_ctx);
    bz_json_put_str(j, "parameters", (bz_str){text.text ? text.text : "", text.n});
    free(text.text);
}

static bz_status write_show(const show *s, models *all, const engine_model *m, bz_json *j,
                            bz_error *err)
{
    const char *path, *mmproj;
    bz_store_model store;
    bz_debug_files *files = NULL;
    model_abilities takes;
    bz_status status = models_files(m, &store, &path, &mmproj, err);
    status = status == BZ_OK ? bz_debug_files_open(&files, path, mmproj, err) : status;
    status = status == BZ_OK ? models_abilities(all, m, &takes, err) : status;
    if (status == BZ_OK) {
        const bz_debug_set set = bz_debug_files_set(files);
        const size_t own = set.n_files - (mmproj != NULL); /* mmproj is the last */
        char time[API_TIME_SIZE];
        bz_json_object(j);
        bz_json_put_text(j, "modelfile", "");
        put_parameters(j, &store.params);
        put_template(j, files);
        bz_json_put_text(j, "system", store.system ? store.system : "");
        ollama_put_details(j, m);
        put_info(j, "model_info", files, set.main, s->verbose);
        if (mmproj) {
            put_info(j, "projector_info", files, own, s->verbose);
        }
        put_tensors(j, files, own);
        ollama_put_capabilities(j, &takes);
        bz_json_put_text(j, "modified_at", api_time_of(m->details.modified, time));
        bz_json_end(j);
    }
    bz_debug_files_free(files);
    bz_store_model_free(&store);
    return status;
}

static bz_status run_show(void *user, engine *e, engine_model *none, bz_json *j, bz_error *err)
{
    const show *s = user;
    engine_model *m;
    (void)none;
    const bz_status status = models_find(engine_models(e), s->model, &m, err);
    return status == BZ_OK ? write_show(s, engine_models(e), m, j, err) : status;
}

void ollama_show(void *user, exchange *x)
{
    bz_arena arena = {0};
    const bz_json_node *root;
    bz_error err = {0};
    engine_request common = {0};
    if (!api_read_body(x, API_OLLAMA, &arena, &root)) {
        return;
    }
    show *s = calloc(1, sizeof *s);
    if (!s) {
        bz_fail(&err, BZ_OUT_OF_MEMORY, "Not enough memory for the request.");
    } else if (ollama_read_common(root, &common, &err) == BZ_OK &&
               api_read_bool(root, "verbose", false, &s->verbose, &err)) {
        s->model = common.model;
        common.model = NULL;
    }
    bz_arena_free(&arena);
    engine_request_free(&common);
    if (err.code) {
        free(s);
        api_error(x, API_OLLAMA, &err);
        return;
    }
    engine_request r = {.task = ENGINE_RUN,
                        .without_model = true,
                        .run = run_show,
                        .user = s,
                        .free_user = free_show};
    api_run(user, x, API_OLLAMA, &r);
}

/* ---- ps ----------------------------------------------------------------------------------------
 */

/* A model that stays for ever has a time far away, as from Ollama. */
static void put_end(bz_json *j, const engine_model *m)
{
    static const int64_t century = 3153600000; /* seconds */
    const uint64_t end = models_end_of(m), now = bz_os_now();
    const int64_t left = !end || m->running ? 0
                         : end > now        ? (int64_t)((end - now) / 1000000000)
                                            : 0;
    char time[API_TIME_SIZE];
    bz_json_put_text(j, "expires_at", api_time_of(os_clock() + (end ? left : century), time));
}

static bool put_loaded(void *user, const engine_model *m)
{
    bz_json *j = user;
    if (!m->model) {
        return true;
    }
    bz_json_object(j);
    bz_json_put_text(j, "name", m->name);
    bz_json_put_text(j, "model", m->name);
    bz_json_put_uint(j, "size", models_memory(m));
    bz_json_put_text(j, "digest", m->details.digest);
    ollama_put_details(j, m);
    put_end(j, m);
    bz_json_put_uint(j, "size_vram", m->on_gpu ? models_memory(m) : 0);
    bz_json_put_uint(j, "context_length", m->context);
    bz_json_end(j);
    return true;
}

static bz_status run_ps(void *user, engine *e, engine_model *m, bz_json *j, bz_error *err)
{
    (void)user;
    (void)m;
    bz_json_object(j);
    bz_json_key(j, "models");
    bz_json_array(j);
    const bz_status status = models_each(engine_models(e), put_loaded, j, err);
    bz_json_end(j);
    bz_json_end(j);
    return status;
}

void ollama_ps(void *user, exchange *x)
{
    api_run_plain(user, x, API_OLLAMA, run_ps);
}
