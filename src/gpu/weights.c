#include "gpu/weights.h"

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

/* Most rows of a tensor that one binding holds, a word of reading past the end included. */
static uint64_t rows_per_piece(const gpu_limits *l, const bz_weight_info *w)
{
    uint64_t limit = l->max_binding < l->max_buffer ? l->max_binding : l->max_buffer;
    limit = limit < 1ull << 31 ? limit : 1ull << 31; /* kernels count bytes in 32 bits */
    uint64_t rows = (limit - ALIGN) / gpu_row_bytes(w->type, w->ne[0]);
    if (rows >= rows_of(w)) {
        return rows_of(w);
    }
    /* whole experts where they fit; else fours: kernels write four outputs at a time */
    return w->ne[2] > 1 && rows >= w->ne[1] ? rows / w->ne[1] * w->ne[1] : rows / 4 * 4;
}

/* Reading a block may touch the word behind it, so a piece is bound with one word more. */
static uint64_t piece_bytes(const bz_weight_info *w, uint64_t rows)
{
    return (rows * gpu_row_bytes(w->type, w->ne[0]) + 3) / 4 * 4 + 4;
}

/* Gives every piece a place; buffers are filled one after the other. Called twice: to count, then
 * with memory for the results. */
static void place(gpu_weights *w, const gpu_limits *l, uint32_t *n_pieces)
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
        for (uint64_t first = 0; first < rows && i + 1 != w->left_out.id; first += per_piece) {
            uint64_t count = rows - first < per_piece ? rows - first : per_piece;
            uint64_t bytes = piece_bytes(t, count), at = align_up(used);
            uint64_t room = bytes > largest ? bytes : largest;
            if (buffers == 0 || at + bytes > room) {
                buffers++;
                at = 0;
            }
            used = at + bytes;
            if (w->pieces) {
                w->sizes[buffers - 1] = used;
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

bz_status gpu_weights_place(gpu_weights *w, const gpu_limits *limits, const bz_weights *table, bz_weight left_out,
                            bz_error *err)
{
    uint32_t n_pieces = 0;
    *w = (gpu_weights){.table = table, .left_out = left_out};
    for (uint32_t i = 0; i < table->n; i++) {
        if (rows_per_piece(limits, &table->info[i]) == 0) {
            return bz_fail(err, BZ_UNSUPPORTED_MODEL, "A row of the tensor %s is larger than this GPU binds at once.",
                           table->info[i].name);
        }
    }
    place(w, limits, &n_pieces);
    w->pieces = calloc(n_pieces, sizeof *w->pieces);
    w->first_piece = calloc(table->n + (size_t)1, sizeof *w->first_piece);
    w->buffers = calloc(w->n_buffers, sizeof *w->buffers);
    w->sizes = calloc(w->n_buffers, sizeof *w->sizes);
    if (!w->pieces || !w->first_piece || !w->buffers || !w->sizes) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the table of weights.");
    }
    place(w, limits, &n_pieces);
    for (uint32_t i = 0; i < w->n_buffers; i++) {
        w->bytes += w->sizes[i];
    }
    return BZ_OK;
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
                   ? bz_fail(err, BZ_OUT_OF_MEMORY,
                             "The weights need %.2f GB on the GPU, which ran out of memory after %.2f GB. Use a smaller "
                             "quantisation, close other programs that use the GPU, or run on the CPU.",
                             (double)w->bytes / 1e9, (double)had / 1e9)
                   : bz_fail(err, why.code, "%s", why.text);
    }
    w->n_made++;
    for (uint32_t i = 0; w->n_made == w->n_buffers && i < w->first_piece[w->table->n]; i++) {
        w->pieces[i].at.buffer = w->buffers[w->pieces[i].at.buffer]; /* the number of a buffer becomes its handle */
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
    free(w->pieces);
    free(w->first_piece);
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
