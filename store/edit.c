/* Removes and copies names, and blobs that no name uses. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os_program.h"
#include "store/write.h"

enum { MAX_MANIFEST = 1 << 20 };

static bz_status parse_name(bz_store_name *name, const char *text, bz_error *err)
{
    bz_error why = {0};
    return bz_store_name_parse(name, text, &why) == BZ_OK
               ? BZ_OK
               : bz_fail(err, BZ_BAD_REQUEST, "\"%.*s\" is not a valid model name: %s.",
                         BZ_SHOWN_NAME, text, why.text);
}

/* ---- which blobs are used ------------------------------------------------------------------ */

typedef struct blob_use {
    const bz_store_manifest *manifest;
    bool *used; /* [n_layers + 1]; the last is the config */
} blob_use;

static bool same_digest(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        if ((*a | 0x20) != (*b | 0x20)) { /* hexadecimal digits in either case */
            return false;
        }
    }
    return *a == *b;
}

static void mark_used(blob_use *u, const bz_store_manifest *other)
{
    const bz_store_manifest *m = u->manifest;
    for (size_t i = 0; i <= m->n_layers; i++) {
        const char *digest = i < m->n_layers ? m->layers[i].digest : m->config.digest;
        for (size_t k = 0; k < other->n_layers && !u->used[i]; k++) {
            u->used[i] = same_digest(digest, other->layers[k].digest);
        }
        u->used[i] = u->used[i] || same_digest(digest, other->config.digest);
    }
}

/* False: a manifest cannot be read, so nothing is known about its blobs. One that is not valid
 * JSON uses none, as in Ollama. */
static bool mark_all(blob_use *u, const char *root)
{
    bz_catalog c = {0};
    bool complete = bz_catalog_read(&c, NULL) == BZ_OK;
    for (size_t i = 0; complete && i < c.n; i++) {
        if (strcmp(c.roots[c.names[i].root].path, root) != 0) {
            continue;
        }
        char *path = bz_store_manifest_path(root, &c.names[i].name), *text = NULL;
        size_t n = 0;
        bz_store_manifest other;
        const bz_status status =
            path ? bz_os_read_small(path, MAX_MANIFEST, &text, &n, NULL) : BZ_OUT_OF_MEMORY;
        complete = status == BZ_OK || status == BZ_NOT_FOUND; /* removed a moment ago */
        if (status == BZ_OK && bz_store_manifest_parse(&other, text, n, NULL) == BZ_OK) {
            mark_used(u, &other);
            bz_store_manifest_free(&other);
        }
        free(text);
        free(path);
    }
    bz_catalog_free(&c);
    return complete;
}

void bz_store_prune(const char *root, const bz_store_manifest *m)
{
    const char *keep = bz_os_env("OLLAMA_NOPRUNE");
    blob_use u = {m, calloc(m->n_layers + 1, sizeof *u.used)};
    if (u.used && !(keep && keep[0] && strcmp(keep, "0") != 0 && strcmp(keep, "false") != 0) &&
        mark_all(&u, root)) {
        for (size_t i = 0; i <= m->n_layers; i++) {
            const char *digest = i < m->n_layers ? m->layers[i].digest : m->config.digest;
            char *path = digest[0] && !u.used[i] ? bz_store_blob_path(root, digest) : NULL;
            if (path) {
                bz_os_remove(path);
            }
            free(path);
        }
    }
    free(u.used);
}

/* ---- verbs ------------------------------------------------------------------------------------
 */

typedef struct edit {
    bz_catalog catalog;
    const bz_found *found;
    const char *root;
    char *path, *text; /* of its manifest */
    size_t n;
} edit;

static void edit_free(edit *e)
{
    free(e->path);
    free(e->text);
    bz_catalog_free(&e->catalog);
}

/* Finds a name and reads its manifest, which need not be valid. */
static bz_status edit_find(edit *e, const char *text, bz_error *err)
{
    bz_store_name name;
    bz_error why = {0};
    bz_status status = parse_name(&name, text, err);
    if (status == BZ_OK) {
        status = bz_catalog_read(&e->catalog, err);
    }
    if (status != BZ_OK) {
        return status;
    }
    e->found = bz_catalog_find(&e->catalog, &name);
    if (!e->found) {
        return bz_store_no_such_name(&e->catalog, text, &name, err);
    }
    e->root = e->catalog.roots[e->found->root].path;
    e->path = bz_store_manifest_path(e->root, &e->found->name);
    if (!e->path) {
        return bz_store_no_memory(err);
    }
    status = bz_os_read_small(e->path, MAX_MANIFEST, &e->text, &e->n, &why);
    return status == BZ_OK ? BZ_OK
                           : bz_fail(err, BZ_BAD_FILE, "The manifest %.*s cannot be read: %s.",
                                     BZ_SHOWN_PATH, e->path, why.text);
}

/* Removes the folders of a manifest that have become empty: model, namespace, host. */
static void remove_empty_folders(char *path)
{
    for (int level = 0; level < 3; level++) {
        char *slash = strrchr(path, '/');
        *slash = 0;
        if (!bz_os_remove_folder(path)) {
            return;
        }
    }
}

bz_status bz_store_remove(const char *name, bz_error *err)
{
    edit e = {0};
    bz_store_manifest m = {0};
    bz_status status = edit_find(&e, name, err);
    if (status == BZ_OK) {
        const int lock = bz_store_lock(e.root);
        if (!bz_os_remove(e.path)) {
            status = bz_fail(err, BZ_BAD_FILE, "Cannot remove %.*s: %s.", BZ_SHOWN_PATH, e.path,
                             strerror(errno));
        } else if (bz_store_manifest_parse(&m, e.text, e.n, NULL) == BZ_OK) {
            bz_store_prune(e.root, &m);
            bz_store_manifest_free(&m);
        }
        if (status == BZ_OK) {
            remove_empty_folders(e.path);
        }
        bz_store_unlock(lock);
    }
    edit_free(&e);
    return status;
}

bz_status bz_store_copy(const char *from, const char *to, bz_error *err)
{
    edit e = {0};
    bz_store_name target;
    bz_status status = parse_name(&target, to, err);
    if (status == BZ_OK) {
        status = edit_find(&e, from, err);
    }
    if (status == BZ_OK) {
        /* A name that exists keeps its spelling. It may be in another store: not there. */
        const bz_found *old = bz_catalog_find(&e.catalog, &target);
        char *path = bz_store_manifest_path(e.root, old && old->root == e.found->root ? &old->name
                                                                                      : &target);
        status = path ? bz_store_make_folders(path, err) : bz_store_no_memory(err);
        if (status == BZ_OK && strcmp(path, e.path) != 0) {
            const int lock = bz_store_lock(e.root);
            status = bz_store_replace(e.root, path, e.text, e.n, err);
            bz_store_unlock(lock);
        }
        free(path);
    }
    edit_free(&e);
    return status;
}
