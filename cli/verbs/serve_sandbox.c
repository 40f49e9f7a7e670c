#include "cli/verbs/serve_sandbox.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "base/os_program.h"
#include "cli/adapters.h"
#include "cli/pebble.h"
#include "cli/sandbox.h"
#include "store/write.h"

static void allow_folder_of(sandbox_rules *r, const char *file)
{
    char folder[PATH_MAX];
    const char *slash = bz_os_last_slash(file);
    const size_t n = slash ? (size_t)(slash - file) : 0;
    if (slash && n == 0) {
        sandbox_allow(r, file, SANDBOX_READ);
    } else if (n < sizeof folder) {
        snprintf(folder, sizeof folder, "%.*s", slash ? (int)n : 1, slash ? file : ".");
        sandbox_allow(r, folder, SANDBOX_READ);
    }
}

/* And of the file that it is a link to. */
static void allow_file(sandbox_rules *r, const char *file)
{
    char real[PATH_MAX];
    allow_folder_of(r, file);
    if (bz_os_real_path(file, real, sizeof real) && strcmp(real, file) != 0) {
        allow_folder_of(r, real);
    }
}

typedef struct entries {
    sandbox_rules *rules;
    const char *folder;
} entries;

static bool allow_link(void *user, const char *name)
{
    const entries *e = user;
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s/%s", e->folder, name);
    if (n > 0 && n < (int)sizeof path && bz_os_is_link(path)) {
        allow_file(e->rules, path);
    }
    return true;
}

static void allow_folder(sandbox_rules *r, const char *folder, sandbox_right right)
{
    sandbox_allow(r, folder, right);
    bz_os_list(folder, allow_link, &(entries){r, folder}, NULL);
}

/* Of a name, its files are in the store. */
static void allow_model(sandbox_rules *r, const char *model)
{
    bz_os_info info;
    char part[PATH_MAX];
    if (bz_os_stat(model, &info, NULL) != BZ_OK) {
        return;
    }
    if (info.folder) {
        allow_folder(r, model, SANDBOX_READ);
        return;
    }
    const uint32_t count = bz_model_part_count(model);
    allow_file(r, model);
    for (uint32_t i = 1; count > 1 && i <= count; i++) {
        if (bz_model_part_path(model, i, part, sizeof part)) {
            allow_file(r, part);
        }
    }
}

static void allow_below(sandbox_rules *r, const char *root, const char *name, sandbox_right right)
{
    char folder[PATH_MAX];
    const int n = snprintf(folder, sizeof folder, "%s/%s", root, name);
    if (n > 0 && n < (int)sizeof folder) {
        allow_folder(r, folder, right);
    }
}

static void allow_store(sandbox_rules *r)
{
    bz_store_root roots[BZ_STORE_ROOTS];
    size_t n = 0;
    char *root = NULL;
    if (bz_store_writable_root(&root, NULL) == BZ_OK) {
        bz_store_make_root(root); /* only what exists can be allowed */
    }
    free(root);
    if (bz_store_find_roots(roots, &n, NULL) != BZ_OK) {
        r->no_memory = true;
    }
    for (size_t i = 0; i < n; i++) {
        const char *path = roots[i].path;
        const sandbox_right right = path && bz_os_may_write(path) ? SANDBOX_CHANGE : SANDBOX_READ;
        if (path) { /* each may be a link to another disk */
            sandbox_allow(r, path, right);
            allow_below(r, path, "blobs", right);
            allow_below(r, path, "manifests", right);
        }
    }
    bz_store_roots_free(roots, n);
}

static bool is_off(const cli_options *o)
{
    return o->sandbox && strcmp(o->sandbox, "off") == 0;
}

void serve_confine_puller(const cli_options *o)
{
    sandbox_rules r = {.reads_listed = true, .connects = true};
    int unused;
    if (!is_off(o)) {
        sandbox_allow_system(&r);
        allow_store(&r);
        sandbox_enter_rules("auto", NULL, &r, &unused);
    }
}

bool serve_enter_sandbox(const cli_options *o, const char *page, int *exit_code)
{
    sandbox_rules r = {.reads_listed = true};
    char pebble[PATH_MAX];
    if (is_off(o)) {
        return true;
    }
    sandbox_allow_system(&r);
    if (page[0]) {
        sandbox_allow(&r, page, SANDBOX_READ);
    }
    for (size_t i = 0; o->models[i]; i++) {
        allow_model(&r, o->models[i]);
    }
    if (o->mmproj) {
        allow_file(&r, o->mmproj);
    }
    for (size_t i = 0; o->lora[i]; i++) {
        char *path = NULL;
        float scale;
        if (adapters_parse(o->lora[i], &path, &scale, NULL) == BZ_OK) {
            allow_file(&r, path);
        }
        free(path);
    }
    if (pebble_find(pebble)) {
        allow_file(&r, pebble);
    }
    allow_store(&r);
    return sandbox_enter_rules(o->sandbox, o->device, &r, exit_code);
}
