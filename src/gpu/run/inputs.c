/* What the host writes before a pass: the parameter block, angles of rope, rows of embeddings, the
 * input of towers. Called by backend.c and choose.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "gpu/run/internal.h"

/* ---- angles ------------------------------------------------------------------------------ */

/* Cosines and sines are computed on the host: those of WGSL are only accurate to about 2^-11. */
static void fill_angles(float *to, const gpu_rope_table *table, const bz_rows *rows,
                        uint32_t stride)
{
    uint32_t pairs = table->step->width / 2;
    for (uint32_t r = 0; r < rows->n; r++) {
        for (uint32_t axis = 0; axis < table->step->axes; axis++) {
            float *row = to + (size_t)r * stride + (size_t)axis * table->step->width;
            const int32_t *positions = axis ? rows->pos_y : rows->angle ? rows->angle : rows->pos;
            const uint32_t back =
                axis ? 1 : rows->patch_cols; /* image: a row likely at that position */
            const float pos = (float)positions[r];
            if (back && r >= back && positions[r - back] == positions[r]) {
                memcpy(row, row - (size_t)back * stride, 2 * pairs * sizeof *row);
                continue;
            }
            for (uint32_t i = 0; i < pairs; i++) {
                row[i] = cosf(pos * table->frequency[i]);
                row[pairs + i] = sinf(pos * table->frequency[i]);
            }
        }
    }
}

/* Tables that are adjacent, as they are for one row, are one write. */
static void write_angles(gpu_backend *b, const bz_schedule *s, const bz_rows *rows)
{
    size_t used = 0;
    uint64_t at = 0;
    for (uint32_t t = 0; t < s->lowered.n_ropes; t++) {
        const bz_tensor angles = s->lowered.ropes[t].step->out[0];
        uint32_t stride = bz_plan_tensor(s->plan, angles)->stride;
        uint64_t offset = gpu_lowered_offset(&s->lowered, angles);
        if (used && offset != at + used * sizeof(float)) {
            gpu_write(b->g, b->arena, at, b->angles, used * sizeof(float));
            used = 0;
        }
        at = used ? at : offset;
        fill_angles(b->angles + used, &s->lowered.ropes[t], rows, stride);
        used += (size_t)rows->n * stride;
    }
    if (used) {
        gpu_write(b->g, b->arena, at, b->angles, used * sizeof(float));
    }
}

/* ---- rows of embeddings, canvas, towers ---------------------------------------------------- */

/* The image or text that each row belongs to. */
static void write_blocks(gpu_backend *b, const bz_rows *rows)
{
    uint32_t block[2 * GPU_MAX_ROWS];
    for (uint32_t i = 0; i < rows->n; i++) {
        block[2 * i] = (uint32_t)rows->image_first[i];
        block[2 * i + 1] = (uint32_t)rows->image_last[i];
    }
    gpu_write(b->g, b->rows, ROWS_BLOCKS * sizeof *block, block, 2 * rows->n * sizeof *block);
}

/* Rows that are embeddings are written where embed would write them. That is the first step of the
 * pass, so nothing else lies there yet. Adjacent rows are one write. */
static void write_soft(gpu_backend *b, const bz_schedule *s, const bz_rows *rows)
{
    for (size_t k = 0; k < s->plan->n_steps; k++) {
        const bz_step *step = &s->plan->steps[k];
        const bz_tensor_info *t = bz_plan_tensor(s->plan, step->out[0]);
        for (uint32_t i = 0; step->op == BZ_OP_EMBED && step->accepts_soft && i < rows->n;) {
            uint32_t n = rows->soft[i] ? 1 : 0;
            while (n && t->stride == t->cols && i + n < rows->n &&
                   rows->soft[i + n] == rows->soft[i] + (size_t)n * t->cols) {
                n++;
            }
            if (n) {
                gpu_write(b->g, b->arena,
                          gpu_lowered_offset(&s->lowered, step->out[0]) +
                              (uint64_t)i * t->stride * 4,
                          rows->soft[i], (uint64_t)n * t->cols * 4);
            }
            i += n ? n : 1;
        }
    }
}

/* Canvas: parameters, and the kept tensor if the host provides it. */
static void write_canvas(gpu_backend *b, const bz_schedule *s, const bz_rows *rows)
{
    uint32_t block[2 + GPU_MAX_ROWS] = {rows->reset_kept};
    memcpy(&block[1], &rows->temperature, sizeof rows->temperature);
    memcpy(&block[2], rows->uniform, rows->n * sizeof *rows->uniform);
    gpu_write(b->g, b->rows, ROWS_FRESH * sizeof *block, block, (2 + rows->n) * sizeof *block);
    for (uint32_t i = 1; rows->kept_input && i < s->plan->n_tensors; i++) {
        if (s->plan->tensors[i].kept) {
            gpu_write(b->g, b->arena, s->lowered.offset[i], rows->kept_input,
                      (uint64_t)rows->n * s->plan->tensors[i].cols * sizeof(float));
            break;
        }
    }
}

