/* What sandbox.c needs of the system: Linux has a sandbox (os_linux_*.c), other systems have none
 * here (os_plain.c). */
#ifndef BZ_CLI_OS_SANDBOX_H
#define BZ_CLI_OS_SANDBOX_H

#include "cli/sandbox.h"

extern const char sandbox_needs[]; /* what it takes, where there is none */
extern const bool sandbox_exists;  /* on this system, if its kernel is new enough */

/* Confines this process for good; false: not all of it. */
bool sandbox_confine(const sandbox_rules *r);
/* Whether the GPU that --device names works inside. With a GPU, changes the rules as it needs. */
bool sandbox_driver_works(const char *device, sandbox_rules *r);

#endif
