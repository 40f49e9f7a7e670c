/* Finds the store and all names in it. */
#include "store/ollama_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "base/os_program.h"

char *bz_store_text(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = n < 0 ? NULL : malloc((size_t)n + 1);
    if (text) {
        va_start(args, format);
        vsnprintf(text, (size_t)n + 1, format, args);
        va_end(args);
    }
    return text;
}

bz_status bz_store_no_memory(bz_error *err)
{
    return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to read the Ollama store.");
}

/* ---- roots ------------------------------------------------------------------- */

void bz_store_roots_free(bz_store_root *roots, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(roots[i].path);
        free(roots[i].shown);
    }
}

/* Takes ownership of both strings; NULL: no memory. */
static bz_status add_root(bz_store_root *roots, size_t *n, char *path, char *shown, bz_error *err)
{
    bz_os_use_slashes(path);
    char *manifests = path ? bz_store_text("%s/manifests", path) : NULL;
    roots[(*n)++] = (bz_store_root){path, shown, BZ_STORE_MISSING};
    if (!manifests || !shown) {
        free(manifests);
        return bz_store_no_memory(err);
    }
    bz_os_info info;
    bz_status status = bz_os_stat(manifests, &info, NULL);
    roots[*n - 1].state = status == BZ_OK && info.folder ? BZ_STORE_THERE
                          : status == BZ_BAD_FILE        ? BZ_STORE_LOCKED
                                                         : BZ_STORE_MISSING;
    free(manifests);
    return BZ_OK;
}

/* Like Ollama, without quotes, which service files may contain. */
static bz_str models_variable(void)
{
    const char *p = bz_os_env("OLLAMA_MODELS");
    bz_str s = {p ? p : "", p ? strlen(p) : 0};
    for (int pass = 0; pass < 2; pass++) { /* white space, then quotes */
        const char *const cut = pass == 0 ? " \t\r\n" : "\"'";
        while (s.len && strchr(cut, s.data[0])) {
            s = (bz_str){s.data + 1, s.len - 1};
        }
        while (s.len && strchr(cut, s.data[s.len - 1])) {
            s.len--;
        }
    }
    return s;
}

bz_status bz_store_find_roots(bz_store_root *roots, size_t *n, bz_error *err)
{
    static const char *const services[] = {"/usr/share/ollama/.ollama/models",
                                           "/var/lib/ollama/.ollama/models"};
    enum { N_SERVICES = BZ_OS_BACKSLASH_SEPARATES ? 0 : 2 }; /* none on Windows */
    const bz_str given = models_variable();
    const char *home = bz_os_home();
    bz_status status = BZ_OK;
    *n = 0;
    if (given.len) {
        return add_root(roots, n, bz_store_text("%.*s", (int)given.len, given.data),
                        bz_store_text("%.*s", (int)given.len, given.data), err);
    }
    if (home && home[0]) {
        status = add_root(roots, n, bz_store_text("%s/.ollama/models", home),
                          bz_store_text("~/.ollama/models"), err);
    }
    for (int i = 0; status == BZ_OK && i < N_SERVICES; i++) {
        status = add_root(roots, n, bz_store_text("%s", services[i]),
                          bz_store_text("%s", services[i]), err);
    }
    return status;
}

/* ---- all names ------------------------------------------------------------------ */

typedef struct walk {
    bz_catalog *all;
    size_t root;
    const char *folder;
    int level; /* of its entries: 0 are hosts, 3 are tags */
    bz_store_name name;
} walk;

static void add_name(bz_catalog *c, const walk *w)
{
    if (c->n == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 16;
        bz_found *more = realloc(c->names, cap * sizeof *more);
        if (!more) {
            c->no_memory = true;
            return;
        }
        c->names = more;
        c->cap = cap;
    }
    c->names[c->n++] = (bz_found){w->name, w->root};
}

/* Ignores entries that cannot be part of a name (.DS_Store), and unreadable folders. */
static bool visit(void *user, const char *entry)
{
    walk *w = user;
    if (!bz_store_name_set(&w->name, w->level, entry)) {
        return true;
    }
    char *path = bz_store_text("%s/%s", w->folder, entry);
    bz_os_info info;
    if (!path) {
        w->all->no_memory = true;
    } else if (w->level < 3) {
        walk below = {w->all, w->root, path, w->level + 1, w->name};
        bz_os_list(path, visit, &below, NULL);
    } else if (bz_os_stat(path, &info, NULL) != BZ_OK || !info.folder) {
        add_name(w->all, w);
    }
    free(path);
    return !w->all->no_memory;
}

static int by_root_and_name(const void *a, const void *b)
{
    const bz_found *x = a, *y = b;
    char p[BZ_NAME_TEXT], q[BZ_NAME_TEXT];
    return x->root != y->root
               ? (x->root > y->root) - (x->root < y->root)
               : strcmp(bz_store_name_text(&x->name, p), bz_store_name_text(&y->name, q));
}

void bz_catalog_free(bz_catalog *c)
{
    bz_store_roots_free(c->roots, c->n_roots);
    free(c->names);
}

bz_status bz_catalog_read(bz_catalog *c, bz_error *err)
{
    bz_status status = bz_store_find_roots(c->roots, &c->n_roots, err);
    for (size_t i = 0; status == BZ_OK && i < c->n_roots; i++) {
        if (c->roots[i].state != BZ_STORE_THERE) {
            continue;
        }
        char *manifests = bz_store_text("%s/manifests", c->roots[i].path);
        walk w = {.all = c, .root = i, .folder = manifests};
        if (manifests && bz_os_list(manifests, visit, &w, NULL) == BZ_BAD_FILE) {
            c->roots[i].state = BZ_STORE_LOCKED;
        }
        status = manifests && !c->no_memory ? BZ_OK : bz_store_no_memory(err);
        free(manifests);
    }
    if (c->n) {
        qsort(c->names, c->n, sizeof *c->names, by_root_and_name);
    }
    return status;
}

const bz_found *bz_catalog_find(const bz_catalog *c, const bz_store_name *name)
{
    char asked[BZ_NAME_TEXT], other[BZ_NAME_TEXT];
    const bz_found *alike = NULL;
    bz_store_name_text(name, asked);
    for (size_t i = 0; i < c->n; i++) {
        const bz_found *f = &c->names[i];
        if (bz_store_name_same(&f->name, name)) {
            if (strcmp(bz_store_name_text(&f->name, other), asked) == 0) {
                return f;
            }
            alike = alike ? alike : f;
        }
    }
    return alike;
}

bool bz_catalog_nearest(const bz_catalog *c, const bz_store_name *asked,
                        const bz_found *best[BZ_SUGGESTIONS], size_t *n)
{
    unsigned distance[BZ_SUGGESTIONS];
    *n = 0;
    for (size_t i = 0; i < c->n; i++) {
        const bz_found *f = &c->names[i];
        const unsigned d = bz_store_name_distance(asked, &f->name);
        if (bz_store_name_same(&f->name, asked) ||
            (*n == BZ_SUGGESTIONS && d >= distance[*n - 1])) {
            continue;
        }
        size_t at = *n < BZ_SUGGESTIONS ? (*n)++ : *n - 1;
        for (; at > 0 && distance[at - 1] > d; at--) {
            best[at] = best[at - 1];
            distance[at] = distance[at - 1];
        }
        best[at] = f;
        distance[at] = d;
    }
    if (*n == 0 || distance[0] == BZ_NAME_FAR) {
        return false;
    }
    while (distance[*n - 1] == BZ_NAME_FAR) {
        (*n)--;
    }
    return true;
}
