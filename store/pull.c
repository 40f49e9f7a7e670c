#include "store/pull.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "base/units.h"
#include "store/pull_blob.h"
#include "store/pull_url.h"
#include "store/write.h"

enum { MAX_MANIFEST = 1 << 20, LOCK_POLL_MS = 200, MANIFEST_RETRIES = 3 };
static const uint64_t MS = 1000000u, SPARE_SPACE = 16u << 20;
static const char MANIFEST_TYPE[] = "application/vnd.docker.distribution.manifest.v2+json";

typedef struct pull {
    const bz_pull_options *o;
    bz_error *err;
    bz_store_name name;
    char shown[BZ_NAME_TEXT], base[BZ_URL_BASE];
    char *root, *path; /* the store, and the manifest in it */
    bz_http *http;
    char *text; /* of the manifest, as it will be stored */
    size_t n_text;
    bz_store_manifest manifest;
} pull;

static bool cancelled(const pull *p)
{
    return p->o->is_cancelled && p->o->is_cancelled(p->o->user);
}

static bz_status interrupted(const pull *p)
{
    return bz_fail(p->err, BZ_ABORTED, "The pull was interrupted; the next one continues.");
}

/* ---- manifest ---------------------------------------------------------------------------------
 */

static bz_status manifest_error(const pull *p, const bz_http_request *r, const bz_error *why)
{
    if (why->code != BZ_NETWORK) {
        return bz_fail(p->err, why->code, "%s", why->text);
    }
    if (r->code == 404) {
        return bz_fail(p->err, BZ_NOT_FOUND, "The registry %.*s has no model %.*s.", BZ_SHOWN_NAME,
                       p->name.host, BZ_SHOWN_NAME, p->shown);
    }
    if (r->code >= 300 && !r->refused) {
        return bz_fail(p->err, BZ_NETWORK,
                       "The registry %.*s answers HTTP status %ld for %.*s%s%s.", BZ_SHOWN_NAME,
                       p->name.host, r->code, BZ_SHOWN_NAME, p->shown, why->text[0] ? ": " : "",
                       why->text);
    }
    return bz_fail(p->err, BZ_NETWORK, "Cannot fetch the manifest of %.*s from %.*s: %s.",
                   BZ_SHOWN_NAME, p->shown, BZ_SHOWN_NAME, p->base, why->text);
}

static bool worth_retrying(const bz_http_request *r)
{
    return !r->refused && (r->code == 0 || r->code == 408 || r->code == 429 || r->code >= 500 ||
                           (r->code == 200 && !r->complete));
}

static void wait_before_retry(const pull *p, const bz_http_request *r, unsigned tries)
{
    uint64_t ms = r->retry_after_s ? r->retry_after_s * 1000u : 250u << tries;
    for (ms = ms < 60000 ? ms : 60000; ms > 0 && !cancelled(p); ms -= ms < 50 ? ms : 50) {
        bz_os_sleep(50 * MS);
    }
}

static bz_status get_manifest(pull *p)
{
    bz_error why = {0};
    bz_status status = BZ_NETWORK;
    const unsigned retries = p->o->retries ? p->o->retries : MANIFEST_RETRIES;
    for (unsigned tries = 0; status == BZ_NETWORK && tries <= retries; tries++) {
        bz_http_request r = {.url = bz_store_text("%s/v2/%s/%s/manifests/%s", p->base,
                                                  p->name.space, p->name.model, p->name.tag),
                             .accept = MANIFEST_TYPE};
        if (!r.url) {
            return bz_store_no_memory(p->err);
        }
        status = bz_http_get(p->http, &r, MAX_MANIFEST, &p->text, &p->n_text, &why);
        if (status != BZ_OK && (tries == retries || !worth_retrying(&r))) {
            status = manifest_error(p, &r, &why);
            bz_http_drop(&r);
            return status;
        }
        if (status != BZ_OK) {
            wait_before_retry(p, &r, tries);
        }
        bz_http_drop(&r);
    }
    return status;
}

/* A manifest that Ollama's store can hold and that names a GGUF file. */
static bz_status check_manifest(pull *p)
{
    bz_error why = {0};
    size_t models = 0, tensors = 0;
    if (bz_store_manifest_parse(&p->manifest, p->text, p->n_text, &why) != BZ_OK) {
        return why.code == BZ_OUT_OF_MEMORY
                   ? bz_store_no_memory(p->err)
                   : bz_fail(p->err, BZ_NETWORK,
                             "The manifest of %.*s that %.*s sent is not valid: %.100s.",
                             BZ_SHOWN_NAME, p->shown, BZ_SHOWN_NAME, p->name.host, why.text);
    }
    for (size_t i = 0; i < p->manifest.n_layers; i++) {
        models += p->manifest.layers[i].kind == BZ_LAYER_MODEL;
        tensors += p->manifest.layers[i].kind == BZ_LAYER_TENSOR;
    }
    if (models == 0) {
        return bz_fail(p->err, BZ_UNSUPPORTED_MODEL,
                       tensors ? "%.*s is stored as safetensors, but Bezel runs GGUF files only."
                               : "%.*s has no GGUF model file, so there is nothing to run.",
                       BZ_SHOWN_NAME, p->shown);
    }
    return BZ_OK;
}

