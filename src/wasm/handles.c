#include "wasm/handles.h"

#if defined(__wasm__)

#include <stdlib.h>

#include "base/error.h"
#include "bezel_adapter.h"
#include "bezel_media.h"

typedef struct entry {
    handle_kind kind;
    const void *object, *parent;
} entry;

/* All there are; the newest is used most. */
static entry *entries;
static size_t n_entries, room;

enum { PAGE = 65536 };

static const char *const names[] = {
    [HANDLE_HOST] = "host",
    [HANDLE_BLOCK] = "block of memory",
    [HANDLE_SHA] = "checksum",
    [HANDLE_STREAM] = "stream",
    [HANDLE_OPEN_JOB] = "opening job",
    [HANDLE_JOB] = "job",
    [HANDLE_HEADER] = "header",
    [HANDLE_MODEL] = "model",
    [HANDLE_SESSION] = "session",
    [HANDLE_TURN] = "turn",
    [HANDLE_ENCODER] = "encoder",
    [HANDLE_MEDIA] = "media",
    [HANDLE_EMBEDDER] = "embedder",
    [HANDLE_ADAPTER] = "adapter",
};

static void destroy(handle_kind kind, const void *object)
{
    void *p = (void *)(uintptr_t)object;
    switch (kind) {
    case HANDLE_HOST:
    case HANDLE_BLOCK:
    case HANDLE_SHA:
    case HANDLE_STREAM: free(p); break;
    case HANDLE_OPEN_JOB:
    case HANDLE_JOB: bz_job_free(p); break;
    case HANDLE_HEADER: break; /* its job's */
    case HANDLE_MODEL: bz_model_free(p); break;
    case HANDLE_SESSION: bz_session_free(p); break;
    case HANDLE_TURN: bz_turn_free(p); break;
    case HANDLE_ENCODER: bz_encoder_free(p); break;
    case HANDLE_EMBEDDER: wasm_embedder_destroy(p); break;
    case HANDLE_MEDIA: bz_media_free(p); break;
    case HANDLE_ADAPTER: bz_adapter_free(p); break;
    }
}

/* The index after that of the entry; 0: there is none. */
static size_t find(handle_kind kind, const void *object)
{
    size_t i = object ? n_entries : 0;
    while (i && (entries[i - 1].object != object || entries[i - 1].kind != kind)) {
        i--;
    }
    return i;
}

void *handle_add(handle_kind kind, const void *object, const void *parent)
{
    if (object && n_entries == room) {
        const size_t more = room ? 2 * room : 64;
        entry *grown = realloc(entries, more * sizeof *entries);
        if (!grown) {
            destroy(kind, object);
            return NULL;
        }
        entries = grown;
        room = more;
    }
    if (object) {
        entries[n_entries++] = (entry){kind, object, parent};
    }
    return (void *)(uintptr_t)object;
}

bool handle_is(handle_kind kind, const void *object)
{
    return find(kind, object) != 0;
}

const void *handle_parent(handle_kind kind, const void *object)
{
    const size_t i = find(kind, object);
    return i ? entries[i - 1].parent : NULL;
}

void handle_become(handle_kind kind, const void *object, handle_kind other)
{
    const size_t i = find(kind, object);
    if (i) {
        entries[i - 1].kind = other;
    }
}

void handle_free_users(const void *object)
{
    for (size_t i = n_entries; i > 0; i--) { /* what it frees may move the others */
        if (i <= n_entries && entries[i - 1].parent == object && object) {
            handle_free(entries[i - 1].kind, entries[i - 1].object);
            i = n_entries + 1;
        }
    }
}

void handle_free(handle_kind kind, const void *object)
{
    size_t i = find(kind, object);
    if (!i) {
        return;
    }
    for (i--; i + 1 < n_entries; i++) {
        entries[i] = entries[i + 1];
    }
    n_entries--;
    handle_free_users(object);
    destroy(kind, object);
}

bool handle_check(host *h, handle_kind kind, const void *object)
{
    if (!handle_is(HANDLE_HOST, h)) {
        return false;
    }
    if (handle_is(kind, object)) {
        return true;
    }
    bz_fail(&h->error, BZ_BAD_REQUEST, "There is no such %s.", names[kind]);
    return false;
}

bool handle_memory(host *h, const void *p, uint64_t n)
{
    const uint64_t size = (uint64_t)__builtin_wasm_memory_size(0) * PAGE;
    if (!handle_is(HANDLE_HOST, h)) {
        return false;
    }
    if ((p || n == 0) && (uint64_t)(uintptr_t)p + n <= size) {
        return true;
    }
    bz_fail(&h->error, BZ_BAD_REQUEST, "The address is outside of the memory.");
    return false;
}

#endif
