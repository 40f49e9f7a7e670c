/* Resolves MODEL to files, or explains why not; lists all models. */
#include "store/ollama_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"

/* ---- resolving a name ------------------------------------------------------------------- */

static void append(bz_error *err, const char *format, ...) BZ_PRINTF(2, 3);

static void append(bz_error *err, const char *format, ...)
{
    size_t n = strlen(err->text);
    va_list args;
    va_start(args, format);
    vsnprintf(err->text + n, sizeof err->text - n, format, args);
    va_end(args);
}

/* A list of names; those that do not fit into the message are only counted. */
static void append_names(bz_error *err, const bz_found *const *names, size_t n, size_t more,
                         const char *last)
{
    char text[BZ_NAME_TEXT];
    size_t room = sizeof err->text - 24, named = 0;
    for (size_t i = 0; i < n; i++) {
        bz_store_name_text(&names[i]->name, text);
        if (strlen(err->text) + strlen(text) + 2 < room) {
            append(err, "%s%s", named == 0 ? "" : more == 0 && i + 1 == n ? last : ", ", text);
            named++;
        } else {
            more++;
        }
    }
    if (more) {
        append(err, "%s%zu %s", named ? " and " : "", more, named ? "more" : "other models");
    }
}

static void append_roots(bz_error *err, const bz_catalog *c, bz_store_state least)
{
    size_t named = 0, n = 0;
    for (size_t i = 0; i < c->n_roots; i++) {
        n += c->roots[i].state >= least;
    }
    for (size_t i = 0; i < c->n_roots; i++) {
        if (c->roots[i].state >= least) {
            append(err, "%s%.*s",
                   named == 0       ? ""
                   : named + 1 == n ? " and "
                                    : ", ",
                   BZ_SHOWN_PATH, c->roots[i].shown);
            named++;
        }
    }
}

static const bz_store_root *locked_root(const bz_catalog *c)
{
    for (size_t i = 0; i < c->n_roots; i++) {
        if (c->roots[i].state == BZ_STORE_LOCKED) {
            return &c->roots[i];
        }
    }
    return NULL;
}

bz_status bz_store_no_such_name(const bz_catalog *c, const char *model, const bz_store_name *asked,
                                bz_error *err)
{
    char text[BZ_NAME_TEXT];
    const bz_found *near[BZ_SUGGESTIONS];
    size_t n, readable = 0;
    const bz_store_root *locked = locked_root(c);
    for (size_t i = 0; i < c->n_roots; i++) {
        readable += c->roots[i].state == BZ_STORE_THERE;
    }
    bz_store_name_text(asked, text);
    if (!readable && !locked) {
        bz_fail(err, BZ_NOT_FOUND, "No file %.*s and no Ollama store was found (searched ",
                BZ_SHOWN_NAME, model);
        append_roots(err, c, BZ_STORE_MISSING);
        append(err, "); give the path of a GGUF file.");
        return BZ_NOT_FOUND;
    }
    bz_fail(err, BZ_NOT_FOUND, "The Ollama store has no model %.*s", BZ_SHOWN_NAME, text);
    if (!readable) {
        append(err, ", as far as this user may read it: ");
    } else {
        append(err, " (");
        append_roots(err, c, BZ_STORE_THERE);
        append(err, "); ");
    }
    if (bz_catalog_nearest(c, asked, near, &n)) {
        append(err, "did you mean ");
        append_names(err, near, n, 0, " or ");
        append(err, "?");
    } else if (n) {
        append(err, "it has ");
        append_names(err, near, n, c->n - n, " and ");
        append(err, ".");
    } else if (locked) {
        append(err, "this user may not read %.*s.", BZ_SHOWN_PATH, locked->shown);
    } else {
        append(err, "it is empty; pull a model or give the path of a GGUF file.");
    }
    return BZ_NOT_FOUND;
}

/* A path for a message: its last part, without control characters. */
static const char *show_path(const char *path, char out[BZ_SHOWN_PATH + 4])
{
    const size_t n = strlen(path), skip = n > BZ_SHOWN_PATH ? n - BZ_SHOWN_PATH : 0;
    snprintf(out, BZ_SHOWN_PATH + 4, "%s%s", skip ? "..." : "", path + skip);
    for (char *p = out; *p; p++) {
        *p = (unsigned char)*p < 0x20 || *p == 0x7F ? '?' : *p;
    }
    return out;
}

static bool looks_like_path(const char *text)
{
    const size_t n = strlen(text);
    return text[0] == '/' || text[0] == '.' || text[0] == '~' || strchr(text, '\\') ||
           (n > 5 && (strcmp(text + n - 5, ".gguf") == 0 || strcmp(text + n - 5, ".GGUF") == 0));
}

static bz_status resolve_name(const bz_catalog *c, const bz_found *f, bz_store_model *out,
                              bz_error *err)
{
    bz_store_entry entry = {0};
    const bz_found *others[BZ_SUGGESTIONS];
    size_t n;
    bz_status status = bz_store_load(c, f, out, &entry, err);
    if (status == BZ_OK || status == BZ_OUT_OF_MEMORY) {
        return status;
    }
    if (status == BZ_UNSUPPORTED_MODEL) { /* pulling again does not help; another model may */
        bz_catalog_nearest(c, &f->name, others, &n);
        if (n) {
            append(err, "; the store also has ");
            append_names(err, others, n, 0, " and ");
        }
    }
    append(err, ".");
    return status;
}

