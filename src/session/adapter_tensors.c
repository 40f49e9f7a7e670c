/* The tensors of an adapter as they are multiplied, all F32: for the weights that are multiplied
 * with one input a single a, the rows of each after those of the one before; for each weight b in
 * panels of 16 outputs, which CPU and GPU read without a stride. Ranks become multiples of four, by
 * rows of zeros, so that kernels read vectors. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/bind.h"
#include "session/adapter.h"

enum { PANEL = BZ_LOW_RANK_PANEL, RANK_STEP = 4, NAME_BYTES = 160 };

/* ---- sizes -------------------------------------------------------------------------------- */

/* Of a weight: in and out of its product, or of a table the number and size of its rows. */
typedef struct sizes {
    uint64_t in, out, experts;
    bool is_table;
} sizes;

static sizes sizes_of(const bz_model *m, bz_weight w)
{
    const bz_weight_info *info = bz_weight_of(&m->text.weights.table, w);
    const bool table = bz_is_table(&m->text, w);
    return (sizes){info->ne[table], info->ne[!table], info->ne[2], table};
}

static uint64_t panels_of(sizes s)
{
    return (s.out + PANEL - 1) / PANEL;
}

static const bz_weight_info *info_of(const bz_adapter *a, bz_weight tensor)
{
    return bz_weight_of(&a->table, tensor);
}

static float *values_of(const bz_adapter *a, bz_weight tensor)
{
    return (float *)(void *)a->bytes[tensor.id - 1];
}

/* ---- making room -------------------------------------------------------------------------- */

/* A tensor of zeros, named after a weight of the model. */
static bz_weight add_tensor(bz_adapter *a, bz_weight of, const char *suffix, const uint64_t ne[3])
{
    const bz_weight_info *base = bz_weight_of(&a->model->text.weights.table, of);
    char name[NAME_BYTES];
    uint64_t bytes = sizeof(float);
    for (int i = 0; i < 3; i++) {
        if (__builtin_mul_overflow(bytes, ne[i], &bytes)) {
            return BZ_NO_WEIGHT;
        }
    }
    uint8_t *values = bz_alloc_zeros(bytes);
    snprintf(name, sizeof name, "%s%s", base->name, suffix);
    const bz_weight w = values
                            ? bz_bind_add(&a->table, &(bz_weight_info){.name = name,
                                                                       .type = BZ_F32,
                                                                       .ne = {ne[0], ne[1], ne[2]},
                                                                       .size = bytes,
                                                                       .layer = base->layer})
                            : BZ_NO_WEIGHT;
    if (!w.id) {
        free(values);
        return BZ_NO_WEIGHT;
    }
    a->bytes[w.id - 1] = values;
    a->total_bytes += bytes;
    return w;
}

static bz_weight add_a(bz_adapter *a, bz_weight group, uint64_t rank)
{
    const sizes s = sizes_of(a->model, group);
    const uint64_t rows[3] = {s.in, rank, s.experts}, table[3] = {rank, s.in, 1};
    return add_tensor(a, group, ".lora_a", s.is_table ? table : rows);
}

static bz_weight add_b(bz_adapter *a, bz_weight w, uint64_t rank)
{
    const sizes s = sizes_of(a->model, w);
    return add_tensor(a, w, ".lora_b", (uint64_t[]){PANEL, rank, s.experts * panels_of(s)});
}

bz_status bz_adapter_make_tensors(bz_adapter *a, const uint32_t *ranks, bz_error *err)
{
    const uint32_t n = a->model->text.weights.table.n;
    uint64_t *sums = calloc((size_t)n + 1, sizeof *sums); /* by the first weight of a group */
    bz_weight *as = calloc((size_t)n + 1, sizeof *as);
    a->ranks = calloc((size_t)n + 1, sizeof *a->ranks);
    a->bytes = calloc(2 * (size_t)n + 1, sizeof *a->bytes);
    bool ok = sums && as && a->ranks && a->bytes;
    for (uint32_t i = 0; i < n && ok; i++) {
        if (ranks[i]) {
            const uint32_t group = bz_input_group(&a->model->text, (bz_weight){i + 1}).id - 1;
            a->ranks[i].first = (uint32_t)sums[group];
            sums[group] += ranks[i];
        }
    }
    for (uint32_t i = 0; i < n && ok; i++) {
        as[i] = sums[i] ? add_a(a, (bz_weight){i + 1}, sums[i]) : BZ_NO_WEIGHT;
        ok = !sums[i] || as[i].id;
    }
    for (uint32_t i = 0; i < n && ok; i++) {
        if (ranks[i]) {
            a->ranks[i].a = as[bz_input_group(&a->model->text, (bz_weight){i + 1}).id - 1];
            a->ranks[i].b = add_b(a, (bz_weight){i + 1}, ranks[i]);
            a->ranks[i].scale = 1;
            ok = a->ranks[i].b.id != 0;
        }
    }
    free(sums);
    free(as);
    return ok ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the adapter.");
}

uint32_t bz_adapter_rank(uint32_t rank)
{
    return (rank + RANK_STEP - 1) / RANK_STEP * RANK_STEP;
}

/* ---- from a file ---------------------------------------------------------------------------- */

static bool all_finite(const float *values, size_t n)
{
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        finite = finite && isfinite(values[i]);
    }
    return finite;
}

static bz_status not_finite(const bz_gguf_tensor *t, bz_error *err)
{
    return bz_fail(err, BZ_BAD_FILE,
                   "The adapter's tensor %.*s holds a value that is not a finite number.",
                   (int)t->name.len, t->name.data);
}

/* a: [in, r, E] in the file, or of a table [r, V]; in memory the rows, or columns, from `first` on.
 */
