/* Creating and freeing encoders, and the cache of what was encoded. The job is in encode.c. */
#include <stdlib.h>
#include <string.h>

#include "encoder/encode.h"
#include "base/options.h"

enum { DEFAULT_KEEP = 16, MAX_KEEP = 256, FRAME_BUDGET = 70 };

/* ---- create and free ------------------------------------------------------------- */

void bz_encoder_drop(bz_encoder *e, bz_media_kind kind)
{
    bz_tower_state *t = &e->tower[kind];
    if (t->schedule) {
        t->backend->release(t->backend, t->schedule);
    }
    bz_plan_free(t->plan);
    if (t->backend && t->backend != e->cpu) {
        t->backend->free(t->backend);
    }
    if (t->gpu) {
        bz_gpu_model_drop(t->gpu);
    }
    t->plan = NULL;
    t->schedule = NULL;
    t->backend = NULL;
    t->gpu = NULL;
    t->ready = false;
}

void bz_encoder_free(bz_encoder *e)
{
    if (!e) {
        return;
    }
    bz_lock_take(bz_model_lock(e->model));
    for (int k = 0; k < 2; k++) {
        bz_encoder_drop(e, (bz_media_kind)k);
        free(e->tower[k].wanted);
    }
    bz_lock_give(bz_model_lock(e->model));
    if (e->cpu) {
        e->cpu->free(e->cpu);
    }
    for (uint32_t i = 0; e->owned && i < e->towers.table.n; i++) {
        free(e->owned[i]);
    }
    for (uint32_t i = 0; i < e->n_kept; i++) {
        bz_media_free(e->kept[i]);
    }
    free(e->notice);
    free(e->kept);
    free(e->owned);
    free((void *)e->bytes);
    bz_mel_free(e->mel);
    bz_towers_free(&e->towers);
    free(e);
}

bool bz_encoder_is_of(bz_media_kind kind, const bz_weight_info *w)
{
    const bool audio = strncmp(w->name, "a.", 2) == 0 || strncmp(w->name, "mm.a.", 5) == 0;
    return audio == (kind == BZ_MEDIA_AUDIO);
}

static bz_status make_towers(bz_encoder *e, bz_error *err)
{
    for (int k = 0; k < 2; k++) {
        bz_tower_state *t = &e->tower[k];
        t->on_gpu = e->model->gpu != NULL;
        t->table = e->towers.table;
        t->table.wanted = t->wanted = calloc(t->table.n + (size_t)1, sizeof *t->wanted);
        if (!t->wanted) {
            return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for an encoder.");
        }
        for (uint32_t i = 0; i < t->table.n; i++) {
            t->wanted[i] = bz_encoder_is_of((bz_media_kind)k, &t->table.info[i]);
        }
    }
    return BZ_OK;
}

bz_status bz_encoder_new(bz_encoder **out, const bz_model *model, const bz_encoder_options *given,
                         bz_error *err)
{
    bz_encoder_options o;
    const bz_status read = BZ_READ_ENCODER(&o, given, err);
    if (read != BZ_OK) {
        return read;
    }
    if (model->headers_only) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "The model was opened for its header alone; open it with its weights.");
    }
    bz_encoder *e = calloc(1, sizeof *e);
    if (!e) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for an encoder.");
    }
    e->model = model;
    e->exact = o.exact;
    e->keep = o.keep == 0 ? DEFAULT_KEEP : o.keep < MAX_KEEP ? o.keep : MAX_KEEP;
    bz_status status = bz_towers_bind(&e->towers, &model->set, model->text.config.width, err);
    e->budget = o.budget ? o.budget : e->towers.vision.budget;
    e->frame_budget = o.frame_budget > BZ_MAX_BUDGET ? BZ_MAX_BUDGET + 1 /* refused with a frame */
                      : o.frame_budget               ? (uint32_t)o.frame_budget
                                                     : FRAME_BUDGET;
    const uint32_t n = e->towers.table.n;
    if (status == BZ_OK) {
        e->kept = calloc(e->keep, sizeof *e->kept);
        e->bytes = calloc(n + 1, sizeof *e->bytes);
        e->owned = calloc(n + 1, sizeof *e->owned);
        status = e->kept && e->bytes && e->owned
                     ? BZ_OK
                     : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for an encoder.");
    }
    for (uint32_t i = 0; status == BZ_OK && i < n; i++) {
        const bz_weight_info *w = &e->towers.table.info[i];
        const uint8_t *data = model->files[w->file].data;
        e->bytes[i] = data ? data + w->offset : NULL;
    }
    if (status == BZ_OK) {
        status = make_towers(e, err);
    }
    e->cpu_options = (bz_cpu_options){.threads = o.threads, .kernels = o.kernels, .exact = true};
    if (status == BZ_OK && !model->gpu) {
        status = bz_cpu_new(&e->cpu, &e->towers.table, (const uint8_t *const *)e->bytes,
                            &e->cpu_options, err);
    }
    e->cpu_options.kernels = NULL; /* the caller's memory */
    if (status != BZ_OK) {
        bz_encoder_free(e);
        return status;
    }
    *out = e;
    return BZ_OK;
}

bz_encoder_stats bz_encoder_get_stats(const bz_encoder *e)
{
    return e->stats;
}

const char *bz_encoder_notice(const bz_encoder *e)
{
    return e->notice;
}

bz_backend *bz_encoder_backend(bz_encoder *e, bz_media_kind kind)
{
    return e->tower[kind].backend ? e->tower[kind].backend : e->cpu;
}

uint32_t bz_encoder_set_budget(bz_encoder *e, uint32_t budget)
{
    const uint32_t before = e->budget;
    e->budget = budget ? budget : before;
    return before;
}

const bz_schedule *bz_encoder_schedule(const bz_encoder *e, bz_media_kind kind)
{
    return e->tower[kind].schedule;
}

void bz_encoder_no_fuse(bz_encoder *e)
{
    e->no_fuse = true;
}

bool bz_model_takes(const bz_model *m, bz_media_kind kind)
{
    switch (kind) {
    case BZ_MEDIA_IMAGE: return m->towers.vision.kind != BZ_TOWER_NONE;
    case BZ_MEDIA_AUDIO: return m->towers.audio.kind != BZ_TOWER_NONE;
    case BZ_MEDIA_VIDEO: /* diffusion models were not trained with it */
        return m->towers.vision.kind != BZ_TOWER_NONE && !m->text.config.canvas;
    }
    return false;
}

/* ---- cache ------------------------------------------------------------------------ */

bz_media *bz_encoder_cache_find(bz_encoder *e, bz_content content)
{
    for (uint32_t i = 0; i < e->n_kept; i++) {
        bz_media *m = e->kept[i];
        if (bz_content_equal(m->content, content)) {
            memmove(e->kept + 1, e->kept, i * sizeof *e->kept);
            e->kept[0] = m;
            return bz_media_hold(m);
        }
    }
    return NULL;
}

void bz_encoder_cache_add(bz_encoder *e, const bz_media *m)
{
    if (e->n_kept == e->keep) {
        bz_media_free(e->kept[--e->n_kept]);
    }
    memmove(e->kept + 1, e->kept, e->n_kept * sizeof *e->kept);
    e->kept[0] = bz_media_hold(m);
    e->n_kept++;
}
