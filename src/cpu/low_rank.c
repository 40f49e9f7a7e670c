/* add_low_rank: the second half of what an adapter adds to a product.
 * out[n][o] = x[n][o] + scale * sum_j w[j][o] * y[n][j]
 *
 * w lies in panels of 16 outputs, so that a panel is multiplied as in towers. A row's sums have one
 * order, whatever rows are with it: the panel kernels compute each row alone. */
#include <string.h>

#include "cpu/internal.h"

_Static_assert((int)BZ_LOW_RANK_PANEL == (int)BZ_PANEL, "panels are multiplied as they are stored");

enum { TASK_PRODUCTS = 65536, MAX_TILE = 64 };

uint32_t cpu_low_rank_tile(uint32_t rank, uint32_t rows)
{
    const uint64_t tile = TASK_PRODUCTS / ((uint64_t)rank * rows * BZ_PANEL);
    return (uint32_t)(tile < 1 ? 1 : tile > MAX_TILE ? MAX_TILE : tile);
}

/* Of one matrix: an expert's, or the only one. */
static uint32_t panels_of(const cpu *c, const bz_step *s)
{
    const uint32_t parts = s->in[2].id ? s->experts_used : 1;
    return (cpu_info(c, s->out[0])->cols / parts + BZ_PANEL - 1) / BZ_PANEL;
}

uint32_t cpu_tasks_low_rank(const cpu *c, const cpu_job *job)
{
    const bz_step *s = job->step;
    if (cpu_rows_of(c, s->out[0]) == 0) {
        return 0;
    }
    return (panels_of(c, s) + job->tile - 1) / job->tile * (s->in[2].id ? c->groups.n_active : 1);
}

static bool is_soft(const cpu *c, const bz_step *s, uint32_t row)
{
    return s->accepts_soft && c->rows->soft && c->rows->soft[row];
}

static void add(const float *x, const float *product, float scale, float *out, uint32_t cols)
{
    for (uint32_t i = 0; i < cols; i++) {
        out[i] = x[i] + scale * product[i];
    }
}

/* Panel `w` and output columns column .. column + cols of all rows. */
static void all_rows(cpu *c, const bz_step *s, const float *w, uint32_t column, uint32_t cols,
                     float *products)
{
    const bz_tensor_info *y = cpu_info(c, s->in[1]);
    const uint32_t rows = cpu_rows_of(c, s->out[0]);
    for (uint32_t n0 = 0; n0 < rows; n0 += CPU_LOW_RANK_ROWS) {
        const uint32_t n = rows - n0 < CPU_LOW_RANK_ROWS ? rows - n0 : CPU_LOW_RANK_ROWS;
        c->k->panel(cpu_row(c, s->in[1], n0), y->stride, n, w, y->cols, products, BZ_PANEL, cols);
        for (uint32_t r = 0; r < n; r++) {
            const float *x = cpu_row(c, s->in[0], n0 + r) + column;
            float *out = cpu_row(c, s->out[0], n0 + r) + column;
            if (is_soft(c, s, n0 + r)) {
                memcpy(out, x, cols * sizeof *out);
            } else {
                add(x, products + r * BZ_PANEL, s->scale, out, cols);
            }
        }
    }
}

/* The same for the slots that selected an expert, each with a part of a row. */
static void all_slots(cpu *c, const bz_step *s, const float *w, uint32_t expert, uint32_t column,
                      uint32_t cols, float *products)
{
    const uint32_t used = s->experts_used, part = cpu_info(c, s->out[0])->cols / used,
                   rank = cpu_info(c, s->in[1])->cols / used;
    for (uint32_t i = c->groups.first[expert]; i < c->groups.first[expert + 1]; i++) {
        const uint32_t row = c->groups.pairs[i] / used, slot = c->groups.pairs[i] % used;
        const size_t at = (size_t)slot * part + column;
        c->k->panel(cpu_row(c, s->in[1], row) + (size_t)slot * rank, rank, 1, w, rank, products,
                    BZ_PANEL, cols);
        add(cpu_row(c, s->in[0], row) + at, products, s->scale, cpu_row(c, s->out[0], row) + at,
            cols);
    }
}

void cpu_add_low_rank(cpu *c, const cpu_job *job, uint32_t task, unsigned worker)
{
    const bz_step *s = job->step;
    const bz_weight_info *info = bz_weight_of(c->weights, s->w[0]);
    const uint32_t panels = panels_of(c, s), tiles = (panels + job->tile - 1) / job->tile;
    const uint32_t expert = s->in[2].id ? c->groups.active[task / tiles] : 0,
                   part = cpu_info(c, s->out[0])->cols / (s->in[2].id ? s->experts_used : 1);
    const size_t panel = (size_t)info->ne[1] * BZ_PANEL; /* values */
    const float *w = (const float *)(const void *)cpu_weight(c, s->w[0]) + expert * panels * panel;
    const uint32_t first = task % tiles * job->tile,
                   end = first + job->tile < panels ? first + job->tile : panels;
    float *products = c->scratch[worker].values;
    for (uint32_t i = first; i < end; i++) {
        const uint32_t column = i * BZ_PANEL,
                       cols = part - column < BZ_PANEL ? part - column : BZ_PANEL;
        if (s->in[2].id) {
            all_slots(c, s, w + i * panel, expert, column, cols, products);
        } else {
            all_rows(c, s, w + i * panel, column, cols, products);
        }
    }
}
