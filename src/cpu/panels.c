/* Products and attention of towers, with hundreds of rows per weight. Weights are dequantized into
 * panels [k][16], 16 output columns side by side, so that the inner loop is only loads and
 * multiply-adds. */
#include <string.h>

#include "cpu/internal.h"

enum {
    TILE_WEIGHTS = 131072, /* weights per task: 512 KB, which fits the second-level cache */
    MAX_TILE = 64,
    QUERY_ROWS = 24 /* query rows per task of attend_all */
};

static size_t padded(size_t n)
{
    return (n + BZ_PANEL - 1) / BZ_PANEL * BZ_PANEL;
}

/* ---- products ----------------------------------------------------------------- */

uint32_t cpu_panel_tile(uint64_t k)
{
    const uint64_t tile = TILE_WEIGHTS / k / BZ_PANEL * BZ_PANEL;
    return (uint32_t)(tile < BZ_PANEL ? BZ_PANEL : tile > MAX_TILE ? MAX_TILE : tile);
}

size_t cpu_panel_scratch(uint64_t k)
{
    return (size_t)k * (cpu_panel_tile(k) + 1u);
}

/* Dequantizes `count` rows of a matrix into panels [k][16]; columns after the last are zero. row:
 * [k], scratch. */
static void pack_rows(const cpu *c, bz_type type, const uint8_t *blocks, size_t k, uint32_t count,
                      float *row, float *panels)
{
    const size_t row_bytes = bz_row_bytes(type, k);
    for (size_t r = 0; r < padded(count); r++) {
        float *to = panels + r / BZ_PANEL * k * BZ_PANEL + r % BZ_PANEL;
        if (r < count) {
            c->k->dequantize(type, blocks + r * row_bytes, row, k);
        } else {
            memset(row, 0, k * sizeof *row);
        }
        for (size_t i = 0; i < k; i++) {
            to[i * BZ_PANEL] = row[i];
        }
    }
}

void cpu_linear_panels(cpu *c, const cpu_job *job, uint32_t task, unsigned worker)
{
    enum { ROWS = 6 };
    const bz_step *s = job->step;
    const bz_weight_info *w = bz_weight_of(c->weights, s->w[0]);
    const size_t k = (size_t)w->ne[0], row_bytes = bz_row_bytes(w->type, k);
    const uint32_t first = task * job->tile, rows = cpu_rows_of(c, s->out[0]);
    const uint32_t count = w->ne[1] - first < job->tile ? (uint32_t)(w->ne[1] - first) : job->tile;
    const bz_tensor_info *in = cpu_info(c, s->in[0]), *out = cpu_info(c, s->out[0]);
    float *panels = c->scratch[worker].values, *row = panels + k * job->tile;
    pack_rows(c, w->type, cpu_weight(c, s->w[0]) + first * row_bytes, k, count, row, panels);
    for (uint32_t n0 = 0; n0 < rows; n0 += ROWS) {
        const uint32_t n = rows - n0 < ROWS ? rows - n0 : ROWS;
        for (uint32_t p = 0; p < count; p += BZ_PANEL) {
            const uint32_t cols = count - p < BZ_PANEL ? count - p : BZ_PANEL;
            c->k->panel(cpu_row(c, s->in[0], n0), in->stride, n, panels + (size_t)p * k, k,
                        cpu_row(c, s->out[0], n0) + first + p, out->stride, cols);
        }
    }
}

/* ---- attend_all: every row sees all rows -------------------------------------------- */

/* Per head: keys as panels [keys/16][width][16], then values as panels [width/16][keys][16]. */
static size_t keys_floats(uint32_t rows, uint32_t width)
{
    return padded(rows) * width;
}

static size_t head_floats(uint32_t rows, uint32_t width)
{
    return keys_floats(rows, width) + padded(width) * rows;
}

size_t cpu_attend_all_bytes(uint32_t rows, const bz_step *s)
{
    return head_floats(rows, s->width) * s->heads * sizeof(float);
}

size_t cpu_attend_all_scratch(uint32_t rows)
{
    return padded(rows) * QUERY_ROWS;
}

uint32_t cpu_tasks_heads(const cpu *c, const cpu_job *job)
{
    (void)c;
    return job->step->heads;
}

void cpu_pack_head(cpu *c, const cpu_job *job, uint32_t head, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    const uint32_t n = c->rows->n, d = s->width;
    float *keys = (float *)(void *)c->packed + head * head_floats(n, d),
          *values = keys + keys_floats(n, d);
    for (size_t r = 0; r < padded(n); r++) {
        const float *k = r < n ? cpu_row(c, s->in[1], (uint32_t)r) + (size_t)head * d : NULL;
        float *to = keys + r / BZ_PANEL * d * BZ_PANEL + r % BZ_PANEL;
        for (size_t i = 0; i < d; i++) {
            to[i * BZ_PANEL] = k ? k[i] : 0.0f;
        }
    }
    for (size_t first = 0; first < d; first += BZ_PANEL) {
        const size_t count = d - first < BZ_PANEL ? d - first : BZ_PANEL;
        float *to = values + first * n;
        for (uint32_t r = 0; r < n; r++, to += BZ_PANEL) {
            memset(to, 0, BZ_PANEL * sizeof *to);
            memcpy(to, cpu_row(c, s->in[2], r) + (size_t)head * d + first, count * sizeof *to);
        }
    }
}

uint32_t cpu_tasks_attend_all(const cpu *c, const cpu_job *job)
{
    return job->step->heads * ((c->rows->n + QUERY_ROWS - 1) / QUERY_ROWS);
}

void cpu_attend_all(cpu *c, const cpu_job *job, uint32_t task, unsigned worker)
{
    const bz_step *s = job->step;
    const uint32_t n = c->rows->n, d = s->width, blocks = (n + QUERY_ROWS - 1) / QUERY_ROWS;
    const uint32_t head = task / blocks, first = task % blocks * QUERY_ROWS;
    const uint32_t rows = n - first < QUERY_ROWS ? n - first : QUERY_ROWS;
    const float *keys = (const float *)(const void *)c->packed + head * head_floats(n, d),
                *values = keys + keys_floats(n, d);
    const bz_tensor_info *q = cpu_info(c, s->in[0]), *out = cpu_info(c, s->out[0]);
    const size_t stride = padded(n);
    float *scores = c->scratch[worker].values, inverse_sum[QUERY_ROWS];
    for (uint32_t j = 0; j < n; j += BZ_PANEL) {
        c->k->panel(cpu_row(c, s->in[0], first) + (size_t)head * d, q->stride, rows,
                    keys + (size_t)j * d, d, scores + j, stride, BZ_PANEL);
    }
    for (uint32_t r = 0; r < rows; r++) {
        inverse_sum[r] = 1.0f / c->k->exp_sum(scores + r * stride, n);
    }
    for (uint32_t i = 0; i < d; i += BZ_PANEL) {
        c->k->panel(scores, stride, rows, values + (size_t)i * n, n,
                    cpu_row(c, s->out[0], first) + (size_t)head * d + i, out->stride,
                    d - i < BZ_PANEL ? d - i : BZ_PANEL);
    }
    for (uint32_t r = 0; r < rows; r++) {
        float *y = cpu_row(c, s->out[0], first + r) + (size_t)head * d;
        for (uint32_t i = 0; i < d; i++) {
            y[i] *= inverse_sum[r];
        }
    }
}