bz_status bz_store_resolve(const char *model, bz_store_model *out, bz_error *err)
{
    char shown[BZ_SHOWN_PATH + 4];
    bz_error unwanted, why = {0};
    bz_os_info info = {0};
    bz_store_name name;
    bz_catalog c = {0};
    err = err ? err : &unwanted;
    *out = (bz_store_model){0};
    bz_status look = bz_os_stat(model, &info, &why);
    if (look == BZ_OK && !info.folder) {
        out->path = bz_store_text("%s", model);
        return out->path ? BZ_OK : bz_store_no_memory(err);
    }
    if (look == BZ_BAD_FILE && looks_like_path(model)) {
        return bz_fail(err, look, "%s: %s.", show_path(model, shown), why.text);
    }
    const bool named = bz_store_name_parse(&name, model, &why) == BZ_OK;
    const bz_found *f = NULL;
    bz_status status = BZ_OK;
    if (named) {
        status = bz_catalog_read(&c, err);
        f = status == BZ_OK ? bz_catalog_find(&c, &name) : NULL;
    }
    if (f) {
        status = resolve_name(&c, f, out, err);
    } else if (status == BZ_OK && info.folder) {
        status = bz_fail(err, BZ_BAD_FILE, "%s is a folder; give the path of a GGUF file in it.",
                         show_path(model, shown));
    } else if (status == BZ_OK && looks_like_path(model)) {
        status = bz_fail(err, BZ_NOT_FOUND, "There is no file %s.", show_path(model, shown));
    } else if (status == BZ_OK && !named) {
        status = bz_fail(err, BZ_NOT_FOUND,
                         "There is no file \"%s\", and it is not a valid Ollama name: %s.",
                         show_path(model, shown), why.text);
    } else if (status == BZ_OK) {
        status = bz_store_no_such_name(&c, model, &name, err);
    }
    bz_catalog_free(&c);
    if (status != BZ_OK) {
        bz_store_model_free(out);
    }
    return status;
}

bz_status bz_store_blobs(const char *text, bz_store_blob **blobs, size_t *n, bz_error *err)
{
    bz_store_name name;
    bz_catalog c = {0};
    bz_error unwanted;
    err = err ? err : &unwanted;
    *blobs = NULL;
    *n = 0;
    bz_status status = bz_store_name_parse(&name, text, err);
    if (status != BZ_OK) {
        return status;
    }
    status = bz_catalog_read(&c, err);
    const bz_found *f = status == BZ_OK ? bz_catalog_find(&c, &name) : NULL;
    if (f) {
        status = bz_store_load_blobs(&c, f, blobs, n, err);
    } else if (status == BZ_OK) {
        status = bz_store_no_such_name(&c, text, &name, err);
    }
    bz_catalog_free(&c);
    return status;
}

/* ---- listing ------------------------------------------------------------------------------ */

static int newest_first(const void *a, const void *b)
{
    const bz_store_entry *x = a, *y = b;
    return x->modified != y->modified ? (x->modified < y->modified) - (x->modified > y->modified)
                                      : strcmp(x->name, y->name);
}

/* bz_store_resolve finds the name in the first root that has it. */
static bool hidden(const bz_catalog *c, size_t index)
{
    char text[BZ_NAME_TEXT], other[BZ_NAME_TEXT];
    bz_store_name_text(&c->names[index].name, text);
    for (size_t i = 0; i < index && c->names[i].root != c->names[index].root; i++) {
        if (strcmp(bz_store_name_text(&c->names[i].name, other), text) == 0) {
            return true;
        }
    }
    return false;
}

static bz_status add_entry(bz_store_list *list, const bz_catalog *c, const bz_found *f,
                           bz_error *err)
{
    bz_store_model m = {0};
    bz_store_entry *e = &list->entries[list->n];
    bz_status status = bz_store_load(c, f, &m, e, &e->problem);
    if (status == BZ_OUT_OF_MEMORY) {
        bz_store_model_free(&m);
        return bz_store_no_memory(err);
    }
    e->config = m.config;
    e->name = m.name;
    m.name = NULL;
    if (status == BZ_OK) {
        e->path = m.path;
        m.path = NULL;
    } else {
        append(&e->problem, ".");
    }
    list->n++;
    bz_store_model_free(&m);
    return BZ_OK;
}

bz_status bz_store_list_all(bz_store_list *list, bz_error *err)
{
    bz_catalog c = {0};
    *list = (bz_store_list){0};
    bz_status status = bz_catalog_read(&c, err);
    if (status == BZ_OK && c.n) {
        list->entries = calloc(c.n, sizeof *list->entries);
        status = list->entries ? BZ_OK : bz_store_no_memory(err);
    }
    for (size_t i = 0; status == BZ_OK && i < c.n; i++) {
        if (!hidden(&c, i)) {
            status = add_entry(list, &c, &c.names[i], err);
        }
    }
    memcpy(list->roots, c.roots, sizeof c.roots); /* moved */
    list->n_roots = c.n_roots;
    c.n_roots = 0;
    bz_catalog_free(&c);
    if (status != BZ_OK) {
        bz_store_list_free(list);
    } else if (list->n) {
        qsort(list->entries, list->n, sizeof *list->entries, newest_first);
    }
    return status;
}

void bz_store_list_free(bz_store_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->entries[i].name);
        free(list->entries[i].path);
    }
    free(list->entries);
    bz_store_roots_free(list->roots, list->n_roots);
    *list = (bz_store_list){0};
}
