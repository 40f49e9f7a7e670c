/* bench for diffusion models: time per step over a canvas. */
#ifndef BZ_CLI_BENCH_CANVAS_H
#define BZ_CLI_BENCH_CANVAS_H

#include "cli/cli.h"

/* `length_given`: the prompt's length was given. Returns an exit code. */
int bench_canvas(const cli_options *o, bool length_given, const cli_model *m, double load_s);

#endif
