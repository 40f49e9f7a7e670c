/* kv_write and attend: query heads over the cached positions they see.
 *
 *   out = sum over j of softmax_j(q . k_j) v_j
 *
 * A task has the heads of one or several rows that share keys and values. Positions are visited in
 * order, in chunks that end at multiples of CHUNK: a chunk's keys and values become f32 once for
 * all queries of the task, each query gets the softmax of its part of the chunk, and parts are
 * merged with a running maximum. So the order of additions depends only on the query's position and
 * its window, never on the ring row, on how the prompt was split or on the other rows of the task.
 * Where a row is alone and the table has kernels for that, an f16 cache is read where it is.
 * The scale is 1: the learned norms of q and k include it. */
#include <math.h>
#include <string.h>

#include "cpu/internal.h"

enum {
    CHUNK = 64,
    MAX_QUERIES = 64, /* of a task: rows * heads */
    FEW_ROWS = 4,     /* up to here, a row's heads are divided among tasks */
    FEW_HEADS = 4
};

void cpu_kv_write(cpu *c, const cpu_job *job, uint32_t row, unsigned worker)
{
    (void)worker;
    const bz_step *s = job->step;
    bz_kv *kv = c->rows->kv[c->rows->seq[row]];
    kv_layer *l = &kv->layer[s->cache.id - 1];
    const size_t at = kv_row(l, (uint32_t)c->rows->pos[row]) * kv_row_bytes(kv, l);
    for (uint32_t h = 0; h < l->kv_heads; h++) {
        const float *k = cpu_row(c, s->in[0], row) + (size_t)h * l->head_dim;
        const float *v = cpu_row(c, s->in[1], row) + (size_t)h * l->head_dim;
        cpu_cache_write(c->k, kv->type, k, l->k[h] + at, l->head_dim);
        cpu_cache_write(c->k, kv->type, v, l->v[h] + at, l->head_dim);
    }
}

/* How the queries of a pass are divided: `rows` rows by `heads` heads of one KV head. */
typedef struct division {
    uint32_t rows, heads, tasks_per_group; /* tasks for the heads of a KV head */
    uint32_t kv_heads, row_blocks;
} division;

static division divide(const cpu *c, const bz_step *s)
{
    const uint32_t n = c->rows->n;
    const bz_kv *kv = c->rows->kv[c->rows->seq[0]];
    const kv_layer *l = &kv->layer[s->cache.id - 1];
    const uint32_t group = s->heads / l->kv_heads, most = n <= FEW_ROWS ? FEW_HEADS : MAX_QUERIES;
    division d = {.rows = 1, .heads = group < most ? group : most, .kv_heads = l->kv_heads};
    if (n > FEW_ROWS) {
        d.rows = MAX_QUERIES / d.heads;
    } else {
        while (d.heads > 1 && n * (s->heads / d.heads) < bz_pool_threads(c->pool)) {
            d.heads /= 2;
        }
    }
    d.tasks_per_group = (group + d.heads - 1) / d.heads;
    d.row_blocks = (n + d.rows - 1) / d.rows;
    return d;
}

uint32_t cpu_tasks_attend(const cpu *c, const cpu_job *job)
{
    const division d = divide(c, job->step);
    return d.row_blocks * d.kv_heads * d.tasks_per_group;
}

/* Floats of scratch memory per task, for heads of d values. */
size_t cpu_attend_scratch(size_t d)
{
    const size_t padded = (d + BZ_PANEL - 1) / BZ_PANEL * BZ_PANEL;
    return CHUNK * (d + padded) + MAX_QUERIES * (CHUNK + 2 * d);
}

/* The positions a row sees: first .. last. */
typedef struct sight {
    uint32_t first, last;
} sight;

static sight sight_of(const cpu *c, const bz_step *s, uint32_t row)
{
    sight v = {.last = (uint32_t)c->rows->pos[s->bidirectional ? c->rows->n - 1 : row]};
    const uint32_t own = (uint32_t)c->rows->pos[s->bidirectional ? 0 : row];
    v.first = s->window && own + 1 > s->window ? own + 1 - s->window : 0;
    if (s->image_attention == BZ_TEXT_BOTH_WAYS) {
        const uint32_t begin = (uint32_t)c->rows->image_first[row];
        v.first = v.first < begin ? begin : v.first;
        v.last = (uint32_t)c->rows->image_last[row];
        v.last = s->window && v.last - own >= s->window ? own + s->window - 1 : v.last;
    } else if (s->image_attention != BZ_IMAGE_CAUSAL && c->rows->image_last) {
        v.last = (uint32_t)c->rows->image_last[row];
        const uint32_t begin = (uint32_t)c->rows->image_first[row];
        v.first = s->image_attention == BZ_IMAGE_WHOLE && begin < v.first ? begin : v.first;
    }
    return v;
}

