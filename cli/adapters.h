/* The adapters of the MODEL of the command line: those of its entry in Ollama's store, then those
 * of --lora. */
#ifndef BZ_CLI_ADAPTERS_H
#define BZ_CLI_ADAPTERS_H

#include "bezel_adapter.h"
#include "bezel_batch.h"
#include "cli/cli.h"

/* FILE or FILE:SCALE, the value of --lora, without reading the file. *path is freed by the caller.
 */
bz_status adapters_parse(const char *text, char **path, float *scale, bz_error *err);

/* Opens them for m->model. */
bz_status adapters_open(const cli_options *o, cli_model *m, bz_error *err);
void adapters_close(cli_model *m);

bz_status adapters_use(const cli_model *m, bz_session *session, bz_error *err);
bz_status adapters_use_batch(const cli_model *m, bz_batch *batch, bz_error *err);

#endif
