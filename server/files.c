#include "server/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/path.h"
#include "server/static.h"

static void answer_nothing(exchange *x)
{
    exchange_text(x, 404, "Not found.");
}

static void answer_busy(exchange *x)
{
    exchange_header(x, "Retry-After", "1");
    exchange_text(x, 503, "Too many files are open; try again.");
}

/* Answers with the file, the requested range, or "not modified". Closes the file. */
static void answer_file(exchange *x, const os_file *f, const char *type, const char *coding,
                        const char *cache)
{
    const static_file facts = {f->size, f->modified, f->nanoseconds};
    const static_plan p = static_decide(exchange_head(x), &facts, coding);
    exchange_header(x, "ETag", "%s", p.tag);
    if (p.modified[0]) {
        exchange_header(x, "Last-Modified", "%s", p.modified);
    }
    exchange_header(x, "Cache-Control", "%s", cache);
    exchange_header(x, "Accept-Ranges", "bytes");
    if (p.range[0]) {
        exchange_header(x, "Content-Range", "%s", p.range);
    }
    if (p.status == 200 || p.status == 206) {
        if (coding[0]) {
            exchange_header(x, "Content-Encoding", "%s", coding);
        }
        exchange_file(x, p.status, type, f->fd, p.from, p.length);
        return;
    }
    os_close_file(f->fd);
    if (p.status == 304) {
        exchange_empty(x, 304);
    } else {
        exchange_text(x, p.status,
                      p.status == 416 ? "The requested range is past the end of the file."
                                      : "The file has changed.");
    }
}

/* ---- a folder ---------------------------------------------------------------------------------
 */

/* Replaces *f by its compressed version if there is one, it is not older and the client accepts it;
 * returns its coding. Ranges always refer to the uncompressed file. */
static const char *choose_compressed(const files_folder *folder, const exchange *x,
                                     const char *path, os_file *f)
{
    static const struct {
        const char *coding, *suffix;
    } versions[] = {{"br", ".br"}, {"gzip", ".gz"}};
    const http_head *h = exchange_head(x);
    for (size_t i = 0; i < sizeof versions / sizeof *versions && !http_field(h, "Range").data;
         i++) {
        char name[PATH_SIZE + 20]; /* a path, index.html and an extension */
        os_file compressed;
        snprintf(name, sizeof name, "%s%s", path, versions[i].suffix);
        if (!static_accepts(h, versions[i].coding) ||
            os_open_below(folder->fd, name, &compressed) != OS_FOUND) {
            continue;
        }
        if (compressed.folder || compressed.modified < f->modified) {
            os_close_file(compressed.fd);
            continue;
        }
        os_close_file(f->fd);
        *f = compressed;
        return versions[i].coding;
    }
    return "";
}

/* Redirects a folder without a final '/', so that relative links in its page work. */
static void redirect(exchange *x)
{
    const http_head *h = exchange_head(x);
    const bz_str path = http_text(h, h->path), query = http_text(h, h->query);
    exchange_header(x, "Location", "%.*s/%s%.*s", (int)path.len, path.data, query.len ? "?" : "",
                    (int)query.len, query.data);
    exchange_text(x, 308, "The address of the folder ends with a slash.");
}

void files_serve_folder(void *user, exchange *x)
{
    const files_folder *folder = user;
    const http_head *h = exchange_head(x);
    char path[PATH_SIZE + 16];
    bool slash;
    os_file f;
    const path_answer a = path_decode(http_text(h, h->path), path, &slash);
    if (a == PATH_BAD) {
        exchange_text(x, 400, "The address in the request is malformed.");
        return;
    }
    if (a == PATH_OK && slash) {
        const size_t n = strlen(path);
        snprintf(path + n, sizeof path - n, "%sindex.html", n ? "/" : "");
    }
    const os_found found = a == PATH_OK ? os_open_below(folder->fd, path, &f) : OS_NOTHING;
    if (found != OS_FOUND) {
        found == OS_TOO_MANY ? answer_busy(x) : answer_nothing(x);
        return;
    }
    if (f.folder) {
        os_close_file(f.fd);
        slash ? answer_nothing(x) : redirect(x);
        return;
    }
    const static_type *type = static_type_of(path);
    const char *coding = "";
    if (type->compressible) {
        exchange_header(x, "Vary", "Accept-Encoding");
        coding = choose_compressed(folder, x, path, &f);
    }
    if (static_is_worker(path)) {
        exchange_header(x, "Content-Security-Policy", "%s", static_worker_policy);
    }
    answer_file(x, &f, type->name, coding, static_cache(path));
}

/* ---- models -------------------------------------------------------------------------------------
 */

static void list_models(files_models *models, exchange *x)
{
    if (models->refresh) {
        models->refresh(models);
    }
    bz_json_buffer out = {0};
    bz_json j;
    bz_json_init(&j, bz_json_to_buffer, &out);
    bz_json_object(&j);
    bz_json_key(&j, "models");
    bz_json_array(&j);
    for (size_t i = 0; i < models->n; i++) {
        os_file f;
        if (os_open_file(models->list[i].path, &f, NULL) ==
            BZ_OK) { /* a deleted file is not listed */
            os_close_file(f.fd);
            bz_json_object(&j);
            bz_json_put_text(&j, "name", models->list[i].name);
            bz_json_put_uint(&j, "size", f.size);
            if (models->list[i].of) {
                bz_json_put_text(&j, "of", models->list[i].of);
            }
            bz_json_end(&j);
        }
    }
    bz_json_end(&j);
    bz_json_end(&j);
    if (bz_json_finish(&j)) {
        exchange_header(x, "Cache-Control", "no-store");
        exchange_bytes(x, 200, "application/json", out.text, out.n);
    } else {
        exchange_text(x, 500, "Not enough memory for the list.");
    }
    free(out.text);
}

static const files_model *find_model(const files_models *models, const char *name)
{
    for (size_t i = 0; i < models->n; i++) {
        if (strcmp(models->list[i].name, name) == 0) {
            return &models->list[i];
        }
    }
    return NULL;
}

void files_serve_models(void *user, exchange *x)
{
    files_models *models = user;
    const http_head *h = exchange_head(x);
    static const char below[] = "models/";
    char path[PATH_SIZE];
    bool slash;
    const path_answer a = path_decode(http_text(h, h->path), path, &slash);
    if (a == PATH_BAD) {
        exchange_text(x, 400, "The address in the request is malformed.");
        return;
    }
    if (a == PATH_OK && slash && strcmp(path, "models") == 0) {
        list_models(models, x);
        return;
    }
    if (a != PATH_OK || slash || strncmp(path, below, sizeof below - 1) != 0) {
        answer_nothing(x);
        return;
    }
    const char *name = path + sizeof below - 1;
    const files_model *model = find_model(models, name);
    if (!model && models->refresh) {
        models->refresh(models);
        model = find_model(models, name);
    }
    os_file f;
    bz_error err = {0};
    const bz_status status = model ? os_open_file(model->path, &f, &err) : BZ_NOT_FOUND;
    if (status == BZ_OK) {
        /* Not in the browser's cache: the page stores models itself. */
        answer_file(x, &f, "application/octet-stream", "", "no-store");
    } else {
        status == BZ_OUT_OF_MEMORY ? answer_busy(x) : answer_nothing(x);
    }
}
