/* Streams layers through two slots: slices, batches, fences. Called by backend.c. */
#include "gpu/run/stream.h"

#include <stdlib.h>

#include "base/os.h"

enum {
    SLICE_BYTES = 4 << 20,
    BATCH_SLICES = 8, /* between two fences: 32 MB */
    MAX_BATCHES = 4,  /* in flight */
    MAX_READS = BATCH_SLICES
};

typedef struct slice {
    gpu_binding to;
    uint64_t bytes;
    uint32_t file;
    uint64_t offset;     /* in the file */
    const uint8_t *from; /* NULL: must be read */
} slice;

struct gpu_stream {
    gpu *g;
    const gpu_weights *weights;
    const uint8_t *const *weight_bytes;
    const void *owner;         /* the session whose pass uses the slots */
    uint32_t holds[GPU_SLOTS]; /* layer that is completely there; 0: none */

    /* the layer being uploaded */
    uint32_t layer;  /* 0: none */
    uint32_t weight; /* next: tensor, piece, bytes of the piece that are done */
    uint32_t piece;
    uint64_t done;
    uint32_t in_batch; /* slices since the last fence */
    gpu_fence fences[MAX_BATCHES];
    uint32_t n_fences; /* oldest first */

    slice reads[MAX_READS]; /* requested */
    uint32_t n_reads;
    uint8_t *memory; /* for them, unless the host reads into GPU buffers */
};

bz_status gpu_stream_new(gpu_stream **out, gpu *g, const gpu_weights *weights,
                         const uint8_t *const *weight_bytes, bz_error *err)
{
    gpu_stream *s = calloc(1, sizeof *s);
    if (!s) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to stream weights.");
    }
    s->g = g;
    s->weights = weights;
    s->weight_bytes = weight_bytes;
    *out = s;
    return BZ_OK;
}

void gpu_stream_free(gpu_stream *s)
{
    if (s) {
        for (uint32_t i = 0; i < s->n_fences; i++) {
            gpu_read_drop(s->g, s->fences[i]);
        }
        free(s->memory);
        free(s);
    }
}

bool gpu_stream_take(gpu_stream *s, const void *session)
{
    if (s->owner && s->owner != session) {
        return false;
    }
    s->owner = session;
    return true;
}

/* An incomplete layer is uploaded from its beginning when it is needed next. */
void gpu_stream_leave(gpu_stream *s, const void *session)
{
    if (s->owner == session) {
        s->owner = NULL;
        s->layer = 0;
        s->n_reads = 0;
    }
}

/* ---- one layer ------------------------------------------------------------------------ */

static void begin(gpu_stream *s, uint32_t layer)
{
    s->layer = layer;
    s->holds[layer % GPU_SLOTS] = 0;
    s->weight = s->piece = 0;
    s->done = 0;
    s->n_reads = 0;
}

/* The next slice of the layer; false: there is none. */
static bool next_slice(gpu_stream *s, slice *out)
{
    const gpu_weights *w = s->weights;
    while (s->weight < w->map.table->n &&
           (w->streamed[s->weight] != s->layer || s->piece == w->map.first_piece[s->weight + 1])) {
        s->piece = w->map.first_piece[++s->weight];
    }
    if (s->weight == w->map.table->n) {
        return false;
    }
    const bz_weight_info *t = &w->map.table->info[s->weight];
    const gpu_piece *p = &w->map.pieces[s->piece];
    const uint64_t row = bz_row_bytes(t->type, t->ne[0]), all = p->rows * row,
                   at = p->first_row * row + s->done;
    const uint64_t n = all - s->done < SLICE_BYTES ? all - s->done : SLICE_BYTES;
    const uint8_t *bytes = s->weight_bytes[s->weight];
    *out = (slice){.to = {p->at.buffer, p->at.offset + s->done, 0},
                   .bytes = n,
                   .file = t->file,
                   .offset = t->offset + at,
                   .from = bytes ? bytes + at : NULL};
    s->done += n;
    if (s->done == all) {
        s->piece++;
        s->done = 0;
    }
    return true;
}

