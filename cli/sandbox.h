/* Confines the program before it reads a model: a hole in a parser or a kernel then reaches neither
 * the network nor other programs, and writes no file that the command did not name. */
#ifndef BZ_CLI_SANDBOX_H
#define BZ_CLI_SANDBOX_H

#include "cli/cli.h"

/* Enters the sandbox that --sandbox selects, once and for the rest of the process; call it while
 * the process has one thread.
 *
 *   auto (default)  as far as the kernel and the GPU's driver support it
 *   on              an error if they do not
 *   off             not at all
 *
 * saves_anywhere: files are written where the user says later, as a chat does. False after a
 * message; *exit_code is set. */
bool sandbox_enter(const cli_options *o, bool saves_anywhere, int *exit_code);

#endif
