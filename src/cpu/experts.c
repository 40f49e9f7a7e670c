/* Mixture of experts: route, group rows by expert, multiply each group, sum over slots.
 *
 * Grouping reads each expert's weights once, however many rows use it. Every (row, slot) has its
 * own result, and slots are added in order, so that the sum does not depend on which rows share a
 * pass. */
#include <math.h>
#include <string.h>

#include "cpu/internal.h"
#include "cpu/products.h"

void cpu_route(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    float *logit = cpu_row(c, s->in[0], row), *weight = cpu_row(c, s->out[1], row);
    int32_t *id = cpu_ids(c, s->out[0], row);
    uint32_t experts = cpu_info(c, s->in[0])->cols;
    float max = logit[0], total = 0.0f;
    for (uint32_t e = 1; e < experts; e++) {
        max = logit[e] > max ? logit[e] : max;
    }
    /* The best experts by logit, ties by number. The denominator of the softmax over all experts
     * cancels when the weights are renormalized, so it is never computed. */
    for (uint32_t slot = 0; slot < s->experts_used; slot++) {
        int32_t best = -1;
        for (uint32_t e = 0; e < experts; e++) {
            bool taken = false;
            for (uint32_t t = 0; t < slot; t++) {
                taken |= id[t] == (int32_t)e;
            }
            if (!taken && (best < 0 || logit[e] > logit[best])) {
                best = (int32_t)e;
            }
        }
        id[slot] = best;
        weight[slot] = expf(logit[best] - max);
        total += weight[slot];
    }
    for (uint32_t slot = 0; slot < s->experts_used; slot++) {
        weight[slot] /= total;
    }
}

uint32_t cpu_tasks_one(const cpu *c, const cpu_job *job)
{
    (void)c;
    (void)job;
    return 1;
}

/* Counting sort of the (row, slot) pairs by expert. */
void cpu_group_rows(cpu *c, const cpu_job *job, uint32_t task, unsigned worker)
{
    (void)task;
    (void)worker;
    const bz_step *s = job->step;
    expert_groups *g = &c->groups;
    uint32_t experts = cpu_info(c, s->in[0])->cols, n = c->rows->n, slots = s->experts_used;
    memset(g->first, 0, (experts + 1) * sizeof *g->first);
    for (uint32_t row = 0; row < n; row++) {
        for (uint32_t slot = 0; slot < slots; slot++) {
            g->first[cpu_ids(c, s->out[0], row)[slot] + 1]++;
        }
    }
    g->n_active = 0;
    for (uint32_t e = 0; e < experts; e++) {
        if (g->first[e + 1]) {
            g->active[g->n_active++] = e;
        }
        g->first[e + 1] += g->first[e];
    }
    /* Fill each expert's range from its end, so that pairs are ascending. */
    for (uint32_t row = n; row-- > 0;) {
        for (uint32_t slot = slots; slot-- > 0;) {
            uint32_t e = (uint32_t)cpu_ids(c, s->out[0], row)[slot];
            g->pairs[--g->first[e + 1]] = row * slots + slot;
        }
    }
    /* first[e + 1] now holds the start of e: shift down. */
    for (uint32_t e = 0; e < experts; e++) {
        g->first[e] = g->first[e + 1];
    }
    g->first[experts] = n * slots;
}

uint32_t cpu_tasks_expert_linear(const cpu *c, const cpu_job *job)
{
    uint64_t outputs = bz_weight_of(c->weights, job->step->w[0])->ne[1];
    return c->groups.n_active * (uint32_t)((outputs + job->tile - 1) / job->tile);
}

