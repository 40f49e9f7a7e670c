/* Recording and placing. Steps and tensors are appended; a failed allocation sets
 * plan->failed once, and bz_plan_finish reports it, so that recording code stays a
 * plain list without error branches. */
#include "plan/recording.h"

#include <stdlib.h>
#include <string.h>

const char *bz_op_name(bz_op op)
{
    switch (op) {
#define BZ_OP_NAME(name, text)                                                                     \
    case BZ_OP_##name: return text;
        BZ_OP_LIST(BZ_OP_NAME)
#undef BZ_OP_NAME
    }
    return "?";
}

bz_status bz_plan_new(bz_plan **out, const bz_weights *weights, const bz_cache_info *caches,
                      uint32_t n_caches, uint32_t rows, uint32_t out_rows, bz_error *err)
{
    bz_plan *p = calloc(1, sizeof *p);
    enum { FIRST_TENSORS = 256 };
    if (p) {
        p->tensors = calloc(FIRST_TENSORS, sizeof *p->tensors);
        p->cap_tensors = FIRST_TENSORS;
    }
    if (!p || !p->tensors) {
        free(p);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to record a plan.");
    }
    p->weights = weights;
    p->caches = caches;
    p->n_caches = n_caches;
    p->rows = rows;
    p->out_rows = out_rows;
    p->n_tensors = 1; /* id 0 is "none": all zero */
    p->layer = -1;
    *out = p;
    return BZ_OK;
}

void bz_plan_free(bz_plan *p)
{
    if (p) {
        free(p->steps);
        free(p->tensors);
        free(p);
    }
}

const bz_tensor_info *bz_plan_tensor(const bz_plan *p, bz_tensor t)
{
    return &p->tensors[t.id];
}

uint32_t bz_plan_rows_of(const bz_plan *p, bz_tensor t)
{
    return p->tensors[t.id].whole_pass ? p->rows : p->out_rows;
}

/* ---- recording ----------------------------------------------------------- */

static bool grow(void **items, size_t *cap, size_t need, size_t size)
{
    if (need <= *cap) {
        return true;
    }
    size_t want = *cap ? *cap * 2 : 256;
    void *more = realloc(*items, want * size);
    if (!more) {
        return false;
    }
    *items = more;
    *cap = want;
    return true;
}

bz_tensor bz_new_tensor(bz_plan *p, uint32_t cols, bool whole_pass)
{
    if (p->failed ||
        !grow((void **)&p->tensors, &p->cap_tensors, p->n_tensors + 1, sizeof *p->tensors)) {
        p->failed = true;
        return BZ_NO_TENSOR;
    }
    bz_tensor t = {(uint32_t)p->n_tensors++};
    p->tensors[t.id] = (bz_tensor_info){.cols = cols,
                                        .stride = cols,
                                        .root = t.id,
                                        .whole_pass = whole_pass,
                                        .first = -1,
                                        .last = -1};
    return t;
}

void bz_push_step(bz_plan *p, bz_step step)
{
    if (p->failed || !grow((void **)&p->steps, &p->cap_steps, p->n_steps + 1, sizeof *p->steps)) {
        p->failed = true;
        return;
    }
    step.layer = p->layer;
    p->steps[p->n_steps++] = step;
}

uint32_t bz_cols_of(const bz_plan *p, bz_tensor t)
{
    return p->failed ? 0 : p->tensors[t.id].cols;
}

/* A fresh output with as many rows as `like`. */
bz_tensor bz_output_like(bz_plan *p, bz_tensor like, uint32_t cols)
{
    return bz_new_tensor(p, cols, p->failed || like.id == 0 || p->tensors[like.id].whole_pass);
}

bz_tensor bz_embed(bz_plan *p, bz_weight table, float scale, const char *name)
{
    bz_tensor out = bz_new_tensor(p, (uint32_t)bz_weight_of(p->weights, table)->ne[0], true);
    bz_push_step(
        p, (bz_step){.op = BZ_OP_EMBED, .name = name, .w = {table}, .out = {out}, .scale = scale});
    return out;
}

