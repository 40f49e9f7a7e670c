/* Pebble, the little model that comes with the program. */
#ifndef BZ_CLI_PEBBLE_H
#define BZ_CLI_PEBBLE_H

#include <limits.h>
#include <stdbool.h>

/* Beside an installed program, else in the source tree; false: it is in neither place. */
bool pebble_find(char out[PATH_MAX]);

/* One line to stderr: which model this is, which ones Ollama's store has, how to run one. */
void pebble_introduce(void);

#endif
