/* Which tensor lies in which buffer, and which layers are streamed. Called by load.c, and by
 * api/fit.c to predict what a model needs. */
#include "gpu/run/weights.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 256 };

static uint64_t align_up(uint64_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static uint64_t rows_of(const bz_weight_info *w)
{
    return w->ne[1] * w->ne[2];
}

/* Rows of a tensor that one binding holds, including one word that kernels read past the end. */
static uint64_t rows_per_piece(const gpu_limits *l, const bz_weight_info *w)
{
    uint64_t limit = l->max_binding < l->max_buffer ? l->max_binding : l->max_buffer;
    limit = limit < 1ull << 31 ? limit : 1ull << 31; /* kernels use 32-bit byte offsets */
    uint64_t rows = (limit - ALIGN) / gpu_row_bytes(w->type, w->ne[0]);
    if (rows >= rows_of(w)) {
        return rows_of(w);
    }
    /* whole experts if they fit; else multiples of four: kernels write vec4s of outputs */
    return w->ne[2] > 1 && rows >= w->ne[1] ? rows / w->ne[1] * w->ne[1] : rows / 4 * 4;
}

/* Reading a block may touch the word after it, so a piece is bound with one word more. */
static uint64_t piece_bytes(const bz_weight_info *w, uint64_t rows)
{
    return (rows * gpu_row_bytes(w->type, w->ne[0]) + 3) / 4 * 4 + 4;
}

/* ---- streamed layers --------------------------------------------------------- */

enum { MIN_STREAMED = 4 << 10 }; /* bytes: smaller tensors stay */

static uint32_t layers_of(const bz_weights *table)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < table->n; i++) {
        most = table->info[i].layer > most ? table->info[i].layer : most;
    }
    return most;
}

/* The number of layer l of n (both from 1) among k streamed layers, or 0. They are spread evenly,
 * so that the bytes of one arrive while others compute. */
static uint32_t number_of(uint32_t l, uint32_t n, uint32_t k)
{
    return l && (uint64_t)l * k / n > (uint64_t)(l - 1) * k / n ? (uint32_t)((uint64_t)l * k / n)
                                                                : 0;
}

/* Types that are repacked stay: repacking would take a dispatch per pass. */
static bool can_stream(const bz_weight_info *t)
{
    return rows_of(t) > 1 && t->size >= MIN_STREAMED && !gpu_layout_of(t->type).repacked;
}

/* ---- placement ---------------------------------------------------------------------------- */

/* Buffers that are filled one after the other: those of tensors that stay, or those of a slot,
 * which each of its layers fills from the beginning. */
typedef struct run {
    uint32_t first, n; /* buffers */
    uint32_t at;       /* the one being filled, from 1; 0: none */
    uint64_t used;
    uint32_t layer; /* of a slot: being placed */
} run;

static gpu_binding take(gpu_weights *w, run *r, uint64_t largest, uint64_t bytes)
{
    uint64_t at = align_up(r->used), room = bytes > largest ? bytes : largest;
    if (r->at == 0 || at + bytes > room) {
        r->at++;
        at = 0;
    }
    r->used = at + bytes;
    r->n = r->at > r->n ? r->at : r->n;
    const uint32_t buffer = r->first + r->at - 1;
    if (w->sizes && r->used > w->sizes[buffer]) {
        w->sizes[buffer] = r->used;
    }
    return (gpu_binding){buffer, at, bytes};
}

/* Assigns every piece its buffer and offset. Called twice: to count, then to store the results. */
static void place(gpu_weights *w, const gpu_limits *l, uint32_t streamed, run runs[1 + GPU_SLOTS],
                  uint32_t *n_pieces)
{
    const uint64_t largest = l->max_buffer < (1ull << 30) ? l->max_buffer : 1ull << 30;
    uint32_t pieces = 0;
    w->stream_bytes = 0;
    for (uint32_t i = 0; i < w->map.table->n; i++) {
        const bz_weight_info *t = &w->map.table->info[i];
        const uint32_t number = can_stream(t) ? number_of(t->layer, w->n_layers, streamed) : 0;
        uint64_t per_piece = rows_per_piece(l, t), rows = rows_of(t);
        run *r = &runs[number ? 1 + number % GPU_SLOTS : 0];
        if (number &&
            r->layer != number) { /* the next layer of the slot overwrites the previous one */
            r->layer = number;
            r->at = 0;
            r->used = 0;
        }
        if (w->map.first_piece) {
            w->map.first_piece[i] = pieces;
            w->streamed[i] = number;
        }
        w->stream_bytes += number ? t->size : 0;
        const bool skipped =
            i + 1 == w->map.in_file.id || (w->map.table->wanted && !w->map.table->wanted[i]);
        for (uint64_t first = 0; first < rows && !skipped; first += per_piece) {
            uint64_t count = rows - first < per_piece ? rows - first : per_piece;
            const gpu_binding at = take(w, r, largest, piece_bytes(t, count));
            if (w->map.pieces) {
                w->map.pieces[pieces] = (gpu_piece){at, (uint32_t)first, (uint32_t)count};
            }
            pieces++;
        }
    }
    if (w->map.first_piece) {
        w->map.first_piece[w->map.table->n] = pieces;
    }
    *n_pieces = pieces;
}

