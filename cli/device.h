/* What --device auto means on this machine. */
#ifndef BZ_CLI_DEVICE_H
#define BZ_CLI_DEVICE_H

#include "cli/cli.h"

enum { DEVICE_REASON = 400 };

/* The device of a verb that generates: --device, else BEZEL_DEVICE, else auto. */
const char *device_default(const cli_options *o);

/* Whether there is a GPU that is not emulated on the CPU. text: its name, or why there is none and
 * what to do, as a part of a sentence. */
bool device_find_gpu(char text[DEVICE_REASON]);

#endif
