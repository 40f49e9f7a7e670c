#include "cli/verbs/serve_models.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "base/os_program.h"
#include "cli/adapters.h"
#include "cli/pebble.h"
#include "server/os.h"

/* ---- for the page -----------------------------------------------------------------------------
 */

/* Name of a model in URLs: the last part of its path, without characters that URLs do not allow. */
static char *address_name(const char *name, bool from_store)
{
    const char *slash = bz_os_last_slash(name);
    name = slash ? slash + 1 : name;
    name += strspn(name, ".");
    const size_t n = strlen(name), end = sizeof ".gguf" - 1;
    const bool add = from_store && (n < end || strcmp(name + n - end, ".gguf") != 0);
    char *out = malloc(n + end + 1);
    if (out) {
        snprintf(out, n + end + 1, "%s%s", name, add ? ".gguf" : "");
        for (char *c = out; *c; c++) {
            *c = (unsigned char)*c < 0x20 || *c == 0x7F || *c == '\\' ? '_' : *c;
        }
    }
    return out;
}

static int check_model(const char *path)
{
    os_file f;
    bz_error err = {0};
    const bz_status status = os_open_file(path, &f, &err);
    if (status != BZ_OK) {
        fprintf(stderr, "bezel: %s: %s.\n", path, err.text);
        return status == BZ_NOT_FOUND ? EXIT_NO_MODEL : EXIT_FAILED;
    }
    os_close_file(f.fd);
    return EXIT_OK;
}

/* owner: index of the model that the file belongs to; the next free index: a model itself. */
static int add_file(files_models *files, size_t owner, const char *name, const char *path,
                    bool from_store)
{
    const int code = check_model(path);
    files_model *more =
        code == EXIT_OK ? realloc(files->list, (files->n + 1) * sizeof *more) : NULL;
    if (code != EXIT_OK) {
        return code;
    }
    files->list = more ? more : files->list;
    const files_model m = {more ? address_name(name, from_store) : NULL, more ? strdup(path) : NULL,
                           owner < files->n ? files->list[owner].name : NULL};
    if (!m.name || !m.path) {
        free(m.name);
        free(m.path);
        fprintf(stderr, "bezel: no memory for the list of models.\n");
        return EXIT_CANNOT;
    }
    files->list[files->n++] = m;
    for (size_t i = 0; i + 1 < files->n; i++) {
        if (strcmp(files->list[i].name, m.name) == 0) {
            fprintf(
                stderr,
                "bezel: two models would have the address /models/%s; serve only one of them.\n",
                m.name);
            return EXIT_USAGE;
        }
    }
    return EXIT_OK;
}

/* A file with all its parts, or one of the store; and its mmproj file, if it has one. */
static int add_files(files_models *files, const bz_store_model *found, const char *mmproj)
{
    const size_t owner = files->n;
    int code = EXIT_OK;
    const uint32_t count = found->name ? 1 : bz_model_part_count(found->path);
    for (uint32_t i = 1; count > 1 && code == EXIT_OK && i <= count; i++) {
        char part[PATH_MAX];
        code = bz_model_part_path(found->path, i, part, sizeof part)
                   ? add_file(files, owner, part, part, false)
                   : EXIT_FAILED;
    }
    if (count <= 1) {
        code = add_file(files, owner, found->name ? found->name : found->path, found->path,
                        found->name != NULL);
    }
    return code == EXIT_OK && mmproj ? add_file(files, owner, mmproj, mmproj, found->name != NULL)
                                     : code;
}

static void free_from(files_models *files, size_t first)
{
    for (size_t i = first; i < files->n; i++) {
        free(files->list[i].name);
        free(files->list[i].path);
    }
    files->n = first < files->n ? first : files->n;
}

void serve_free_models(files_models *files)
{
    free_from(files, 0);
    free(files->list);
}

/* ---- the store's models, which change while the server runs ----------------------------------
 */

/* An address is one part of a path: "user/model:tag" is "user~model:tag.gguf", its first mmproj
 * file "user~model:tag.mmproj.gguf". Names of the store have no '~'. */
