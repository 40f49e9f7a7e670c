/* The cache of a table that stays in the file: slots in order of use, fetching, repacking. Called
 * by backend.c. */
#include "gpu/run/table.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/run/weights.h"

enum { MAX_PASS = 512, BATCH = BZ_MAX_READS, ALIGN = 256 };
static const uint16_t NONE = 0xffff; /* not a slot */

struct gpu_table {
    gpu *g;
    gpu_pipelines *pipelines;
    const bz_weight_info *info;
    const uint8_t *bytes;
    uint32_t ids;         /* rows of the table */
    uint32_t raw_bytes;   /* of a row in the file */
    uint32_t row_bytes;   /* in the buffer: a multiple of 4 */
    uint32_t made, slots; /* rows of the buffer; rows in use */
    gpu_buffer rows;

    /* Types that are repacked: rows as in the file, and one dispatch for each. */
    bool repacks;
    gpu_buffer staging, params;
    gpu_list list;   /* [BATCH] */
    uint8_t *memory; /* [BATCH][raw_bytes] for reads, unless the host reads into GPU buffers */

    uint16_t *slot_of;       /* [ids] NONE: not cached */
    int32_t *id_of;          /* [slots] -1: empty */
    uint16_t *newer, *older; /* [slots] in the order of use */
    uint16_t newest, oldest;

    const void *session; /* that is fetching; NULL: none */
    uint32_t fetched;    /* rows, for its pass */
    struct {
        int32_t id;
        uint16_t slot;
    } batch[BATCH];
    uint32_t n_batch;
};

/* ---- creating and freeing ------------------------------------------------------------- */

static uint32_t padded_row(const bz_weight_info *info)
{
    return (uint32_t)((gpu_row_bytes(info->type, info->ne[0]) + 3) / 4 * 4);
}

/* GPU_TABLE_ROWS, or as many as one binding holds; kernels may read one word past the last. */
static uint32_t rows_that_fit(const gpu_limits *l, const bz_weight_info *info)
{
    const uint64_t limit = l->max_binding < l->max_buffer ? l->max_binding : l->max_buffer;
    const uint64_t most = (limit - ALIGN) / padded_row(info), all = info->ne[1];
    const uint64_t rows = most < GPU_TABLE_ROWS ? most : GPU_TABLE_ROWS;
    return (uint32_t)(rows < all ? rows : all);
}

uint64_t gpu_table_bytes(const gpu_limits *l, const bz_weight_info *info)
{
    return (uint64_t)rows_that_fit(l, info) * padded_row(info) + 4;
}

void gpu_table_free(gpu_table *t)
{
    if (!t) {
        return;
    }
    const gpu_buffer buffers[] = {t->rows, t->staging, t->params};
    if (t->list) {
        gpu_list_free(t->g, t->list);
    }
    for (int i = 0; i < 3; i++) {
        if (buffers[i]) {
            gpu_buffer_free(t->g, buffers[i]);
        }
    }
    free(t->memory);
    free(t->slot_of);
    free(t->id_of);
    free(t->newer);
    free(t->older);
    free(t);
}

/* Empties the cache; slots are used from the last one on. */
static void clear(gpu_table *t)
{
    memset(t->slot_of, 0xff, t->ids * sizeof *t->slot_of);
    for (uint32_t i = 0; i < t->slots; i++) {
        t->id_of[i] = -1;
        t->older[i] = (uint16_t)(i + 1 < t->slots ? i + 1 : NONE);
        t->newer[i] = (uint16_t)(i ? i - 1 : NONE);
    }
    t->newest = (uint16_t)0;
    t->oldest = (uint16_t)(t->slots - 1);
}

void gpu_table_limit(gpu_table *t, uint32_t rows)
{
    t->slots = rows < t->made ? rows : t->made;
    clear(t);
}

static uint64_t staged_at(const gpu_table *t, uint32_t k)
{
    return k * ((t->raw_bytes + 4ull + ALIGN - 1) / ALIGN *
                ALIGN); /* kernels may read one word past the end */
}

