/* The terminal, the standard streams and the machine, for the program. Only os_*.c make system
 * calls. */
#ifndef BZ_CLI_OS_H
#define BZ_CLI_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLI_STDIN, CLI_STDOUT, CLI_STDERR };

/* Called first: signals, standard streams as bytes of UTF-8, the command line as UTF-8. */
void cli_os_begin(int *argc, char ***argv);

bool cli_os_is_terminal(int fd);
/* Whether a terminal here obeys escape sequences: colors, moving the cursor. */
bool cli_os_draws(void);
bool cli_os_window(int fd, int *columns, int *rows); /* of a terminal; false: unknown */

/* Whether someone piped or redirected text here. Devices, such as a terminal or /dev/null, have
 * none beside a prompt. */
bool cli_os_has_text(int fd);

/* A line of standard input with its line end, in *text, which the caller frees at the end. */
typedef enum cli_os_line { CLI_OS_LINE, CLI_OS_END, CLI_OS_SIGNAL } cli_os_line;
cli_os_line cli_os_read_line(char **text, size_t *capacity, size_t *n);

/* Redirects stderr to nowhere; returns what cli_os_restore needs, or -1. */
int cli_os_silence(void);
void cli_os_restore(int before);

void cli_os_processor(char *out, size_t room); /* its name; "": unknown */
uint64_t cli_os_memory_limit(void);            /* of a container, in bytes; 0: none */

/* Unpacks one file of a .tar.gz, "folder/name", into a folder that exists, with the system's tar.
 * False: there is none, or it failed. */
bool cli_os_unpack(const char *archive, const char *folder, const char *member);

#endif
