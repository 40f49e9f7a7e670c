/* Steps of a diffusion model's canvas: read_kept, logit_stats and soft_embed. */
#include <math.h>
#include <string.h>

#include "cpu/internal.h"

enum { SOFT_ROWS = 16 }; /* canvas rows per task: they share the dequantized table rows */

/* Less probable tokens are omitted from soft_embed: their sum is below the precision of f32. */
static const float min_probability = 0x1p-40f;

void cpu_copy_kept_input(cpu *c)
{
    const bz_plan *p = c->schedule->plan;
    for (uint32_t i = 1; i < p->n_tensors; i++) {
        if (p->tensors[i].kept) {
            const size_t n = (size_t)c->rows->n * p->tensors[i].cols;
            memcpy(c->arena + p->tensors[i].offset, c->rows->kept_input, n * sizeof(float));
            return;
        }
    }
}

void cpu_read_kept(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    const size_t bytes = cpu_info(c, s->out[0])->cols * sizeof(float);
    if (c->rows->reset_kept) {
        memset(cpu_row(c, s->out[0], row), 0, bytes);
    } else {
        memcpy(cpu_row(c, s->out[0], row), cpu_row(c, s->in[0], row), bytes);
    }
}

uint32_t cpu_tasks_input_rows(const cpu *c, const cpu_job *job)
{
    return cpu_rows_of(c, job->step->in[0]);
}

/* ---- logit_stats ------------------------------------------------------------------- */

/* Sums are in double: an f32 sum over a vocabulary of 262,144 loses the small probabilities, and
 * with them the difference between certain and nearly certain. */
void cpu_logit_stats(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    const uint32_t n = cpu_info(c, s->in[0])->cols;
    const float *x = cpu_row(c, s->in[0], row), t = c->rows->temperature;
    float *stats = cpu_row(c, s->out[0], s->first_row + row), max = -INFINITY;
    uint32_t best = 0, drawn = 0;
    for (uint32_t v = 0; v < n; v++) {
        const float z = x[v] / t;
        if (z > max && z < INFINITY) {
            max = z;
            best = v;
        }
    }
    double total = 0, weighted = 0, sum = 0;
    for (uint32_t v = 0; v < n; v++) {
        const float below = x[v] / t - max;
        if (below <= 0 && below > -INFINITY) { /* false for NaN */
            const double e = (double)expf(below);
            total += e;
            weighted += e * (double)below;
        }
    }
    const double goal = (double)c->rows->uniform[s->first_row + row] * total;
    for (uint32_t v = 0; v < n; v++) {
        const float below = x[v] / t - max, e = below <= 0 ? expf(below) : 0;
        if (e > 0) {
            sum += (double)e;
            drawn = v;
            if (sum >= goal) {
                break;
            }
        }
    }
    const bool finite = max > -INFINITY;
    stats[BZ_STAT_BEST] = (float)best;
    stats[BZ_STAT_DRAWN] = (float)drawn;
    stats[BZ_STAT_ENTROPY] = finite ? (float)fmax(log(total) - weighted / total, 0) : -1;
    stats[BZ_STAT_MAX] = finite ? max : 0;
    stats[BZ_STAT_SUM] = finite ? (float)total : 1;
}

/* ---- soft_embed -------------------------------------------------------------------- */

/* Turns logits into probabilities, in place. */
void cpu_probabilities(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    const uint32_t n = cpu_info(c, s->in[0])->cols;
    const float *stats = cpu_row(c, s->in[1], s->first_row + row), t = c->rows->temperature;
    const float max = stats[BZ_STAT_MAX], total = stats[BZ_STAT_SUM];
    float *x = cpu_row(c, s->in[0], row);
    for (uint32_t v = 0; v < n; v++) {
        const float below = x[v] / t - max;
        x[v] = below <= 0 ? expf(below) / total : 0;
    }
}

static uint32_t tiles(const cpu *c, const bz_step *s)
{
    return (cpu_info(c, s->out[0])->cols + CPU_SOFT_TILE - 1) / CPU_SOFT_TILE;
}

uint32_t cpu_tasks_soft_embed(const cpu *c, const cpu_job *job)
{
    return tiles(c, job->step) * ((cpu_rows_of(c, job->step->in[0]) + SOFT_ROWS - 1) / SOFT_ROWS);
}

void cpu_soft_embed(cpu *c, const cpu_job *job, uint32_t task, unsigned worker)
{
    const bz_step *s = job->step;
    const bz_weight_info *w = bz_weight_of(c->weights, s->w[0]);
    const size_t cols = (size_t)w->ne[0], row_bytes = bz_row_bytes(w->type, cols);
    const uint32_t n = cpu_info(c, s->in[0])->cols, all = cpu_rows_of(c, s->in[0]),
                   first = task / tiles(c, s) * SOFT_ROWS;
    const uint32_t count = all - first < SOFT_ROWS ? all - first : SOFT_ROWS;
    const size_t column = (size_t)(task % tiles(c, s)) * CPU_SOFT_TILE;
    const size_t width = cols - column < CPU_SOFT_TILE ? cols - column : CPU_SOFT_TILE;
    const uint8_t *table = cpu_weight(c, s->w[0]) + bz_row_bytes(w->type, column);
    float *piece = c->scratch[worker].values;
    for (uint32_t r = 0; r < count; r++) {
        memset(cpu_row(c, s->out[0], s->first_row + first + r) + column, 0, width * sizeof(float));
    }
    for (uint32_t v = 0; v < n; v++) {
        bool unpacked = false;
        for (uint32_t r = 0; r < count; r++) {
            const float p = cpu_row(c, s->in[0], first + r)[v];
            if (p < min_probability) {
                continue;
            }
            if (!unpacked) {
                c->k->dequantize(w->type, table + v * row_bytes, piece, width);
                unpacked = true;
            }
            c->k->axpy(p, piece, cpu_row(c, s->out[0], s->first_row + first + r) + column, width);
        }
    }
    for (uint32_t r = 0; r < count; r++) {
        float *out = cpu_row(c, s->out[0], s->first_row + first + r) + column;
        for (size_t i = 0; i < width; i++) {
            out[i] *= s->scale;
        }
    }
}
