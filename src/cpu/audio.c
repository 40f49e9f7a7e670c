/* Steps of the audio tower: convolutions, and attention over the last rows. Formulas are in
 * plan/plan.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/internal.h"

/* ---- conv: 3 x 3 over time and frequency, stride 2 ---------------------------------- */

/* A row of the input is [frames][bins][channels], of the output [frames/2][bins/2][out_channels].
 * Frames after the end of the clip are zero, in the input and in the output. The nine neighbors
 * of an output are gathered as [9][channels], so the weights are reordered to that, in panels. */
bool cpu_conv_weights(const cpu *c, cpu_job *job)
{
    const bz_step *s = job->step;
    const bz_weight_info *w = bz_weight_of(c->weights, s->w[0]);
    const size_t channels = s->channels, k = 9 * channels, out_channels = (size_t)w->ne[1];
    const size_t panels = (out_channels + BZ_PANEL - 1) / BZ_PANEL;
    float *row = malloc(k * sizeof *row);
    job->constants = calloc(panels * BZ_PANEL * k, sizeof *job->constants);
    for (size_t o = 0; row && job->constants && o < out_channels; o++) {
        c->k->dequantize(w->type, cpu_weight(c, s->w[0]) + o * bz_row_bytes(w->type, k), row, k);
        for (size_t ch = 0; ch < channels; ch++) {
            for (size_t tap = 0; tap < 9; tap++) { /* in the file: [channel][time][frequency] */
                const size_t i = tap * channels + ch;
                job->constants[(o / BZ_PANEL * k + i) * BZ_PANEL + o % BZ_PANEL] =
                    row[ch * 9 + tap];
            }
        }
    }
    const bool ok = row && job->constants;
    free(row);
    return ok;
}

size_t cpu_conv_scratch(const bz_step *s)
{
    return (size_t)(s->width / 2) * 9 * s->channels;
}

void cpu_conv(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    const bz_step *s = job->step;
    const int32_t frames = (int32_t)s->frames, bins = (int32_t)s->width;
    const size_t channels = s->channels, k = 9 * channels,
                 out_channels = (size_t)bz_weight_of(c->weights, s->w[0])->ne[1];
    const size_t out_bins = (size_t)bins / 2;
    /* The input of the second convolution has half as many frames as the clip. */
    const uint32_t every = 4 / s->frames;
    const int64_t valid_in = (c->rows->frames + every - 1) / every, valid_out = (valid_in + 1) / 2;
    float *patch = c->scratch[worker].values;
    for (int32_t t = 0; t < frames / 2; t++) {
        const int64_t time = (int64_t)row * (frames / 2) + t;
        float *out = cpu_row(c, s->out[0], row) + (size_t)t * out_bins * out_channels;
        if (time >= valid_out) {
            memset(out, 0, out_bins * out_channels * sizeof *out);
            continue;
        }
        for (size_t b = 0; b < out_bins; b++) {
            for (int tap = 0; tap < 9; tap++) {
                const int64_t at = 2 * time + tap / 3 - 1, bin = 2 * (int64_t)b + tap % 3 - 1;
                float *to = patch + b * k + (size_t)tap * channels;
                if (at < 0 || at >= valid_in || bin < 0 || bin >= bins) {
                    memset(to, 0, channels * sizeof *to);
                    continue;
                }
                const float *from = cpu_row(c, s->in[0], (uint32_t)(at / frames));
                memcpy(to, from + ((size_t)(at % frames) * (size_t)bins + (size_t)bin) * channels,
                       channels * sizeof *to);
            }
        }
        for (size_t o = 0; o < out_channels; o += BZ_PANEL) {
            c->k->panel(patch, k, out_bins, job->constants + o * k, k, out + o, out_channels,
                        out_channels - o < BZ_PANEL ? out_channels - o : BZ_PANEL);
        }
    }
}

/* ---- conv_time: along time, each column by itself -------------------------------------- */

bool cpu_time_weights(const cpu *c, cpu_job *job)
{
    const bz_weight_info *w = bz_weight_of(c->weights, job->step->w[0]);
    const size_t n = (size_t)(w->ne[0] * w->ne[1]);
    job->constants = malloc(n * sizeof *job->constants);
    if (job->constants) {
        c->k->dequantize(w->type, cpu_weight(c, job->step->w[0]), job->constants, n);
    }
    return job->constants != NULL;
}

void cpu_conv_time(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    const uint32_t cols = cpu_info(c, s->out[0])->cols, taps = s->width;
    float *out = cpu_row(c, s->out[0], row);
    memset(out, 0, cols * sizeof *out);
    for (uint32_t j = 0; j < taps; j++) {
        if (row + j + 1 < taps) {
            continue; /* before the first row */
        }
        const float *x = cpu_row(c, s->in[0], row + j + 1 - taps), *w = job->constants + j;
        for (uint32_t i = 0; i < cols; i++) {
            out[i] += w[(size_t)i * taps] * x[i];
        }
    }
}

/* ---- attention over the last rows -------------------------------------------------------- */

void cpu_sinusoids(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    const uint32_t half = s->width / 2;
    float *sine = cpu_row(c, s->out[0], row), *cosine = sine + half;
    const double decay = half > 1 ? log(s->base) / (half - 1) : 0;
    for (uint32_t i = 0; i < half; i++) {
        const double angle = row * exp(-decay * i);
        sine[i] = (float)sin(angle);
        cosine[i] = (float)cos(angle);
    }
}

void cpu_local_scores(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    const uint32_t d = s->width, seen = row + 1 < s->window ? row + 1 : s->window;
    for (uint32_t h = 0; h < s->heads; h++) {
        const size_t at = (size_t)h * d;
        const float *q = cpu_row(c, s->in[0], row) + at;
        float *weight = cpu_row(c, s->out[0], row) + (size_t)h * s->window;
        for (uint32_t i = 0; i < seen; i++) {
            float content, relative;
            c->k->dot(cpu_row(c, s->in[1], row - i) + at, q, d, 1, d, &content);
            c->k->dot(cpu_row(c, s->in[2], i) + at, q, d, 1, d, &relative);
            weight[i] = s->scale * tanhf((content + relative) / s->scale);
        }
        const float total = c->k->exp_sum(weight, seen);
        for (uint32_t i = 0; i < s->window; i++) {
            weight[i] = i < seen ? weight[i] / total : 0.0f;
        }
    }
}

void cpu_local_sum(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    const uint32_t d = s->width, seen = row + 1 < s->window ? row + 1 : s->window;
    memset(cpu_row(c, s->out[0], row), 0, (size_t)s->heads * d * sizeof(float));
    for (uint32_t h = 0; h < s->heads; h++) {
        const float *weight = cpu_row(c, s->in[0], row) + (size_t)h * s->window;
        for (uint32_t i = 0; i < seen; i++) {
            c->k->axpy(weight[i], cpu_row(c, s->in[1], row - i) + (size_t)h * d,
                       cpu_row(c, s->out[0], row) + (size_t)h * d, d);
        }
    }
}
