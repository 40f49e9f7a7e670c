/* The models that `serve` offers: as files to the page, and by name to the API. */
#ifndef BZ_CLI_SERVE_MODELS_H
#define BZ_CLI_SERVE_MODELS_H

#include "cli/cli.h"
#include "server/engine/engine.h"
#include "server/files.h"

/* Adds every MODEL of the command line to both: a file with all its parts, a folder of GGUF files,
 * or a name in Ollama's store. Without any, the API has Pebble. The page is also offered all
 * other models of the store. Returns an exit code, after a
 * message. */
int serve_add_models(const cli_options *o, files_models *files, engine *e);
void serve_free_models(files_models *files);

#endif
