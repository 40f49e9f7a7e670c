/* Opens adapters. Their tensors are converted to f32 once: a stays in rows, b becomes panels of 16
 * outputs, which CPU and GPU read without a stride. */
#include "session/adapter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/options.h"
#include "model/bind.h"

enum { PANEL = BZ_LOW_RANK_PANEL };

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
    bz_bind_free(&a->table);
    bz_pairs_free(&a->pairs);
    free(a->name);
    free(a);
}

/* ---- converting ------------------------------------------------------------------------- */

static bz_status not_finite(const bz_gguf_tensor *t, bz_error *err)
{
    return bz_fail(err, BZ_BAD_FILE,
                   "The adapter's tensor %.*s holds a value that is not a finite number.",
                   (int)t->name.len, t->name.data);
}

static bool all_finite(const float *values, size_t n)
{
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        finite = finite && isfinite(values[i]);
    }
    return finite;
}

/* Makes room for the next tensor of the table; NULL: no memory. */
static float *add_tensor(bz_adapter *a, const bz_gguf_tensor *t, const uint64_t ne[3],
                         uint32_t layer)
{
    char name[160];
    uint64_t bytes = sizeof(float);
    for (int i = 0; i < 3; i++) {
        if (__builtin_mul_overflow(bytes, ne[i], &bytes)) {
            return NULL;
        }
    }
    float *values = bz_alloc(bytes);
    snprintf(name, sizeof name, "%.*s", (int)t->name.len, t->name.data);
    const bz_weight w = values
                            ? bz_bind_add(&a->table, &(bz_weight_info){.name = name,
                                                                       .type = BZ_F32,
                                                                       .ne = {ne[0], ne[1], ne[2]},
                                                                       .size = bytes,
                                                                       .layer = layer})
                            : BZ_NO_WEIGHT;
    if (!w.id) {
        free(values);
        return NULL;
    }
    a->bytes[w.id - 1] = (uint8_t *)values;
    a->total_bytes += bytes;
    return values;
}

/* Values of a tensor as they are, row after row. */
static bz_status convert_rows(bz_adapter *a, const bz_gguf_tensor *t, const uint8_t *file,
                              uint32_t layer, bz_error *err)
{
    float *values = add_tensor(a, t, t->ne, layer);
    if (!values) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the adapter.");
    }
    const size_t n = (size_t)(t->ne[0] * t->ne[1] * t->ne[2]);
    bz_dequantize((bz_type)t->type, file + t->offset, values, n);
    return all_finite(values, n) ? BZ_OK : not_finite(t, err);
}

/* b: [r, out, E] in the file, [PANEL, r, E * panels] in memory, zeros after the last output. */
static bz_status convert_panels(bz_adapter *a, const bz_pair *p, const uint8_t *file,
                                uint32_t layer, bz_error *err)
{
    const uint64_t panels = (p->out + PANEL - 1) / PANEL, experts = p->b->ne[2];
    const uint64_t ne[3] = {PANEL, p->rank, experts * panels};
    const size_t row_bytes = bz_row_bytes((bz_type)p->b->type, p->rank);
    float *values = add_tensor(a, p->b, ne, layer), *row = malloc(p->rank * sizeof *row);
    bz_status status =
        values && row ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the adapter.");
    if (values) {
        memset(values, 0, (size_t)(ne[0] * ne[1] * ne[2]) * sizeof *values);
    }
    for (uint64_t r = 0; r < experts * p->out && status == BZ_OK; r++) {
        const uint64_t expert = r / p->out, out = r % p->out;
        float *to =
            values + (size_t)((expert * panels + out / PANEL) * p->rank * PANEL + out % PANEL);
        bz_dequantize((bz_type)p->b->type, file + p->b->offset + r * row_bytes, row, p->rank);
        status = all_finite(row, p->rank) ? BZ_OK : not_finite(p->b, err);
        for (uint32_t j = 0; j < p->rank; j++) {
            to[(size_t)j * PANEL] = row[j];
        }
    }
    free(row);
    return status;
}

/* Pairs without effect are checked by their header only, and dropped. */
static bz_status convert(bz_adapter *a, const uint8_t *file, bz_error *err)
{
    bz_status status = BZ_OK;
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->pairs.n && status == BZ_OK; i++) {
        bz_pair p = a->pairs.list[i];
        if (!p.weight.id) {
            continue;
        }
        const uint32_t layer = bz_weight_of(&a->model->text.weights.table, p.weight)->layer;
        status = convert_rows(a, p.a, file, layer, err);
        if (status == BZ_OK) {
            status = convert_panels(a, &p, file, layer, err);
        }
        p.a = p.b = NULL;
        a->pairs.list[n++] = p;
    }
    a->idle = a->pairs.idle;
    a->pairs.n = n;
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
        a->bytes = calloc(2 * (size_t)a->pairs.n + 1, sizeof *a->bytes);
        status = a->name && a->bytes ? BZ_OK
                                     : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the adapter.");
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
