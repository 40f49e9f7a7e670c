/* The writer of os.h, on systems with files. */
#include "base/os_program.h"

#if !defined(__wasm__)

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct bz_os_writer {
    char *path, *beside;
    FILE *file;
    int error; /* errno of the first failure */
};

static void free_writer(bz_os_writer *w)
{
    free(w->path);
    free(w->beside);
    free(w);
}

bz_status bz_os_writer_open(bz_os_writer **out, const char *path, bz_error *err)
{
    bz_os_writer *w = calloc(1, sizeof *w);
    const size_t room = strlen(path) + sizeof ".new";
    if (w) {
        w->path = strdup(path);
        w->beside = malloc(room);
    }
    if (!w || !w->path || !w->beside) {
        if (w) {
            free_writer(w);
        }
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to write %.200s.", path);
    }
    snprintf(w->beside, room, "%s.new", path);
    /* A file of a crashed save, or a link that another user put there, is not followed. */
    bz_os_remove(w->beside);
    const int fd = bz_os_open(w->beside, BZ_OS_WRITE | BZ_OS_NEW | BZ_OS_PRIVATE);
    w->file = fd >= 0 ? bz_os_stream_of(fd, "wb") : NULL;
    if (!w->file) {
        const int why = errno;
        if (fd >= 0) {
            bz_os_close(fd);
            bz_os_remove(w->beside);
        }
        free_writer(w);
        return bz_fail(err, BZ_BAD_REQUEST, "Cannot write %.200s: %s.", path, strerror(why));
    }
    *out = w;
    return BZ_OK;
}

bool bz_os_writer_put(bz_os_writer *w, const void *bytes, size_t n)
{
    if (w->error == 0 && n && fwrite(bytes, 1, n, w->file) != n) {
        w->error = errno ? errno : EIO;
    }
    return w->error == 0;
}

bz_status bz_os_writer_close(bz_os_writer *w, bool ok, bz_error *err)
{
    bz_status status = BZ_OK;
    if (!w->error && (fflush(w->file) != 0 || !bz_os_sync(bz_os_file_of(w->file)))) {
        w->error = errno;
    }
    if (fclose(w->file) != 0 && !w->error) {
        w->error = errno;
    }
    if (ok && !w->error && !bz_os_replace(w->beside, w->path)) {
        w->error = errno;
    }
    if (!ok || w->error) {
        bz_os_remove(w->beside);
        status = bz_fail(err, BZ_BAD_REQUEST, "Cannot write %.200s: %s.", w->path,
                         w->error ? strerror(w->error) : "it is incomplete");
    }
    free_writer(w);
    return status;
}

#endif
