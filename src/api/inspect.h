/* What a model's header says, for programs that decide before they load it. */
#ifndef BZ_INSPECT_H
#define BZ_INSPECT_H

#include "base/json.h"
#include "session/model.h"

typedef struct bz_type_sum {
    uint64_t tensors, bytes, values;
} bz_type_sum;

/* The tensors of all files parsed so far, by type; returns their sum. */
bz_type_sum bz_inspect_types(const bz_model *m, bz_type_sum sums[BZ_TYPE_END]);

/* Writes one object (web/package/src/inspect.ts describes it) about the files that have been parsed
 * so far. `refusal` is why opening ended early; NULL: the tables are there, so that everything but
 * the weights has been checked. `fit`: the GPU to ask about. */
void bz_inspect(bz_json *j, const bz_model *m, const bz_error *refusal, const bz_fit_options *fit);

#endif
