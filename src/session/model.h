/* An opened model: headers, tokenizer, weight handles, and pointers to the weights' bytes. */
#ifndef BZ_MODEL_H
#define BZ_MODEL_H

#include "base/lock.h"
#include "base/os.h"
#include "file/files.h"
#include "gpu/run/load.h"
#include "model/text.h"
#include "model/towers.h"
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

/* A model on a GPU. The model itself is immutable; this is not, so a lock lets one thread at a time
 * step a job, or create or free a session of such a model. */
typedef struct model_gpu {
    bz_lock lock;
    gpu_options options;
    uint64_t memory;      /* that the weights may take; 0: all there is */
    bz_table_place ple;   /* where the table of per-layer embeddings goes */
    bz_gpu_model *loaded; /* NULL: opening it failed; the next job tries again */
    const void *loader; /* the job or session that loads it, as reads belong to one job; or NULL */
} model_gpu;

struct bz_model {
    model_file *files; /* [n_files] */
    size_t n_files;
    bz_file *parsed; /* what bz_files points to */
    bz_files set;
    char *name, *architecture; /* as the file says; "": it does not */
    bz_text_model text;
    bz_towers towers; /* which there are; encoders have weights of their own */
    bz_tokenizer *tokenizer;
    struct model_vocabulary *vocabulary; /* for grammars (constraint.c) */
    const uint8_t **weight_bytes;        /* [text.weights.table.n]; NULL: only on the GPU */
    uint8_t **owned_bytes; /* the same, where read into memory of our own; else NULL */
    model_gpu *gpu;        /* NULL: on the CPU */
    bool headers_only;     /* nothing can be computed */
};

/* Positions of a session whose options do not say: the model's limit, at most 32,768. */
enum { BZ_DEFAULT_CONTEXT = 32768 };
uint32_t bz_model_default_context(const bz_model *m);

/* Fails if a file that was opened by its path was shortened while it was used (bz_os_map_cut). */
bz_status bz_model_check_files(const bz_model *m, bz_error *err);

/* Refuses a model of embeddings (embed.c). */
bz_status bz_model_check_writes(const bz_model *m, bz_error *err);

/* *out unchanged for NULL. */
bz_status bz_table_place_named(bz_table_place *out, const char *name, bz_error *err);

gpu *bz_model_device(const bz_model *m); /* NULL on the CPU, or while there is none */
gpu *bz_open_device(bz_job *job); /* of a job that opens a model, once it has one; for tests */
/* Makes a job that opens a model end before any weight is read. Returns the model, which is filled
 * as the job proceeds and freed with it. */
const bz_model *bz_open_header_only(bz_job *job);
bz_lock *bz_model_lock(const bz_model *m); /* to be held during work on a device; NULL on the CPU */

/* A short step of loading a model onto a working device; a lost device is replaced. DONE: it is
 * loaded. `who` is the job or session that loads it; others get NEED_GPU meanwhile. */
bz_progress bz_model_load(const bz_model *m, const void *who, bz_need *need);
/* `who` stops loading. A half loaded model is unloaded, as it is unknown which reads were done. */
void bz_model_load_end(const bz_model *m, const void *who);
bool bz_model_is_loaded(const bz_model *m); /* and its device is not known to be lost */

#endif