static bz_status make_repacking(gpu_table *t, bz_error *err)
{
    gpu_pipeline kernel =
        gpu_pipelines_get(t->pipelines, GPU_REPACK, t->info->type, (gpu_overrides){{0}}, err);
    if (!kernel || !(t->staging = gpu_buffer_new(t->g, staged_at(t, BATCH), GPU_STORAGE, err)) ||
        !(t->params = gpu_buffer_new(t->g, BATCH * ALIGN, GPU_UNIFORM, err)) ||
        !(t->list = gpu_list_new(t->g, err))) {
        return err->code;
    }
    for (uint32_t k = 0; k < BATCH; k++) {
        const gpu_binding bind[3] = {{t->params, k * (uint64_t)ALIGN, sizeof(gpu_repack_params)},
                                     {t->staging, staged_at(t, k), staged_at(t, 1)},
                                     {t->rows, 0, 0}};
        bz_status status =
            gpu_list_add(t->g, t->list, kernel, bind, 3, (t->row_bytes / 4 + 63) / 64, 1, 1, err);
        if (status != BZ_OK) {
            return status;
        }
    }
    return BZ_OK;
}

static bz_status make(gpu_table *t, bz_error *err)
{
    const gpu_limits *l = gpu_limits_of(t->g);
    t->made = t->slots = rows_that_fit(l, t->info);
    if (t->made < MAX_PASS && t->made < t->ids) {
        return bz_fail(err, BZ_UNSUPPORTED_MODEL,
                       "A row of the tensor %s is too large for this GPU to cache %d of them.",
                       t->info->name, MAX_PASS);
    }
    t->slot_of = malloc(t->ids * sizeof *t->slot_of);
    t->id_of = malloc(t->made * sizeof *t->id_of);
    t->newer = malloc(t->made * sizeof *t->newer);
    t->older = malloc(t->made * sizeof *t->older);
    bool ok = t->slot_of && t->id_of && t->newer && t->older;
    if (ok && !t->bytes && !l->direct_reads) {
        ok = (t->memory = malloc((size_t)BATCH * t->raw_bytes)) != NULL;
    }
    if (!ok) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the rows of %s.", t->info->name);
    }
    clear(t);
    t->rows = gpu_buffer_new(t->g, (uint64_t)t->made * t->row_bytes + 4, GPU_STORAGE, err);
    return !t->rows ? err->code : t->repacks ? make_repacking(t, err) : BZ_OK;
}

bz_status gpu_table_new(gpu_table **out, gpu *g, gpu_pipelines *pipelines,
                        const bz_weight_info *info, const uint8_t *bytes, bz_error *err)
{
    gpu_table *t = calloc(1, sizeof *t);
    if (!t) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the rows of %s.", info->name);
    }
    t->g = g;
    t->pipelines = pipelines;
    t->info = info;
    t->bytes = bytes;
    t->ids = (uint32_t)info->ne[1];
    t->raw_bytes = (uint32_t)bz_row_bytes(info->type, info->ne[0]);
    t->row_bytes = padded_row(info);
    t->repacks = gpu_layout_of(info->type).repacked;
    bz_error why = {0};
    if (make(t, &why) != BZ_OK) {
        gpu_table_free(t);
        return bz_fail(err, why.code, "%s", why.text);
    }
    *out = t;
    return BZ_OK;
}

gpu_table_shape gpu_table_shape_of(const gpu_table *t)
{
    return (gpu_table_shape){{t->rows, 0, 0}, t->made, t->row_bytes};
}

/* ---- the order of use ------------------------------------------------------------------ */

static void unlink_slot(gpu_table *t, uint16_t s)
{
    if (t->newer[s] == NONE) {
        t->newest = t->older[s];
    } else {
        t->older[t->newer[s]] = t->older[s];
    }
    if (t->older[s] == NONE) {
        t->oldest = t->newer[s];
    } else {
        t->newer[t->older[s]] = t->newer[s];
    }
}

static void use_slot(gpu_table *t, uint16_t s)
{
    if (t->newest == s) {
        return;
    }
    unlink_slot(t, s);
    t->newer[s] = NONE;
    t->older[s] = t->newest;
    t->newer[t->newest] = s;
    t->newest = s;
}

/* The least recently used slot, now empty and most recently used. */
static uint16_t take_slot(gpu_table *t)
{
    const uint16_t s = t->oldest;
    if (t->id_of[s] >= 0) {
        t->slot_of[t->id_of[s]] = NONE;
        t->id_of[s] = -1;
    }
    use_slot(t, s);
    return s;
}

/* ---- fetching ------------------------------------------------------------------------- */

static bool is_in_batch(const gpu_table *t, int32_t id)
{
    for (uint32_t k = 0; k < t->n_batch; k++) {
        if (t->batch[k].id == id) {
            return true;
        }
    }
    return false;
}

