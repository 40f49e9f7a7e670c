/* Folders, files and locks of the store. */
#include "store/write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/os.h"

static bz_status fail_write(const char *path, bz_error *err)
{
    const bool full = errno == ENOSPC || errno == EDQUOT;
    return bz_fail(err, full ? BZ_QUOTA : BZ_BAD_FILE, "Cannot write %.*s: %s.", BZ_SHOWN_PATH,
                   path, strerror(errno));
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
        if (c.roots[i].state == BZ_STORE_THERE && access(c.roots[i].path, W_OK) == 0) {
            chosen = i;
            break;
        }
    }
    if (status == BZ_OK && c.n_roots == 0) {
        status = bz_fail(err, BZ_BAD_FILE,
                         "Neither OLLAMA_MODELS nor HOME is set; set OLLAMA_MODELS to a folder.");
    } else if (status == BZ_OK) {
        *root = bz_store_text("%s", c.roots[chosen].path);
        status = *root ? BZ_OK : bz_store_no_memory(err);
    }
    bz_catalog_free(&c);
    return status;
}

/* ---- files ------------------------------------------------------------------------------- */

bz_status bz_store_make_folders(const char *path, bz_error *err)
{
    char *folder = bz_store_text("%s", path);
    bz_status status = folder ? BZ_OK : bz_store_no_memory(err);
    for (char *p = folder ? folder + 1 : NULL; status == BZ_OK && (p = strchr(p, '/')); p++) {
        *p = 0;
        if (mkdir(folder, 0755) != 0 && errno != EEXIST) {
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
    const int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    bz_status status = BZ_OK;
    /* Some file systems refuse to flush a folder. */
    if (!folder) {
        status = bz_store_no_memory(err);
    } else if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL)) {
        status = fail_write(folder, err);
    }
    if (fd >= 0) {
        close(fd);
    }
    free(folder);
    return status;
}

bz_status bz_store_replace(const char *root, const char *path, const char *text, size_t n,
                           bz_error *err)
{
    static atomic_uint number;
    /* Not in the folder of the manifest, where Ollama would take it for one. */
    char *temporary = bz_store_text("%s/.bezel-%ld-%u", root, (long)getpid(), number++);
    if (!temporary) {
        return bz_store_no_memory(err);
    }
    const int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    bool written = fd >= 0;
    for (size_t at = 0; written && at < n;) {
        const ssize_t k = write(fd, text + at, n - at);
        written = k > 0 || (k < 0 && errno == EINTR);
        at += k > 0 ? (size_t)k : 0;
    }
    written = written && fsync(fd) == 0;
    written = fd >= 0 && close(fd) == 0 && written && rename(temporary, path) == 0;
    const bz_status status = written ? bz_store_sync_parent(path, err) : fail_write(path, err);
    if (!written && fd >= 0) {
        unlink(temporary);
    }
    free(temporary);
    return status;
}

uint64_t bz_store_free_space(const char *root)
{
    struct statvfs s;
    return statvfs(root, &s) == 0 ? (uint64_t)s.f_bavail * s.f_frsize : UINT64_MAX;
}

/* ---- lock ---------------------------------------------------------------------------------- */

int bz_store_lock(const char *root)
{
    char *folder = bz_store_text("%s/blobs", root);
    const int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    free(folder);
    while (fd >= 0 && flock(fd, LOCK_EX) != 0) {
        if (errno != EINTR) {
            close(fd);
            return -1;
        }
    }
    return fd;
}

void bz_store_unlock(int lock)
{
    if (lock >= 0) {
        close(lock);
    }
}
