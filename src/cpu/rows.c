/* Steps that work on one row at a time; formulas are in plan/plan.h. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "cpu/internal.h"

uint32_t cpu_tasks_rows(const cpu *c, const cpu_job *job)
{
    bz_tensor t = job->step->out[0].id ? job->step->out[0] : job->step->in[0];
    return cpu_rows_of(c, t);
}

/* Wide rows are split into tiles of columns, so that one row still uses every thread. */
static uint32_t column_tiles(const cpu *c, const cpu_job *job)
{
    uint32_t cols = cpu_info(c, job->step->out[0])->cols;
    return (cols + job->tile - 1) / job->tile;
}

uint32_t cpu_tasks_column_tiles(const cpu *c, const cpu_job *job)
{
    return cpu_rows_of(c, job->step->out[0]) * column_tiles(c, job);
}

typedef struct tile {
    uint32_t row, first, end; /* columns [first, end) */
} tile;

static tile tile_of(const cpu *c, const cpu_job *job, uint32_t task)
{
    uint32_t tiles = column_tiles(c, job), cols = cpu_info(c, job->step->out[0])->cols;
    tile t = {.row = task / tiles, .first = task % tiles * job->tile};
    t.end = t.first + job->tile < cols ? t.first + job->tile : cols;
    return t;
}

void cpu_embed(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    const bz_weight_info *w = bz_weight_of(c->weights, s->w[0]);
    size_t cols = (size_t)w->ne[0];
    const size_t id =
        s->in[0].id ? (size_t)cpu_row(c, s->in[0], row)[s->width] : (size_t)c->rows->id[row];
    const uint8_t *source = cpu_weight(c, s->w[0]) + id * bz_row_bytes(w->type, cols);
    float *out = cpu_row(c, s->out[0], row);
    if (s->accepts_soft && c->rows->soft && c->rows->soft[row]) {
        memcpy(out, c->rows->soft[row], cols * sizeof *out);
        return;
    }
    c->k->dequantize(w->type, source, out, cols);
    for (size_t i = 0; i < cols; i++) {
        out[i] *= s->scale;
    }
}

void cpu_rms_norm(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    const float *x = cpu_row(c, s->in[0], row);
    float *out = cpu_row(c, s->out[0], row);
    const uint8_t *w = s->w[0].id ? cpu_weight(c, s->w[0]) : NULL;
    uint32_t cols = cpu_info(c, s->in[0])->cols;
    for (uint32_t g = 0; g < cols; g += s->width) {
        float mean = c->k->sum_squares(x + g, s->width) / (float)s->width;
        float r = 1.0f / sqrtf(mean + s->eps);
        if (w) {
            for (uint32_t i = 0; i < s->width; i++) {
                out[g + i] = x[g + i] * r * cpu_weight_f32(w, i);
            }
        } else {
            for (uint32_t i = 0; i < s->width; i++) {
                out[g + i] = x[g + i] * r;
            }
        }
    }
}

void cpu_add(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    const float *a = cpu_row(c, s->in[0], row), *b = cpu_row(c, s->in[1], row);
    float *out = cpu_row(c, s->out[0], row);
    uint32_t cols = cpu_info(c, s->out[0])->cols;
    for (uint32_t i = 0; i < cols; i++) {
        out[i] = (a[i] + b[i]) * s->scale;
    }
}

void cpu_scale(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    const float *x = cpu_row(c, s->in[0], row);
    float *out = cpu_row(c, s->out[0], row), factor = cpu_weight_f32(cpu_weight(c, s->w[0]), 0);
    uint32_t cols = cpu_info(c, s->out[0])->cols;
    for (uint32_t i = 0; i < cols; i++) {
        out[i] = x[i] * factor;
    }
}

void cpu_mul_vector(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    const float *x = cpu_row(c, s->in[0], row);
    const uint8_t *w = s->w[0].id ? cpu_weight(c, s->w[0]) : NULL;
    float *out = cpu_row(c, s->out[0], row);
    uint32_t cols = cpu_info(c, s->out[0])->cols, width = w ? s->width : cols;
    for (uint32_t g = 0; g < cols; g += width) {
        for (uint32_t i = 0; i < width; i++) {
            out[g + i] = x[g + i] * s->scale * (w ? cpu_weight_f32(w, i) : 1.0f);
        }
    }
}

void cpu_geglu(cpu *c, const cpu_job *job, uint32_t task, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    tile t = tile_of(c, job, task);
    const float *a = cpu_row(c, s->in[0], t.row);
    float *out = cpu_row(c, s->out[0], t.row);
    if (s->in[1].id) {
        const float *b = cpu_row(c, s->in[1], t.row);
        c->k->gelu_mul(a + t.first, b + t.first, out + t.first, t.end - t.first);
        return;
    }
    for (uint32_t i = t.first; i < t.end;) { /* a group is [width gates][width ups] */
        const uint32_t at = i % s->width, left = s->width - at;
        const uint32_t count = left < t.end - i ? left : t.end - i;
        const float *gates = a + (size_t)(i / s->width) * 2 * s->width + at;
        c->k->gelu_mul(gates, gates + s->width, out + i, count);
        i += count;
    }
}

void cpu_softcap(cpu *c, const cpu_job *job, uint32_t task, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    tile t = tile_of(c, job, task);
    c->k->softcap(cpu_row(c, s->in[0], t.row) + t.first, s->scale,
                  cpu_row(c, s->out[0], t.row) + t.first, t.end - t.first);
}

void cpu_take_rows(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    memcpy(cpu_row(c, s->out[0], row), cpu_row(c, s->in[0], c->rows->out[row] + s->first_row),
           cpu_info(c, s->out[0])->cols * sizeof(float));
}

void cpu_concat(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    const size_t first = cpu_info(c, s->in[0])->cols, second = cpu_info(c, s->in[1])->cols;
    float *out = cpu_row(c, s->out[0], row);
    memcpy(out, cpu_row(c, s->in[0], row), first * sizeof *out);
    memcpy(out + first, cpu_row(c, s->in[1], row), second * sizeof *out);
}

void cpu_best(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    const float *z = cpu_row(c, s->in[0], row);
    const uint32_t cols = cpu_info(c, s->in[0])->cols;
    float top = -FLT_MAX, *out = cpu_row(c, s->out[0], row) + s->width;
    if (s->in[1].id) {
        *out = cpu_best_listed(z, cpu_row(c, s->in[1], row), cols);
        return;
    }
    uint32_t best = 0;
    for (uint32_t i = 0; i < cols; i++) { /* NaN is never greater */
        best = z[i] > top ? i : best;
        top = z[i] > top ? z[i] : top;
    }
    *out = (float)best;
}
