/* For other verbs: which models of Ollama's store Bezel runs. */
#ifndef BZ_CLI_LIST_H
#define BZ_CLI_LIST_H

#include "store/ollama.h"

/* Reads the header of the model file. */
bool list_runs(const bz_store_entry *entry);

#endif
