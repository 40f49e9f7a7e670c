/* bezel_debug.h: tokens, memory, CPU kernels and profiles of GPU passes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bezel_debug.h"
#include "cpu/kernels.h"
#include "encoder/encoder.h"
#include "gpu/run/backend.h"
#include "model/memory.h"
#include "session/session.h"

bool bz_debug_token_is_control(const bz_model *model, int32_t id)
{
    return bz_tokenizer_is_control(model->tokenizer, id);
}

/* ---- memory --------------------------------------------------------------- */

bz_status bz_debug_model_memory(const bz_model *model, const char *kv, uint32_t chunk,
                                bz_debug_memory *out, bz_error *err)
{
    bz_memory m;
    bz_cache_type type;
    bz_status status = bz_cache_type_named(&type, kv, false, err);
    if (status == BZ_OK) {
        status = bz_memory_predict(&m, &model->text, type, chunk ? chunk : BZ_MAX_CHUNK, err);
    }
    if (status == BZ_OK) {
        *out = (bz_debug_memory){.chunk = m.chunk,
                                 .weight_bytes = m.weight_bytes,
                                 .table_bytes = m.table_bytes,
                                 .token_bytes = m.token_bytes,
                                 .activation_bytes = m.arena_bytes,
                                 .snapshot_bytes = m.snapshot_bytes};
    }
    return status;
}

uint64_t bz_debug_cache_bytes(const bz_model *model, const char *kv, uint32_t context,
                              uint32_t chunk)
{
    bz_cache_type type;
    bz_cache_type_named(&type, kv, false, NULL); /* an unknown name is f16 */
    return bz_memory_cache(&model->text, type, context, chunk ? chunk : BZ_MAX_CHUNK);
}

/* ---- the CPU -------------------------------------------------------------- */

const char *bz_debug_kernels(const char *name)
{
    const bz_kernels *k = bz_kernels_best(name);
    return k ? k->name : NULL;
}

/* ---- profiles ------------------------------------------------------------- */

static size_t profile(bz_backend *backend, const bz_schedule *schedule, uint32_t position,
                      bz_debug_kernel_time *times, size_t cap)
{
    if (!schedule || !cap || strcmp(backend->name, "gpu") != 0) {
        return 0;
    }
    bz_gpu_line *lines = calloc(cap, sizeof *lines);
    const size_t n = lines ? bz_gpu_profile(backend, schedule, position, lines, cap) : 0;
    for (size_t i = 0; i < n; i++) {
        times[i] = (bz_debug_kernel_time){.dispatches = lines[i].dispatches,
                                          .microseconds = lines[i].microseconds,
                                          .weight_bytes = lines[i].weight_bytes};
        snprintf(times[i].kernel, sizeof times[i].kernel, "%s", lines[i].name);
    }
    free(lines);
    return n;
}

static const bz_schedule *schedule_of(const bz_session *s, bz_debug_pass pass)
{
    if (pass == BZ_DEBUG_CANVAS) {
        return s->canvas_plans[CANVAS_DENOISE].schedule;
    }
    const size_t buckets = sizeof s->plans[0] / sizeof s->plans[0][0];
    size_t bucket = pass == BZ_DEBUG_PREFILL ? buckets - 1 : 0;
    while (bucket > 0 && !s->plans[0][bucket].schedule) {
        bucket--;
    }
    return s->plans[0][bucket].schedule;
}

size_t bz_debug_profile(bz_session *session, bz_debug_pass pass, uint32_t position,
                        bz_debug_kernel_time *times, size_t cap)
{
    return profile(session->backend, schedule_of(session, pass), position, times, cap);
}

size_t bz_debug_profile_encoder(bz_encoder *encoder, bz_media_kind kind,
                                bz_debug_kernel_time *times, size_t cap)
{
    return profile(bz_encoder_backend(encoder, kind), bz_encoder_schedule(encoder, kind), 0, times,
                   cap);
}