/* One task's queries and memory. */
typedef struct queries {
    uint32_t row, rows, head, heads; /* rows of one sequence */
    uint32_t kv_head;
    sight see[MAX_QUERIES]; /* by row */
    float *keys;            /* [CHUNK][d] */
    float *values;          /* [padded d / 16][CHUNK][16] */
    float *scores;          /* [rows * heads][CHUNK] */
    float *part;            /* [rows * heads][d]: the sums over a chunk */
    float *rotated;         /* [rows * heads][d]: the queries, for a cache with rotated keys */
    bool rotates;
    float max[MAX_QUERIES], total[MAX_QUERIES];
} queries;

/* Positions [begin, end) of a chunk to f32. row: [d], scratch. */
static void read_chunk(const cpu *c, const queries *q, const bz_kv *kv, const kv_layer *l,
                       uint32_t begin, uint32_t end, float *row)
{
    const size_t d = l->head_dim, row_bytes = kv_row_bytes(kv, l);
    for (uint32_t j = begin; j < end; j++) {
        const size_t at = kv_row(l, j) * row_bytes, i = j % CHUNK;
        cpu_cache_read(c->k, kv->type, l->k[q->kv_head] + at, q->keys + i * d, d);
        cpu_cache_read(c->k, kv->type, l->v[q->kv_head] + at, row, d);
        for (size_t v = 0; v < d; v += BZ_PANEL) {
            const size_t count = d - v < BZ_PANEL ? d - v : BZ_PANEL;
            memcpy(q->values + v * CHUNK + i * BZ_PANEL, row + v, count * sizeof *row);
        }
    }
}

/* Adds a chunk's part to the result so far. */
static void merge(queries *q, uint32_t i, float max, float total, float *out, size_t d)
{
    const float *part = q->part + i * d, top = max > q->max[i] ? max : q->max[i];
    const float old = expf(q->max[i] - top), new = expf(max - top); /* old 0 for the first */
    q->total[i] = q->total[i] * old + total * new;
    q->max[i] = top;
    for (size_t v = 0; v < d; v++) {
        out[v] = out[v] * old + part[v] * new;
    }
}

/* All queries over the chunk that begins at `base`; positions [begin, end) were read. */
static void attend_chunk(cpu *c, const bz_step *s, queries *q, uint32_t base, uint32_t begin,
                         uint32_t end)
{
    const size_t d = s->width;
    float max[MAX_QUERIES], total[MAX_QUERIES];
    bool whole = true; /* every row sees the same positions */
    for (uint32_t r = 0; r < q->rows; r++) {
        const uint32_t from = q->see[r].first > begin ? q->see[r].first : begin,
                       to = q->see[r].last + 1 < end ? q->see[r].last + 1 : end;
        whole = whole && from == begin && to == end;
        const float *x = q->rotates ? q->rotated + (size_t)r * q->heads * d
                                    : cpu_row(c, s->in[0], q->row + r) + (size_t)q->head * d;
        float *scores = q->scores + (size_t)r * q->heads * CHUNK;
        for (uint32_t j = from; j < to; j++) {
            float score[MAX_QUERIES];
            c->k->dot(q->keys + (j - base) * d, x, d, q->heads, d, score);
            for (uint32_t h = 0; h < q->heads; h++) {
                scores[h * CHUNK + j - base] = score[h];
            }
        }
        for (uint32_t h = 0; h < q->heads && from < to; h++) {
            float *score = scores + h * CHUNK, top = -INFINITY;
            for (uint32_t j = from; j < to; j++) {
                top = score[j - base] > top ? score[j - base] : top;
            }
            max[r * q->heads + h] = top;
            total[r * q->heads + h] = c->k->exp_sum(score + (from - base), to - from);
        }
    }
    const uint32_t step = whole ? q->rows : 1; /* rows whose products are computed together */
    for (uint32_t r = 0; r < q->rows; r += step) {
        const uint32_t from = q->see[r].first > begin ? q->see[r].first : begin,
                       to = q->see[r].last + 1 < end ? q->see[r].last + 1 : end;
        const size_t at = (size_t)r * q->heads;
        for (size_t v = 0; v < d && from < to; v += BZ_PANEL) {
            c->k->panel(q->scores + at * CHUNK + (from - base), CHUNK, step * q->heads,
                        q->values + v * CHUNK + (from - base) * BZ_PANEL, to - from,
                        q->part + at * d + v, d, d - v < BZ_PANEL ? d - v : BZ_PANEL);
        }
        for (uint32_t i = 0; i < step * q->heads && from < to; i++) {
            merge(q, r * q->heads + i, max[at + i], total[at + i],
                  cpu_row(c, s->out[0], q->row + r + i / q->heads) +
                      (size_t)(q->head + i % q->heads) * d,
                  d);
        }
    }
}