static bool take_stored(files_models *files, const char *name, size_t projector, const char *path,
                        const char *of)
{
    const size_t size = strlen(name) + sizeof ".mmproj00000000000000000000.gguf";
    files_model *more = realloc(files->list, (files->n + 1) * sizeof *more);
    files->list = more ? more : files->list;
    const files_model m = {more ? malloc(size) : NULL, more ? strdup(path) : NULL, of};
    if (!m.name || !m.path) {
        free(m.name);
        free(m.path);
        return false;
    }
    if (projector == 0) {
        snprintf(m.name, size, "%s.gguf", name);
    } else if (projector == 1) {
        snprintf(m.name, size, "%s.mmproj.gguf", name);
    } else {
        snprintf(m.name, size, "%s.mmproj%zu.gguf", name, projector);
    }
    for (char *c = m.name; *c; c++) {
        *c = *c == '/' ? '~' : *c;
    }
    files->list[files->n++] = m;
    return true;
}

static bool is_listed(const files_models *files, const char *path)
{
    for (size_t i = 0; i < files->n; i++) {
        if (strcmp(files->list[i].path, path) == 0) {
            return true;
        }
    }
    return false;
}

/* Leaves out what has no whole GGUF, what the command line has named, and what two names share. */
static void add_stored(files_models *files, const bz_store_entry *entry)
{
    bz_store_model found;
    bz_error err = {0};
    if (entry->problem.code != BZ_OK || !entry->path || is_listed(files, entry->path) ||
        bz_store_resolve(entry->name, &found, &err) != BZ_OK) {
        return;
    }
    /* Without a name it is a file of the working folder, and none of the store. */
    if (found.name && take_stored(files, entry->name, 0, found.path, NULL)) {
        const char *of = files->list[files->n - 1].name;
        for (size_t i = 0; i < found.n_projectors; i++) {
            take_stored(files, entry->name, i + 1, found.projectors[i], of);
        }
    }
    bz_store_model_free(&found);
}

static void refresh(files_models *files)
{
    bz_store_list list;
    bz_error err = {0};
    free_from(files, files->n_named);
    if (bz_store_list_all(&list, &err) != BZ_OK) {
        return; /* the models of the command line are left */
    }
    for (size_t i = 0; i < list.n; i++) {
        add_stored(files, &list.entries[i]);
    }
    bz_store_list_free(&list);
}

/* ---- for the API ------------------------------------------------------------------------------
 */

static bool ends_with_gguf(const char *name)
{
    const size_t n = strlen(name);
    return n > 5 && strcmp(name + n - 5, ".gguf") == 0;
}

/* "gemma-4-E2B-it-Q4_K_M": the name of the file, without .gguf and the number of its part. */
static void name_of_file(const char *path, char out[PATH_MAX])
{
    const char *slash = bz_os_last_slash(path);
    snprintf(out, PATH_MAX, "%s", slash ? slash + 1 : path);
    if (ends_with_gguf(out)) {
        out[strlen(out) - 5] = 0;
    }
    char *part = bz_model_part_count(path) > 1 ? strstr(out, "-00001-of-") : NULL;
    if (part) {
        *part = 0;
    }
}

/* A model that the page can have but the API cannot run is not an error. */
static void add_to_engine(engine *e, const bz_store_model *found, const char *mmproj)
{
    bz_error err = {0};
    char name[PATH_MAX];
    bz_status status;
    if (found->name) {
        status = engine_add_stored(e, found->name, &err);
    } else {
        name_of_file(found->path, name);
        status = engine_add_model(e, name, found->path, mmproj, &err);
    }
    if (status != BZ_OK) {
        fprintf(stderr, "bezel: the API cannot run %s: %s\n",
                found->name ? found->name : found->path, err.text);
    }
}

/* ---- both -------------------------------------------------------------------------------------
 */

