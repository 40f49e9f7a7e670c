/* Rotary position: pair i of a head couples elements i and i + width/2. */
#include <math.h>
#include <stdlib.h>

#include "cpu/internal.h"

bool cpu_rope_frequencies(const cpu *c, cpu_job *job)
{
    const bz_step *s = job->step;
    uint32_t pairs = s->width / 2;
    job->frequency = malloc(pairs * sizeof *job->frequency);
    if (!job->frequency) {
        return false;
    }
    const uint8_t *factors = s->w[0].id ? cpu_weight(c, s->w[0]) : NULL;
    for (uint32_t i = 0; i < pairs; i++) {
        double f = i < s->pairs ? pow(s->base, -2.0 * i / s->width) : 0.0;
        job->frequency[i] = (float)(factors ? f / (double)cpu_weight_f32(factors, i) : f);
    }
    return true;
}

void cpu_rope_table(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    uint32_t pairs = job->step->width / 2;
    float *cosine = cpu_row(c, job->step->out[0], row), *sine = cosine + pairs;
    float pos = (float)c->rows->pos[row];
    for (uint32_t i = 0; i < pairs; i++) {
        float angle = pos * job->frequency[i]; /* f32, as the reference computes it */
        cosine[i] = cosf(angle);
        sine[i] = sinf(angle);
    }
}

void cpu_rope(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    uint32_t pairs = s->width / 2, cols = cpu_info(c, s->in[0])->cols;
    const float *cosine = cpu_row(c, s->in[1], row), *sine = cosine + pairs;
    for (uint32_t head = 0; head < cols; head += s->width) {
        const float *a = cpu_row(c, s->in[0], row) + head, *b = a + pairs;
        float *out_a = cpu_row(c, s->out[0], row) + head, *out_b = out_a + pairs;
        for (uint32_t i = 0; i < pairs; i++) {
            out_a[i] = a[i] * cosine[i] - b[i] * sine[i];
            out_b[i] = a[i] * sine[i] + b[i] * cosine[i];
        }
    }
}
