#include "cli/adapters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/os.h"
#include "base/text.h"

bz_status adapters_parse(const char *text, char **path, float *scale, bz_error *err)
{
    const char *colon = strrchr(text, ':');
    char *end = NULL;
    *scale = 1;
    if (colon && !bz_os_file_exists(text)) { /* the name of a file may have a colon */
        *scale = strtof(colon + 1, &end);
        if (end == colon + 1 || *end || !isfinite(*scale)) {
            return bz_fail(err, BZ_BAD_REQUEST,
                           "'--lora %.200s': there is no such file, and '%.40s' after the colon "
                           "is no scale.",
                           text, colon + 1);
        }
    }
    *path = end ? bz_text_copy(text, (size_t)(colon - text)) : strdup(text);
    return *path ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the name of a file.");
}

static bz_status open_one(cli_model *m, const char *path, float scale, bz_error *err)
{
    bz_adapter *a;
    const bz_status status = bz_adapter_open_file(&a, m->model, path, err);
    if (status == BZ_OK) {
        m->adapters[m->n_adapters++] = (bz_adapter_use){a, scale};
    }
    return status;
}

bz_status adapters_open(const cli_options *o, cli_model *m, bz_error *err)
{
    const bz_store_model *store = &m->store;
    bz_status status = BZ_OK;
    size_t n = store->n_adapters;
    for (size_t i = 0; o->lora[i]; i++) {
        n++;
    }
    m->adapters = n ? calloc(n, sizeof *m->adapters) : NULL;
    if (n && !m->adapters) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the list of adapters.");
    }
    for (size_t i = 0; i < store->n_adapters && status == BZ_OK; i++) {
        status = open_one(m, store->adapters[i], 1, err);
    }
    for (size_t i = 0; o->lora[i] && status == BZ_OK; i++) {
        char *path = NULL;
        float scale;
        status = adapters_parse(o->lora[i], &path, &scale, err);
        status = status == BZ_OK ? open_one(m, path, scale, err) : status;
        free(path);
    }
    return status;
}

void adapters_close(cli_model *m)
{
    for (size_t i = 0; i < m->n_adapters; i++) {
        bz_adapter_free(m->adapters[i].adapter);
    }
    free(m->adapters);
    m->adapters = NULL;
    m->n_adapters = 0;
}

bz_status adapters_use(const cli_model *m, bz_session *session, bz_error *err)
{
    return bz_session_set_adapters(session, m->adapters, m->n_adapters, err);
}

bz_status adapters_use_batch(const cli_model *m, bz_batch *batch, bz_error *err)
{
    return bz_batch_set_adapters(batch, m->adapters, m->n_adapters, err);
}
