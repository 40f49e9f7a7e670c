/* mean_rows: the mean of all rows of a text. */
#include "cpu/internal.h"

enum { COLUMNS = 64 }; /* that are summed at a time */

void cpu_mean_rows(cpu *c, const cpu_job *job, uint32_t text, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    const uint32_t first = c->rows->out[text], cols = cpu_info(c, s->out[0])->cols;
    const uint32_t n = (uint32_t)(c->rows->image_last[first] - c->rows->image_first[first]) + 1;
    float *out = cpu_row(c, s->out[0], text);
    for (uint32_t begin = 0; begin < cols; begin += COLUMNS) {
        const uint32_t count = cols - begin < COLUMNS ? cols - begin : COLUMNS;
        double sum[COLUMNS] = {0}; /* of up to thousands of rows */
        for (uint32_t r = first; r < first + n; r++) {
            const float *x = cpu_row(c, s->in[0], r) + begin;
            for (uint32_t i = 0; i < count; i++) {
                sum[i] += (double)x[i];
            }
        }
        for (uint32_t i = 0; i < count; i++) {
            out[begin + i] = (float)(sum[i] / n);
        }
    }
}
