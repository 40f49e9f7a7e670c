/* Loads the weights of a model: file -> (staging) -> GPU buffers. Stepped by the jobs that open a
 * model or an encoder.
 *
 * Bytes are uploaded in slices of at most 4 MB, slices in batches of at most 32 MB, with two
 * batches in flight. A slice comes from memory (a mapped file), or is read into a buffer of ours,
 * or the host reads it directly into a GPU buffer. Types with a GPU layout of their own go to a
 * staging buffer and are repacked from there; since the queue runs in order, one staging buffer
 * suffices. */
#include "gpu/run/load.h"

#include <stdlib.h>
#include <string.h>

#include "base/os.h"

enum {
    SLICE_BYTES = 4 << 20,
    BATCH_BYTES = 32 << 20,
    BATCH_SLICES = 64,
    ALIGN = 256,
    STEP_NS = 8 * 1000 * 1000
};

typedef struct slice {
    uint32_t weight, piece;
    uint64_t at, bytes;  /* of the piece, as in the file; whole rows if it is repacked */
    uint64_t staged;     /* offset in the staging buffer, or in `memory` */
    const uint8_t *from; /* NULL: the host has written it to the GPU */
} slice;

const gpu_test_pool *gpu_test_devices;

typedef enum upload_stage { STARTING, MAKING, COMPILING, CHOOSING, SENDING, DRAINING } upload_stage;

struct gpu_upload {
    upload_stage stage;
    bool repacks;
    gpu_buffer staging, params;
    uint8_t *memory; /* BATCH_BYTES for reads */

    uint32_t weight, piece; /* next to be sent */
    uint64_t next;          /* bytes of the piece that are done */

    slice batch[BATCH_SLICES];
    uint32_t n, sent;
    uint64_t batch_bytes;
    gpu_fence fences[2]; /* of the last two batches, oldest first */
    uint64_t done, total;
};

static bool repacks(const bz_weight_info *t)
{
    return gpu_layout_of(t->type).repacked;
}

/* ---- creating and freeing --------------------------------------------------------- */

static void free_upload(bz_gpu_model *m)
{
    gpu_upload *u = m->upload;
    if (!u) {
        return;
    }
    if (u->staging) {
        gpu_buffer_free(m->g, u->staging);
    }
    if (u->params) {
        gpu_buffer_free(m->g, u->params);
    }
    free(u->memory);
    free(u);
    m->upload = NULL;
}

void bz_gpu_model_hold(bz_gpu_model *m)
{
    m->references++;
}

void bz_gpu_model_drop(bz_gpu_model *m)
{
    if (!m || --m->references > 0) {
        return;
    }
    free_upload(m);
    if (m->g) {
        gpu_table_free(m->table);
        gpu_stream_free(m->stream);
        gpu_weights_free(&m->weights, m->g);
    }
    if (m->shares) {
        bz_gpu_model_drop(m->shares);
    } else if (m->g &&
               !(gpu_test_devices && gpu_test_devices->keep(&m->options, m->g, m->pipelines))) {
        gpu_pipelines_free(m->pipelines);
        gpu_close(m->g);
    }
    free(m);
}

void bz_gpu_model_unload(bz_gpu_model *m)
{
    free_upload(m);
    gpu_stream_free(m->stream);
    m->stream = NULL;
    gpu_weights_unmake(&m->weights, m->g);
    m->ready = false;
}

void bz_gpu_model_limit(bz_gpu_model *m, uint64_t memory, bool may_stream)
{
    m->memory = memory;
    m->memory_given = memory != 0;
    m->may_stream = may_stream;
}

void bz_gpu_model_table(bz_gpu_model *m, bz_weight table, bz_table_place place)
{
    m->lookup = table;
    m->place = place;
}

/* Without a device. */
static bz_gpu_model *new_model(const bz_weights *table, const uint8_t *const *weight_bytes,
                               bz_error *err)
{
    bz_gpu_model *m = calloc(1, sizeof *m);
    if (!m || !(m->upload = calloc(1, sizeof *m->upload))) {
        free(m);
        bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to load a model.");
        return NULL;
    }
    m->references = 1;
    m->weights.map.table = table;
    m->weight_bytes = weight_bytes;
    return m;
}

bz_status bz_gpu_model_beside(bz_gpu_model **out, bz_gpu_model *other, const bz_weights *table,
                              const uint8_t *const *weight_bytes, bz_error *err)
{
    bz_gpu_model *m = new_model(table, weight_bytes, err);
    if (!m) {
        return BZ_OUT_OF_MEMORY;
    }
    bz_gpu_model_hold(other);
    m->shares = other;
    m->g = other->g;
    m->pipelines = other->pipelines;
    *out = m;
    return BZ_OK;
}