/* The next rows that are missing. The pass's other rows are the most recently used, so that none of
 * them is replaced. */
static void choose_batch(gpu_table *t, const int32_t *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n && t->n_batch < BATCH; i++) {
        if (t->slot_of[ids[i]] == NONE && !is_in_batch(t, ids[i])) {
            t->batch[t->n_batch].slot = take_slot(t);
            t->batch[t->n_batch++].id = ids[i];
        }
    }
}

/* Where the bytes of the file are written. */
static gpu_binding destination(const gpu_table *t, uint32_t k)
{
    return t->repacks ? (gpu_binding){t->staging, staged_at(t, k), 0}
                      : (gpu_binding){t->rows, (uint64_t)t->batch[k].slot * t->row_bytes, 0};
}

uint32_t gpu_table_reads(gpu_table *t, bz_read reads[BZ_MAX_READS])
{
    const bool direct = gpu_limits_of(t->g)->direct_reads;
    for (uint32_t k = 0; k < t->n_batch; k++) {
        const gpu_binding to = destination(t, k);
        reads[k] = (bz_read){.file = t->info->file,
                             .offset = t->info->offset + (uint64_t)t->batch[k].id * t->raw_bytes,
                             .length = t->raw_bytes};
        if (direct) {
            reads[k].buffer = to.buffer;
            reads[k].buffer_offset = to.offset;
        } else {
            reads[k].to = t->memory + (size_t)k * t->raw_bytes;
        }
    }
    return t->n_batch;
}

/* The rows of the batch have been read: writes and repacks them. */
static void store_batch(gpu_table *t)
{
    uint8_t params[BATCH * ALIGN] = {0};
    const bool direct = !t->bytes && gpu_limits_of(t->g)->direct_reads;
    for (uint32_t k = 0; k < t->n_batch; k++) {
        const int32_t id = t->batch[k].id;
        const uint16_t slot = t->batch[k].slot;
        if (!direct) {
            const uint8_t *from = t->bytes ? t->bytes + (uint64_t)id * t->raw_bytes
                                           : t->memory + (size_t)k * t->raw_bytes;
            gpu_write_bytes(t->g, destination(t, k), from, t->raw_bytes);
        }
        const gpu_repack_params f = {
            .first_row = slot, .rows = 1, .raw_bytes = t->raw_bytes, .row_words = t->row_bytes / 4};
        memcpy(params + (size_t)k * ALIGN, &f, sizeof f);
        t->slot_of[id] = slot;
        t->id_of[slot] = id;
    }
    if (t->repacks) {
        gpu_write(t->g, t->params, 0, params, (uint64_t)t->n_batch * ALIGN);
        gpu_replay(t->g, t->list, 0, t->n_batch);
    }
    t->fetched += t->n_batch;
    t->n_batch = 0;
}

static bool find(gpu_table *t, const int32_t *ids, uint32_t n, uint32_t *slots)
{
    bool all = true;
    for (uint32_t i = 0; i < n; i++) {
        slots[i] = t->slot_of[ids[i]];
        if (slots[i] == NONE) {
            all = false;
        } else {
            use_slot(t, (uint16_t)slots[i]);
        }
    }
    return all;
}

bz_pass_state gpu_table_fetch(gpu_table *t, const void *session, const int32_t *ids, uint32_t n,
                              uint32_t *slots, gpu_table_use *use, bz_error *err)
{
    if (n > t->slots) {
        bz_fail(err, BZ_BAD_REQUEST,
                "A pass of %u rows needs more rows of %s than the %u that are cached.", n,
                t->info->name, t->slots);
        return BZ_PASS_ERROR;
    }
    if (t->session && t->session != session) {
        if (!find(t, ids, n, slots)) {
            return BZ_PASS_WAIT;
        }
        use->hits += n;
        return BZ_PASS_DONE;
    }
    if (t->n_batch) {
        store_batch(t); /* its bytes have been read */
    }
    while (!find(t, ids, n, slots)) {
        t->session = session;
        choose_batch(t, ids, n);
        if (!t->bytes) {
            return BZ_PASS_BYTES;
        }
        store_batch(t);
    }
    use->misses += t->fetched;
    use->hits += n - t->fetched;
    t->fetched = 0;
    t->session = NULL;
    return BZ_PASS_DONE;
}

void gpu_table_give_up(gpu_table *t, const void *session)
{
    if (t->session == session) {
        t->session = NULL;
        t->n_batch = t->fetched = 0; /* the slots stay empty */
    }
}
