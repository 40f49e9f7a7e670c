/* Models in memory that are a file's with one thing changed. */
#ifndef BZ_TEST_EDITED_H
#define BZ_TEST_EDITED_H

#include "bezel.h"
#include "support/gguf_build.h"
#include "support/golden.h"

typedef enum change {
    NOTHING,
    DROP_KEY,
    SET_U32,
    SET_I32,
    SET_F32,
    SET_STR,
    SET_ARRAY, /* i32 array of `number` elements, all 1 */
    ADD_U32,
    DROP_TENSOR,
    RENAME_TENSOR, /* to `text` */
    SET_ROWS,      /* ne[1] = number (data zero) */
    SET_COLS,      /* ne[0] = number */
    SET_TYPE,      /* type = number, zero data */
    POISON_F32,    /* a NaN (number 0) or infinity in the first element */
    ADD_TENSOR     /* F32 vector of `number` ones */
} change;

typedef struct edit {
    const char *title; /* for the test's use, as are the last two */
    change what;
    const char *name;
    double number;
    const char *text;
    bz_status code;
    const char *expected; /* NULL: opens */
} edit;

void copy_key(gguf_build *b, const bz_gguf_kv *kv); /* as it is */
void build_edited(gguf_build *b, const golden *from, const edit *e);

/* Opens a file in memory, which must outlive the model. */
bz_status open_bytes(const void *bytes, size_t size, bz_model **m, bz_error *err);

#endif