static bz_status fill_a(bz_adapter *a, const bz_pair *p, const uint8_t *file, bz_error *err)
{
    const bz_low_rank *l = &a->ranks[p->weight.id - 1];
    const uint64_t *have = p->a->ne, *ne = info_of(a, l->a)->ne;
    const size_t row_bytes = bz_row_bytes((bz_type)p->a->type, have[0]);
    for (uint64_t i = 0; i < have[1] * have[2]; i++) {
        const uint64_t row = p->is_table ? i : i / have[1] * ne[1] + l->first + i % have[1];
        float *to = values_of(a, l->a) + row * ne[0];
        bz_dequantize((bz_type)p->a->type, file + p->a->offset + i * row_bytes, to, have[0]);
        if (!all_finite(to, have[0])) {
            return not_finite(p->a, err);
        }
    }
    return BZ_OK;
}

/* b: [r, out, E] in the file. */
static bz_status fill_b(bz_adapter *a, const bz_pair *p, const uint8_t *file, bz_error *err)
{
    const bz_low_rank *l = &a->ranks[p->weight.id - 1];
    const uint64_t panels = (p->out + PANEL - 1) / PANEL, rank = info_of(a, l->b)->ne[1];
    const size_t row_bytes = bz_row_bytes((bz_type)p->b->type, p->rank);
    float *row = malloc(p->rank * sizeof *row);
    bz_status status = row ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the adapter.");
    for (uint64_t r = 0; r < p->b->ne[2] * p->out && status == BZ_OK; r++) {
        const uint64_t expert = r / p->out, out = r % p->out;
        float *to =
            values_of(a, l->b) + (expert * panels + out / PANEL) * rank * PANEL + out % PANEL;
        bz_dequantize((bz_type)p->b->type, file + p->b->offset + r * row_bytes, row, p->rank);
        status = all_finite(row, p->rank) ? BZ_OK : not_finite(p->b, err);
        for (uint32_t j = 0; j < p->rank; j++) {
            to[(size_t)j * PANEL] = row[j];
        }
    }
    free(row);
    return status;
}

bz_status bz_adapter_fill(bz_adapter *a, const bz_pair *p, const uint8_t *file, bz_error *err)
{
    const bz_status status = fill_a(a, p, file, err);
    a->ranks[p->weight.id - 1].scale = bz_pair_factor(&a->pairs, p);
    return status == BZ_OK ? fill_b(a, p, file, err) : status;
}

/* ---- several in one ----------------------------------------------------------------------------
 */

/* n rows of `cols` values. */
static void copy_rows(float *to, uint64_t to_stride, const float *from, uint64_t from_stride,
                      uint64_t n, uint64_t cols)
{
    for (uint64_t i = 0; i < n; i++) {
        memcpy(to + i * to_stride, from + i * from_stride, (size_t)cols * sizeof *to);
    }
}

/* The part of weight w after the first `before` values of its rank. */
static void add_part(bz_adapter *to, const bz_adapter *from, bz_weight w, uint32_t before,
                     float scale)
{
    const bz_low_rank *t = &to->ranks[w.id - 1], *f = &from->ranks[w.id - 1];
    const uint64_t *ta = info_of(to, t->a)->ne, *fa = info_of(from, f->a)->ne;
    const uint64_t to_rank = info_of(to, t->b)->ne[1], rank = info_of(from, f->b)->ne[1];
    const uint64_t panels = info_of(to, t->b)->ne[2];
    if (bz_is_table(&to->model->text, w)) {
        copy_rows(values_of(to, t->a) + before, ta[0], values_of(from, f->a), fa[0], ta[1], rank);
    } else {
        copy_rows(values_of(to, t->a) + (t->first + before) * ta[0], ta[1] * ta[0],
                  values_of(from, f->a) + f->first * fa[0], fa[1] * fa[0], ta[2], rank * ta[0]);
    }
    for (uint64_t panel = 0; panel < panels; panel++) {
        float *b = values_of(to, t->b) + (panel * to_rank + before) * PANEL;
        const float *part = values_of(from, f->b) + panel * rank * PANEL;
        for (uint64_t i = 0; i < rank * PANEL; i++) {
            b[i] = scale * f->scale * part[i];
        }
    }
}

bz_status bz_adapter_combine(bz_adapter **out, const bz_model *model, const bz_adapter_use *uses,
                             uint32_t n, bz_error *err)
{
    const uint32_t n_weights = model->text.weights.table.n;
    bz_adapter *a = calloc(1, sizeof *a);
    uint32_t *ranks = calloc((size_t)n_weights + 1, sizeof *ranks);
    bz_status status =
        a && ranks ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the table of adapters.");
    for (uint32_t k = 0; k < n && status == BZ_OK; k++) {
        for (uint32_t i = 0; i < n_weights; i++) {
            const bz_weight b = uses[k].adapter->ranks[i].b;
            ranks[i] += b.id ? (uint32_t)info_of(uses[k].adapter, b)->ne[1] : 0;
        }
    }
    if (status == BZ_OK) {
        atomic_init(&a->references, 1);
        a->model = model;
        status = bz_adapter_make_tensors(a, ranks, err);
    }
    for (uint32_t i = 0; i < n_weights && status == BZ_OK; i++) {
        uint32_t before = 0;
        for (uint32_t k = 0; k < n; k++) {
            const bz_weight b = uses[k].adapter->ranks[i].b;
            if (b.id) {
                add_part(a, uses[k].adapter, (bz_weight){i + 1}, before, uses[k].scale);
                before += (uint32_t)info_of(uses[k].adapter, b)->ne[1];
            }
        }
    }
    free(ranks);
    if (status != BZ_OK) {
        bz_adapter_free(a);
        return status;
    }
    *out = a;
    return BZ_OK;
}