static void write_sinusoids(gpu_backend *b, const bz_schedule *s, const bz_step *step,
                            const bz_rows *rows)
{
    const uint32_t half = step->width / 2;
    float *row = malloc(step->width * sizeof *row);
    const double slow = half > 1 ? log(step->base) / (half - 1) : 0;
    for (uint32_t r = 0; row && r < rows->n_out; r++) {
        for (uint32_t i = 0; i < half; i++) {
            const double angle = r * exp(-slow * i);
            row[i] = (float)sin(angle);
            row[half + i] = (float)cos(angle);
        }
        gpu_write(b->g, b->arena,
                  gpu_lowered_offset(&s->lowered, step->out[0]) + (uint64_t)r * step->width * 4,
                  row, (uint64_t)step->width * 4);
    }
    free(row);
}

static void write_tower(gpu_backend *b, const bz_schedule *s, const bz_rows *rows)
{
    const uint32_t block[5] = {rows->n, rows->n_out, rows->patch_cols, 0, rows->frames};
    gpu_write(b->g, b->rows, 0, block, sizeof block);
    for (size_t i = 0; i < s->plan->n_steps; i++) {
        const bz_step *step = &s->plan->steps[i];
        if (step->op == BZ_OP_INPUT) {
            const uint64_t bytes =
                (uint64_t)rows->n * bz_plan_tensor(s->plan, step->out[0])->cols * 4;
            gpu_write(b->g, b->arena, gpu_lowered_offset(&s->lowered, step->out[0]), rows->input,
                      bytes);
        } else if (step->op == BZ_OP_SINUSOIDS) {
            write_sinusoids(b, s, step, rows);
        }
    }
}

/* Which cache rows belong to each row. A pool of one sequence has zeros. */
static void write_sequences(gpu_backend *b, const bz_rows *rows)
{
    uint32_t block[2 * GPU_MAX_ROWS];
    for (uint32_t i = 0; i < rows->n; i++) {
        const bz_kv *kv = rows->kv[rows->seq[i]];
        block[2 * i] = kv->index;
        block[2 * i + 1] = kv->first;
    }
    gpu_write(b->g, b->rows, ROWS_SEQUENCES * sizeof *block, block, 2 * rows->n * sizeof *block);
}

/* ---- interface ---------------------------------------------------------------------------- */

void gpu_write_pass(gpu_backend *b, const bz_schedule *s, const bz_rows *rows, bz_feed feed,
                    float u)
{
    uint32_t block[ROWS_CHOSEN] = {rows->n, rows->n_out, 0, (uint32_t)feed};
    if (s->plan->tower) {
        write_tower(b, s, rows);
        write_angles(b, s, rows);
        return;
    }
    memcpy(&block[ROWS_DRAW], &u, sizeof u);
    for (uint32_t i = 0; i < rows->n; i++) {
        uint32_t *row = block + ROWS_LIST + 3 * i;
        const bool of_image = rows->image_last && (rows->image_last[i] != rows->pos[i] ||
                                                   rows->image_first[i] != rows->pos[i]);
        row[0] =
            feed == BZ_FEED_IDS || (feed == BZ_FEED_DRAFTS && i == 0) ? (uint32_t)rows->id[i] : 0;
        row[0] |= (rows->soft && rows->soft[i] ? ROWS_IS_SOFT : 0) | (of_image ? ROWS_OF_IMAGE : 0);
        row[1] = (uint32_t)rows->pos[i];
        row[2] = i < rows->n_out ? rows->out[i] : 0;
    }
    gpu_write(b->g, b->rows, 0, block, (ROWS_LIST + 3 * rows->n) * sizeof *block);
    if (rows->kv && gpu_pool_of(rows)->capacity > 1) {
        write_sequences(b, rows);
    }
    if (rows->uniform) {
        write_canvas(b, s, rows);
    }
    write_angles(b, s, rows);
    if (rows->image_last) {
        write_blocks(b, rows);
    }
    if (rows->soft) {
        write_soft(b, s, rows);
    }
}

bool gpu_reserve_host(gpu_backend *b, const bz_schedule *s, bz_error *err)
{
    size_t angles = 0;
    for (uint32_t t = 0; t < s->lowered.n_ropes; t++) {
        angles += (size_t)s->plan->rows * s->lowered.ropes[t].step->width *
                  s->lowered.ropes[t].step->axes * sizeof(float);
    }
    if (angles > b->angles_bytes) {
        free(b->angles);
        b->angles = malloc(angles);
        b->angles_bytes = b->angles ? angles : 0;
    }
    const bz_tensor_info *out = bz_plan_tensor(s->plan, s->plan->output);
    uint64_t bytes = s->plan->out_rows ? (uint64_t)bz_plan_rows_of(s->plan, s->plan->output) *
                                             out->cols * sizeof(float)
                                       : 0;
    if (bytes > b->out_bytes) {
        free(b->out);
        b->out = bz_alloc(bytes);
        b->out_bytes = b->out ? bytes : 0;
    }
    if (b->angles_bytes < angles || b->out_bytes < bytes) {
        bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a pass of %u rows.", s->plan->rows);
        return false;
    }
    return true;
}