/* ---- blobs --------------------------------------------------------------------------------------
 */

/* i: of a layer, or n_layers for the config. NULL: the manifest has no config. */
static const bz_store_layer *layer_at(const pull *p, size_t i)
{
    const bz_store_layer *layer =
        i < p->manifest.n_layers ? &p->manifest.layers[i] : &p->manifest.config;
    return layer->digest[0] ? layer : NULL;
}

static bool present(const char *path, uint64_t size)
{
    bz_os_info info;
    return bz_os_stat(path, &info, NULL) == BZ_OK && !info.folder && info.size == size;
}

static bool listed_before(const pull *p, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        const bz_store_layer *other = layer_at(p, k);
        if (other && strcmp(other->digest, layer_at(p, i)->digest) == 0) {
            return true;
        }
    }
    return false;
}

static bz_status check_space(const pull *p)
{
    uint64_t need = 0;
    for (size_t i = 0; i <= p->manifest.n_layers; i++) {
        const bz_store_layer *layer = layer_at(p, i);
        if (!layer || listed_before(p, i)) {
            continue;
        }
        char *path = bz_store_blob_path(p->root, layer->digest);
        if (!path) {
            return bz_store_no_memory(p->err);
        }
        if (!present(path, layer->size)) {
            const uint64_t has = bz_partial_allocated(path);
            const uint64_t more = layer->size > has ? layer->size - has : 0;
            need = need > UINT64_MAX - more ? UINT64_MAX : need + more;
        }
        free(path);
    }
    const uint64_t space = bz_store_free_space(p->root);
    if (need && need > (space > SPARE_SPACE ? space - SPARE_SPACE : 0)) {
        char needed[BZ_UNITS_MAX], there[BZ_UNITS_MAX];
        return bz_fail(p->err, BZ_QUOTA,
                       "%.*s needs %s, but %.*s has %s of free space; free some, or set "
                       "OLLAMA_MODELS to a folder on another disk.",
                       BZ_SHOWN_NAME, p->shown, bz_bytes_text(need, needed), BZ_SHOWN_PATH, p->root,
                       bz_bytes_text(space, there));
    }
    return BZ_OK;
}

/* Waits while another process pulls the same blob. */
static bz_status open_partial(const pull *p, bz_partial *file, const char *path,
                              const bz_store_layer *layer)
{
    for (;;) {
        p->err->code = BZ_OK;
        const bz_status status = bz_partial_open(file, path, layer->digest, layer->size, p->err);
        if (status != BZ_ABORTED || p->err->code != BZ_OK) {
            return status;
        }
        bz_partial_close(file);
        if (cancelled(p)) {
            return interrupted(p);
        }
        bz_pull_report(p->o, "waiting for another pull of the same file", NULL, 0, 0);
        bz_os_sleep(LOCK_POLL_MS * MS);
    }
}

static bz_status fetch_and_check(pull *p, bz_partial *file, const bz_store_layer *layer,
                                 const char *url)
{
    bool good = false, again = true;
    bz_status status = BZ_OK;
    while (status == BZ_OK && !good && again) {
        status = bz_pull_fetch(p->o, p->http, file, url, layer->digest, &good, p->err);
        if (status == BZ_OK && !good) {
            again = file->resumed; /* the bytes of the earlier pull may be the wrong ones */
            status = bz_partial_restart(file, layer->digest, p->err);
        }
    }
    if (status == BZ_OK && !good) {
        bz_partial_discard(file);
        status =
            bz_fail(p->err, BZ_CHECKSUM,
                    "The file %.12s that the registry sent does not have its SHA-256 digest; it "
                    "was removed. Pull again, or use another registry.",
                    layer->digest + strlen("sha256:"));
    }
    return status == BZ_OK ? bz_partial_finish(file, p->err) : status;
}

static bz_status get_blob(pull *p, const bz_store_layer *layer)
{
    bz_partial file = {.part = -1, .journal = -1};
    char *path = bz_store_blob_path(p->root, layer->digest);
    char *url =
        bz_store_text("%s/v2/%s/%s/blobs/%s", p->base, p->name.space, p->name.model, layer->digest);
    bz_status status = path && url ? BZ_OK : bz_store_no_memory(p->err);
    if (status == BZ_OK && present(path, layer->size)) {
        bz_pull_report_blob(p->o, layer->digest, layer->size, layer->size);
    } else if (status == BZ_OK) {
        status = open_partial(p, &file, path, layer);
        if (status == BZ_OK && present(path, layer->size)) {
            bz_partial_discard(&file); /* another process has just completed it */
        } else if (status == BZ_OK) {
            status = fetch_and_check(p, &file, layer, url);
        }
        bz_partial_close(&file);
    }
    free(path);
    free(url);
    return status;
}