bz_status gpu_weights_place_streamed(gpu_weights *w, const gpu_limits *limits,
                                     const bz_weights *table, bz_weight in_file, uint32_t streamed,
                                     bz_error *err)
{
    uint32_t n_pieces = 0;
    run runs[1 + GPU_SLOTS] = {{0}};
    *w = (gpu_weights){.map = {.table = table, .in_file = in_file},
                       .n_streamed = streamed,
                       .n_layers = layers_of(table)};
    for (uint32_t i = 0; i < table->n; i++) {
        if (rows_per_piece(limits, &table->info[i]) == 0) {
            return bz_fail(err, BZ_UNSUPPORTED_MODEL,
                           "A row of the tensor %s is larger than this GPU binds at once.",
                           table->info[i].name);
        }
    }
    place(w, limits, streamed, runs, &n_pieces);
    for (int i = 0; i < 1 + GPU_SLOTS; i++) {
        runs[i] = (run){.first = w->n_buffers, .n = runs[i].n};
        w->n_buffers += runs[i].n;
        runs[i].n = 0;
    }
    w->map.pieces = calloc(n_pieces + (size_t)1, sizeof *w->map.pieces);
    w->map.first_piece = calloc(table->n + (size_t)1, sizeof *w->map.first_piece);
    w->streamed = calloc(table->n + (size_t)1, sizeof *w->streamed);
    w->buffers = calloc(w->n_buffers + (size_t)1, sizeof *w->buffers);
    w->sizes = calloc(w->n_buffers + (size_t)1, sizeof *w->sizes);
    if (!w->map.pieces || !w->map.first_piece || !w->streamed || !w->buffers || !w->sizes) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the table of weights.");
    }
    place(w, limits, streamed, runs, &n_pieces);
    for (uint32_t i = 0; i < w->n_buffers; i++) {
        w->bytes += w->sizes[i];
    }
    return BZ_OK;
}

bz_status gpu_weights_place(gpu_weights *w, const gpu_limits *limits, const bz_weights *table,
                            bz_weight in_file, bz_error *err)
{
    return gpu_weights_place_streamed(w, limits, table, in_file, 0, err);
}

bz_status gpu_weights_fit(const gpu_limits *limits, const bz_weights *table, bz_weight in_file,
                          uint64_t bytes, uint32_t *streamed, bz_error *err)
{
    const uint32_t layers = layers_of(table);
    bz_status status = BZ_OK;
    bool fits = false;
    for (*streamed = 0; status == BZ_OK && !fits; *streamed += !fits) {
        gpu_weights w;
        status = gpu_weights_place_streamed(&w, limits, table, in_file, *streamed, err);
        fits = w.bytes <= bytes || *streamed == layers;
        gpu_weights_free(&w, NULL);
    }
    return status;
}

bz_status gpu_weights_make(gpu_weights *w, gpu *g, bz_error *err)
{
    bz_error why = {0};
    const uint32_t made = w->n_made;
    w->buffers[made] = gpu_buffer_new(g, w->sizes[made], GPU_STORAGE, &why);
    if (!w->buffers[made]) {
        uint64_t had = 0;
        for (uint32_t i = 0; i < made; i++) {
            had += w->sizes[i];
        }
        return why.code == BZ_OUT_OF_MEMORY
                   ? bz_fail(
                         err, BZ_OUT_OF_MEMORY,
                         "The weights need %.2f GB on the GPU, which ran out of memory after %.2f "
                         "GB. Use a smaller "
                         "quantization, close other programs that use the GPU, or run on the CPU.",
                         (double)w->bytes / 1e9, (double)had / 1e9)
                   : bz_fail(err, why.code, "%s", why.text);
    }
    w->n_made++;
    for (uint32_t i = 0; w->n_made == w->n_buffers && i < w->map.first_piece[w->map.table->n];
         i++) {
        w->map.pieces[i].at.buffer =
            w->buffers[w->map.pieces[i].at.buffer]; /* from the index of a buffer to its handle */
    }
    return BZ_OK;
}

void gpu_weights_unmake(gpu_weights *w, gpu *g)
{
    for (uint32_t i = 0; i < w->n_made; i++) {
        gpu_buffer_free(g, w->buffers[i]);
    }
    w->n_made = 0;
}

void gpu_weights_free(gpu_weights *w, gpu *g)
{
    gpu_weights_unmake(w, g);
    free(w->map.pieces);
    free(w->map.first_piece);
    free(w->streamed);
    free(w->buffers);
    free(w->sizes);
    *w = (gpu_weights){0};
}

void gpu_write_bytes(gpu *g, gpu_binding to, const uint8_t *bytes, uint64_t n)
{
    uint64_t whole = n / 4 * 4;
    if (whole) {
        gpu_write(g, to.buffer, to.offset, bytes, whole);
    }
    if (whole < n) {
        uint8_t word[4] = {0};
        memcpy(word, bytes + whole, (size_t)(n - whole));
        gpu_write(g, to.buffer, to.offset + whole, word, 4);
    }
}
