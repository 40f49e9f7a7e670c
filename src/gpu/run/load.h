/* A model on a GPU: the device, its compiled kernels, the weights. All sessions of the model share
 * it; each holds on to it, so that one left behind on a lost device can still let go of what it has
 * there. */
#ifndef BZ_GPU_LOAD_H
#define BZ_GPU_LOAD_H

#include "gpu/run/pipelines.h"
#include "gpu/run/stream.h"
#include "gpu/run/table.h"
#include "gpu/run/weights.h"

typedef struct gpu_upload gpu_upload;

/* Where a table is of which a token needs one row. AUTO: on the GPU if there is memory for it. */
typedef enum bz_table_place { BZ_TABLE_AUTO, BZ_TABLE_RESIDENT, BZ_TABLE_IN_FILE } bz_table_place;

typedef struct bz_gpu_model {
    gpu *g;
    gpu_pipelines *pipelines;
    gpu_weights weights;
    const uint8_t *const
        *weight_bytes; /* [weights.table->n] what the host has in memory; else NULL */
    bz_weight lookup;  /* the table that may stay in the file, if there is one */
    bz_table_place place;
    gpu_table *table;   /* it did; else NULL */
    uint64_t memory;    /* that weights may take; 0: as much as there is */
    bool memory_given;  /* by the user, not found out */
    bool may_stream;    /* where there is less: layers may come from the file for every pass */
    gpu_stream *stream; /* they do; else NULL */
    bool ready;         /* loaded */
    gpu_upload *upload; /* while loading */
    struct bz_gpu_model *beside; /* whose device and kernels these are, held on to; NULL: its own */
    uint32_t holders;
} bz_gpu_model;

/* Begins to open a device; the caller is the first to hold it. weight_bytes[i], where not NULL, is
 * the data of table->info[i] and must outlive the model; other tensors are asked for as reads. */
bz_status bz_gpu_model_new(bz_gpu_model **out, const gpu_options *options, const bz_weights *table,
                           const uint8_t *const *weight_bytes, bz_error *err);
/* Other weights on the device of a model that is loaded. */
bz_status bz_gpu_model_beside(bz_gpu_model **out, bz_gpu_model *other, const bz_weights *table,
                              const uint8_t *const *weight_bytes, bz_error *err);
void bz_gpu_model_table(bz_gpu_model *m, bz_weight table,
                        bz_table_place place); /* before the first step of loading */
/* `memory`: bytes that weights may take, 0: as many as the device gives. Where that is not enough,
 * layers are streamed. Before the first step of loading. */
void bz_gpu_model_limit(bz_gpu_model *m, uint64_t memory, bool may_stream);
void bz_gpu_model_hold(bz_gpu_model *m);
void bz_gpu_model_drop(bz_gpu_model *m);   /* the last one closes the device */
void bz_gpu_model_unload(bz_gpu_model *m); /* frees its weights now, whoever holds it */

/* A short step of loading: AGAIN, NEED_BYTES, NEED_GPU, EVENT (progress), DONE or ERROR. At most 64
 * MB are under way. Reads go to memory of ours or, on a device with direct_reads, straight into GPU
 * buffers. */
bz_progress bz_gpu_model_load(bz_gpu_model *m, bz_need *need);

#endif
