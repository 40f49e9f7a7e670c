/* Output on stdout, as text or JSON. */
#ifndef BZ_CLI_OUTPUT_H
#define BZ_CLI_OUTPUT_H

#include "base/json.h"
#include "cli/cli.h"

/* Flushes stdout. A full disk or another failure is a message and EXIT_FAILED. */
int cli_flush(void);

/* Sink of JSON and of bz_debug_plan: stdout. */
bool cli_write(void *user, const char *bytes, size_t n);

/* Begins one JSON value on stdout; cli_json_end writes a newline and flushes. */
void cli_json_begin(bz_json *j);
int cli_json_end(bz_json *j);

#endif
