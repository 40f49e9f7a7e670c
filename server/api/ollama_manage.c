/* Names of the store: /api/copy and /api/delete; what only Ollama has is refused. */
#include <stdlib.h>
#include <string.h>

#include "server/api/ollama.h"
#include "store/write.h"

/* What runs on the engine's thread, as that one loads and unloads models. */
typedef struct change {
    char *model, *to; /* to: NULL to delete */
} change;

static void change_free(void *user)
{
    change *c = user;
    free(c->model);
    free(c->to);
    free(c);
}

/* Ollama's words for a model that does not exist. */
static bz_status no_model(const change *c, bz_error *err)
{
    return bz_fail(err, BZ_NOT_FOUND, "model '%.200s' not found", c->model);
}

static bz_status copy_model(void *user, engine *e, engine_model *m, bz_json *j, bz_error *err)
{
    const change *c = user;
    (void)e;
    (void)m;
    bz_status status = bz_store_copy(c->model, c->to, err);
    status = status == BZ_NOT_FOUND ? no_model(c, err) : status;
    bz_json_object(j);
    bz_json_end(j);
    return status;
}

static bz_status delete_model(void *user, engine *e, engine_model *unused, bz_json *j,
                              bz_error *err)
{
    const change *c = user;
    engine_model *m = NULL;
    (void)unused;
    bz_status status = BZ_OK;
    if (models_find(engine_models(e), c->model, &m, NULL) == BZ_OK && m->path) {
        status = bz_fail(err, BZ_BAD_REQUEST,
                         "%.200s is a file that the server was started with, not a model of the "
                         "store; it is not deleted.",
                         c->model);
    } else if (m && m->model && !models_in_use(m)) {
        models_unload(m);
    } else if (m && m->model) {
        m->unload = true; /* the files stay readable until then */
    }
    if (status == BZ_OK) {
        status = bz_store_remove(c->model, err);
        status = status == BZ_NOT_FOUND ? no_model(c, err) : status;
    }
    bz_json_object(j);
    bz_json_end(j);
    return status;
}

/* Takes the strings over. */
static void submit(api *a, exchange *x, engine_function run, char *model, char *to)
{
    change *c = calloc(1, sizeof *c);
    if (!c || !model) {
        free(c);
        free(model);
        free(to);
        bz_error err;
        bz_fail(&err, BZ_OUT_OF_MEMORY, "Not enough memory.");
        api_error(x, API_OLLAMA, &err);
        return;
    }
    *c = (change){model, to};
    engine_request r = {
        .task = ENGINE_RUN, .without_model = true, .run = run, .user = c, .free_user = change_free};
    api_run(a, x, API_OLLAMA, &r);
}

void ollama_copy(void *user, exchange *x)
{
    bz_arena arena = {0};
    const bz_json_node *root;
    if (!api_read_body(x, API_OLLAMA, &arena, &root)) {
        return;
    }
    const bz_json_node *from = bz_json_get(root, "source"), *to = bz_json_get(root, "destination");
    if (bz_json_string(from).len && bz_json_string(to).len) {
        submit(user, x, copy_model, api_copy_text(from), api_copy_text(to));
    } else {
        api_refuse(x, API_OLLAMA, 400, "source and destination are names of models.");
    }
    bz_arena_free(&arena);
}

void ollama_delete(void *user, exchange *x)
{
    bz_arena arena = {0};
    const bz_json_node *root;
    if (!api_read_body(x, API_OLLAMA, &arena, &root)) {
        return;
    }
    const bz_json_node *model = bz_json_get(root, "model");
    model = api_is_absent(model) ? bz_json_get(root, "name") : model; /* older clients say name */
    if (bz_json_string(model).len) {
        submit(user, x, delete_model, api_copy_text(model), NULL);
    } else {
        api_refuse(x, API_OLLAMA, 400, "model is the name of a model.");
    }
    bz_arena_free(&arena);
}

void ollama_no_creation(void *user, exchange *x)
{
    (void)user;
    api_refuse(x, API_OLLAMA, 501, "models cannot be created or published here; use ollama");
}
