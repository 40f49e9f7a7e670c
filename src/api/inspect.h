/* What a model's header says, for programs that decide before they load. */
#ifndef BZ_INSPECT_H
#define BZ_INSPECT_H

#include "base/json.h"
#include "session/model.h"

/* Writes one object (web/package/src/inspect.ts describes it) about the files that have been parsed
 * so far. `refusal` is why opening ended early; NULL: the tables are there, so that everything but
 * the weights has been checked. `fit`: the GPU to ask about. */
void bz_inspect(bz_json *j, const bz_model *m, const bz_error *refusal, const bz_fit_options *fit);

#endif
