/* Loads one model: its manifest, config and the layers that Bezel uses. */
#include "store/ollama_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"

enum { SMALL_FILE = 1 << 20 }; /* maximum bytes of a manifest, config, params or system layer */

/* Pulling alone would keep a blob with the right name. */
static const char start_over[] = "remove the model with 'bezel rm' and pull it again";

typedef struct loading {
    const char *root;
    char name[BZ_NAME_TEXT];
    bz_store_model *model;
    bz_store_entry *entry;
    bz_error *err;
} loading;

/* `what`: the role of the blob, for messages. */
static bz_status check_blob(const loading *l, const bz_store_layer *layer, const char *what,
                            char **path)
{
    bz_error why = {0};
    bz_os_info info;
    *path = bz_store_text("%s/blobs/sha256-%s", l->root, layer->digest + strlen("sha256:"));
    if (!*path) {
        return bz_store_no_memory(l->err);
    }
    bz_status status = bz_os_stat(*path, &info, &why);
    if (status == BZ_NOT_FOUND) {
        return bz_fail(l->err, status,
                       "The %s of %.*s is missing from the Ollama store; 'bezel pull %.*s' "
                       "downloads it again",
                       what, BZ_SHOWN_NAME, l->name, BZ_SHOWN_NAME, l->name);
    }
    if (status != BZ_OK || info.folder) {
        return bz_fail(l->err, BZ_BAD_FILE, "The %s of %.*s cannot be read: %s", what,
                       BZ_SHOWN_NAME, l->name, status == BZ_OK ? "it is a folder" : why.text);
    }
    if (info.size != layer->size) {
        return bz_fail(l->err, BZ_BAD_FILE,
                       "The %s of %.*s has %" PRIu64 " bytes, but its manifest says %" PRIu64
                       "; %s",
                       what, BZ_SHOWN_NAME, l->name, info.size, layer->size, start_over);
    }
    return BZ_OK;
}

static bz_status read_blob(const loading *l, const bz_store_layer *layer, const char *what,
                           char **text, size_t *n)
{
    char *path;
    bz_error why = {0};
    bz_status status = check_blob(l, layer, what, &path);
    if (status == BZ_OK) {
        status = bz_os_read_small(path, SMALL_FILE, text, n, &why);
        if (status == BZ_OUT_OF_MEMORY) {
            bz_store_no_memory(l->err);
        } else if (status != BZ_OK) {
            bz_fail(l->err, status, "The %s of %.*s cannot be read: %s", what, BZ_SHOWN_NAME,
                    l->name, why.text);
        }
    }
    free(path);
    return status;
}

static bz_status broken(const loading *l, const char *what, const bz_error *why,
                        const char *way_out)
{
    if (why->code == BZ_OUT_OF_MEMORY) {
        return bz_store_no_memory(l->err);
    }
    return bz_fail(l->err, BZ_BAD_FILE, "The %s of %.*s is broken: %.100s; %s", what, BZ_SHOWN_NAME,
                   l->name, why->text, way_out);
}

static bz_status read_manifest(const loading *l, const bz_store_name *n, bz_store_manifest *m)
{
    char *text = NULL;
    size_t len = 0;
    bz_error why = {0};
    bz_os_info info;
    char *path =
        bz_store_text("%s/manifests/%s/%s/%s/%s", l->root, n->host, n->space, n->model, n->tag);
    if (!path) {
        return bz_store_no_memory(l->err);
    }
    if (bz_os_stat(path, &info, NULL) == BZ_OK) {
        l->entry->modified = info.modified;
    }
    bz_status status = bz_os_read_small(path, SMALL_FILE, &text, &len, &why);
    free(path);
    if (status == BZ_OUT_OF_MEMORY) {
        return bz_store_no_memory(l->err);
    }
    if (status != BZ_OK) { /* also not_found: the name was listed a moment ago */
        return bz_fail(l->err, BZ_BAD_FILE, "The manifest of %.*s cannot be read: %s",
                       BZ_SHOWN_NAME, l->name, why.text);
    }
    if (bz_store_manifest_parse(m, text, len, &why) != BZ_OK) {
        status = broken(l, "manifest", &why, "pull the model again");
    }
    free(text);
    return status;
}

