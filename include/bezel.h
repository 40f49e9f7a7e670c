/* bezel.h: run Gemma 4 from a GGUF file.
 *
 * A bz_model is a loaded file: immutable, shared freely between threads.
 * A bz_session is one timeline of tokens over a model: one thread at a time.
 * A bz_job is work in progress. It never blocks: step it until it is done,
 * fetching the bytes it asks for in between. The native *_file and *_run helpers
 * are short loops over the same jobs.
 *
 * Option structs: zero-initialise them; zero always means the default.
 * Errors: a stable code and one sentence in a bz_error. Nothing here prints,
 * exits, or keeps global state.
 */
#ifndef BEZEL_H
#define BEZEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BZ_VERSION_MAJOR 0
#define BZ_VERSION_MINOR 1
#define BZ_VERSION_PATCH 0

#if defined(__GNUC__)
#define BZ_API __attribute__((visibility("default")))
#define BZ_PRINTF(a, b) __attribute__((format(printf, a, b)))
#else
#define BZ_API
#define BZ_PRINTF(a, b)
#endif

/* ---- errors ------------------------------------------------------------- */

/* Numbers and names are shared with JavaScript and HTTP and never change. */
#define BZ_STATUS_LIST(X)                                                                          \
    X(OK, 0, "ok")                                                                                 \
    X(OUT_OF_MEMORY, 1, "out_of_memory")                                                           \
    X(BAD_FILE, 2, "bad_file")                                                                     \
    X(UNSUPPORTED_MODEL, 3, "unsupported_model")                                                   \
    X(NOT_FOUND, 4, "not_found")                                                                   \
    X(BAD_REQUEST, 5, "bad_request")                                                               \
    X(CONTEXT_FULL, 6, "context_full")                                                             \
    X(ABORTED, 7, "aborted")                                                                       \
    X(NUMERIC, 8, "numeric")                                                                       \
    X(NO_WEBGPU, 9, "no_webgpu")                                                                   \
    X(NO_ADAPTER, 10, "no_adapter")                                                                \
    X(DEVICE_LOST, 11, "device_lost")                                                              \
    X(CHECKSUM, 12, "checksum")                                                                    \
    X(NETWORK, 13, "network")                                                                      \
    X(QUOTA, 14, "quota")                                                                          \
    X(BAD_SCHEMA, 15, "bad_schema")

typedef enum bz_status {
#define BZ_STATUS_ENUM(name, number, text) BZ_##name = number,
    BZ_STATUS_LIST(BZ_STATUS_ENUM)
#undef BZ_STATUS_ENUM
} bz_status;

typedef struct bz_error {
    bz_status code;
    char text[320]; /* one sentence: the thing, the cause, the way out */
} bz_error;

BZ_API const char *bz_status_name(bz_status code); /* "bad_file", ... */
BZ_API const char *bz_version(void);               /* "0.1.0" */

#ifdef __cplusplus
}
#endif
#endif
