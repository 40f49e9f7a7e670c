#include "server/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/path.h"
#include "server/static.h"

static void answer_nothing(exchange *x)
{
    exchange_text(x, 404, "There is nothing here.");
}

static void answer_busy(exchange *x)
{
    exchange_header(x, "Retry-After", "1");
    exchange_text(x, 503, "Too many files are open; try again.");
}

/* The file, or the part of it that is asked for, or that nothing has changed. Closes it. */
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
    os_close(f->fd);
    if (p.status == 304) {
        exchange_empty(x, 304);
    } else {
        exchange_text(x, p.status,
                      p.status == 416 ? "The file does not reach that far."
                                      : "The file is not the one you know.");
    }
}

/* ---- a folder ---------------------------------------------------------------------------------
 */

/* In place of *f its compressed twin, if there is one, it is not older, and the client takes it;
 * its coding. A part of a file is a part of the plain one: who asks for it wants to know where it
 * lies. */
static const char *choose_twin(const files_folder *folder, const exchange *x, const char *path,
                               os_file *f)
{
    static const struct {
        const char *coding, *ending;
    } twins[] = {{"br", ".br"}, {"gzip", ".gz"}};
    const http_head *h = exchange_head(x);
    for (size_t i = 0; i < sizeof twins / sizeof *twins && !http_field(h, "Range").data; i++) {
        char name[PATH_ROOM + 20]; /* a path with its page, and an ending */
        os_file twin;
        snprintf(name, sizeof name, "%s%s", path, twins[i].ending);
        if (!static_accepts(h, twins[i].coding) ||
            os_open_below(folder->fd, name, &twin) != OS_FOUND) {
            continue;
        }
        if (twin.folder || twin.modified < f->modified) {
            os_close(twin.fd);
            continue;
        }
        os_close(f->fd);
        *f = twin;
        return twins[i].coding;
    }
    return "";
}

/* A folder without '/' at its end: names in its page would be looked for one folder too high. */
static void redirect(exchange *x)
{
    const http_head *h = exchange_head(x);
    const bz_str path = http_text(h, h->path), query = http_text(h, h->query);
    exchange_header(x, "Location", "%.*s/%s%.*s", (int)path.len, path.data, query.len ? "?" : "",
                    (int)query.len, query.data);
    exchange_text(x, 308, "The folder's address ends with a slash.");
}

void files_serve_folder(void *user, exchange *x)
{
    const files_folder *folder = user;
    const http_head *h = exchange_head(x);
    char path[PATH_ROOM + 16];
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
        os_close(f.fd);
        slash ? answer_nothing(x) : redirect(x);
        return;
    }
    const static_type *type = static_type_of(path);
    const char *coding = "";
    if (type->compressible) {
        exchange_header(x, "Vary", "Accept-Encoding");
        coding = choose_twin(folder, x, path, &f);
    }
    /* To ask costs nothing here, and a page whose files are of two builds is broken. */
    answer_file(x, &f, type->name, coding, "no-cache");
}

/* ---- models -------------------------------------------------------------------------------------
 */

static void list_models(const files_models *models, exchange *x)
{
    bz_json_buffer out = {0};
    bz_json j;
    bz_json_init(&j, bz_json_to_buffer, &out);
    bz_json_object(&j);
    bz_json_key(&j, "models");
    bz_json_array(&j);
    for (size_t i = 0; i < models->n; i++) {
        os_file f;
        if (os_open_file(models->list[i].path, &f, NULL) ==
            BZ_OK) { /* one that is gone is offered no more */
            os_close(f.fd);
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
        exchange_text(x, 500, "There is no memory for the list.");
    }
    free(out.text);
}

void files_serve_models(void *user, exchange *x)
{
    const files_models *models = user;
    const http_head *h = exchange_head(x);
    static const char below[] = "models/";
    char path[PATH_ROOM];
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
    for (size_t i = 0; a == PATH_OK && !slash && i < models->n; i++) {
        os_file f;
        if (strncmp(path, below, sizeof below - 1) == 0 &&
            strcmp(path + sizeof below - 1, models->list[i].name) == 0) {
            bz_error err = {0};
            const bz_status status = os_open_file(models->list[i].path, &f, &err);
            if (status == BZ_OK) {
                /* Not in the browser's cache: the page keeps what it wants, and once is enough. */
                answer_file(x, &f, "application/octet-stream", "", "no-store");
            } else {
                status == BZ_OUT_OF_MEMORY ? answer_busy(x) : answer_nothing(x);
            }
            return;
        }
    }
    answer_nothing(x);
}
