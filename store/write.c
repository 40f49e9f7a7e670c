/* Folders, files and locks of the store. */
#include "store/write.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os_program.h"

static bz_status fail_write(const char *path, bz_error *err)
{
    return bz_fail(err, bz_os_disk_is_full() ? BZ_QUOTA : BZ_BAD_FILE, "Cannot write %.*s: %s.",
                   BZ_SHOWN_PATH, path, strerror(errno));
}

/* ---- paths ------------------------------------------------------------------------------ */

char *bz_store_blob_path(const char *root, const char digest[BZ_DIGEST_TEXT])
{
    return bz_store_text("%s/blobs/sha256-%s", root, digest + strlen("sha256:"));
}

char *bz_store_manifest_path(const char *root, const bz_store_name *n)
{
    return bz_store_text("%s/manifests/%s/%s/%s/%s", root, n->host, n->space, n->model, n->tag);
}

bz_status bz_store_writable_root(char **root, bz_error *err)
{
    bz_catalog c = {0};
    *root = NULL;
    bz_status status = bz_store_find_roots(c.roots, &c.n_roots, err);
    size_t chosen = 0;
    for (size_t i = 0; status == BZ_OK && i < c.n_roots; i++) {
        if (c.roots[i].state == BZ_STORE_THERE && bz_os_may_write(c.roots[i].path)) {
            chosen = i;
            break;
        }
    }
    if (status == BZ_OK && c.n_roots == 0) {
        status = bz_fail(
            err, BZ_BAD_FILE,
            "Neither OLLAMA_MODELS nor the home folder is set; set OLLAMA_MODELS to a folder.");
    } else if (status == BZ_OK) {
        *root = bz_store_text("%s", c.roots[chosen].path);
        status = *root ? BZ_OK : bz_store_no_memory(err);
    }
    bz_catalog_free(&c);
    return status;
}

void bz_store_make_root(const char *root)
{
    char *holder = bz_store_text("%s", root);
    char *slash = holder ? strrchr(holder, '/') : NULL;
    if (slash && slash != holder) {
        *slash = 0;
        bz_os_make_folder(holder, false); /* it may exist */
    }
    free(holder);
    bz_os_make_folder(root, false);
}

/* ---- files ------------------------------------------------------------------------------- */

bz_status bz_store_make_folders(const char *path, bz_error *err)
{
    char *folder = bz_store_text("%s", path);
    bz_status status = folder ? BZ_OK : bz_store_no_memory(err);
    for (char *p = folder ? folder + 1 : NULL; status == BZ_OK && (p = strchr(p, '/')); p++) {
        *p = 0;
        if (!bz_os_make_folder(folder, false) && errno != EEXIST) {
            status = bz_fail(err, BZ_BAD_FILE, "Cannot create the folder %.*s: %s.", BZ_SHOWN_PATH,
                             folder, strerror(errno));
        }
        *p = '/';
    }
    free(folder);
    return status;
}

bz_status bz_store_sync_parent(const char *path, bz_error *err)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? bz_store_text("%.*s", (int)(slash - path), path) : bz_store_text(".");
    bz_status status = BZ_OK;
    if (!folder) {
        status = bz_store_no_memory(err);
    } else if (!bz_os_sync_folder(folder)) {
        status = fail_write(folder, err);
    }
    free(folder);
    return status;
}

bz_status bz_store_replace(const char *root, const char *path, const char *text, size_t n,
                           bz_error *err)
{
    static atomic_uint number;
    /* Not in the folder of the manifest, where Ollama would take it for one. */
    char *temporary = bz_store_text("%s/.bezel-%ld-%u", root, bz_os_process_id(), number++);
    if (!temporary) {
        return bz_store_no_memory(err);
    }
    const int file = bz_os_open(temporary, BZ_OS_WRITE | BZ_OS_CREATE | BZ_OS_EMPTY);
    bool written = file >= 0 && bz_os_write_all(file, text, n) && bz_os_sync(file);
    written = file >= 0 && bz_os_close(file) && written && bz_os_replace(temporary, path);
    const bz_status status = written ? bz_store_sync_parent(path, err) : fail_write(path, err);
    if (!written && file >= 0) {
        bz_os_remove(temporary);
    }
    free(temporary);
    return status;
}

uint64_t bz_store_free_space(const char *root)
{
    return bz_os_free_space(root);
}

/* ---- lock ---------------------------------------------------------------------------------- */

int bz_store_lock(const char *root)
{
    char *folder = bz_store_text("%s/blobs", root);
    const int lock = folder ? bz_os_lock_folder(folder) : -1;
    free(folder);
    return lock;
}

void bz_store_unlock(int lock)
{
    bz_os_close(lock);
}
