/* POST /api/pull: a download on a thread of its own, reported line by line. */
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "server/api/ollama.h"
#include "store/pull.h"

enum {
    MAX_WAITING = 1 << 16, /* bytes of lines for a client that does not read; more are left out */
    MAX_DOWNLOADS = 16
};

/* The HTTP thread owns it; the download's thread uses what is marked. */
struct ollama_download {
    struct ollama_download *next;
    api *api;
    bz_os_thread *thread;
    char *name; /* both threads */
    bool insecure, stream;
    bool left; /* the client is gone, or has everything */
    char *sending;
    size_t n_sending, sent;

    /* Both threads. */
    atomic_bool cancelled, done;
    bz_lock lock;
    bz_json_buffer lines; /* under the lock: not yet taken */
    bool no_memory;       /* under the lock */
    char status[80];      /* the download's thread only: of the last line */
    bz_error err;         /* after `done` */
};

/* ---- the download's thread ------------------------------------------------------------------ */

static void add_line(struct ollama_download *d, void (*put)(bz_json *j, const void *what),
                     const void *what)
{
    bz_json j;
    bz_lock_take(&d->lock);
    bz_json_init(&j, bz_json_to_buffer, &d->lines);
    put(&j, what);
    d->no_memory |= !bz_json_finish(&j) || !bz_json_to_buffer(&d->lines, "\n", 1);
    bz_lock_give(&d->lock);
    d->api->wake(d->api->wake_user);
}

static void write_progress(bz_json *j, const void *what)
{
    bz_pull_progress_json(j, what);
}

static void write_error(bz_json *j, const void *what)
{
    api_put_error(j, API_OLLAMA, what);
}

static void on_progress(void *user, const bz_pull_progress *p)
{
    struct ollama_download *d = user;
    bz_lock_take(&d->lock);
    const bool full = d->lines.n > MAX_WAITING;
    bz_lock_give(&d->lock);
    const bool same = strncmp(d->status, p->status, sizeof d->status - 1) == 0;
    if (!d->stream || (full && same && p->completed < p->total)) {
        return;
    }
    /* Without a digest the line has no figures: once is enough. */
    if (!same || p->digest) {
        strncpy(d->status, p->status, sizeof d->status - 1);
        add_line(d, write_progress, p);
    }
}

static bool is_cancelled(void *user)
{
    return atomic_load(&((struct ollama_download *)user)->cancelled);
}

static void download(void *user)
{
    struct ollama_download *d = user;
    const bz_pull_options options = {.name = d->name,
                                     .insecure = d->insecure,
                                     .on_progress = on_progress,
                                     .is_cancelled = is_cancelled,
                                     .user = d};
    const bz_status status = d->api->pull ? d->api->pull(d->api->pull_user, &options, &d->err)
                                          : bz_store_pull(&options, &d->err);
    if (status != BZ_OK && d->stream) {
        add_line(d, write_error, &d->err);
    }
    atomic_store(&d->done, true);
    d->api->wake(d->api->wake_user);
}

/* ---- the HTTP thread ------------------------------------------------------------------------- */

static void download_free(struct ollama_download *d)
{
    if (d->thread) {
        bz_os_thread_join(d->thread);
    }
    free(d->lines.text);
    free(d->sending);
    free(d->name);
    free(d);
}

/* Frees downloads that have ended and that no client waits for; returns how many are left. */
static unsigned collect(api *a)
{
    unsigned n = 0;
    for (struct ollama_download **at = &a->downloads; *at;) {
        struct ollama_download *d = *at;
        if (d->left && atomic_load(&d->done)) {
            *at = d->next;
            download_free(d);
        } else {
            at = &d->next;
            n++;
        }
    }
    return n;
}

void api_end_downloads(api *a)
{
    for (struct ollama_download *d = a->downloads; d; d = d->next) {
        atomic_store(&d->cancelled, true);
    }
    while (a->downloads) {
        struct ollama_download *d = a->downloads;
        a->downloads = d->next;
        download_free(d);
    }
}

