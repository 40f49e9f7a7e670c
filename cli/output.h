/* Answers on stdout: whether they arrived, and JSON ones. */
#ifndef BZ_CLI_OUTPUT_H
#define BZ_CLI_OUTPUT_H

#include "base/json.h"
#include "cli/cli.h"

/* Sends what is still held back. A full disk or the like is a message and EXIT_FAILED. */
int cli_flush(void);

/* Begins one JSON value on stdout; the end is a line end and cli_flush. */
void cli_json_begin(bz_json *j);
int cli_json_end(bz_json *j);

#endif
