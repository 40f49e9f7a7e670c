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

/* ---- with rules of the caller's own -------------------------------------------------------- */

typedef enum sandbox_right {
    SANDBOX_READ,    /* a file, or a folder with all below it */
    SANDBOX_OPEN,    /* a file that exists, to read and write */
    SANDBOX_MAKE,    /* files of a folder: make, write, read */
    SANDBOX_REPLACE, /* the same, and remove */
    SANDBOX_CHANGE   /* everything below a folder */
} sandbox_right;

typedef struct sandbox_path {
    char *path; /* owned */
    sandbox_right right;
} sandbox_path;

typedef struct sandbox_rules {
    sandbox_path *paths; /* [n_paths] owned; paths that do not exist are ignored */
    size_t n_paths;
    bool reads_listed; /* only what is listed may be read; without a GPU */
    bool writes_anything;
    bool connects;  /* makes connections over IP */
    bool gpu;       /* a driver works inside */
    bool no_memory; /* a path could not be added */
} sandbox_rules;

void sandbox_allow(sandbox_rules *r, const char *path, sandbox_right right);
/* What programs read of the system: libraries, settings of names and certificates, the machine. */
void sandbox_allow_system(sandbox_rules *r);
/* As sandbox_enter. Changes the rules: with a GPU everything may be read. Frees their paths. */
bool sandbox_enter_rules(const char *mode, const char *device, sandbox_rules *r, int *exit_code);

#endif