static void take_lines(struct ollama_download *d)
{
    bz_lock_take(&d->lock);
    free(d->sending);
    d->sending = d->lines.text;
    d->n_sending = d->lines.n;
    d->sent = 0;
    d->lines = (bz_json_buffer){0};
    bz_lock_give(&d->lock);
}

static stream_state fill(void *user, char *room, size_t n, size_t *put)
{
    struct ollama_download *d = user;
    const bool done = atomic_load(&d->done); /* before the last lines are taken */
    if (d->sent == d->n_sending) {
        take_lines(d);
    }
    const size_t left = d->n_sending - d->sent;
    *put = left < n ? left : n;
    if (*put) {
        memcpy(room, d->sending + d->sent, *put);
        d->sent += *put;
    }
    if (done && d->no_memory) {
        return STREAM_FAILED;
    }
    return d->sent < d->n_sending ? STREAM_MORE : done ? STREAM_END : STREAM_WAIT;
}

/* The next pull of the name continues where this one is stopped. */
static void ended(void *user)
{
    struct ollama_download *d = user;
    atomic_store(&d->cancelled, true);
    d->left = true;
}

static void resume(void *user, exchange *x)
{
    struct ollama_download *d = user;
    if (!atomic_load(&d->done)) {
        return;
    }
    if (d->err.code) {
        /* The disk is full: no reason to try again in a second, which quota means here. */
        d->err.code = d->err.code == BZ_QUOTA ? BZ_BAD_FILE : d->err.code;
        api_error(x, API_OLLAMA, &d->err);
    } else {
        static const char success[] = "{\"status\":\"success\"}";
        exchange_bytes(x, 200, "application/json", success, strlen(success));
    }
}

static struct ollama_download *read_request(api *a, exchange *x)
{
    bz_arena arena = {0};
    const bz_json_node *root;
    bz_error err = {0};
    if (!api_read_body(x, API_OLLAMA, &arena, &root)) {
        return NULL;
    }
    struct ollama_download *d = calloc(1, sizeof *d);
    const bz_json_node *model = bz_json_get(root, "model");
    model = api_is_absent(model) ? bz_json_get(root, "name") : model;
    bool ok = d && api_read_bool(root, "stream", true, &d->stream, &err) &&
              api_read_bool(root, "insecure", false, &d->insecure, &err);
    if (ok && bz_json_string(model).len == 0) {
        ok = bz_fail(&err, BZ_BAD_REQUEST, "model is the name of a model, such as gemma4:e2b.") ==
             BZ_OK;
    }
    if (ok) {
        d->api = a;
        d->name = api_copy_text(model);
        ok = d->name != NULL;
    }
    bz_arena_free(&arena);
    if (!ok) {
        err.code = err.code ? err.code : BZ_OUT_OF_MEMORY;
        api_error(x, API_OLLAMA, &err);
        free(d);
        return NULL;
    }
    return d;
}

void ollama_pull(void *user, exchange *x)
{
    api *a = user;
    bz_error err = {0};
    if (collect(a) >= MAX_DOWNLOADS) {
        bz_fail(&err, BZ_QUOTA, "%d downloads are running; try again later.", MAX_DOWNLOADS);
        api_error(x, API_OLLAMA, &err);
        return;
    }
    struct ollama_download *d = read_request(a, x);
    if (!d) {
        return;
    }
    d->thread = bz_os_thread_start(download, d);
    if (!d->thread) {
        bz_fail(&err, BZ_OUT_OF_MEMORY, "No thread for a download.");
        api_error(x, API_OLLAMA, &err);
        download_free(d);
        return;
    }
    d->next = a->downloads;
    a->downloads = d;
    if (d->stream) {
        exchange_stream(x, 200, "application/x-ndjson",
                        (exchange_task){.fill = fill, .ended = ended, .user = d});
    } else {
        exchange_later(x, (exchange_task){.resume = resume, .ended = ended, .user = d});
    }
}
