/* Sets of adapters: one table of weights for plans and back ends, and who uses them. */
#include "session/adapter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "gpu/run/backend.h"
#include "session/session.h"

bz_adapter_set *bz_adapter_set_hold(bz_adapter_set *set)
{
    if (set) {
        atomic_fetch_add(&set->references, 1);
    }
    return set;
}

void bz_adapter_set_free(bz_adapter_set *set)
{
    if (!set || atomic_fetch_sub(&set->references, 1) != 1) {
        return;
    }
    for (uint32_t i = 0; i < set->n; i++) {
        bz_adapter_free(set->uses[i].adapter);
    }
    free(set->uses);
    free(set->table.info);
    free((void *)set->bytes);
    free((void *)set->ranks.list);
    free((void *)set->ranks.first);
    free(set);
}

bool bz_adapter_sets_equal(const bz_adapter_set *a, const bz_adapter_set *b)
{
    bool equal = !a == !b && (!a || a->n == b->n);
    for (uint32_t i = 0; equal && a && i < a->n; i++) {
        equal = a->uses[i].adapter == b->uses[i].adapter && a->uses[i].scale == b->uses[i].scale;
    }
    return equal;
}

const bz_text_model *bz_adapted_text(const bz_model *model, const bz_adapter_set *set)
{
    return set ? &set->text : &model->text;
}

/* ---- making one ----------------------------------------------------------------------------- */

/* Tensors of the adapters after those of the model. */
static void fill_table(bz_adapter_set *set, const bz_model *model)
{
    const bz_weights *base = &model->text.weights.table;
    memcpy(set->table.info, base->info, base->n * sizeof *base->info);
    for (uint32_t i = 0; i < base->n; i++) {
        set->bytes[i] = model->weight_bytes[i];
    }
    uint32_t at = base->n;
    for (uint32_t k = 0; k < set->n; k++) {
        const bz_adapter *a = set->uses[k].adapter;
        memcpy(set->table.info + at, a->table.info, a->table.n * sizeof *a->table.info);
        for (uint32_t i = 0; i < a->table.n; i++) {
            set->bytes[at++] = a->bytes[i];
        }
    }
    set->table.n = set->table.cap = at;
}

/* The pairs by the weight that they change, in the order of the adapters. */
static void fill_ranks(bz_adapter_set *set, bz_low_rank *list, uint32_t *first, uint32_t n_base)
{
    uint32_t n = 0;
    for (uint32_t w = 0; w < n_base; w++) {
        first[w] = n;
        uint32_t tensors = n_base; /* before the adapter's own */
        for (uint32_t k = 0; k < set->n; k++) {
            const bz_adapter *a = set->uses[k].adapter;
            for (uint32_t i = 0; i < a->pairs.n; i++) {
                const bz_pair *p = &a->pairs.list[i];
                if (p->weight.id == w + 1) {
                    list[n++] = (bz_low_rank){{tensors + 2 * i + 1},
                                              {tensors + 2 * i + 2},
                                              set->uses[k].scale * bz_pair_factor(&a->pairs, p)};
                }
            }
            tensors += a->table.n;
        }
    }
    first[n_base] = n;
    set->ranks = (bz_low_ranks){list, first, n_base};
}

static void fill_hash(bz_adapter_set *set)
{
    bz_sha256 hash;
    bz_sha256_begin(&hash);
    for (uint32_t i = 0; i < set->n; i++) {
        bz_sha256_add(&hash, set->uses[i].adapter->hash, BZ_SHA256_BYTES);
        bz_sha256_add(&hash, &set->uses[i].scale, sizeof set->uses[i].scale);
    }
    bz_sha256_end(&hash, set->hash);
}

static bz_status check_use(const bz_model *model, const bz_adapter_use *use, size_t i,
                           bz_error *err)
{
    if (use->adapter->model != model) {
        return bz_fail(err, BZ_BAD_REQUEST, "Adapter %zu was opened for another model.", i + 1);
    }
    return isfinite(use->scale) && fabsf(use->scale) <= 1e6f
               ? BZ_OK
               : bz_fail(err, BZ_BAD_REQUEST, "The scale of adapter %zu is not a usable number.",
                         i + 1);
}

