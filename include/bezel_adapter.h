/* bezel_adapter.h: LoRA adapters, small files that change what a model writes.
 *
 *     bz_adapter_open_file(&adapter, model, "poems.gguf", &err);
 *     bz_session_set_adapters(session, &(bz_adapter_use){adapter, 1.0f}, 1, &err);
 *     ... prefill and generate as always ...
 *     bz_session_set_adapters(session, NULL, 0, &err);    // the model itself again, bit for bit
 *
 * The model's weights are never changed: what adapters add is computed beside every product, so
 * sessions of one model may have different adapters at the same time. Files are GGUF as llama.cpp's
 * convert_lora_to_gguf.py writes them; an adapter belongs to the model that it was opened for. */
#ifndef BEZEL_ADAPTER_H
#define BEZEL_ADAPTER_H

#include "bezel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bz_adapter bz_adapter;

/* Reads a whole adapter and checks it against the model: architecture, names, shapes, ranks, and
 * that every value is a finite number. bytes [n] are not needed afterwards. `name`: for messages.
 * bad_file: it is damaged, no adapter, or made for another model. unsupported_model: it changes
 * what Bezel cannot change (image and audio encoders), or the model takes none (embeddings). */
BZ_API bz_status bz_adapter_open(bz_adapter **adapter, const bz_model *model, const void *bytes,
                                 size_t n, const char *name, bz_error *err);
BZ_API bz_status bz_adapter_open_file(bz_adapter **adapter, const bz_model *model, const char *path,
                                      bz_error *err);
/* Sessions and batches that use it keep it. Free all of them before the model. */
BZ_API void bz_adapter_free(bz_adapter *adapter);

typedef struct bz_adapter_info {
    size_t size;      /* set by the caller, as in option structs */
    const char *name; /* as the file says, "" if it does not; valid as long as the adapter */
    float alpha;      /* 0: the file has none, products are not divided by the rank */
    uint32_t min_rank, max_rank;
    uint32_t pairs; /* weights that it changes */
    uint32_t idle;  /* pairs for weights that the model never reads; without effect */
    uint32_t norms; /* replacements of norms, which were skipped */
    uint64_t bytes; /* of memory, where it is computed */
} bz_adapter_info;
BZ_API bz_status bz_adapter_get_info(const bz_adapter *adapter, bz_adapter_info *info,
                                     bz_error *err);

typedef struct bz_adapter_use {
    bz_adapter *adapter;
    float scale; /* 1: as it was trained; 0: as if it were not in the list */
} bz_adapter_use;

/* Replaces all adapters of a session; their effects add up. A session whose adapters change forgets
 * its tokens, because its caches were computed with the others; the same list changes nothing.
 * Refused while the session has a job. On a GPU adapters are uploaded by the next job. */
BZ_API bz_status bz_session_set_adapters(bz_session *session, const bz_adapter_use *uses, size_t n,
                                         bz_error *err);

struct bz_batch; /* bezel_batch.h */
/* The same for a batch: all of its sequences have the same adapters. Refused while one is running.
 */
BZ_API bz_status bz_batch_set_adapters(struct bz_batch *batch, const bz_adapter_use *uses, size_t n,
                                       bz_error *err);

#ifdef __cplusplus
}
#endif
#endif
