/* Finds tensors by name in one set of files. Every error message names the tensor. */
#ifndef BZ_MODEL_BIND_H
#define BZ_MODEL_BIND_H

#include "file/files.h"
#include "plan/weights.h"

enum {
    BZ_BIND_OPTIONAL = 1,
    BZ_BIND_VECTOR = 2, /* must be F32 */
    BZ_BIND_IDS = 4     /* must be integers */
};

typedef struct bz_binder {
    bz_weights *table;
    const bz_files *files;
    const bz_gguf *only; /* look in this file; NULL: in the text model's parts */
    uint32_t only_file;
    bz_error *err;
    bool failed; /* after the first error; later binds do nothing */
} bz_binder;

/* The tensor of that name as [cols, rows, planes]; 0: any size. A tensor of four dimensions is
 * accepted if consecutive dimensions multiply to these sizes. */
bz_weight bz_bind(bz_binder *b, int flags, uint64_t cols, uint64_t rows, uint64_t planes,
                  const char *format, ...) BZ_PRINTF(6, 7);
/* Appends an entry; its name is copied. BZ_NO_WEIGHT: out of memory. */
bz_weight bz_bind_add(bz_weights *table, const bz_weight_info *info);
bool bz_bind_has(const bz_binder *b, const char *format, ...) BZ_PRINTF(2, 3);
/* The type of the tensor of that name; BZ_TYPE_END: there is none. */
bz_type bz_bind_type(const bz_binder *b, const char *name);
/* Reports the first error; used also for errors that are not about one tensor. */
void bz_bind_refuse(bz_binder *b, bz_status code, const char *format, ...) BZ_PRINTF(3, 4);
void bz_bind_free(bz_weights *table);

#endif