bz_status bz_gpu_model_new(bz_gpu_model **out, const gpu_options *options, const bz_weights *table,
                           const uint8_t *const *weight_bytes, bz_error *err)
{
    bz_gpu_model *m = new_model(table, weight_bytes, err);
    if (!m) {
        return BZ_OUT_OF_MEMORY;
    }
    m->options = *options;
    if (gpu_test_devices) {
        gpu_test_devices->choose(&m->options);
    }
    const bool kept = gpu_test_devices && gpu_test_devices->take(&m->options, &m->g, &m->pipelines);
    bz_status status = kept ? BZ_OK : gpu_open(&m->g, &m->options, err);
    if (status != BZ_OK) {
        bz_gpu_model_drop(m);
        return status;
    }
    *out = m;
    return BZ_OK;
}

/* Assigns the weights their pieces; in_file gets none. */
static bz_status place(bz_gpu_model *m, bz_weight in_file, bz_error *err)
{
    const bz_weights *table = m->weights.map.table;
    const gpu_limits *limits = gpu_limits_of(m->g);
    gpu_upload *u = m->upload;
    uint32_t streamed = 0;
    bz_status status = BZ_OK;
    gpu_weights_free(&m->weights, m->g);
    m->weights.map.table = table; /* also needed to free after a failure */
    if (m->may_stream && m->memory) {
        status = gpu_weights_fit(limits, table, in_file, m->memory, &streamed, err);
    }
    if (status == BZ_OK) {
        status = gpu_weights_place_streamed(&m->weights, limits, table, in_file, streamed, err);
    }
    if (status == BZ_OK && m->memory_given && m->weights.bytes > m->memory) {
        status = bz_fail(err, BZ_OUT_OF_MEMORY,
                         "The weights need at least %.2f MB on the GPU, even with every layer "
                         "streamed; %.2f MB are allowed.",
                         (double)m->weights.bytes / 1e6, (double)m->memory / 1e6);
    }
    u->total = 0;
    u->repacks = false;
    for (uint32_t i = 0; i < table->n && status == BZ_OK; i++) {
        if (m->weights.map.first_piece[i] < m->weights.map.first_piece[i + 1] &&
            !m->weights.streamed[i]) {
            u->total += table->info[i].size;
            u->repacks |= repacks(&table->info[i]);
        }
    }
    return status;
}

/* ---- stages ---------------------------------------------------------------------- */

static bz_progress start(bz_gpu_model *m, bz_error *err)
{
    gpu_upload *u = m->upload;
    const bz_weights *table = m->weights.map.table;
    if (!m->pipelines && !(m->pipelines = gpu_pipelines_new(m->g))) {
        bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to load a model.");
        return BZ_JOB_ERROR;
    }
    if (place(m, m->place == BZ_TABLE_IN_FILE ? m->lookup : BZ_NO_WEIGHT, err) != BZ_OK) {
        return BZ_JOB_ERROR;
    }
    for (uint32_t i = 0; i < table->n; i++) {
        const bz_weight_info *t = &table->info[i];
        if (!repacks(t)) {
            continue;
        }
        if (bz_row_bytes(t->type, t->ne[0]) > SLICE_BYTES) {
            bz_fail(err, BZ_UNSUPPORTED_MODEL, "A row of the tensor %s is larger than %d MB.",
                    t->name, SLICE_BYTES >> 20);
            return BZ_JOB_ERROR;
        }
        if (!gpu_pipelines_get(m->pipelines, GPU_REPACK, t->type, (gpu_overrides){{0}}, err)) {
            return BZ_JOB_ERROR; /* compiles while buffers are created */
        }
    }
    u->stage = MAKING;
    return BZ_JOB_AGAIN;
}

static uint64_t bytes_made(const bz_gpu_model *m)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < m->weights.n_made; i++) {
        bytes += m->weights.sizes[i];
    }
    return bytes;
}

static bz_progress make(bz_gpu_model *m, bz_error *err)
{
    gpu_upload *u = m->upload;
    const bz_weight in_file = m->weights.map.in_file;
    if (m->weights.n_made < m->weights.n_buffers) {
        const uint64_t had = bytes_made(m);
        bz_status status = gpu_weights_make(&m->weights, m->g, err);
        if (status == BZ_OUT_OF_MEMORY && m->may_stream && !m->memory && had) {
            m->memory = had / 5 * 4; /* leaves memory for caches and activations */
            status = place(m, in_file, err);
        } else if (status == BZ_OUT_OF_MEMORY && m->place == BZ_TABLE_AUTO && m->lookup.id &&
                   !in_file.id) {
            status = place(m, m->lookup, err); /* it stays in the file */
        }
        return status == BZ_OK ? BZ_JOB_AGAIN : BZ_JOB_ERROR;
    }
    if (u->repacks) {
        u->staging = gpu_buffer_new(m->g, BATCH_BYTES + ALIGN, GPU_STORAGE,
                                    err); /* kernels may read one word past the end */
        u->params =
            u->staging ? gpu_buffer_new(m->g, sizeof(gpu_repack_params), GPU_UNIFORM, err) : 0;
        if (!u->params) {
            return BZ_JOB_ERROR;
        }
    }
    u->stage = COMPILING;
    return BZ_JOB_AGAIN;
}