bz_tensor bz_linear(bz_plan *p, bz_tensor x, bz_weight w, const char *name)
{
    bz_tensor out = bz_output_like(p, x, (uint32_t)bz_weight_of(p->weights, w)->ne[1]);
    bz_push_step(p, (bz_step){.op = BZ_OP_LINEAR, .name = name, .in = {x}, .w = {w}, .out = {out}});
    return out;
}

bz_tensor bz_rms_norm(bz_plan *p, bz_tensor x, bz_weight w, uint32_t width, float eps,
                      const char *name)
{
    bz_tensor out = bz_output_like(p, x, bz_cols_of(p, x));
    bz_push_step(p, (bz_step){.op = BZ_OP_RMS_NORM,
                              .name = name,
                              .in = {x},
                              .w = {w},
                              .out = {out},
                              .width = width,
                              .eps = eps});
    return out;
}

bz_tensor bz_add(bz_plan *p, bz_tensor a, bz_tensor b, float scale, const char *name)
{
    bz_tensor out = bz_output_like(p, a, bz_cols_of(p, a));
    bz_push_step(
        p, (bz_step){.op = BZ_OP_ADD, .name = name, .in = {a, b}, .out = {out}, .scale = scale});
    return out;
}

bz_tensor bz_scale(bz_plan *p, bz_tensor x, bz_weight w, const char *name)
{
    bz_tensor out = bz_output_like(p, x, bz_cols_of(p, x));
    bz_push_step(p, (bz_step){.op = BZ_OP_SCALE, .name = name, .in = {x}, .w = {w}, .out = {out}});
    return out;
}

bz_tensor bz_mul_vector(bz_plan *p, bz_tensor x, bz_weight w, float scale, const char *name)
{
    bz_tensor out = bz_output_like(p, x, bz_cols_of(p, x));
    bz_push_step(p, (bz_step){.op = BZ_OP_MUL_VECTOR,
                              .name = name,
                              .in = {x},
                              .w = {w},
                              .out = {out},
                              .scale = scale,
                              .width = (uint32_t)bz_weight_of(p->weights, w)->ne[0]});
    return out;
}

bz_tensor bz_geglu(bz_plan *p, bz_tensor gate, bz_tensor up, const char *name)
{
    bz_tensor out = bz_output_like(p, gate, bz_cols_of(p, gate));
    bz_push_step(p, (bz_step){.op = BZ_OP_GEGLU,
                              .name = name,
                              .in = {gate, up},
                              .out = {out},
                              .width = bz_cols_of(p, gate)});
    return out;
}

bz_tensor bz_geglu_fused(bz_plan *p, bz_tensor gate_up, uint32_t width, const char *name)
{
    bz_tensor out = bz_output_like(p, gate_up, bz_cols_of(p, gate_up) / 2);
    bz_push_step(
        p,
        (bz_step){.op = BZ_OP_GEGLU, .name = name, .in = {gate_up}, .out = {out}, .width = width});
    return out;
}

bz_tensor bz_rope_table(bz_plan *p, bz_weight factors, uint32_t width, uint32_t pairs, double base,
                        const char *name)
{
    bz_tensor out = bz_new_tensor(p, width, true);
    bz_push_step(p, (bz_step){.op = BZ_OP_ROPE_TABLE,
                              .name = name,
                              .w = {factors},
                              .out = {out},
                              .width = width,
                              .pairs = pairs,
                              .axes = 1,
                              .base = base});
    return out;
}

bz_tensor bz_rope(bz_plan *p, bz_tensor x, bz_tensor table, uint32_t width, const char *name)
{
    bz_tensor out = bz_output_like(p, x, bz_cols_of(p, x));
    bz_push_step(
        p,
        (bz_step){.op = BZ_OP_ROPE, .name = name, .in = {x, table}, .out = {out}, .width = width});
    return out;
}

