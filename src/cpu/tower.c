/* Steps of towers that work on one row, and pooling. Formulas are in plan/plan.h. */
#include <math.h>
#include <string.h>

#include "cpu/internal.h"

void cpu_input(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const size_t cols = cpu_info(c, job->step->out[0])->cols;
    memcpy(cpu_row(c, job->step->out[0], row), c->rows->input + row * cols, cols * sizeof(float));
}

/* The table has two planes: one row per x, then one row per y. */
void cpu_position_embed(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    const bz_step *s = job->step;
    const bz_weight_info *w = bz_weight_of(c->weights, s->w[0]);
    const size_t cols = (size_t)w->ne[0], row_bytes = bz_row_bytes(w->type, cols);
    const float *x = cpu_row(c, s->in[0], row);
    float *out = cpu_row(c, s->out[0], row), *position = c->scratch[worker].values;
    const uint8_t *table = cpu_weight(c, s->w[0]);
    c->k->dequantize(w->type, table + (size_t)c->rows->pos[row] * row_bytes, position, cols);
    c->k->dequantize(w->type, table + ((size_t)w->ne[1] + (size_t)c->rows->pos_y[row]) * row_bytes,
                     position + cols, cols);
    for (size_t i = 0; i < cols; i++) {
        out[i] = x[i] + (position[i] + position[cols + i]);
    }
}

void cpu_clamp(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    const float *x = cpu_row(c, s->in[0], row), low = s->low, high = s->high;
    float *out = cpu_row(c, s->out[0], row);
    const uint32_t cols = cpu_info(c, s->out[0])->cols;
    for (uint32_t i = 0; i < cols; i++) {
        const float v = x[i] < low ? low : x[i];
        out[i] = v > high ? high : v;
    }
}

void cpu_layer_norm(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    const float *x = cpu_row(c, s->in[0], row);
    float *out = cpu_row(c, s->out[0], row);
    const uint8_t *w = cpu_weight(c, s->w[0]);
    const uint32_t cols = cpu_info(c, s->in[0])->cols;
    for (uint32_t g = 0; g < cols; g += s->width) {
        double sum = 0; /* in double: an error of the mean would be in every value */
        for (uint32_t i = 0; i < s->width; i++) {
            sum += (double)x[g + i];
        }
        const float mean = (float)(sum / s->width);
        for (uint32_t i = 0; i < s->width; i++) {
            out[g + i] = x[g + i] - mean;
        }
        const float r =
            1.0f / sqrtf(c->k->sum_squares(out + g, s->width) / (float)s->width + s->eps);
        for (uint32_t i = 0; i < s->width; i++) {
            out[g + i] *= r * cpu_weight_f32(w, i);
        }
    }
}

void cpu_add_vector(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    const float *x = cpu_row(c, s->in[0], row);
    const uint8_t *w = cpu_weight(c, s->w[0]);
    float *out = cpu_row(c, s->out[0], row);
    const uint32_t cols = cpu_info(c, s->out[0])->cols;
    for (uint32_t i = 0; i < cols; i++) {
        out[i] = x[i] + s->scale * cpu_weight_f32(w, i);
    }
}

void cpu_add_scaled(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    const float *a = cpu_row(c, s->in[0], row), *b = cpu_row(c, s->in[1], row);
    float *out = cpu_row(c, s->out[0], row);
    const uint32_t cols = cpu_info(c, s->out[0])->cols;
    for (uint32_t i = 0; i < cols; i++) {
        out[i] = a[i] + s->scale * b[i];
    }
}

void cpu_relu(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const float *x = cpu_row(c, job->step->in[0], row);
    float *out = cpu_row(c, job->step->out[0], row);
    const uint32_t cols = cpu_info(c, job->step->out[0])->cols;
    for (uint32_t i = 0; i < cols; i++) {
        out[i] = x[i] < 0 ? 0.0f : x[i]; /* NaN stays NaN */
    }
}

void cpu_silu(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    c->k->silu(cpu_row(c, job->step->in[0], row), cpu_row(c, job->step->out[0], row),
               cpu_info(c, job->step->out[0])->cols);
}

void cpu_glu(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    const float *x = cpu_row(c, s->in[0], row), *gate = x + s->width;
    float *out = cpu_row(c, s->out[0], row);
    for (uint32_t i = 0; i < s->width; i++) {
        out[i] = x[i] / (1.0f + expf(-gate[i]));
    }
}

void cpu_pool_patches(cpu *c, const cpu_job *job, uint32_t token, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    const uint32_t side = s->width, patch_cols = c->rows->patch_cols,
                   token_cols = patch_cols / side;
    const uint32_t first = token / token_cols * side * patch_cols + token % token_cols * side;
    const uint32_t cols = cpu_info(c, s->out[0])->cols;
    float *out = cpu_row(c, s->out[0], token);
    memset(out, 0, cols * sizeof *out);
    for (uint32_t p = 0; p < side * side; p++) {
        const float *x = cpu_row(c, s->in[0], first + p / side * patch_cols + p % side);
        for (uint32_t i = 0; i < cols; i++) {
            out[i] += x[i];
        }
    }
    for (uint32_t i = 0; i < cols; i++) {
        out[i] = out[i] / (float)(side * side) * s->scale;
    }
}