/* One expert's tile of weight rows times its n gathered activation rows, by products.h. */
static void expert_products(cpu *c, const bz_step *s, const uint8_t *blocks, uint32_t count,
                            const uint32_t *pairs, uint32_t n, uint32_t first, cpu_scratch *scratch)
{
    const bz_weight_info *w = bz_weight_of(c->weights, s->w[0]);
    const bz_products *p = c->k->products;
    const size_t k = (size_t)w->ne[0], outputs = (size_t)w->ne[1];
    const bool few = n <= BZ_FEW_ROWS;
    scratch->arranged = NULL;
    if (!few) {
        p->pack(w->type, blocks, count, k, (bz_w8){scratch->q, scratch->s, scratch->m},
                scratch->packed);
    }
    const uint32_t step = few ? n : (uint32_t)p->block_rows;
    for (uint32_t i = 0; i < n; i += step) {
        const uint32_t rows = n - i < step ? n - i : step;
        float out[BZ_MOST_BLOCK_ROWS * BZ_PRODUCT_TILE];
        if (few) {
            const size_t bytes = p->row_bytes(k);
            for (uint32_t r = 0; r < rows; r++) {
                p->arrange_row(w->type, &scratch->gathered[r], k, scratch->packed + r * bytes);
            }
            p->rows(w->type, blocks, count, scratch->packed, rows, k, out, BZ_PRODUCT_TILE);
        } else {
            for (uint32_t r = 0; r < rows; r++) {
                p->arrange_in_block(&scratch->gathered[i + r], k, r, scratch->block);
            }
            bz_product_multiply(p, w->type, scratch->packed, count, scratch->block, rows, k, out,
                                BZ_PRODUCT_TILE);
        }
        for (uint32_t r = 0; r < rows; r++) {
            const uint32_t pair = pairs[i + r];
            memcpy(cpu_row(c, s->out[0], pair / s->experts_used) +
                       pair % s->experts_used * outputs + first,
                   out + r * BZ_PRODUCT_TILE, count * sizeof *out);
        }
    }
}

void cpu_expert_linear(cpu *c, const cpu_job *job, uint32_t task, unsigned worker)
{
    const bz_step *s = job->step;
    const bz_weight_info *w = bz_weight_of(c->weights, s->w[0]);
    uint32_t tiles = (uint32_t)((w->ne[1] + job->tile - 1) / job->tile);
    uint32_t expert = c->groups.active[task / tiles], first = task % tiles * job->tile;
    uint32_t count = w->ne[1] - first < job->tile ? (uint32_t)(w->ne[1] - first) : job->tile;
    size_t k = (size_t)w->ne[0], outputs = (size_t)w->ne[1], row_bytes = bz_row_bytes(w->type, k);
    const uint8_t *blocks = cpu_weight(c, s->w[0]) + (expert * outputs + first) * row_bytes;
    const uint32_t *pairs = c->groups.pairs + c->groups.first[expert];
    uint32_t n = c->groups.first[expert + 1] - c->groups.first[expert];
    bool slotted = cpu_info(c, s->in[0])->cols != k; /* every slot has its own input */
    bool q8 = cpu_uses_q8(c, s), has_min = q8 && bz_type_has_min(w->type);
    cpu_scratch *scratch = &c->scratch[worker];

    if (q8) {
        for (uint32_t i = 0; i < n; i++) {
            scratch->gathered[i] = c->q8[slotted ? pairs[i] : pairs[i] / s->experts_used];
        }
    }
    if (cpu_uses_products(c, s)) {
        expert_products(c, s, blocks, count, pairs, n, first, scratch);
        return;
    }
    for (uint32_t r = 0; r < count; r++) {
        if (q8) {
            bz_w8 unpacked = {scratch->q, scratch->s, scratch->m};
            c->k->unpack(w->type, blocks + r * row_bytes, unpacked, k);
            c->k->dot8(unpacked, has_min, scratch->gathered, n, k, scratch->out);
        } else {
            c->k->dequantize(w->type, blocks + r * row_bytes, scratch->values, k);
            for (uint32_t i = 0; i < n; i++) {
                const float *x = cpu_row(c, s->in[0], pairs[i] / s->experts_used);
                x += slotted ? pairs[i] % s->experts_used * k : 0;
                c->k->dot(scratch->values, x, k, 1, k, &scratch->out[i]);
            }
        }
        for (uint32_t i = 0; i < n; i++) {
            float *y = cpu_row(c, s->out[0], pairs[i] / s->experts_used) +
                       pairs[i] % s->experts_used * outputs;
            y[first + r] = scratch->out[i];
        }
    }
}

void cpu_expert_sum(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    const float *x = cpu_row(c, s->in[0], row), *weight = cpu_row(c, s->in[2], row);
    const int32_t *id = cpu_ids(c, s->in[1], row);
    const uint8_t *scales = s->w[0].id ? cpu_weight(c, s->w[0]) : NULL;
    float *out = cpu_row(c, s->out[0], row);
    uint32_t cols = cpu_info(c, s->out[0])->cols;
    memset(out, 0, cols * sizeof *out);
    for (uint32_t slot = 0; slot < s->experts_used; slot++) {
        float factor = weight[slot] * (scales ? cpu_weight_f32(scales, (size_t)id[slot]) : 1.0f);
        c->k->axpy(factor, x + (size_t)slot * cols, out, cols);
    }
}