void bz_kv_write(bz_plan *p, bz_tensor k, bz_tensor v, bz_cache cache, const char *name)
{
    bz_push_step(p, (bz_step){.op = BZ_OP_KV_WRITE, .name = name, .in = {k, v}, .cache = cache});
}

static bz_tensor attend(bz_plan *p, bz_tensor q, bz_cache cache, uint32_t heads, uint32_t width,
                        uint32_t window, bool both_ways, const char *name)
{
    bz_tensor out = bz_output_like(p, q, bz_cols_of(p, q));
    bz_push_step(p, (bz_step){.op = BZ_OP_ATTEND,
                              .name = name,
                              .in = {q},
                              .out = {out},
                              .cache = cache,
                              .heads = heads,
                              .width = width,
                              .window = window,
                              .both_ways = both_ways});
    return out;
}

bz_tensor bz_attend(bz_plan *p, bz_tensor q, bz_cache cache, uint32_t heads, uint32_t width,
                    uint32_t window, const char *name)
{
    return attend(p, q, cache, heads, width, window, false, name);
}

bz_tensor bz_attend_both_ways(bz_plan *p, bz_tensor q, bz_cache cache, uint32_t heads,
                              uint32_t width, uint32_t window, const char *name)
{
    return attend(p, q, cache, heads, width, window, true, name);
}

void bz_route(bz_plan *p, bz_tensor logits, uint32_t experts, bz_tensor *ids, bz_tensor *shares,
              const char *name)
{
    *ids = bz_new_tensor(p, experts, true);
    *shares = bz_new_tensor(p, experts, true);
    bz_push_step(p, (bz_step){.op = BZ_OP_ROUTE,
                              .name = name,
                              .in = {logits},
                              .out = {*ids, *shares},
                              .experts = experts});
}

bz_tensor bz_expert_linear(bz_plan *p, bz_tensor x, bz_tensor ids, bz_weight w, uint32_t experts,
                           const char *name)
{
    bz_tensor out = bz_new_tensor(p, experts * (uint32_t)bz_weight_of(p->weights, w)->ne[1], true);
    bz_push_step(p, (bz_step){.op = BZ_OP_EXPERT_LINEAR,
                              .name = name,
                              .in = {x, ids},
                              .w = {w},
                              .out = {out},
                              .experts = experts});
    return out;
}

bz_tensor bz_expert_sum(bz_plan *p, bz_tensor x, bz_tensor ids, bz_tensor shares, bz_weight scales,
                        uint32_t experts, const char *name)
{
    bz_tensor out = bz_new_tensor(p, bz_cols_of(p, x) / experts, true);
    bz_push_step(p, (bz_step){.op = BZ_OP_EXPERT_SUM,
                              .name = name,
                              .in = {x, ids, shares},
                              .w = {scales},
                              .out = {out},
                              .experts = experts});
    return out;
}

bz_tensor bz_take_rows(bz_plan *p, bz_tensor x, const char *name)
{
    return bz_take_rows_from(p, x, 0, name);
}

bz_tensor bz_take_rows_from(bz_plan *p, bz_tensor x, uint32_t row, const char *name)
{
    bz_tensor out = bz_new_tensor(p, bz_cols_of(p, x), false);
    bz_push_step(
        p, (bz_step){.op = BZ_OP_TAKE_ROWS, .name = name, .in = {x}, .out = {out}, .row = row});
    return out;
}

bz_tensor bz_softcap(bz_plan *p, bz_tensor x, float cap, const char *name)
{
    bz_tensor out = bz_output_like(p, x, bz_cols_of(p, x));
    bz_push_step(
        p, (bz_step){.op = BZ_OP_SOFTCAP, .name = name, .in = {x}, .out = {out}, .scale = cap});
    return out;
}

void bz_last_sees_blocks(bz_plan *p, bz_blocks blocks)
{
    if (!p->failed) {
        p->steps[p->n_steps - 1].blocks = blocks;
    }
}