static bz_progress compile(bz_gpu_model *m, bz_error *err)
{
    switch (gpu_pipelines_state(m->pipelines, err)) {
    case GPU_PIPELINE_COMPILING: return BZ_JOB_NEED_GPU;
    case GPU_PIPELINE_FAILED: return BZ_JOB_ERROR;
    case GPU_PIPELINE_READY: break;
    }
    const bz_weight in_file = m->weights.map.in_file;
    if (in_file.id &&
        gpu_table_new(&m->table, m->g, m->pipelines, bz_weight_of(m->weights.map.table, in_file),
                      m->weight_bytes[in_file.id - 1], err) != BZ_OK) {
        return BZ_JOB_ERROR;
    }
    m->upload->stage = CHOOSING;
    return BZ_JOB_AGAIN;
}

/* Where the bytes of a piece begin in their tensor. */
static uint64_t begin_of(const bz_weight_info *t, const gpu_piece *p)
{
    return p->first_row * (uint64_t)bz_row_bytes(t->type, t->ne[0]);
}

/* The next slice; false if there is none, or it has to wait for the next batch. */
static bool next_slice(bz_gpu_model *m, bool can_read, slice *s)
{
    gpu_upload *u = m->upload;
    const gpu_weights *w = &m->weights;
    while (u->weight < w->map.table->n &&
           (u->piece == w->map.first_piece[u->weight + 1] || w->streamed[u->weight])) {
        u->piece =
            w->map.first_piece[++u->weight]; /* streamed tensors are uploaded with every pass */
    }
    if (u->weight == w->map.table->n || (!m->weight_bytes[u->weight] && !can_read)) {
        return false;
    }
    const bz_weight_info *t = &w->map.table->info[u->weight];
    const gpu_piece *p = &w->map.pieces[u->piece];
    const uint64_t row = bz_row_bytes(t->type, t->ne[0]), all = p->rows * row;
    const uint64_t max = repacks(t) ? SLICE_BYTES / row * row : SLICE_BYTES;
    const uint64_t n = all - u->next < max ? all - u->next : max;
    if (u->batch_bytes + n + ALIGN > BATCH_BYTES) {
        return false;
    }
    const uint8_t *bytes = m->weight_bytes[u->weight];
    *s = (slice){.weight = u->weight,
                 .piece = u->piece,
                 .at = u->next,
                 .bytes = n,
                 .staged = u->batch_bytes,
                 .from = bytes ? bytes + begin_of(t, p) + u->next : NULL};
    u->batch_bytes += (n + ALIGN - 1) / ALIGN * ALIGN;
    u->next += n;
    if (u->next == all) {
        u->piece++;
        u->next = 0;
    }
    return true;
}

/* Where the bytes of the file are written: the tensor, or the staging buffer. */
static gpu_binding destination(const bz_gpu_model *m, const slice *s)
{
    gpu_binding at = m->weights.map.pieces[s->piece].at;
    return repacks(&m->weights.map.table->info[s->weight])
               ? (gpu_binding){m->upload->staging, s->staged, 0}
               : (gpu_binding){at.buffer, at.offset + s->at, 0};
}

static bool add_read(bz_gpu_model *m, slice *s, bz_need *need)
{
    gpu_upload *u = m->upload;
    const bz_weight_info *t = &m->weights.map.table->info[s->weight];
    bz_read *r = &need->reads[need->n_reads++];
    *r = (bz_read){.file = t->file,
                   .offset = t->offset + begin_of(t, &m->weights.map.pieces[s->piece]) + s->at,
                   .length = s->bytes};
    if (gpu_limits_of(m->g)->direct_reads) {
        gpu_binding to = destination(m, s);
        r->buffer = to.buffer;
        r->buffer_offset = to.offset;
        return true;
    }
    u->memory = u->memory ? u->memory : malloc(BATCH_BYTES);
    if (!u->memory) {
        bz_fail(&need->error, BZ_OUT_OF_MEMORY, "No memory to load weights (%d MB).",
                BATCH_BYTES >> 20);
        return false;
    }
    r->to = u->memory + s->staged;
    s->from = r->to;
    return true;
}

