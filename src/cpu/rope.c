/* rope_table and rope: rotary position embedding. Pair i of a head is elements i and i + width/2.
 *
 *   a' = a cos(pos f_i) - b sin(pos f_i),   b' = a sin(pos f_i) + b cos(pos f_i) */
#include <math.h>
#include <stdlib.h>

#include "cpu/internal.h"

bool cpu_rope_frequencies(const cpu *c, cpu_job *job)
{
    const bz_step *s = job->step;
    uint32_t pairs = s->width / 2;
    job->constants = malloc(pairs * sizeof *job->constants);
    if (!job->constants) {
        return false;
    }
    const uint8_t *factors = s->w[0].id ? cpu_weight(c, s->w[0]) : NULL;
    for (uint32_t i = 0; i < pairs; i++) {
        double f = i < s->rotated_pairs ? pow(s->base, -2.0 * i / s->width) : 0.0;
        job->constants[i] = (float)(factors ? f / (double)cpu_weight_f32(factors, i) : f);
    }
    return true;
}

void cpu_rope_table(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    uint32_t pairs = job->step->width / 2;
    for (uint32_t axis = 0; axis < job->step->axes; axis++) {
        float *cosine = cpu_row(c, job->step->out[0], row) + (size_t)axis * job->step->width,
              *sine = cosine + pairs;
        const int32_t *own = c->rows->angle ? c->rows->angle : c->rows->pos;
        float pos = (float)(axis ? c->rows->pos_y : own)[row];
        for (uint32_t i = 0; i < pairs; i++) {
            float angle = pos * job->constants[i]; /* f32, as the reference computes it */
            cosine[i] = cosf(angle);
            sine[i] = sinf(angle);
        }
    }
}

void cpu_rope(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    const uint32_t pairs = s->width / 2, cols = cpu_info(c, s->in[0])->cols,
                   axes = cpu_info(c, s->in[1])->cols / s->width;
    for (uint32_t g = 0; g < cols / s->width; g++) {
        const size_t at = (size_t)g * s->width;
        const float *cosine = cpu_row(c, s->in[1], row) + (size_t)(g % axes) * s->width,
                    *sine = cosine + pairs;
        const float *a = cpu_row(c, s->in[0], row) + at, *b = a + pairs;
        float *out_a = cpu_row(c, s->out[0], row) + at, *out_b = out_a + pairs;
        for (uint32_t i = 0; i < pairs; i++) {
            out_a[i] = a[i] * cosine[i] - b[i] * sine[i];
            out_b[i] = a[i] * sine[i] + b[i] * cosine[i];
        }
    }
}