static bz_status read_config(const loading *l, const bz_store_manifest *m)
{
    char *text = NULL;
    size_t len = 0;
    bz_error why = {0};
    if (!m->config.digest[0]) {
        return BZ_OK;
    }
    bz_status status = read_blob(l, &m->config, "config", &text, &len);
    if (status == BZ_OK && bz_store_config_parse(&l->model->config, text, len, &why) != BZ_OK) {
        status = broken(l, "config", &why, start_over);
    }
    free(text);
    return status;
}

static size_t count(const bz_store_manifest *m, bz_layer_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n_layers; i++) {
        n += m->layers[i].kind == kind;
    }
    return n;
}

/* "https://ollama.com:443" -> "ollama.com" */
static int host_only(const char **host)
{
    const char *scheme = strstr(*host, "://");
    *host = scheme ? scheme + 3 : *host;
    return (int)strcspn(*host, ":/");
}

/* Refuses kinds of models that cannot run here. */
static bz_status check_kind(const loading *l, const bz_store_manifest *m)
{
    const bz_store_config *c = &l->model->config;
    const char *host = c->remote_host;
    const size_t models = count(m, BZ_LAYER_MODEL);
    if (host[0]) {
        const int n = host_only(&host);
        return bz_fail(l->err, BZ_UNSUPPORTED_MODEL,
                       "%.*s runs on the servers of %.*s and has no model file on this machine",
                       BZ_SHOWN_NAME, l->name, n, host);
    }
    if (count(m, BZ_LAYER_TENSOR) || (c->format[0] && strcmp(c->format, "gguf") != 0)) {
        return bz_fail(l->err, BZ_UNSUPPORTED_MODEL,
                       "%.*s is stored as %s, but Bezel runs GGUF files only", BZ_SHOWN_NAME,
                       l->name, c->format[0] ? c->format : "safetensors");
    }
    if (models == 0) {
        return bz_fail(l->err, BZ_UNSUPPORTED_MODEL, "%.*s has no model file on this machine",
                       BZ_SHOWN_NAME, l->name);
    }
    if (models > 1) {
        return bz_fail(l->err, BZ_UNSUPPORTED_MODEL,
                       "%.*s is stored as %zu model files, but Bezel runs one", BZ_SHOWN_NAME,
                       l->name, models);
    }
    return BZ_OK;
}

/* Appends the path of a layer to a list. */
static bz_status add_path(const loading *l, const bz_store_layer *layer, const char *what,
                          char ***list, size_t *n)
{
    char **more = realloc(*list, (*n + 1) * sizeof *more);
    if (!more) {
        return bz_store_no_memory(l->err);
    }
    *list = more;
    return check_blob(l, layer, what, &more[(*n)++]);
}

/* If a layer that should be unique comes twice, the last one is used. */
static bz_status read_layer(const loading *l, const bz_store_layer *layer)
{
    bz_store_model *m = l->model;
    bz_status status = BZ_OK;
    bz_error why = {0};
    char *text = NULL;
    size_t len = 0;
    switch (layer->kind) {
    case BZ_LAYER_MODEL:
        memcpy(l->entry->digest, layer->digest, sizeof layer->digest);
        return check_blob(l, layer, "model file", &m->path);
    case BZ_LAYER_PROJECTOR:
        return add_path(l, layer, "projector", &m->projectors, &m->n_projectors);
    case BZ_LAYER_ADAPTER: return add_path(l, layer, "adapter", &m->adapters, &m->n_adapters);
    case BZ_LAYER_DRAFT: free(m->draft); return check_blob(l, layer, "drafter", &m->draft);
    case BZ_LAYER_PARAMS:
        bz_store_params_free(&m->params);
        status = read_blob(l, layer, "parameter file", &text, &len);
        if (status == BZ_OK && bz_store_params_parse(&m->params, text, len, &why) != BZ_OK) {
            status = broken(l, "parameter file", &why, start_over);
        }
        free(text);
        return status;
    case BZ_LAYER_SYSTEM:
        free(m->system);
        m->system = NULL;
        return read_blob(l, layer, "system prompt", &m->system, &len);
    case BZ_LAYER_MESSAGES:
        bz_store_messages_free(&m->messages);
        status = read_blob(l, layer, "list of messages", &text, &len);
        if (status == BZ_OK && bz_store_messages_parse(&m->messages, text, len, &why) != BZ_OK) {
            status = broken(l, "list of messages", &why, start_over);
        }
        free(text);
        return status;
    case BZ_LAYER_TENSOR:
    case BZ_LAYER_OTHER: break;
    }
    return BZ_OK;
}