static bz_progress choose(bz_gpu_model *m, bz_need *need)
{
    gpu_upload *u = m->upload;
    if (u->fences[0] && u->fences[1]) {
        if (!gpu_signal_done(m->g, u->fences[0])) {
            return BZ_JOB_NEED_GPU;
        }
        u->fences[0] = u->fences[1];
        u->fences[1] = 0;
    }
    u->n = u->sent = 0;
    u->batch_bytes = 0;
    while (u->n < BATCH_SLICES && next_slice(m, need->n_reads < BZ_MAX_READS, &u->batch[u->n])) {
        slice *s = &u->batch[u->n++];
        if (!s->from && !add_read(m, s, need)) {
            return BZ_JOB_ERROR;
        }
    }
    u->stage = u->n ? SENDING : DRAINING;
    return need->n_reads ? BZ_JOB_NEED_BYTES : BZ_JOB_AGAIN;
}

static bz_status repack(bz_gpu_model *m, const slice *s, bz_error *err)
{
    gpu *g = m->g;
    const bz_weight_info *t = &m->weights.map.table->info[s->weight];
    const gpu_piece *p = &m->weights.map.pieces[s->piece];
    const uint64_t row = bz_row_bytes(t->type, t->ne[0]);
    const gpu_repack_params params = {.first_row = (uint32_t)(s->at / row),
                                      .rows = (uint32_t)(s->bytes / row),
                                      .raw_bytes = (uint32_t)row,
                                      .row_words =
                                          (uint32_t)(gpu_row_bytes(t->type, t->ne[0]) / 4)};
    const gpu_binding bind[3] = {{m->upload->params, 0, 0},
                                 {m->upload->staging, s->staged, (s->bytes + 3) / 4 * 4 + 4},
                                 p->at};
    gpu_pipeline kernel =
        gpu_pipelines_get(m->pipelines, GPU_REPACK, t->type, (gpu_overrides){{0}}, err);
    gpu_list list = kernel ? gpu_list_new(g, err) : 0;
    if (!list) {
        return err->code;
    }
    gpu_write(g, m->upload->params, 0, &params, sizeof params);
    bz_status status = gpu_list_add(g, list, kernel, bind, 3,
                                    (params.rows * params.row_words + 63) / 64, 1, 1, err);
    if (status == BZ_OK) {
        gpu_replay(g, list, 0, 1);
    }
    gpu_list_free(g, list);
    return status;
}

static bz_progress send(bz_gpu_model *m, bz_need *need)
{
    gpu_upload *u = m->upload;
    const uint64_t end = bz_os_now() + STEP_NS;
    while (u->sent < u->n) {
        const slice *s = &u->batch[u->sent];
        if (s->from) {
            gpu_write_bytes(m->g, destination(m, s), s->from, s->bytes);
        }
        if (repacks(&m->weights.map.table->info[s->weight]) &&
            repack(m, s, &need->error) != BZ_OK) {
            return BZ_JOB_ERROR;
        }
        u->done += s->bytes;
        u->sent++;
        if (u->sent < u->n && bz_os_now() > end) {
            return BZ_JOB_AGAIN;
        }
    }
    gpu_fence *fence = &u->fences[u->fences[0] != 0];
    *fence = gpu_signal(m->g, &need->error);
    if (!*fence) {
        return BZ_JOB_ERROR;
    }
    u->stage = CHOOSING;
    need->event = (bz_event){.kind = BZ_EVENT_PROGRESS, .done = u->done, .total = u->total};
    return BZ_JOB_EVENT;
}

static bz_progress drain(bz_gpu_model *m, bz_error *err)
{
    gpu_upload *u = m->upload;
    for (int i = 0; i < 2; i++) {
        if (u->fences[i] && !gpu_signal_done(m->g, u->fences[i])) {
            return BZ_JOB_NEED_GPU;
        }
        u->fences[i] = 0;
    }
    if (m->weights.n_streamed &&
        gpu_stream_new(&m->stream, m->g, &m->weights, m->weight_bytes, err) != BZ_OK) {
        return BZ_JOB_ERROR;
    }
    free_upload(m);
    if (!m->weights.n_streamed) {
        gpu_free_upload_buffers(m->g);
    }
    m->ready = true;
    return BZ_JOB_DONE;
}

bz_progress bz_gpu_model_load(bz_gpu_model *m, bz_need *need)
{
    need->n_reads = 0;
    if (m->ready) {
        return BZ_JOB_DONE;
    }
    switch (gpu_state_of(m->g, &need->error)) {
    case GPU_STARTING: return BZ_JOB_NEED_GPU;
    case GPU_LOST:
    case GPU_FAILED: return BZ_JOB_ERROR;
    case GPU_READY: break;
    }
    switch (m->upload->stage) {
    case STARTING: return start(m, &need->error);
    case MAKING: return make(m, &need->error);
    case COMPILING: return compile(m, &need->error);
    case CHOOSING: return choose(m, need);
    case SENDING: return send(m, need);
    case DRAINING: return drain(m, &need->error);
    }
    return BZ_JOB_ERROR;
}
