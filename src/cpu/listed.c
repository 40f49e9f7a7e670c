/* The best of a part of the vocabulary: which groups of tokens are looked through, their ids, the
 * products with their rows of the output head. */
#include <float.h>
#include <string.h>

#include "base/little.h"
#include "cpu/internal.h"

/* Increases with x, and orders NaN too; the same for both zeros. */
static uint32_t key_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = x == 0.0f ? 0 : bits;
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

void cpu_top(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    const float *x = cpu_row(c, s->in[0], row);
    float *out = cpu_row(c, s->out[0], row);
    const uint32_t n = cpu_info(c, s->in[0])->cols, wanted = cpu_info(c, s->out[0])->cols;
    uint32_t have = 0;
    for (uint32_t i = 0; i < n; i++) { /* out is in order all the time */
        const uint32_t key = key_of(x[i]);
        if (have == wanted && key <= key_of(x[(uint32_t)out[have - 1]])) {
            continue;
        }
        uint32_t at = have < wanted ? have++ : have - 1;
        for (; at > 0 && key > key_of(x[(uint32_t)out[at - 1]]); at--) {
            out[at] = out[at - 1];
        }
        out[at] = (float)i;
    }
}

/* The ids were checked when the file was opened. Others may change a mapped file afterwards: what
 * is no id any more becomes 0. */
void cpu_list_rows(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    const bz_weight_info *w = bz_weight_of(c->weights, s->w[0]);
    const size_t each = (size_t)w->ne[0], bytes = bz_row_bytes(w->type, 1);
    const uint32_t end = (uint32_t)(w->ne[0] * w->ne[1]), slots = cpu_info(c, s->in[0])->cols;
    const float *x = cpu_row(c, s->in[0], row);
    float *out = cpu_row(c, s->out[0], row);
    for (uint32_t slot = 0; slot < slots; slot++) {
        const uint8_t *from = cpu_weight(c, s->w[0]) + (size_t)x[slot] * each * bytes;
        for (size_t i = 0; i < each; i++) {
            const uint32_t id = bz_le32(from + i * bytes);
            out[slot * each + i] = id < end ? (float)id : 0.0f;
        }
    }
}

static uint32_t tiles_of(const cpu *c, const cpu_job *job)
{
    return (cpu_info(c, job->step->out[0])->cols + job->tile - 1) / job->tile;
}

uint32_t cpu_tasks_listed(const cpu *c, const cpu_job *job)
{
    return cpu_rows_of(c, job->step->out[0]) * tiles_of(c, job);
}

/* In f32, whatever the mode: the rows are few, and lie apart. */
void cpu_linear_listed(cpu *c, const cpu_job *job, uint32_t task, unsigned worker)
{
    const bz_step *s = job->step;
    const bz_weight_info *w = bz_weight_of(c->weights, s->w[0]);
    const uint32_t row = task / tiles_of(c, job), cols = cpu_info(c, s->out[0])->cols;
    const uint32_t first = task % tiles_of(c, job) * job->tile;
    const size_t k = (size_t)w->ne[0], row_bytes = bz_row_bytes(w->type, k);
    const float *x = cpu_row(c, s->in[0], row), *id = cpu_row(c, s->in[1], row);
    float *out = cpu_row(c, s->out[0], row), *values = c->scratch[worker].values;
    for (uint32_t i = first; i < cols && i < first + job->tile; i++) {
        c->k->dequantize(w->type, cpu_weight(c, s->w[0]) + (size_t)id[i] * row_bytes, values, k);
        c->k->dot(values, x, k, 1, k, &out[i]);
    }
}

float cpu_best_listed(const float *z, const float *ids, uint32_t n)
{
    float top = -FLT_MAX, best = 0;
    for (uint32_t i = 0; i < n; i++) { /* NaN is never greater */
        if (z[i] > top || (z[i] == top && ids[i] < best)) {
            top = z[i];
            best = ids[i];
        }
    }
    return best;
}
