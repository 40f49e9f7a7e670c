/* Pebble and Pebble Diffusion, the little models that come with the program. */
#ifndef BZ_CLI_PEBBLE_H
#define BZ_CLI_PEBBLE_H

#include <limits.h>
#include <stdbool.h>

#include "store/ollama.h"

#define PEBBLE           "pebble"
#define PEBBLE_DIFFUSION "pebble-diffusion"

/* Pebble's file: beside an installed program, else in the source tree; false: it is in neither
 * place. */
bool pebble_find(char out[PATH_MAX]);

/* A file, a name of Ollama's store, else the name of one of the little models. */
bz_status pebble_resolve(const char *model, bz_store_model *out, bz_error *err);

/* One line to stderr: which model this is, which ones Ollama's store has, how to run one. */
void pebble_introduce(void);

#endif