void bz_last_takes_soft(bz_plan *p)
{
    if (!p->failed) {
        p->steps[p->n_steps - 1].takes_soft = true;
    }
}

bz_tensor bz_keep(bz_plan *p, uint32_t cols)
{
    bz_tensor kept = bz_new_tensor(p, cols, true);
    p->tensors[kept.id].kept = kept.id != 0;
    return kept;
}

bz_tensor bz_recall(bz_plan *p, bz_tensor kept, const char *name)
{
    bz_tensor out = bz_output_like(p, kept, bz_cols_of(p, kept));
    bz_push_step(p, (bz_step){.op = BZ_OP_RECALL, .name = name, .in = {kept}, .out = {out}});
    return out;
}

void bz_judge(bz_plan *p, bz_tensor logits, uint32_t row, bz_tensor *to, const char *name)
{
    *to = to->id ? *to : bz_new_tensor(p, BZ_JUDGED_COLUMNS, true);
    bz_push_step(
        p, (bz_step){.op = BZ_OP_JUDGE, .name = name, .in = {logits}, .out = {*to}, .row = row});
}

void bz_soft_embed(bz_plan *p, bz_tensor logits, bz_tensor judged, bz_weight table, float scale,
                   uint32_t row, bz_tensor to, const char *name)
{
    bz_push_step(p, (bz_step){.op = BZ_OP_SOFT_EMBED,
                              .name = name,
                              .in = {logits, judged},
                              .w = {table},
                              .out = {to},
                              .scale = scale,
                              .row = row});
}

void bz_cut(bz_plan *p, const char *name)
{
    bz_push_step(p, (bz_step){.op = BZ_OP_CUT, .name = name});
}

bz_tensor bz_columns(bz_plan *p, bz_tensor x, uint32_t first, uint32_t cols)
{
    bz_tensor view = bz_new_tensor(p, cols, true);
    if (!p->failed) {
        bz_tensor_info *v = &p->tensors[view.id], root = p->tensors[x.id];
        v->stride = root.stride;
        v->column = root.column + first;
        v->root = root.root;
        v->whole_pass = root.whole_pass;
    }
    return view;
}

/* ---- placing ------------------------------------------------------------- */

static void note_lifetimes(bz_plan *p)
{
    for (size_t s = 0; s < p->n_steps; s++) {
        const bz_step *step = &p->steps[s];
        for (size_t i = 0; i < 3; i++) {
            p->tensors[p->tensors[step->in[i].id].root].last = (int32_t)s;
        }
        for (size_t i = 0; i < 2; i++) {
            bz_tensor_info *t = &p->tensors[step->out[i].id];
            t->first = t->first < 0 ? (int32_t)s : t->first; /* some are written by parts */
            if (t->last < (int32_t)s) {
                t->last = (int32_t)s; /* written, never read: alive during its own step */
            }
        }
    }
    p->tensors[p->tensors[p->output.id].root].last = (int32_t)p->n_steps;
}

/* Steps in the order in which their groups run, which for nearly all is the plan's. */
static void sort_steps(const bz_plan *p, const uint32_t *group, size_t *order)
{
    for (size_t s = 0; s < p->n_steps; s++) {
        size_t at = s;
        for (; group && at > 0 && group[order[at - 1]] > group[s]; at--) {
            order[at] = order[at - 1];
        }
        order[at] = s;
    }
}

/* The group that reads each tensor last. */
static void last_readers(const bz_plan *p, const uint32_t *group, size_t *last)
{
    for (size_t i = 0; i < p->n_tensors; i++) {
        size_t step = (size_t)p->tensors[i].last;
        last[i] = !group || p->tensors[i].last < 0 ? step
                  : step < p->n_steps              ? group[step]
                                                   : SIZE_MAX; /* the output outlives all */
    }
    for (size_t s = 0; group && s < p->n_steps; s++) {
        for (size_t i = 0; i < 3; i++) {
            const uint32_t root = p->tensors[p->steps[s].in[i].id].root;
            last[root] = last[root] < group[s]
                             ? group[s]
                             : last[root]; /* the plan's last reader may run early */
        }
    }
}

