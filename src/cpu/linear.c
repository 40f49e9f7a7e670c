/* linear: matrix products directly from the file's blocks. y[n][o] = sum_i w[o][i] * x[n][i]
 *
 * A task computes a tile of weight rows. It unpacks each of them once and multiplies it with all
 * activation rows, in blocks of rows that fit the cache. The order of additions of an output
 * depends on K only (kernels.h). */
#include "cpu/internal.h"

enum {
    TILE_WEIGHTS = 32768, /* weights a task unpacks: 48 KB with int8 and scales */
    MAX_TILE = 64,        /* weight rows of a task */
    ROW_BLOCK = 32        /* activation rows that stay in the cache */
};

static bool is_float(bz_type t)
{
    return t == BZ_F32 || t == BZ_F16 || t == BZ_BF16;
}

bool cpu_uses_q8(const cpu *c, const bz_step *step)
{
    return (step->op == BZ_OP_LINEAR || step->op == BZ_OP_EXPERT_LINEAR) && !c->exact &&
           !is_float(bz_weight_of(c->weights, step->w[0])->type);
}

uint32_t cpu_weight_tile(uint64_t k, uint64_t rows)
{
    uint64_t tile = TILE_WEIGHTS / k;
    tile = tile < 4 ? 4 : tile > MAX_TILE ? MAX_TILE : tile;
    return (uint32_t)(tile < rows ? tile : rows);
}

/* ---- int8 activations ------------------------------------------------------ */

/* An expert product whose slots have their own inputs quantizes each slot as a row. */
static uint32_t parts_per_row(const cpu *c, const bz_step *s)
{
    return cpu_info(c, s->in[0])->cols / (uint32_t)bz_weight_of(c->weights, s->w[0])->ne[0];
}

uint32_t cpu_tasks_quantize(const cpu *c, const cpu_job *job)
{
    return cpu_rows_of(c, job->step->in[0]) * parts_per_row(c, job->step);
}

void cpu_quantize(cpu *c, const cpu_job *job, uint32_t task, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    size_t k = (size_t)bz_weight_of(c->weights, s->w[0])->ne[0];
    uint32_t parts = parts_per_row(c, s);
    size_t row_bytes = k + k / 32 * sizeof(float) + k / 16 * sizeof(float);
    uint8_t *memory = c->q8_memory + task * row_bytes;
    bz_q8 q = {.d = (float *)(void *)memory};
    q.sum = q.d + k / 32;
    q.q = (int8_t *)(q.sum + k / 16);
    c->k->quantize(cpu_row(c, s->in[0], task / parts) + task % parts * k, q, k);
    c->q8[task] = q;
}

/* ---- the product ---------------------------------------------------------- */

uint32_t cpu_tasks_linear(const cpu *c, const cpu_job *job)
{
    uint64_t outputs = bz_weight_of(c->weights, job->step->w[0])->ne[1];
    if (cpu_rows_of(c, job->step->out[0]) == 0) {
        return 0; /* a chunk in the middle of a prompt needs no logits */
    }
    return (uint32_t)((outputs + job->tile - 1) / job->tile);
}

/* One weight row, unpacked to int8 or dequantized to f32. */
typedef struct unpacked_row {
    bz_w8 w8;
    const float *values;
} unpacked_row;

static unpacked_row unpack_row(const cpu *c, bz_type type, const uint8_t *blocks, size_t k, bool q8,
                               cpu_scratch *scratch, uint32_t slot)
{
    unpacked_row row = {
        {scratch->q + slot * k, scratch->s + slot * k / 16, scratch->m + slot * k / 16},
        scratch->values + slot * k};
    if (q8) {
        c->k->unpack(type, blocks, row.w8, k);
    } else {
        c->k->dequantize(type, blocks, scratch->values + slot * k, k);
    }
    return row;
}

void cpu_linear(cpu *c, const cpu_job *job, uint32_t task, unsigned worker)
{
    const bz_step *s = job->step;
    const bz_weight_info *w = bz_weight_of(c->weights, s->w[0]);
    size_t k = (size_t)w->ne[0], row_bytes = bz_row_bytes(w->type, k);
    uint32_t first = task * job->tile;
    uint32_t count = w->ne[1] - first < job->tile ? (uint32_t)(w->ne[1] - first) : job->tile;
    const uint8_t *blocks = cpu_weight(c, s->w[0]) + first * row_bytes;
    cpu_scratch *scratch = &c->scratch[worker];
    uint32_t rows = cpu_rows_of(c, s->out[0]);
    bool q8 = cpu_uses_q8(c, s), has_min = q8 && bz_type_has_min(w->type);
    const bz_tensor_info *in = cpu_info(c, s->in[0]), *out = cpu_info(c, s->out[0]);

    /* With several blocks of rows the whole tile is unpacked first; with one block, each weight
     * row is used right after unpacking, while it is in the first-level cache. */
    bool keep = rows > ROW_BLOCK;
    unpacked_row unpacked[MAX_TILE];
    for (uint32_t r = 0; keep && r < count; r++) {
        unpacked[r] = unpack_row(c, w->type, blocks + r * row_bytes, k, q8, scratch, r);
    }
    for (uint32_t n0 = 0; n0 < rows; n0 += ROW_BLOCK) {
        uint32_t n = rows - n0 < ROW_BLOCK ? rows - n0 : ROW_BLOCK;
        float *y = cpu_row(c, s->out[0], n0) + first;
        for (uint32_t r = 0; r < count; r++) {
            float product[ROW_BLOCK];
            unpacked_row row =
                keep ? unpacked[r]
                     : unpack_row(c, w->type, blocks + r * row_bytes, k, q8, scratch, 0);
            if (q8) {
                c->k->dot8(row.w8, has_min, c->q8 + n0, n, k, product);
            } else {
                c->k->dot(row.values, cpu_row(c, s->in[0], n0), in->stride, n, k, product);
            }
            for (uint32_t i = 0; i < n; i++) {
                y[(size_t)i * out->stride + r] = product[i];
            }
        }
    }
}
