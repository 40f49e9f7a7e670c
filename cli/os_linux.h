/* The two halves of the sandbox on Linux; for os_linux_sandbox.c. */
#ifndef BZ_CLI_OS_LINUX_H
#define BZ_CLI_OS_LINUX_H

#include "cli/sandbox.h"

/* Both confine the calling process for good; false: the kernel cannot. */
bool sandbox_filter_calls(const sandbox_rules *r);  /* system calls, by seccomp */
bool sandbox_confine_files(const sandbox_rules *r); /* files and ports, by Landlock */

#endif
