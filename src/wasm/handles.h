/* The objects that JavaScript holds, by address. A call with an address that is not one of them, or
 * with memory that does not exist, is refused: a mistake in JavaScript must not corrupt the
 * module's memory. Only the thread that calls the exports uses this. */
#ifndef BZ_WASM_HANDLES_H
#define BZ_WASM_HANDLES_H

#include "wasm/host.h"

typedef enum handle_kind {
    HANDLE_HOST,
    HANDLE_BLOCK, /* of alloc */
    HANDLE_SHA,
    HANDLE_STREAM,
    HANDLE_OPEN_JOB, /* until its model is taken; then a JOB */
    HANDLE_JOB,
    HANDLE_HEADER, /* the model of an OPEN_JOB, to inspect it */
    HANDLE_MODEL,
    HANDLE_SESSION,
    HANDLE_TURN,
    HANDLE_ENCODER,
    HANDLE_ADAPTER,  /* sessions that use it keep it */
    HANDLE_EMBEDDER, /* a wasm_embedder of embed.c */
    HANDLE_MEDIA     /* once per reference */
} handle_kind;

/* Lists an object, which may be NULL, and returns it. Without memory for that the object is freed
 * and the result is NULL. `parent` is what it uses, or NULL: it is freed before that. */
void *handle_add(handle_kind kind, const void *object, const void *parent);
bool handle_is(handle_kind kind, const void *object);
/* NULL: it has none, or is not listed. */
const void *handle_parent(handle_kind kind, const void *object);
/* Frees an object and first what uses it; does nothing if it is not listed. */
void handle_free(handle_kind kind, const void *object);
/* Frees what uses an object. */
void handle_free_users(const void *object);
/* From now on it is of another kind. */
void handle_become(handle_kind kind, const void *object, handle_kind other);

/* The same with an error in the host, which is checked too. */
bool handle_check(host *h, handle_kind kind, const void *object);
/* Whether n bytes from p on are memory; else an error. */
bool handle_memory(host *h, const void *p, uint64_t n);

void wasm_embedder_destroy(void *embedder); /* embed.c */

#endif
