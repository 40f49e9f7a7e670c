/* bench --media: time to encode an image and an audio clip. */
#ifndef BZ_CLI_BENCH_MEDIA_H
#define BZ_CLI_BENCH_MEDIA_H

#include "cli/cli.h"

/* Returns an exit code. */
int bench_media(const cli_options *o, bz_model *model, double load_s);

#endif
