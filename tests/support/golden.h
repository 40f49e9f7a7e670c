/* Reading reference data in tests: GGUF containers, raw f32 files, text manifests. */
#ifndef BZ_TEST_GOLDEN_H
#define BZ_TEST_GOLDEN_H

#include <stddef.h>
#include <stdint.h>

#include "base/os.h"
#include "file/gguf.h"

/* A container of reference tensors. */
typedef struct golden {
    bz_os_map map;
    bz_gguf gguf;
} golden;

/* Folders, from the environment: BEZEL_GOLDEN (default build/golden) holds committed data,
 * unpacked, BEZEL_MODELS (default build/models) what tools/make_test_models.py wrote. The result is
 * one of a few static buffers. */
const char *golden_path(const char *name);
const char *model_path(const char *name);

/* Ends the program with a message when the file is not there: a missing fixture fails. */
void golden_open(golden *g, const char *path);
void golden_close(golden *g);

/* The tensor's values and count; NULL when there is none of that name. */
const float *golden_f32(const golden *g, size_t *n, const char *format, ...) BZ_PRINTF(3, 4);
const int32_t *golden_i32(const golden *g, size_t *n, const char *format, ...) BZ_PRINTF(3, 4);

/* Set by the runner under emulation and sanitizers: the same tests on fewer or smaller inputs. */
bool quick_run(void);

/* A whole file of floats; the caller frees it. Ends the program when it cannot be read. */
float *read_f32(const char *path, size_t *n);

#endif
