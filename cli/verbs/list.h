/* What 'bezel list' knows about a model of Ollama's store. */
#ifndef BZ_CLI_LIST_H
#define BZ_CLI_LIST_H

#include "store/ollama.h"

/* Does Bezel run it? The file's header decides. */
bool list_runs(const bz_store_entry *entry);

#endif
