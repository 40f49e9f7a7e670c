/* Pebble and Pebble Diffusion, the small demo models that come with the program. */
#ifndef BZ_CLI_PEBBLE_H
#define BZ_CLI_PEBBLE_H

#include <limits.h>
#include <stdbool.h>

#include "store/ollama.h"

#define PEBBLE           "pebble"
#define PEBBLE_DIFFUSION "pebble-diffusion"

/* Finds Pebble's file beside an installed program or in the source tree; false: in neither. */
bool pebble_find(char out[PATH_MAX]);

/* A file, a name in Ollama's store, or the name of a demo model. */
bz_status pebble_resolve(const char *model, bz_store_model *out, bz_error *err);

/* Prints one line to stderr: that Pebble is used, which models Ollama's store has, how to run one.
 */
void pebble_introduce(void);

#endif