bz_status bz_adapter_set_new(bz_adapter_set **out, const bz_model *model,
                             const bz_adapter_use *uses, size_t n, bz_error *err)
{
    const uint32_t n_base = model->text.weights.table.n;
    size_t used = 0, tensors = n_base, pairs = 0;
    *out = NULL;
    for (size_t i = 0; i < n; i++) {
        const bz_status status = check_use(model, &uses[i], i, err);
        if (status != BZ_OK) {
            return status;
        }
        used += uses[i].scale != 0.0f;
        tensors += uses[i].scale != 0.0f ? uses[i].adapter->table.n : 0;
        pairs += uses[i].scale != 0.0f ? uses[i].adapter->pairs.n : 0;
    }
    if (used == 0) {
        return BZ_OK;
    }
    bz_adapter_set *set = calloc(1, sizeof *set);
    bz_low_rank *list = malloc((pairs + 1) * sizeof *list);
    uint32_t *first = malloc(((size_t)n_base + 1) * sizeof *first);
    bool ok = set && list && first && (set->uses = malloc(used * sizeof *set->uses)) != NULL &&
              (set->table.info = malloc(tensors * sizeof *set->table.info)) != NULL &&
              (set->bytes = malloc(tensors * sizeof *set->bytes)) != NULL;
    if (!ok) {
        free(list);
        free(first);
        if (set) {
            free(set->uses);
            free(set->table.info);
            free((void *)set->bytes);
            free(set);
        }
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the table of adapters.");
    }
    atomic_init(&set->references, 1);
    for (size_t i = 0; i < n; i++) {
        if (uses[i].scale != 0.0f) {
            set->uses[set->n++] = (bz_adapter_use){bz_adapter_hold(uses[i].adapter), uses[i].scale};
        }
    }
    fill_table(set, model);
    fill_ranks(set, list, first, n_base);
    fill_hash(set);
    set->text = model->text;
    set->text.weights.table = set->table;
    set->text.adapters = &set->ranks;
    *out = set;
    return BZ_OK;
}

/* ---- back ends ---------------------------------------------------------------------------------
 */

static bz_progress load(bz_adapter *a, bz_need *need)
{
    bz_gpu_model *beside = a->model->gpu->loaded;
    if (a->gpu && a->gpu->shares != beside) { /* of a device that was lost */
        bz_gpu_model_drop(a->gpu);
        a->gpu = NULL;
    }
    if (!a->gpu && bz_gpu_model_beside(&a->gpu, beside, &a->table, (const uint8_t *const *)a->bytes,
                                       &need->error) != BZ_OK) {
        return BZ_JOB_ERROR;
    }
    const bz_progress p = bz_gpu_model_load(a->gpu, need);
    if (p == BZ_JOB_ERROR) {
        bz_gpu_model_drop(a->gpu);
        a->gpu = NULL;
    }
    return p;
}

bz_progress bz_adapter_set_load(const bz_adapter_set *set, bz_need *need)
{
    for (uint32_t i = 0; set && i < set->n; i++) {
        const bz_progress p = load(set->uses[i].adapter, need);
        if (p != BZ_JOB_DONE) {
            return p == BZ_JOB_EVENT ? BZ_JOB_AGAIN : p; /* too small for a progress bar */
        }
    }
    return BZ_JOB_DONE;
}

static bz_status gpu_backend_of(bz_backend **out, const bz_model *m, const bz_adapter_set *set,
                                const bz_backend_options *o, bz_error *err)
{
    bz_status status = bz_gpu_new(out, m->gpu->loaded, o->exact, o->cache, !o->no_fuse, err);
    bz_gpu_model **parts = set && status == BZ_OK ? malloc(set->n * sizeof *parts) : NULL;
    if (!set || status != BZ_OK) {
        return status;
    }
    for (uint32_t i = 0; parts && i < set->n; i++) {
        parts[i] = set->uses[i].adapter->gpu;
    }
    status = parts ? bz_gpu_add_weights(*out, &set->table, set->bytes, parts, set->n, err)
                   : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the table of adapters.");
    free(parts);
    if (status != BZ_OK) {
        (*out)->free(*out);
        *out = NULL;
    }
    return status;
}

bz_status bz_adapter_set_backend(bz_backend **out, const bz_model *m, const bz_adapter_set *set,
                                 const bz_backend_options *o, bz_error *err)
{
    if (m->gpu) {
        return gpu_backend_of(out, m, set, o, err);
    }
    const bz_cpu_options cpu = {.threads = o->threads, .kernels = o->kernels, .exact = o->exact};
    return bz_cpu_new(out, set ? &set->table : &m->text.weights.table,
                      set ? set->bytes : (const uint8_t *const *)m->weight_bytes, &cpu, err);
}
