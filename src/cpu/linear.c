/* linear: matrix products directly from the file's blocks. y[n][o] = sum_i w[o][i] * x[n][i]
 *
 * A task computes a tile of weight rows. It unpacks each of them once and multiplies it with all
 * activation rows, in blocks of rows that fit the cache. The order of additions of an output
 * depends on K only (kernels.h). */
#include "cpu/internal.h"
#include "cpu/products.h"

enum {
    TILE_WEIGHTS = 32768, /* weights a task unpacks: 48 KB with int8 and scales */
    MAX_TILE = 64,        /* weight rows of a task */
    MIN_TASKS = 4,        /* if there are few weight rows: those of an adapter */
    ROW_BLOCK = 32,       /* activation rows that stay in the cache */
    DIRECT_ROWS = 3,      /* with up to this many, F16 and BF16 need no f32 copy */
    /* Tasks that multiply few rows: weights of each, two to thirty microseconds, and how many each
     * thread gets where that allows it. The longer a task reads on, the less of what was fetched
     * ahead belongs to another thread. */
    MIN_WEIGHTS = 131072,
    MAX_WEIGHTS = 2097152,
    TASKS_PER_THREAD = 8
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

bool cpu_uses_products(const cpu *c, const bz_step *step)
{
    return c->k->products && cpu_uses_q8(c, step);
}

bool cpu_uses_bf16(const cpu *c, const bz_step *step)
{
    return step->op == BZ_OP_LINEAR && !c->exact && c->k->dot_bf16 &&
           bz_weight_of(c->weights, step->w[0])->type == BZ_BF16;
}

/* Whether that number of rows is multiplied in f32, several weight rows at once. */
static bool by_dot_tile(const cpu *c, const bz_step *step, uint32_t rows)
{
    return step->op == BZ_OP_LINEAR && rows > DIRECT_ROWS && c->k->dot_tile &&
           !cpu_uses_q8(c, step) && !cpu_uses_bf16(c, step);
}

uint32_t cpu_weight_tile(const cpu *c, const bz_step *step, uint32_t rows)
{
    const bz_weight_info *w = bz_weight_of(c->weights, step->w[0]);
    const bool bf16 = cpu_uses_bf16(c, step);
    uint64_t tile;
    if ((bf16 || cpu_uses_products(c, step)) && rows <= BZ_FEW_ROWS && step->op == BZ_OP_LINEAR) {
        const uint64_t least = MIN_WEIGHTS / w->ne[0], most = MAX_WEIGHTS / w->ne[0];
        tile = w->ne[1] / (TASKS_PER_THREAD * bz_pool_threads(c->pool));
        tile = (tile < least ? least : tile > most ? most : tile) / 16 * 16;
        tile = tile < 16 ? 16 : tile;
    } else if (cpu_uses_products(c, step)) {
        tile = BZ_PRODUCT_TILE;
    } else if (bf16) {
        tile = BZ_BF16_TILE;
    } else {
        tile = TILE_WEIGHTS / w->ne[0];
        tile = tile > w->ne[1] / MIN_TASKS ? w->ne[1] / MIN_TASKS : tile;
        tile = tile < 4 ? 4 : tile > MAX_TILE ? MAX_TILE : tile;
        if (by_dot_tile(c, step, rows)) {
            tile = tile < BZ_DOT_TILE ? BZ_DOT_TILE : tile / BZ_DOT_TILE * BZ_DOT_TILE;
        }
    }
    return (uint32_t)(tile < w->ne[1] ? tile : w->ne[1]);
}

/* ---- int8 or bf16 activations ---------------------------------------------- */

/* Odd numbers of lines, so that the same value of several rows lies in different sets of a cache.
 */
static size_t bf16_stride(size_t k)
{
    const size_t steps = (k + BZ_BF16_STEP - 1) / BZ_BF16_STEP;
    return (steps | 1) * BZ_BF16_STEP;
}

/* An expert product whose slots have their own inputs quantizes each slot as a row. */
static uint32_t parts_per_row(const cpu *c, const bz_step *s)
{
    return cpu_info(c, s->in[0])->cols / (uint32_t)bz_weight_of(c->weights, s->w[0])->ne[0];
}

/* Whether the rows of the current pass are multiplied in blocks. */
static bool in_blocks(const cpu *c, const bz_step *s)
{
    return s->op == BZ_OP_LINEAR && cpu_uses_products(c, s) &&
           cpu_rows_of(c, s->in[0]) > BZ_FEW_ROWS;
}

static uint32_t blocks_of(const bz_products *p, uint32_t rows)
{
    return (uint32_t)((rows + p->block_rows - 1) / p->block_rows);
}

uint32_t cpu_tasks_quantize(const cpu *c, const cpu_job *job)
{
    const uint32_t rows = cpu_rows_of(c, job->step->in[0]) * parts_per_row(c, job->step);
    return in_blocks(c, job->step) ? blocks_of(c->k->products, rows) : rows;
}

/* The rows of a block lie side by side in each line of the cache, so one thread writes them all. */
static void quantize_block(cpu *c, const bz_step *s, size_t k, uint32_t block, cpu_scratch *scratch)
{
    const bz_q8 q = {.q = scratch->q, .d = scratch->s, .sum = scratch->m};
    const bz_products *p = c->k->products;
    const uint32_t most = (uint32_t)p->block_rows, first = block * most,
                   rows = cpu_rows_of(c, s->in[0]) - first;
    uint8_t *memory = c->q8_memory + block * p->block_bytes(k);
    for (uint32_t r = 0; r < most && r < rows; r++) {
        c->k->quantize(cpu_row(c, s->in[0], first + r), q, k);
        p->arrange_in_block(&q, k, r, memory);
    }
}

static size_t row_q8_bytes(size_t k)
{
    return k + k / 32 * sizeof(float) + k / 16 * sizeof(float);
}

size_t cpu_q8_bytes(const cpu *c, const bz_step *s, uint32_t rows)
{
    const bz_products *p = c->k->products;
    const size_t k = (size_t)bz_weight_of(c->weights, s->w[0])->ne[0];
    if (cpu_uses_bf16(c, s)) {
        return rows * bf16_stride(k) * sizeof(uint16_t);
    }
    const size_t one_by_one = rows * row_q8_bytes(k);
    const size_t blocks = p ? blocks_of(p, rows) * p->block_bytes(k) : 0;
    return blocks > one_by_one ? blocks : one_by_one;
}

void cpu_quantize(cpu *c, const cpu_job *job, uint32_t task, unsigned worker)
{
    const bz_step *s = job->step;
    size_t k = (size_t)bz_weight_of(c->weights, s->w[0])->ne[0];
    if (cpu_uses_bf16(c, s)) {
        uint16_t *rows = (uint16_t *)(void *)c->q8_memory;
        c->k->to_bf16(cpu_row(c, s->in[0], task), rows + task * bf16_stride(k), k);
        return;
    }
    if (in_blocks(c, s)) {
        quantize_block(c, s, k, task, &c->scratch[worker]);
        return;
    }
    uint32_t parts = parts_per_row(c, s);
    const float *x = cpu_row(c, s->in[0], task / parts) + task % parts * k;
    uint8_t *memory = c->q8_memory + task * row_q8_bytes(k);
    bz_q8 q = {.d = (float *)(void *)memory};
    q.sum = q.d + k / 32;
    q.q = (int8_t *)(q.sum + k / 16);
    c->k->quantize(x, q, k);
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
    } else if (type == BZ_F32 && (uintptr_t)blocks % sizeof(float) == 0) {
        row.values = (const float *)(const void *)blocks; /* as it is */
    } else {
        c->k->dequantize(type, blocks, scratch->values + slot * k, k);
    }
    return row;
}