/* The same for one row over a cache in f16, which is read where it is. */
static void attend_chunk_f16(cpu *c, const bz_step *s, queries *q, const kv_layer *l, uint32_t base,
                             uint32_t begin, uint32_t end)
{
    const size_t d = s->width, row_bytes = 2 * d;
    const float *x = cpu_row(c, s->in[0], q->row) + (size_t)q->head * d;
    float *out = cpu_row(c, s->out[0], q->row) + (size_t)q->head * d;
    float *scores = q->scores + (begin - base), max[FEW_HEADS], total[FEW_HEADS];
    /* The chunk may begin at the ring's end and go on at its start. */
    const uint32_t first = kv_row(l, begin), n = end - begin,
                   before = n < l->rows - first ? n : l->rows - first;
    const uint8_t *k = l->k[q->kv_head], *v = l->v[q->kv_head];
    c->k->scores_f16(x, q->heads, k + first * row_bytes, row_bytes, before, d, scores, CHUNK);
    c->k->scores_f16(x, q->heads, k, row_bytes, n - before, d, scores + before, CHUNK);
    for (uint32_t h = 0; h < q->heads; h++) {
        const float *score = scores + h * CHUNK;
        max[h] = -INFINITY;
        for (uint32_t j = 0; j < n; j++) {
            max[h] = score[j] > max[h] ? score[j] : max[h];
        }
        total[h] = c->k->exp_sum(scores + h * CHUNK, n);
    }
    c->k->values_f16(scores, CHUNK, q->heads, v + first * row_bytes, row_bytes, before, d, q->part,
                     false);
    c->k->values_f16(scores + before, CHUNK, q->heads, v, row_bytes, n - before, d, q->part, true);
    for (uint32_t h = 0; h < q->heads; h++) {
        merge(q, h, max[h], total[h], out + h * d, d);
    }
}

static void attend_rows(cpu *c, const bz_step *s, queries *q)
{
    const bz_kv *kv = c->rows->kv[c->rows->seq[q->row]];
    const kv_layer *l = &kv->layer[s->cache.id - 1];
    const size_t d = s->width;
    sight all = {UINT32_MAX, 0};
    for (uint32_t r = 0; r < q->rows; r++) {
        q->see[r] = sight_of(c, s, q->row + r);
        all.first = q->see[r].first < all.first ? q->see[r].first : all.first;
        all.last = q->see[r].last > all.last ? q->see[r].last : all.last;
        memset(cpu_row(c, s->out[0], q->row + r) + (size_t)q->head * d, 0,
               q->heads * d * sizeof(float));
    }
    const bool in_place = c->k->scores_f16 && kv->type == BZ_CACHE_F16 && d % 32 == 0 &&
                          q->rows == 1 && q->heads <= FEW_HEADS;
    q->rotates = kv->type == BZ_CACHE_Q4;
    for (uint32_t i = 0; i < q->rows * q->heads; i++) {
        q->max[i] = -INFINITY;
        q->total[i] = 0;
        if (q->rotates) {
            const float *x =
                cpu_row(c, s->in[0], q->row + i / q->heads) + (size_t)(q->head + i % q->heads) * d;
            memcpy(q->rotated + i * d, x, d * sizeof *x);
            cpu_cache_rotate(q->rotated + i * d, d);
        }
    }
    for (uint32_t begin = all.first; begin <= all.last;) {
        const uint32_t base = begin / CHUNK * CHUNK;
        const uint32_t end = all.last - base < CHUNK ? all.last + 1 : base + CHUNK;
        if (in_place) {
            attend_chunk_f16(c, s, q, l, base, begin, end);
        } else {
            read_chunk(c, q, kv, l, begin, end, q->part);
            attend_chunk(c, s, q, base, begin, end);
        }
        begin = end;
    }
    for (uint32_t i = 0; i < q->rows * q->heads; i++) {
        float *out =
            cpu_row(c, s->out[0], q->row + i / q->heads) + (size_t)(q->head + i % q->heads) * d;
        for (size_t v = 0; v < d; v++) {
            out[v] /= q->total[i];
        }
        if (q->rotates) {
            cpu_cache_rotate(out, d);
        }
    }
}

void cpu_attend(cpu *c, const cpu_job *job, uint32_t task, unsigned worker)
{
    const bz_step *s = job->step;
    const division div = divide(c, s);
    const uint32_t group = s->heads / div.kv_heads, part = task % div.tasks_per_group;
    const uint32_t block = task / div.tasks_per_group / div.kv_heads;
    const size_t d = s->width, padded = (d + BZ_PANEL - 1) / BZ_PANEL * BZ_PANEL;
    queries q = {.kv_head = task / div.tasks_per_group % div.kv_heads,
                 .keys = c->scratch[worker].values};
    q.values = q.keys + CHUNK * d;
    q.scores = q.values + CHUNK * padded;
    q.part = q.scores + MAX_QUERIES * CHUNK;
    q.rotated = q.part + MAX_QUERIES * d;
    q.head = q.kv_head * group + part * div.heads;
    q.heads = group - part * div.heads < div.heads ? group - part * div.heads : div.heads;
    const uint32_t end = (block + 1) * div.rows < c->rows->n ? (block + 1) * div.rows : c->rows->n;
    for (q.row = block * div.rows; q.row < end; q.row += q.rows) {
        q.rows = 1;
        while (q.row + q.rows < end && c->rows->seq[q.row + q.rows] == c->rows->seq[q.row]) {
            q.rows++;
        }
        attend_rows(c, s, &q);
    }
}
