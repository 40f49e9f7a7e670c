#include "session/batch_device.h"

static void release(bz_batch *b, session_plan *p)
{
    if (p->schedule) {
        b->backend->release(b->backend, p->schedule);
        p->schedule = NULL;
    }
}

void bz_batch_detach(bz_batch *b)
{
    if (!b->backend) {
        return;
    }
    for (uint32_t i = 0; i < b->n_slots; i++) {
        bz_rings_free(&b->slots[i].rings, b->backend);
        b->backend->kv_free(b->backend, b->slots[i].kv);
        b->slots[i].kv = b->kv[i] = NULL;
    }
    for (int i = 0; i < BZ_BATCH_BUCKETS; i++) {
        release(b, &b->one[i]);
    }
    for (int i = 0; i < BZ_BATCH_DECODE_SIZES; i++) {
        release(b, &b->many[i]);
    }
    b->backend->free(b->backend);
    b->backend = NULL;
    b->device = NULL;
    b->pass = NO_PASS;
}

bz_status bz_batch_attach(bz_batch *b, bz_error *err)
{
    const bz_batch_options *o = &b->options;
    b->device = b->model->gpu ? b->model->gpu->loaded : NULL;
    return bz_adapter_set_backend(&b->backend, b->model, b->adapters,
                                  &(bz_backend_options){.threads = o->threads,
                                                        .kernels = o->kernels,
                                                        .exact = o->exact,
                                                        .no_fuse = o->no_fuse,
                                                        .cache = b->cache_type},
                                  err);
}

bool bz_batch_is_attached(const bz_batch *b)
{
    return b->backend &&
           (!b->model->gpu || (b->device == b->model->gpu->loaded && bz_model_is_loaded(b->model)));
}

/* Running sequences get caches, compute their tokens again, then continue. */
static bz_status restart_slots(bz_batch *b, bz_error *err)
{
    bz_status status = BZ_OK;
    for (uint32_t i = 0; i < b->n_slots && status == BZ_OK; i++) {
        batch_slot *s = &b->slots[i];
        s->wanted = s->state == SLOT_DECODE ? s->n + 1 : s->wanted;
        s->state = s->stopped ? SLOT_FREE : s->state == SLOT_DECODE ? SLOT_PREFILL : s->state;
        s->stopped = false;
        s->n = 0;
        s->shared = 0;
        if (s->state != SLOT_FREE) {
            status = bz_batch_make_slot(b, i, err);
        }
    }
    return status;
}

bz_status bz_batch_recover(bz_batch *b, bz_error *err)
{
    bz_need need = {0};
    bz_batch_detach(b);
    bz_progress p = bz_model_load(b->model, b, &need);
    p = p == BZ_JOB_DONE ? bz_adapter_set_load(b->adapters, &need) : p;
    switch (p) {
    case BZ_JOB_AGAIN:
    case BZ_JOB_NEED_GPU:
    case BZ_JOB_EVENT: return BZ_OK;
    case BZ_JOB_NEED_BYTES: return bz_fail(err, BZ_BAD_FILE, "The model's file is not in memory.");
    case BZ_JOB_ERROR:
        if (err) {
            *err = need.error;
        }
        return need.error.code;
    case BZ_JOB_DONE: break;
    }
    const bz_status status = bz_batch_attach(b, err);
    return status == BZ_OK ? restart_slots(b, err) : status;
}
