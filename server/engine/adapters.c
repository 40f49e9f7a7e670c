#include "server/engine/adapters.h"

#include <stdlib.h>
#include <string.h>

/* Opens the file for the model's header alone. */
static bz_status check(const engine_model *m, const char *path, bz_error *err)
{
    const bz_open_options o = {.size = sizeof o, .headers_only = true};
    const char *file, *mmproj;
    bz_store_model store;
    bz_model *header = NULL;
    bz_adapter *adapter = NULL;
    bz_status status = models_files(m, &store, &file, &mmproj, err);
    status = status == BZ_OK ? bz_model_open_file(&header, file, mmproj, &o, err) : status;
    status = status == BZ_OK ? bz_adapter_open_file(&adapter, header, path, err) : status;
    bz_adapter_free(adapter);
    bz_model_free(header);
    bz_store_model_free(&store);
    return status;
}

bz_status model_adapters_add(engine_model *m, const char *path, float scale, bz_error *err)
{
    const bz_status status = check(m, path, err);
    if (status != BZ_OK) {
        return status;
    }
    model_adapter *more = realloc(m->added, (m->n_added + 1) * sizeof *more);
    char *copy = strdup(path);
    m->added = more ? more : m->added;
    if (!more || !copy) {
        free(copy);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the list of adapters.");
    }
    m->added[m->n_added++] = (model_adapter){copy, scale};
    return BZ_OK;
}

void model_adapters_forget(engine_model *m)
{
    for (size_t i = 0; i < m->n_added; i++) {
        free(m->added[i].path);
    }
    free(m->added);
}

static bz_status open_one(engine_model *m, const char *path, float scale, bz_error *err)
{
    bz_adapter *a;
    const bz_status status = bz_adapter_open_file(&a, m->model, path, err);
    if (status == BZ_OK) {
        m->adapters[m->n_adapters++] = (bz_adapter_use){a, scale};
    }
    return status;
}

bz_status model_adapters_open(engine_model *m, bz_error *err)
{
    const size_t n = m->store.n_adapters + m->n_added;
    bz_status status = BZ_OK;
    m->adapters = n ? calloc(n, sizeof *m->adapters) : NULL;
    if (n && !m->adapters) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the list of adapters.");
    }
    for (size_t i = 0; i < m->store.n_adapters && status == BZ_OK; i++) {
        status = open_one(m, m->store.adapters[i], 1, err);
    }
    for (size_t i = 0; i < m->n_added && status == BZ_OK; i++) {
        status = open_one(m, m->added[i].path, m->added[i].scale, err);
    }
    return status;
}

void model_adapters_close(engine_model *m)
{
    for (size_t i = 0; i < m->n_adapters; i++) {
        bz_adapter_free(m->adapters[i].adapter);
    }
    free(m->adapters);
    m->adapters = NULL;
    m->n_adapters = 0;
}