/* Each tensor, in order of birth, goes to the lowest offset that no tensor alive at the
 * same time occupies. Plans have about a thousand tensors of which a dozen live at once. */
bz_status bz_plan_place(const bz_plan *p, const uint32_t *group, size_t *offset,
                        size_t *arena_bytes, bz_error *err)
{
    if (p->tower) {
        return bz_plan_place_tower(p, group, offset, arena_bytes, err);
    }
    uint32_t *alive = malloc(p->n_tensors * sizeof *alive); /* sorted by offset */
    size_t *last = malloc(p->n_tensors * sizeof *last);     /* group that reads it last */
    size_t *order = malloc((p->n_steps + 1) * sizeof *order);
    if (!alive || !last || !order) {
        free(alive);
        free(last);
        free(order);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to place a plan's tensors.");
    }
    last_readers(p, group, last);
    sort_steps(p, group, order);
    memset(offset, 0, p->n_tensors * sizeof *offset);
    size_t n_alive = 0;
    *arena_bytes = 0;
    for (size_t k = 0; k < p->n_steps; k++) {
        const size_t s = order[k];
        const size_t now = group ? group[s] : s;
        size_t kept = 0;
        for (size_t i = 0; i < n_alive; i++) {
            if (last[alive[i]] >= now) {
                alive[kept++] = alive[i];
            }
        }
        n_alive = kept;
        for (size_t o = 0; o < 2; o++) {
            uint32_t id = p->steps[s].out[o].id, in = p->steps[s].in[0].id;
            if (id == 0 || p->tensors[id].kept || p->tensors[id].first < (int32_t)s) {
                continue; /* kept ones lie behind all others; what is written by parts has its place
                           */
            }
            if (p->steps[s].op ==
                BZ_OP_SOFTCAP) { /* in place: nothing else is as wide as the vocabulary */
                offset[id] = offset[in];
                last[in] = last[id];
                continue;
            }
            size_t at = 0, slot = 0, bytes = p->tensors[id].bytes;
            for (; slot < n_alive; slot++) {
                if (at + bytes <= offset[alive[slot]]) {
                    break;
                }
                at = offset[alive[slot]] + p->tensors[alive[slot]].bytes;
            }
            offset[id] = at;
            memmove(alive + slot + 1, alive + slot, (n_alive - slot) * sizeof *alive);
            alive[slot] = id;
            n_alive++;
            if (at + bytes > *arena_bytes) {
                *arena_bytes = at + bytes;
            }
        }
    }
    for (size_t i = 1; i < p->n_tensors; i++) {
        if (p->tensors[i].kept) {
            offset[i] = *arena_bytes;
            *arena_bytes += p->tensors[i].bytes;
        }
    }
    for (size_t i = 1; i < p->n_tensors; i++) {
        offset[i] = offset[p->tensors[i].root]; /* views lie where their root lies */
    }
    free(alive);
    free(last);
    free(order);
    return BZ_OK;
}

bz_status bz_plan_finish(bz_plan *p, bz_tensor output, bz_error *err)
{
    if (p->failed) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to record a plan of %u rows.", p->rows);
    }
    p->output = output;
    note_lifetimes(p);
    for (size_t i = 1; i < p->n_tensors; i++) {
        bz_tensor_info *t = &p->tensors[i];
        size_t rows = t->whole_pass ? p->rows : p->out_rows;
        t->bytes = (rows * t->cols * 4 + 63) / 64 * 64; /* whole cache lines */
    }
    size_t *offset = malloc(p->n_tensors * sizeof *offset);
    bz_status status = offset
                           ? bz_plan_place(p, NULL, offset, &p->arena_bytes, err)
                           : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to place a plan's tensors.");
    for (size_t i = 1; status == BZ_OK && i < p->n_tensors; i++) {
        p->tensors[i].offset = offset[i];
    }
    free(offset);
    return status;
}