/* A tile of weight rows in f32, from `first` on. */
static void linear_tile(cpu *c, const cpu_job *job, uint32_t first, uint32_t count,
                        const uint8_t *blocks, cpu_scratch *scratch)
{
    const bz_step *s = job->step;
    const bz_weight_info *w = bz_weight_of(c->weights, s->w[0]);
    const bz_tensor_info *in = cpu_info(c, s->in[0]), *out = cpu_info(c, s->out[0]);
    const size_t k = (size_t)w->ne[0];
    const float *values = scratch->values;
    if (w->type == BZ_F32 && (uintptr_t)blocks % sizeof(float) == 0) {
        values = (const float *)(const void *)blocks; /* as they are */
    } else {
        c->k->dequantize(w->type, blocks, scratch->values, count * k);
    }
    c->k->dot_tile(values, count, cpu_row(c, s->in[0], 0), in->stride, cpu_rows_of(c, s->out[0]), k,
                   cpu_row(c, s->out[0], 0) + first, out->stride);
}

/* A tile of weight rows from `first` on, by products.h. */
static void linear_products(cpu *c, const cpu_job *job, uint32_t first, uint32_t count,
                            const uint8_t *blocks, cpu_scratch *scratch)
{
    const bz_step *s = job->step;
    const bz_weight_info *w = bz_weight_of(c->weights, s->w[0]);
    const bz_products *p = c->k->products;
    const size_t k = (size_t)w->ne[0], stride = cpu_info(c, s->out[0])->stride;
    const uint32_t rows = cpu_rows_of(c, s->out[0]);
    if (!in_blocks(c, s)) {
        const size_t bytes = p->row_bytes(k);
        for (uint32_t n = 0; n < rows && scratch->arranged != job; n++) {
            p->arrange_row(w->type, c->q8 + n, k, scratch->packed + n * bytes);
        }
        scratch->arranged = job;
        p->rows(w->type, blocks, count, scratch->packed, rows, k, cpu_row(c, s->out[0], 0) + first,
                stride);
        return;
    }
    scratch->arranged = NULL;
    for (uint32_t r = 0; r < count; r += BZ_PRODUCT_TILE) {
        const uint32_t some = count - r < BZ_PRODUCT_TILE ? count - r : BZ_PRODUCT_TILE;
        p->pack(w->type, blocks + r * bz_row_bytes(w->type, k), some, k,
                (bz_w8){scratch->q, scratch->s, scratch->m}, scratch->packed);
        bz_product_multiply(p, w->type, scratch->packed, some, c->q8_memory, rows, k,
                            cpu_row(c, s->out[0], 0) + first + r, stride);
    }
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
    if (cpu_uses_products(c, s)) {
        linear_products(c, job, first, count, blocks, scratch);
        return;
    }
    uint32_t rows = cpu_rows_of(c, s->out[0]);
    if (cpu_uses_bf16(c, s)) {
        c->k->dot_bf16(blocks, count, (const uint16_t *)(const void *)c->q8_memory, bf16_stride(k),
                       rows, k, scratch->values, cpu_row(c, s->out[0], 0) + first,
                       cpu_info(c, s->out[0])->stride);
        return;
    }
    if (by_dot_tile(c, s, rows)) {
        linear_tile(c, job, first, count, blocks, scratch);
        return;
    }
    bool q8 = cpu_uses_q8(c, s), has_min = q8 && bz_type_has_min(w->type);
    const bz_tensor_info *in = cpu_info(c, s->in[0]), *out = cpu_info(c, s->out[0]);

    /* With several blocks of rows the whole tile is unpacked first; with one block, each weight
     * row is used right after unpacking, while it is in the first-level cache. */
    bool keep = rows > ROW_BLOCK;
    const bool direct =
        rows <= DIRECT_ROWS && c->k->dot_halves && (w->type == BZ_F16 || w->type == BZ_BF16);
    unpacked_row unpacked[MAX_TILE];
    for (uint32_t r = 0; keep && r < count; r++) {
        unpacked[r] = unpack_row(c, w->type, blocks + r * row_bytes, k, q8, scratch, r);
    }
    for (uint32_t n0 = 0; n0 < rows; n0 += ROW_BLOCK) {
        uint32_t n = rows - n0 < ROW_BLOCK ? rows - n0 : ROW_BLOCK;
        float *y = cpu_row(c, s->out[0], n0) + first;
        for (uint32_t r = 0; r < count; r++) {
            float product[ROW_BLOCK];
            if (direct) {
                for (uint32_t i = 0; i < n; i++) {
                    y[(size_t)i * out->stride + r] = c->k->dot_halves(
                        w->type, blocks + r * row_bytes, cpu_row(c, s->in[0], i), k);
                }
                continue;
            }
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
