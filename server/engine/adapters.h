/* The adapters of a model: those of its entry in Ollama's store, and those that were added. All of
 * its sequences and sessions have them. */
#ifndef BZ_SERVER_ENGINE_ADAPTERS_H
#define BZ_SERVER_ENGINE_ADAPTERS_H

#include "bezel_adapter.h"
#include "server/engine/models.h"

/* Checks the file against the model, and keeps its path. */
bz_status model_adapters_add(engine_model *m, const char *path, float scale, bz_error *err);
void model_adapters_forget(engine_model *m);

/* Of a model that was just loaded. */
bz_status model_adapters_open(engine_model *m, bz_error *err);
void model_adapters_close(engine_model *m);

#endif
