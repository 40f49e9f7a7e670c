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
    bz_adapter_free(set->all);
    free(set->uses);
    free(set->table.info);
    free((void *)set->bytes);
    free((void *)set->ranks.of);
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
    const bz_weights *base = &model->text.weights.table, *more = &set->all->table;
    memcpy(set->table.info, base->info, base->n * sizeof *base->info);
    memcpy(set->table.info + base->n, more->info, more->n * sizeof *more->info);
    for (uint32_t i = 0; i < base->n; i++) {
        set->bytes[i] = model->weight_bytes[i];
    }
    for (uint32_t i = 0; i < more->n; i++) {
        set->bytes[base->n + i] = set->all->bytes[i];
    }
    set->table.n = set->table.cap = base->n + more->n;
}

static void fill_ranks(bz_adapter_set *set, bz_low_rank *of, uint32_t n_base)
{
    for (uint32_t i = 0; i < n_base; i++) {
        of[i] = set->all->ranks[i];
        if (of[i].b.id) {
            of[i].a.id += n_base;
            of[i].b.id += n_base;
            of[i].scale *= set->n == 1 ? set->uses[0].scale : 1;
        }
    }
    set->ranks = (bz_low_ranks){of, n_base};
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

static bz_status no_memory(bz_error *err)
{
    return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the table of adapters.");
}

/* Those with a scale other than 0. */
static bz_status fill_set(bz_adapter_set *set, const bz_model *model, const bz_adapter_use *uses,
                          size_t n, bz_error *err)
{
    const uint32_t n_base = model->text.weights.table.n;
    set->uses = malloc(n * sizeof *set->uses);
    for (size_t i = 0; i < n && set->uses; i++) {
        if (uses[i].scale != 0.0f) {
            set->uses[set->n++] = (bz_adapter_use){bz_adapter_hold(uses[i].adapter), uses[i].scale};
        }
    }
    if (!set->uses) {
        return no_memory(err);
    }
    if (set->n == 1) {
        set->all = bz_adapter_hold(set->uses[0].adapter);
    } else {
        const bz_status status = bz_adapter_combine(&set->all, model, set->uses, set->n, err);
        if (status != BZ_OK) {
            return status;
        }
    }
    const size_t tensors = (size_t)n_base + set->all->table.n;
    bz_low_rank *of = calloc((size_t)n_base + 1, sizeof *of);
    set->ranks.of = of;
    set->table.info = malloc(tensors * sizeof *set->table.info);
    set->bytes = malloc(tensors * sizeof *set->bytes);
    if (!of || !set->table.info || !set->bytes) {
        return no_memory(err);
    }
    fill_table(set, model);
    fill_ranks(set, of, n_base);
    fill_hash(set);
    set->text = model->text;
    set->text.weights.table = set->table;
    set->text.adapters = &set->ranks;
    return BZ_OK;
}

static bool is_set_of(const bz_adapter_set *set, const bz_adapter_use *uses, size_t n)
{
    uint32_t at = 0;
    bool same = true;
    for (size_t i = 0; i < n && same; i++) {
        if (uses[i].scale != 0.0f) {
            same = at < set->n && set->uses[at].adapter == uses[i].adapter &&
                   set->uses[at].scale == uses[i].scale;
            at++;
        }
    }
    return same && at == set->n;
}

bz_status bz_adapter_set_new(bz_adapter_set **out, bz_adapter_set *current, const bz_model *model,
                             const bz_adapter_use *uses, size_t n, bz_error *err)
{
    size_t used = 0;
    *out = NULL;
    for (size_t i = 0; i < n; i++) {
        const bz_status status = check_use(model, &uses[i], i, err);
        if (status != BZ_OK) {
            return status;
        }
        used += uses[i].scale != 0.0f;
    }
    if (used == 0) {
        return BZ_OK;
    }
    if (current && is_set_of(current, uses, n)) {
        *out = bz_adapter_set_hold(current);
        return BZ_OK;
    }
    bz_adapter_set *set = calloc(1, sizeof *set);
    if (!set) {
        return no_memory(err);
    }
    atomic_init(&set->references, 1);
    const bz_status status = fill_set(set, model, uses, n, err);
    if (status != BZ_OK) {
        bz_adapter_set_free(set);
        return status;
    }
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
    const bz_progress p = set ? load(set->all, need) : BZ_JOB_DONE;
    return p == BZ_JOB_EVENT ? BZ_JOB_AGAIN : p; /* too small for a progress bar */
}

static bz_status gpu_backend_of(bz_backend **out, const bz_model *m, const bz_adapter_set *set,
                                const bz_backend_options *o, bz_error *err)
{
    bz_status status = bz_gpu_new(out, m->gpu->loaded, o->exact, o->cache, !o->no_fuse, err);
    if (set && status == BZ_OK) {
        status = bz_gpu_add_weights(*out, &set->table, set->bytes, set->all->gpu, err);
        if (status != BZ_OK) {
            (*out)->free(*out);
            *out = NULL;
        }
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