bz_status bz_store_load(const bz_catalog *c, const bz_found *f, bz_store_model *model,
                        bz_store_entry *entry, bz_error *err)
{
    loading l = {.root = c->roots[f->root].path, .model = model, .entry = entry, .err = err};
    bz_store_manifest m = {0};
    model->name = bz_store_text("%s", bz_store_name_text(&f->name, l.name));
    bz_status status = model->name ? read_manifest(&l, &f->name, &m) : bz_store_no_memory(err);
    if (status == BZ_OK) {
        entry->size = m.size;
        status = read_config(&l, &m);
    }
    if (status == BZ_OK) {
        status = check_kind(&l, &m);
    }
    for (size_t i = 0; status == BZ_OK && i < m.n_layers; i++) {
        status = read_layer(&l, &m.layers[i]);
    }
    bz_store_manifest_free(&m);
    return status;
}

static const char *name_of_kind(bz_layer_kind kind)
{
    switch (kind) {
    case BZ_LAYER_MODEL: return "model file";
    case BZ_LAYER_PROJECTOR: return "projector";
    case BZ_LAYER_DRAFT: return "drafter";
    case BZ_LAYER_ADAPTER: return "adapter";
    case BZ_LAYER_PARAMS: return "parameter file";
    case BZ_LAYER_SYSTEM: return "system prompt";
    case BZ_LAYER_MESSAGES: return "list of messages";
    case BZ_LAYER_TENSOR: return "tensor";
    case BZ_LAYER_OTHER: break;
    }
    return "other file";
}

bz_status bz_store_load_blobs(const bz_catalog *c, const bz_found *f, bz_store_blob **blobs,
                              size_t *n, bz_error *err)
{
    bz_store_entry entry = {0};
    loading l = {.root = c->roots[f->root].path, .entry = &entry, .err = err};
    bz_store_manifest m = {0};
    bz_store_name_text(&f->name, l.name);
    bz_status status = read_manifest(&l, &f->name, &m);
    bz_store_blob *list = status == BZ_OK ? calloc(m.n_layers + 1, sizeof *list) : NULL;
    *n = 0;
    if (status == BZ_OK && !list) {
        status = bz_store_no_memory(err);
    }
    for (size_t i = 0; status == BZ_OK && i <= m.n_layers; i++) {
        const bz_store_layer *layer = i < m.n_layers ? &m.layers[i] : &m.config;
        if (!layer->digest[0]) {
            continue;
        }
        bz_store_blob *b = &list[(*n)++];
        memcpy(b->digest, layer->digest, sizeof b->digest);
        b->size = layer->size;
        b->what = i < m.n_layers ? name_of_kind(layer->kind) : "config";
        b->path = bz_store_text("%s/blobs/sha256-%s", l.root, layer->digest + strlen("sha256:"));
        status = b->path ? BZ_OK : bz_store_no_memory(err);
    }
    bz_store_manifest_free(&m);
    if (status != BZ_OK) {
        bz_store_blobs_free(list, *n);
        return status;
    }
    *blobs = list;
    return BZ_OK;
}

void bz_store_blobs_free(bz_store_blob *blobs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(blobs[i].path);
    }
    free(blobs);
}

void bz_store_model_free(bz_store_model *m)
{
    for (size_t i = 0; i < m->n_projectors; i++) {
        free(m->projectors[i]);
    }
    free(m->projectors);
    for (size_t i = 0; i < m->n_adapters; i++) {
        free(m->adapters[i]);
    }
    free(m->adapters);
    free(m->name);
    free(m->path);
    free(m->draft);
    free(m->system);
    bz_store_messages_free(&m->messages);
    bz_store_params_free(&m->params);
    *m = (bz_store_model){0};
}
