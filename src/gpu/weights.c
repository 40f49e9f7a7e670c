#include "gpu/weights.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 256, SLICE = 16 << 20 };

static uint64_t align_up(uint64_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

enum { Q6_K_BYTES = 210, Q6_K_PADDED = 224 };

size_t gpu_row_bytes(bz_type type, size_t n)
{
    return type == BZ_Q6_K ? n / 256 * Q6_K_PADDED : bz_row_bytes(type, n);
}

static uint64_t rows_of(const bz_weight_info *w)
{
    return w->ne[1] * w->ne[2];
}

/* Most rows of a tensor that one binding holds, a word of reading past the end included. */
static uint64_t rows_per_piece(const gpu_limits *l, const bz_weight_info *w)
{
    uint64_t limit = l->max_binding < l->max_buffer ? l->max_binding : l->max_buffer;
    uint64_t rows = (limit - ALIGN) / gpu_row_bytes(w->type, w->ne[0]);
    return rows < rows_of(w) ? rows / 4 * 4 : rows_of(w); /* fours: kernels write four outputs at a time */
}

/* Reading a block may touch the word behind it, so a piece is bound with one word more. */
static uint64_t piece_bytes(const bz_weight_info *w, uint64_t rows)
{
    return (rows * gpu_row_bytes(w->type, w->ne[0]) + 3) / 4 * 4 + 4;
}

static void write_bytes(gpu *g, gpu_binding to, uint64_t at, const uint8_t *bytes, uint64_t n)
{
    uint64_t whole = n / 4 * 4;
    if (whole) {
        gpu_write(g, to.buffer, to.offset + at, bytes, whole);
    }
    if (whole < n) { /* the last few bytes, padded to a word */
        uint8_t word[4] = {0};
        memcpy(word, bytes + whole, n - whole);
        gpu_write(g, to.buffer, to.offset + at + whole, word, 4);
    }
}

/* In slices, so that little is under way at once. `slice` holds SLICE bytes for padded blocks. */
static void upload(gpu *g, gpu_binding to, bz_type type, const uint8_t *bytes, uint64_t n, uint8_t *slice)
{
    if (type != BZ_Q6_K) {
        for (uint64_t done = 0; done < n; done += SLICE) {
            write_bytes(g, to, done, bytes + done, n - done < SLICE ? n - done : SLICE);
        }
        return;
    }
    uint64_t blocks = n / Q6_K_BYTES, per_slice = SLICE / Q6_K_PADDED;
    for (uint64_t first = 0; first < blocks; first += per_slice) {
        uint64_t count = blocks - first < per_slice ? blocks - first : per_slice;
        for (uint64_t i = 0; i < count; i++) {
            memcpy(slice + i * Q6_K_PADDED, bytes + (first + i) * Q6_K_BYTES, Q6_K_BYTES);
        }
        write_bytes(g, to, first * Q6_K_PADDED, slice, count * Q6_K_PADDED);
    }
}

/* Gives every piece a place; buffers are filled one after the other. Called twice: to count, then
 * with memory for the results. */
static void place(gpu_weights *w, const gpu_limits *l, uint64_t *buffer_bytes, uint32_t *n_pieces)
{
    uint64_t largest = l->max_buffer < (1ull << 30) ? l->max_buffer : 1ull << 30;
    uint32_t pieces = 0, buffers = 0;
    uint64_t used = 0;
    for (uint32_t i = 0; i < w->table->n; i++) {
        const bz_weight_info *t = &w->table->info[i];
        uint64_t per_piece = rows_per_piece(l, t), rows = rows_of(t);
        if (w->first_piece) {
            w->first_piece[i] = pieces;
        }
        for (uint64_t first = 0; first < rows; first += per_piece) {
            uint64_t count = rows - first < per_piece ? rows - first : per_piece;
            uint64_t bytes = piece_bytes(t, count), at = align_up(used);
            uint64_t room = bytes > largest ? bytes : largest;
            if (buffers == 0 || at + bytes > room) {
                buffers++;
                at = 0;
            }
            used = at + bytes;
            if (w->pieces) {
                buffer_bytes[buffers - 1] = used;
                w->pieces[pieces] = (gpu_piece){{buffers - 1, at, bytes}, (uint32_t)first, (uint32_t)count};
            }
            pieces++;
        }
    }
    if (w->first_piece) {
        w->first_piece[w->table->n] = pieces;
    }
    w->n_buffers = buffers;
    *n_pieces = pieces;
}

bz_status gpu_weights_new(gpu_weights *w, gpu *g, const bz_weights *table, const uint8_t *const *bytes, bz_error *err)
{
    const gpu_limits *l = gpu_limits_of(g);
    uint32_t n_pieces = 0;
    *w = (gpu_weights){.table = table};
    place(w, l, NULL, &n_pieces);
    w->pieces = calloc(n_pieces, sizeof *w->pieces);
    w->first_piece = calloc(table->n + 1, sizeof *w->first_piece);
    w->buffers = calloc(w->n_buffers, sizeof *w->buffers);
    uint64_t *sizes = calloc(w->n_buffers, sizeof *sizes);
    if (!w->pieces || !w->first_piece || !w->buffers || !sizes) {
        free(sizes);
        gpu_weights_free(w, g);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the table of weights.");
    }
    place(w, l, sizes, &n_pieces);
    bz_status status = BZ_OK;
    for (uint32_t i = 0; status == BZ_OK && i < w->n_buffers; i++) {
        w->buffers[i] = gpu_buffer_new(g, sizes[i], GPU_STORAGE, err);
        w->bytes += sizes[i];
        status = w->buffers[i] ? BZ_OK : err ? err->code : BZ_OUT_OF_MEMORY;
    }
    free(sizes);
    uint8_t *slice = calloc(1, SLICE);
    status = slice ? status : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to upload weights.");
    for (uint32_t i = 0; status == BZ_OK && i < table->n; i++) {
        const bz_weight_info *t = &table->info[i];
        size_t row = bz_row_bytes(t->type, t->ne[0]);
        for (uint32_t p = w->first_piece[i]; p < w->first_piece[i + 1]; p++) {
            gpu_piece *piece = &w->pieces[p];
            piece->at.buffer = w->buffers[piece->at.buffer];
            upload(g, piece->at, t->type, bytes[i] + piece->first_row * row, piece->rows * row, slice);
        }
    }
    free(slice);
    if (status != BZ_OK) {
        gpu_weights_free(w, g);
    }
    return status;
}

void gpu_weights_free(gpu_weights *w, gpu *g)
{
    for (uint32_t i = 0; w->buffers && i < w->n_buffers; i++) {
        if (w->buffers[i]) {
            gpu_buffer_free(g, w->buffers[i]);
        }
    }
    free(w->pieces);
    free(w->first_piece);
    free(w->buffers);
    *w = (gpu_weights){0};
}
