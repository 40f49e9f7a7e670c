/* bench --draft: what drafts cost, and how much faster answers are with them. */
#ifndef BZ_CLI_BENCH_DRAFT_H
#define BZ_CLI_BENCH_DRAFT_H

#include "cli/cli.h"

/* Returns an exit code. */
int bench_draft(const cli_options *o, const cli_model *m, double load_s);

#endif
