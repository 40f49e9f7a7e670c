/* Opens adapters. */
#include "session/adapter.h"

#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "model/bind.h"

bz_adapter *bz_adapter_hold(bz_adapter *a)
{
    atomic_fetch_add(&a->references, 1);
    return a;
}

void bz_adapter_free(bz_adapter *a)
{
    if (!a || atomic_fetch_sub(&a->references, 1) != 1) {
        return;
    }
    if (a->gpu) {
        bz_lock_take(bz_model_lock(a->model));
        bz_gpu_model_drop(a->gpu);
        bz_lock_give(bz_model_lock(a->model));
    }
    for (uint32_t i = 0; a->bytes && i < a->table.n; i++) {
        free(a->bytes[i]);
    }
    free(a->bytes);
    free(a->ranks);
    bz_bind_free(&a->table);
    bz_pairs_free(&a->pairs);
    free(a->name);
    free(a);
}

/* ---- converting ------------------------------------------------------------------------- */

/* Pairs without effect are checked by their header only, and dropped. */
static bz_status convert(bz_adapter *a, const uint8_t *file, bz_error *err)
{
    const uint32_t n_weights = a->model->text.weights.table.n;
    uint32_t *ranks = calloc((size_t)n_weights + 1, sizeof *ranks), n = 0;
    if (!ranks) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the adapter.");
    }
    for (uint32_t i = 0; i < a->pairs.n; i++) {
        const bz_pair *p = &a->pairs.list[i];
        if (p->weight.id) {
            ranks[p->weight.id - 1] = bz_adapter_rank(p->rank);
            a->pairs.list[n++] = *p;
        }
    }
    a->idle = a->pairs.idle;
    a->pairs.n = n;
    bz_status status = bz_adapter_make_tensors(a, ranks, err);
    for (uint32_t i = 0; i < n && status == BZ_OK; i++) {
        status = bz_adapter_fill(a, &a->pairs.list[i], file, err);
        a->pairs.list[i].a = a->pairs.list[i].b = NULL;
    }
    free(ranks);
    return status;
}

/* ---- opening ------------------------------------------------------------------------------ */

static bz_status read_adapter(bz_adapter *a, const uint8_t *bytes, size_t n, bz_error *err)
{
    bz_gguf gguf = {0};
    uint64_t at_least = 0;
    bz_str name = {"", 0};
    if (bz_gguf_parse(&gguf, bytes, n, n, &at_least, err) != BZ_GGUF_DONE) {
        return err->code ? err->code
                         : bz_fail(err, BZ_BAD_FILE, "The file is too short for its header.");
    }
    bz_status status = bz_pairs_read(&a->pairs, &a->model->text, &a->model->set, &gguf, err);
    bz_gguf_get_str(bz_gguf_find(&gguf, "general.name"), &name);
    if (status == BZ_OK) {
        a->name = malloc(name.len + 1);
        status = a->name ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the adapter.");
    }
    if (status == BZ_OK) {
        memcpy(a->name, name.data, name.len);
        a->name[name.len] = 0;
        status = convert(a, bytes, err);
    }
    bz_gguf_free(&gguf);
    if (status == BZ_OK) {
        bz_sha256 hash;
        bz_sha256_begin(&hash);
        bz_sha256_add(&hash, bytes, n);
        bz_sha256_end(&hash, a->hash);
    }
    return status;
}

bz_status bz_adapter_open(bz_adapter **out, const bz_model *model, const void *bytes, size_t n,
                          const char *name, bz_error *err)
{
    bz_error why = {0};
    bz_adapter *a = calloc(1, sizeof *a);
    if (!a) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for an adapter.");
    }
    atomic_init(&a->references, 1);
    a->model = model;
    const bz_status status = read_adapter(a, bytes, n, &why);
    if (status != BZ_OK) {
        bz_adapter_free(a);
        return bz_fail(err, status, "%.100s: %s", name, why.text);
    }
    *out = a;
    return BZ_OK;
}

bz_status bz_adapter_open_file(bz_adapter **out, const bz_model *model, const char *path,
                               bz_error *err)
{
    bz_os_map map;
    bz_status status = bz_os_map_file(path, &map, err);
    if (status != BZ_OK) {
        return status;
    }
    status = bz_adapter_open(out, model, map.data, (size_t)map.size, path, err);
    if (status == BZ_OK && bz_os_map_cut(&map)) {
        bz_adapter_free(*out);
        *out = NULL;
        status = bz_fail(err, BZ_BAD_FILE,
                         "%.100s was shortened by another program while it was read; restore it "
                         "and open it again.",
                         path);
    }
    bz_os_unmap(&map);
    return status;
}

bz_status bz_adapter_get_info(const bz_adapter *a, bz_adapter_info *info, bz_error *err)
{
    const bz_adapter_info all = {.name = a->name,
                                 .alpha = a->pairs.alpha,
                                 .min_rank = a->pairs.least_rank,
                                 .max_rank = a->pairs.most_rank,
                                 .pairs = a->pairs.n,
                                 .idle = a->idle,
                                 .norms = a->pairs.norms,
                                 .bytes = a->total_bytes};
    return BZ_WRITE_ADAPTER(info, &all, err);
}
