/* An opened model: headers, tokenizer, weights as handles, and where their bytes are. */
#ifndef BZ_MODEL_H
#define BZ_MODEL_H

#include "base/os.h"
#include "file/files.h"
#include "model/text.h"
#include "text/tokenizer.h"

typedef struct model_file {
    char *name;
    uint64_t size;
    const uint8_t *data; /* the whole file in memory, or NULL */
    uint8_t *header;     /* first bytes, when data is NULL; owned */
    uint64_t header_bytes;
    bz_gguf gguf;
    bool parsed;
    bz_os_map map; /* when opened by path */
} model_file;

struct bz_model {
    model_file *files; /* [n_files] */
    size_t n_files;
    bz_file *parsed; /* what bz_files points to */
    bz_files set;
    bz_text_model text;
    bz_tokenizer *tokenizer;
    const uint8_t **weight_bytes; /* [text.weights.table.n] */
    uint8_t **owned_bytes;        /* the same, where read into memory of our own; else NULL */
};

#endif
