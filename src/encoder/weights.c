/* The weights of a tower: read, checked, and loaded where it runs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "encoder/encode.h"
#include "gpu/run/load.h"

enum { READ_BYTES = 4 << 20 };

bz_progress bz_encode_read(bz_encode_job *j, bz_need *need)
{
    bz_encoder *e = j->e;
    need->n_reads = 0;
    while (j->weight < e->towers.table.n && need->n_reads < BZ_MAX_READS) {
        const bz_weight_info *w = &e->towers.table.info[j->weight];
        const bool ours = e->owned[j->weight] != NULL;
        if (!bz_encoder_is_of(j->kind, w) || (e->tower[j->kind].on_gpu && !bz_tower_is_vector(w)) ||
            (ours ? j->read == w->size : e->bytes[j->weight] != NULL)) {
            j->weight++;
            j->read = 0;
            continue;
        }
        if (!ours) {
            e->owned[j->weight] = bz_alloc(w->size);
            e->bytes[j->weight] = e->owned[j->weight];
            if (!e->owned[j->weight]) {
                bz_fail(&need->error, BZ_OUT_OF_MEMORY, "No memory for the tensor %s (%.1f MB).",
                        w->name, (double)w->size / 1e6);
                return BZ_JOB_ERROR;
            }
        }
        const uint64_t n = w->size - j->read < READ_BYTES ? w->size - j->read : READ_BYTES;
        need->reads[need->n_reads++] = (bz_read){.file = w->file,
                                                 .offset = w->offset + j->read,
                                                 .length = n,
                                                 .to = e->owned[j->weight] + j->read};
        j->read += n;
    }
    if (need->n_reads) {
        return BZ_JOB_NEED_BYTES;
    }
    j->stage = STAGE_CHECK;
    return BZ_JOB_AGAIN;
}

void bz_encode_forget_reads(bz_encode_job *j)
{
    bz_encoder *e = j->e;
    for (uint32_t i = 0; j->stage == STAGE_READ && i < e->towers.table.n; i++) {
        if (bz_encoder_is_of(j->kind, &e->towers.table.info[i]) && e->owned[i]) {
            free(e->owned[i]);
            e->owned[i] = NULL;
            e->bytes[i] = NULL;
        }
    }
}

bz_progress bz_encode_check(bz_encode_job *j, bz_need *need)
{
    bz_encoder *e = j->e;
    for (uint32_t i = 0; i < e->towers.table.n; i++) {
        const bz_weight_info *w = &e->towers.table.info[i];
        for (uint64_t k = 0;
             bz_encoder_is_of(j->kind, w) && bz_tower_is_vector(w) && w->ne[0] > 1 && k < w->ne[0];
             k++) {
            float v;
            memcpy(&v, e->bytes[i] + k * sizeof v, sizeof v);
            if (isnan(v)) {
                bz_fail(&need->error, BZ_BAD_FILE,
                        "The tensor %s holds a value that is not a number (element %llu).", w->name,
                        (unsigned long long)k);
                return BZ_JOB_ERROR;
            }
        }
    }
    if (bz_towers_bounds(&e->towers, (const uint8_t *const *)e->bytes, &need->error) != BZ_OK) {
        return BZ_JOB_ERROR;
    }
    j->stage = STAGE_LOAD;
    return BZ_JOB_AGAIN;
}

static void keep_notice(bz_encoder *e, bz_media_kind kind, const bz_error *why)
{
    const char *format = "%s encoded on the CPU, not on the GPU: %s",
               *what = kind == BZ_MEDIA_IMAGE ? "Images are" : "Audio is";
    const size_t n = strlen(format) + strlen(what) + strlen(why->text);
    free(e->notice);
    e->notice = malloc(n);
    if (e->notice) {
        snprintf(e->notice, n, format, what, why->text);
    }
}

bz_progress bz_encode_fall_back(bz_encode_job *j, bz_need *need)
{
    bz_encoder *e = j->e;
    bz_tower_state *t = &e->tower[j->kind];
    if (!t->on_gpu ||
        (need->error.code != BZ_OUT_OF_MEMORY && need->error.code != BZ_UNSUPPORTED_MODEL)) {
        return BZ_JOB_ERROR;
    }
    keep_notice(e, j->kind, &need->error);
    bz_encoder_drop(e, j->kind);
    t->on_gpu = false;
    if (!e->cpu && bz_cpu_new(&e->cpu, &e->towers.table, (const uint8_t *const *)e->bytes,
                              &e->cpu_options, &need->error) != BZ_OK) {
        return BZ_JOB_ERROR;
    }
    j->stage = STAGE_READ;
    j->in_pass = false;
    j->weight = 0;
    j->read = 0;
    return BZ_JOB_AGAIN;
}

/* Loads the tower's weights onto the model's device, or onto another one if that was lost. */
static bz_progress load_on_gpu(bz_encode_job *j, bz_need *need)
{
    bz_encoder *e = j->e;
    bz_tower_state *t = &e->tower[j->kind];
    if (!bz_model_is_loaded(e->model)) {
        if (!j->reloading && j->lost && j->lost_at == j->done_rows) {
            bz_fail(&need->error, BZ_DEVICE_LOST,
                    "The GPU was lost twice while encoding the same input; use --device cpu.");
            return BZ_JOB_ERROR;
        }
        j->reloading = j->lost = true;
        j->lost_at = j->done_rows;
        const bz_progress p = bz_model_load(e->model, j, need);
        need->event.kind = p == BZ_JOB_EVENT ? BZ_EVENT_RELOAD : need->event.kind;
        return p == BZ_JOB_DONE ? BZ_JOB_AGAIN : p;
    }
    j->reloading = false;
    if (t->gpu && t->gpu->shares != e->model->gpu->loaded) {
        bz_encoder_drop(e, j->kind);
    }
    if (!t->gpu) {
        const bz_status status =
            bz_gpu_model_beside(&t->gpu, e->model->gpu->loaded, &t->table,
                                (const uint8_t *const *)e->bytes, &need->error);
        return status == BZ_OK ? BZ_JOB_AGAIN : bz_encode_fall_back(j, need);
    }
    if (!t->gpu->ready) {
        const bz_progress p = bz_gpu_model_load(t->gpu, need);
        return p == BZ_JOB_DONE    ? BZ_JOB_AGAIN
               : p == BZ_JOB_ERROR ? bz_encode_fall_back(j, need)
                                   : p;
    }
    if (!t->backend &&
        bz_gpu_new(&t->backend, t->gpu, true, BZ_CACHE_F32, !e->no_fuse, &need->error) != BZ_OK) {
        return bz_encode_fall_back(j, need);
    }
    if (!e->exact) {
        bz_gpu_allow_f16(t->backend);
    }
    return BZ_JOB_DONE;
}

bz_progress bz_encode_load(bz_encode_job *j, bz_need *need)
{
    bz_tower_state *t = &j->e->tower[j->kind];
    const bz_progress p = t->on_gpu ? load_on_gpu(j, need) : BZ_JOB_DONE;
    if (p != BZ_JOB_DONE) {
        return p;
    }
    t->backend = t->on_gpu ? t->backend : j->e->cpu;
    t->ready = true;
    j->stage = j->features ? STAGE_TOWER : STAGE_PREPARE;
    return BZ_JOB_AGAIN;
}
