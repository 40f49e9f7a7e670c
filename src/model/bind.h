/* Finding tensors by name in one set of files, with every refusal naming the tensor. */
#ifndef BZ_MODEL_BIND_H
#define BZ_MODEL_BIND_H

#include "file/files.h"
#include "plan/weights.h"

enum { BZ_BIND_OPTIONAL = 1, BZ_BIND_VECTOR = 2 /* must be F32 */ };

typedef struct bz_binder {
    bz_weights *table;
    const bz_files *files;
    const bz_gguf *only; /* look in this file; NULL: in the text model's parts */
    uint32_t only_file;
    bz_error *err;
    bool failed; /* the first complaint stands; later binds do nothing */
} bz_binder;

/* The tensor of that name with its values in rows of `cols`; rows or planes of 0: as many as there
 * are. Tensors of four dimensions are taken as [cols, rows, planes] if the counts fit. */
bz_weight bz_bind(bz_binder *b, int flags, uint64_t cols, uint64_t rows, uint64_t planes,
                  const char *format, ...) BZ_PRINTF(6, 7);
/* Appends an entry; its name is copied. None: no memory. */
bz_weight bz_bind_add(bz_weights *table, const bz_weight_info *info);
bool bz_bind_has(const bz_binder *b, const char *format, ...) BZ_PRINTF(2, 3);
/* Also for complaints that are not about one tensor. */
void bz_bind_refuse(bz_binder *b, bz_status code, const char *format, ...) BZ_PRINTF(3, 4);
void bz_bind_free(bz_weights *table);

#endif