/* DONE: another slice may be sent. */
static bz_pass_state wait_for_batch(gpu_stream *s, bz_error *err)
{
    if (s->in_batch < BATCH_SLICES) {
        return BZ_PASS_DONE;
    }
    if (s->n_fences == MAX_BATCHES) {
        if (!gpu_signal_done(s->g, s->fences[0])) {
            return gpu_state_of(s->g, err) == GPU_READY ? BZ_PASS_WAIT : BZ_PASS_ERROR;
        }
        for (uint32_t i = 1; i < s->n_fences; i++) {
            s->fences[i - 1] = s->fences[i];
        }
        s->n_fences--;
    }
    gpu_fence fence = gpu_signal(s->g, err);
    if (!fence) {
        return BZ_PASS_ERROR;
    }
    s->fences[s->n_fences++] = fence;
    s->in_batch = 0;
    return BZ_PASS_DONE;
}

static void send(gpu_stream *s, const slice *x)
{
    if (x->from) {
        gpu_write_bytes(s->g, x->to, x->from, x->bytes);
    }
    s->in_batch++;
}

/* The requested reads have been done. */
static void take_reads(gpu_stream *s)
{
    for (uint32_t i = 0; i < s->n_reads; i++) {
        s->reads[i].from =
            gpu_limits_of(s->g)->direct_reads ? NULL : s->memory + (uint64_t)i * SLICE_BYTES;
        send(s, &s->reads[i]);
    }
    s->n_reads = 0;
}

/* Requests a batch of slices that are not in memory. */
static bz_pass_state request_reads(gpu_stream *s, slice first, bz_error *err)
{
    if (!gpu_limits_of(s->g)->direct_reads && !s->memory &&
        !(s->memory = malloc((size_t)MAX_READS * SLICE_BYTES))) {
        bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to stream weights (%d MB).",
                MAX_READS * (SLICE_BYTES >> 20));
        return BZ_PASS_ERROR;
    }
    s->reads[s->n_reads++] = first;
    while (s->n_reads < MAX_READS && next_slice(s, &s->reads[s->n_reads])) {
        s->n_reads++; /* a file is mapped as a whole or not at all */
    }
    return BZ_PASS_BYTES;
}

bz_pass_state gpu_stream_fetch(gpu_stream *s, uint32_t layer, uint64_t deadline, bz_error *err)
{
    if (s->holds[layer % GPU_SLOTS] == layer) {
        return BZ_PASS_DONE;
    }
    if (s->layer != layer) {
        begin(s, layer);
    }
    take_reads(s);
    for (;;) {
        slice x;
        bz_pass_state state = wait_for_batch(s, err);
        if (state != BZ_PASS_DONE) {
            return state;
        }
        if (!next_slice(s, &x)) {
            s->holds[layer % GPU_SLOTS] = layer;
            s->layer = 0;
            return BZ_PASS_DONE;
        }
        if (!x.from) {
            return request_reads(s, x, err);
        }
        send(s, &x);
        if (deadline && bz_os_now() >= deadline) {
            return BZ_PASS_AGAIN;
        }
    }
}

uint32_t gpu_stream_reads(gpu_stream *s, bz_read reads[BZ_MAX_READS])
{
    const bool direct = gpu_limits_of(s->g)->direct_reads;
    for (uint32_t i = 0; i < s->n_reads; i++) {
        const slice *x = &s->reads[i];
        reads[i] = (bz_read){.file = x->file, .offset = x->offset, .length = x->bytes};
        if (direct) {
            reads[i].buffer = x->to.buffer;
            reads[i].buffer_offset = x->to.offset;
        } else {
            reads[i].to = s->memory + (uint64_t)i * SLICE_BYTES;
        }
    }
    return s->n_reads;
}
