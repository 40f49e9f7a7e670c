/* bench --sequences: the speed of several sequences that decode together. */
#ifndef BZ_CLI_BENCH_BATCH_H
#define BZ_CLI_BENCH_BATCH_H

#include "cli/cli.h"

/* Returns an exit code. */
int bench_batch(const cli_options *o, const cli_model *m, double load_s);

#endif