static int add_model(files_models *files, engine *e, const char *model, const char *mmproj)
{
    bz_store_model found;
    bz_error err = {0};
    if (pebble_resolve(model, &found, &err) != BZ_OK) {
        return cli_error(&err);
    }
    mmproj = mmproj ? mmproj : found.n_projectors ? found.projectors[0] : NULL;
    const int code = add_files(files, &found, mmproj);
    if (code == EXIT_OK) {
        add_to_engine(e, &found, mmproj);
    }
    bz_store_model_free(&found);
    return code;
}

typedef struct folder {
    char **names; /* [n] */
    size_t n;
} folder;

/* GGUF files; of a split one the first part; not mmproj files. */
static bool take_name(void *user, const char *name)
{
    folder *f = user;
    char first[PATH_MAX];
    const bool split = bz_model_part_count(name) > 1;
    if (!ends_with_gguf(name) || strstr(name, "mmproj") ||
        (split && (!bz_model_part_path(name, 1, first, sizeof first) || strcmp(first, name)))) {
        return true;
    }
    char **more = realloc(f->names, (f->n + 1) * sizeof *more);
    f->names = more ? more : f->names;
    return more && (f->names[f->n++] = strdup(name)) != NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_folder(files_models *files, engine *e, const char *path)
{
    folder f = {0};
    bz_error err = {0};
    int code = EXIT_OK;
    if (bz_os_list(path, take_name, &f, &err) != BZ_OK) {
        fprintf(stderr, "bezel: cannot read the folder %s: %s.\n", path, err.text);
        code = EXIT_FAILED;
    } else if (f.n == 0) {
        fprintf(stderr, "bezel: the folder %s has no GGUF files.\n", path);
        code = EXIT_NO_MODEL;
    } else {
        qsort(f.names, f.n, sizeof *f.names, by_name);
    }
    for (size_t i = 0; i < f.n; i++) {
        char file[PATH_MAX];
        const int n = snprintf(file, sizeof file, "%s/%s", path, f.names[i]);
        if (code == EXIT_OK && n > 0 && n < (int)sizeof file) {
            code = add_model(files, e, file, NULL);
        }
        free(f.names[i]);
    }
    free(f.names);
    return code;
}

static void add_pebble(engine *e)
{
    char path[PATH_MAX];
    bz_error err = {0};
    if (pebble_find(path) && engine_add_model(e, PEBBLE, path, NULL, &err) != BZ_OK) {
        fprintf(stderr, "bezel: the API cannot run %s: %s\n", path, err.text);
    }
}

static int add_adapters(const cli_options *o, engine *e)
{
    bz_error err = {0};
    bz_status status = BZ_OK;
    for (size_t i = 0; o->lora[i] && status == BZ_OK; i++) {
        char *path = NULL;
        float scale;
        status = adapters_parse(o->lora[i], &path, &scale, &err);
        status = status == BZ_OK ? engine_add_adapter(e, path, scale, &err) : status;
        free(path);
    }
    return status == BZ_OK ? EXIT_OK : cli_error(&err);
}

int serve_add_models(const cli_options *o, files_models *files, engine *e)
{
    int code = EXIT_OK;
    if (o->mmproj && (!o->models[0] || o->models[1])) {
        return cli_usage_error("serve", "'--mmproj' needs exactly one model.");
    }
    if (o->lora[0] && (!o->models[0] || o->models[1])) {
        return cli_usage_error("serve", "'--lora' needs exactly one model.");
    }
    for (size_t i = 0; code == EXIT_OK && o->models[i]; i++) {
        bz_os_info info;
        const bool is_folder = bz_os_stat(o->models[i], &info, NULL) == BZ_OK && info.folder;
        if (is_folder && o->lora[0]) {
            return cli_usage_error("serve", "'--lora' needs one model, not a folder.");
        }
        code = is_folder ? add_folder(files, e, o->models[i])
                         : add_model(files, e, o->models[i], o->mmproj);
    }
    if (!o->models[0]) {
        add_pebble(e);
    }
    files->n_named = files->n;
    files->refresh = refresh;
    return code == EXIT_OK ? add_adapters(o, e) : code;
}
