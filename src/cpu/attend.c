/* kv_write and attend: one query head over the cached positions it sees.
 *
 *   out = sum over j of softmax_j(q . k_j) v_j
 *
 * Positions are visited in order, in chunks that end at multiples of CHUNK, with a running maximum:
 * the order of additions depends only on the query's position and its window, never on the ring
 * row or on how the prompt was split. The scale is 1: the learned norms of q and k include it. */
#include <math.h>
#include <string.h>

#include "cpu/internal.h"

enum { CHUNK = 64 };

void cpu_kv_write(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    bz_kv *kv = c->rows->kv[c->rows->seq[row]];
    kv_layer *l = &kv->layer[s->cache.id - 1];
    size_t at = (size_t)kv_row(l, (uint32_t)c->rows->pos[row]) * l->head_dim * kv->value_bytes;
    for (uint32_t h = 0; h < l->kv_heads; h++) {
        const float *k = cpu_row(c, s->in[0], row) + (size_t)h * l->head_dim;
        const float *v = cpu_row(c, s->in[1], row) + (size_t)h * l->head_dim;
        if (kv->value_bytes == 4) {
            memcpy(l->k[h] + at, k, l->head_dim * sizeof *k);
            memcpy(l->v[h] + at, v, l->head_dim * sizeof *v);
        } else {
            c->k->to_f16(k, (uint16_t *)(void *)(l->k[h] + at), l->head_dim);
            c->k->to_f16(v, (uint16_t *)(void *)(l->v[h] + at), l->head_dim);
        }
    }
}

uint32_t cpu_tasks_attend(const cpu *c, const cpu_job *job)
{
    return c->rows->n * job->step->heads;
}

void cpu_attend(cpu *c, const cpu_job *job, uint32_t task, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    uint32_t row = task / s->heads, head = task % s->heads, d = s->width;
    const bz_kv *kv = c->rows->kv[c->rows->seq[row]];
    const kv_layer *l = &kv->layer[s->cache.id - 1];
    uint32_t kv_head = head / (s->heads / l->kv_heads);
    /* visible positions: first .. last */
    uint32_t last = (uint32_t)c->rows->pos[s->bidirectional ? c->rows->n - 1 : row];
    uint32_t own = (uint32_t)c->rows->pos[s->bidirectional ? 0 : row];
    uint32_t first = s->window && own + 1 > s->window ? own + 1 - s->window : 0;
    if (s->image_attention != BZ_IMAGE_CAUSAL && c->rows->image_last) {
        last = (uint32_t)c->rows->image_last[row];
        const uint32_t begin = (uint32_t)c->rows->image_first[row];
        first = s->image_attention == BZ_IMAGE_WHOLE && begin < first ? begin : first;
    }
    bool f32 = kv->value_bytes == 4;
    const uint8_t *keys = l->k[kv_head], *values = l->v[kv_head];
    size_t row_bytes = d * kv->value_bytes;

    const float *q = cpu_row(c, s->in[0], row) + (size_t)head * d;
    float *out = cpu_row(c, s->out[0], row) + (size_t)head * d;
    memset(out, 0, d * sizeof *out);
    float max = -INFINITY, total = 0.0f;

    for (uint32_t j = first; j <= last;) {
        uint32_t end = (j / CHUNK + 1) * CHUNK;
        end = end <= last ? end : last + 1;
        float score[CHUNK], chunk_max = -INFINITY;
        for (uint32_t i = j; i < end; i++) {
            const uint8_t *key = keys + kv_row(l, i) * row_bytes;
            if (f32) {
                c->k->dot((const float *)(const void *)key, q, d, 1, d, &score[i - j]);
            } else {
                score[i - j] = c->k->dot_f16(q, (const uint16_t *)(const void *)key, d);
            }
            chunk_max = score[i - j] > chunk_max ? score[i - j] : chunk_max;
        }
        if (chunk_max > max) {
            float shrink = expf(max - chunk_max); /* 0 for the first chunk */
            total *= shrink;
            for (uint32_t i = 0; i < d; i++) {
                out[i] *= shrink;
            }
            max = chunk_max;
        }
        for (uint32_t i = j; i < end; i++) {
            float p = expf(score[i - j] - max);
            const uint8_t *value = values + kv_row(l, i) * row_bytes;
            total += p;
            if (f32) {
                c->k->axpy(p, (const float *)(const void *)value, out, d);
            } else {
                c->k->axpy_f16(p, (const uint16_t *)(const void *)value, out, d);
            }
        }
        j = end;
    }
    for (uint32_t i = 0; i < d; i++) {
        out[i] /= total;
    }
}
