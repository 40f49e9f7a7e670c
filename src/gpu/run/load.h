/* A model on a GPU: the device, its pipelines, the weights. All sessions of the model share it by
 * counting references, so that a session on a lost device can still free what it has there. */
#ifndef BZ_GPU_LOAD_H
#define BZ_GPU_LOAD_H

#include "gpu/run/pipelines.h"
#include "gpu/run/stream.h"
#include "gpu/run/table.h"
#include "gpu/run/weights.h"

typedef struct gpu_upload gpu_upload;

/* Where the per-layer embedding table is kept. AUTO: on the GPU if it has the memory. */
typedef enum bz_table_place { BZ_TABLE_AUTO, BZ_TABLE_RESIDENT, BZ_TABLE_IN_FILE } bz_table_place;

typedef struct bz_gpu_model {
    gpu_options options;
    gpu *g;
    gpu_pipelines *pipelines;
    gpu_weights weights;
    const uint8_t *const *weight_bytes; /* [weights.map.table->n] bytes in host memory, or NULL */
    bz_weight lookup;                   /* the table that may stay in the file; 0: none */
    bz_table_place place;
    gpu_table *table;   /* if it stayed in the file; else NULL */
    uint64_t memory;    /* bytes that weights may use; 0: no limit */
    bool memory_given;  /* by the user, not measured */
    bool may_stream;    /* if weights do not fit: layers may be read from the file for every pass */
    gpu_stream *stream; /* if layers are streamed; else NULL */
    bool ready;         /* loaded */
    gpu_upload *upload; /* while loading */
    struct bz_gpu_model *shares; /* the model whose device and pipelines it uses; NULL: its own */
    uint32_t references;
} bz_gpu_model;

/* Starts opening a device; the caller has the first reference. weight_bytes[i], if not NULL, is the
 * data of table->info[i] and must outlive the model; other tensors are requested as reads. */
bz_status bz_gpu_model_new(bz_gpu_model **out, const gpu_options *options, const bz_weights *table,
                           const uint8_t *const *weight_bytes, bz_error *err);
/* Other weights (an encoder) on the device of a loaded model. */
bz_status bz_gpu_model_beside(bz_gpu_model **out, bz_gpu_model *other, const bz_weights *table,
                              const uint8_t *const *weight_bytes, bz_error *err);
void bz_gpu_model_table(bz_gpu_model *m, bz_weight table,
                        bz_table_place place); /* before the first step of loading */
/* memory: bytes that weights may use, 0: no limit. If they do not fit, layers are streamed. Before
 * the first step of loading. */
void bz_gpu_model_limit(bz_gpu_model *m, uint64_t memory, bool may_stream);
void bz_gpu_model_hold(bz_gpu_model *m);
void bz_gpu_model_drop(bz_gpu_model *m);   /* the last reference closes the device */
void bz_gpu_model_unload(bz_gpu_model *m); /* frees its weights now, whatever references remain */

/* A short step of loading: AGAIN, NEED_BYTES, NEED_GPU, EVENT (progress), DONE or ERROR. At most 64
 * MB are in flight. Reads go to host memory or, on a device with direct_reads, to GPU buffers. */
bz_progress bz_gpu_model_load(bz_gpu_model *m, bz_need *need);

/* Set by tests that open many models, so that kernels are compiled once: who keeps the device and
 * the pipelines of a closed model for the next one. `choose` may change the options before.
 * NULL: nobody. */
typedef struct gpu_test_pool {
    void (*choose)(gpu_options *options);
    bool (*take)(const gpu_options *options, gpu **g, gpu_pipelines **pipelines);
    bool (*keep)(const gpu_options *options, gpu *g, gpu_pipelines *pipelines);
} gpu_test_pool;
extern const gpu_test_pool *gpu_test_devices;

#endif