/* ---- the name in the store
 * ------------------------------------------------------------------------ */

static bool all_present(const pull *p)
{
    bool there = true;
    for (size_t i = 0; there && i <= p->manifest.n_layers; i++) {
        const bz_store_layer *layer = layer_at(p, i);
        char *path = layer ? bz_store_blob_path(p->root, layer->digest) : NULL;
        there = !layer || (path && present(path, layer->size));
        free(path);
    }
    return there;
}

/* *removed: nothing was written, as a blob was removed together with another name that used it. */
static bz_status write_manifest(pull *p, bool *removed)
{
    char *old = NULL;
    size_t n_old = 0;
    bz_store_manifest before;
    bz_status status = bz_store_make_folders(p->path, p->err);
    if (status != BZ_OK) {
        return status;
    }
    const int lock = bz_store_lock(p->root);
    *removed = !all_present(p);
    if (*removed) {
        bz_store_unlock(lock);
        return BZ_OK;
    }
    bz_os_read_small(p->path, MAX_MANIFEST, &old, &n_old, NULL);
    status = bz_store_replace(p->root, p->path, p->text, p->n_text, p->err);
    if (status == BZ_OK && old && bz_store_manifest_parse(&before, old, n_old, NULL) == BZ_OK) {
        bz_store_prune(p->root, &before); /* what the old version of the model alone used */
        bz_store_manifest_free(&before);
    }
    bz_store_unlock(lock);
    free(old);
    return status;
}

/* A name that exists keeps its spelling. */
static bz_status find_place(pull *p)
{
    bz_catalog c = {0};
    bz_status status = bz_store_writable_root(&p->root, p->err);
    if (status == BZ_OK) {
        status = bz_catalog_read(&c, p->err);
    }
    const bz_found *old = status == BZ_OK ? bz_catalog_find(&c, &p->name) : NULL;
    if (status == BZ_OK) {
        p->path = bz_store_manifest_path(p->root, old ? &old->name : &p->name);
        status = p->path ? BZ_OK : bz_store_no_memory(p->err);
    }
    bz_catalog_free(&c);
    return status;
}

static bz_status make_blob_folder(const pull *p)
{
    char *inside = bz_store_text("%s/blobs/", p->root);
    const bz_status status =
        inside ? bz_store_make_folders(inside, p->err) : bz_store_no_memory(p->err);
    free(inside);
    return status;
}

static bz_status get_blobs(pull *p)
{
    bz_status status = check_space(p);
    for (size_t i = 0; status == BZ_OK && i <= p->manifest.n_layers; i++) {
        const bz_store_layer *layer = layer_at(p, i);
        if (layer && !listed_before(p, i)) {
            status = get_blob(p, layer);
        }
    }
    return status;
}

static bz_status run(pull *p)
{
    bz_status status = find_place(p);
    const bz_http_options http = {p->base, p->o->insecure, p->o->stall_s, p->o->is_cancelled,
                                  p->o->user};
    if (status == BZ_OK) {
        status = bz_http_open(&p->http, &http, p->err);
    }
    if (status == BZ_OK) {
        bz_pull_report(p->o, "pulling manifest", NULL, 0, 0);
        status = get_manifest(p);
    }
    if (status == BZ_OK) {
        status = check_manifest(p);
    }
    if (status == BZ_OK) {
        status = make_blob_folder(p);
    }
    bool removed = status == BZ_OK; /* blobs are missing */
    while (removed) {
        status = get_blobs(p);
        if (status == BZ_OK) {
            bz_pull_report(p->o, "writing manifest", NULL, 0, 0);
            status = write_manifest(p, &removed);
        }
        removed = removed && status == BZ_OK;
    }
    if (status == BZ_OK) {
        bz_pull_report(p->o, "success", NULL, 0, 0);
    }
    return status;
}

bool bz_store_can_pull(void)
{
    return true;
}

bz_status bz_store_pull(const bz_pull_options *o, bz_error *err)
{
    bz_error unwanted, why = {0};
    pull p = {.o = o, .err = err ? err : &unwanted};
    if (bz_store_name_parse(&p.name, o->name, &why) != BZ_OK) {
        return bz_fail(err, BZ_BAD_REQUEST, "\"%.*s\" is not a valid model name: %s.",
                       BZ_SHOWN_NAME, o->name, why.text);
    }
    bz_store_name_text(&p.name, p.shown);
    bz_status status = bz_url_base(o->name, &p.name, o->insecure, p.base, p.err);
    if (status == BZ_OK) {
        status = run(&p);
    }
    bz_http_close(p.http);
    bz_store_manifest_free(&p.manifest);
    free(p.text);
    free(p.root);
    free(p.path);
    return status;
}
