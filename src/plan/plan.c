/* Recording steps, and assigning arena offsets to tensors. A failed allocation or a missing weight
 * sets plan->failed, which bz_plan_finish reports, so that recording code needs no error branches.
 */
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
        return bz_fail(err, BZ_OUT_OF_MEMORY, "There is not enough memory to record a plan.");
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

bz_tensor bz_output_like(bz_plan *p, bz_tensor like, uint32_t cols)
{
    return bz_new_tensor(p, cols, p->failed || like.id == 0 || p->tensors[like.id].whole_pass);
}

uint32_t bz_weight_size(bz_plan *p, bz_weight w, int i, const char *name)
{
    if (!w.id || w.id > p->weights->n) {
        if (!p->missing) {
            p->missing = name;
            p->missing_layer = p->layer;
        }
        p->failed = true;
        return 0;
    }
    return (uint32_t)bz_weight_of(p->weights, w)->ne[i];
}

bz_tensor bz_embed(bz_plan *p, bz_weight table, float scale, const char *name)
{
    bz_tensor out = bz_new_tensor(p, bz_weight_size(p, table, 0, name), true);
    bz_push_step(
        p, (bz_step){.op = BZ_OP_EMBED, .name = name, .w = {table}, .out = {out}, .scale = scale});
    return out;
}

bz_tensor bz_linear(bz_plan *p, bz_tensor x, bz_weight w, const char *name)
{
    bz_tensor out = bz_output_like(p, x, bz_weight_size(p, w, 1, name));
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
                              .width = bz_weight_size(p, w, 0, name)});
    return out;
}

bz_tensor bz_multiply(bz_plan *p, bz_tensor x, float scale, const char *name)
{
    bz_tensor out = bz_output_like(p, x, bz_cols_of(p, x));
    bz_push_step(
        p,
        (bz_step){.op = BZ_OP_MUL_VECTOR, .name = name, .in = {x}, .out = {out}, .scale = scale});
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

bz_tensor bz_rope_table(bz_plan *p, bz_weight factors, uint32_t width, uint32_t rotated_pairs,
                        double base, const char *name)
{
    bz_tensor out = bz_new_tensor(p, width, true);
    bz_push_step(p, (bz_step){.op = BZ_OP_ROPE_TABLE,
                              .name = name,
                              .w = {factors},
                              .out = {out},
                              .width = width,
                              .rotated_pairs = rotated_pairs,
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
                        uint32_t window, bool bidirectional, const char *name)
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
                              .bidirectional = bidirectional});
    return out;
}

bz_tensor bz_attend(bz_plan *p, bz_tensor q, bz_cache cache, uint32_t heads, uint32_t width,
                    uint32_t window, const char *name)
{
    return attend(p, q, cache, heads, width, window, false, name);
}

bz_tensor bz_attend_bidirectional(bz_plan *p, bz_tensor q, bz_cache cache, uint32_t heads,
                                  uint32_t width, uint32_t window, const char *name)
{
    return attend(p, q, cache, heads, width, window, true, name);
}

void bz_route(bz_plan *p, bz_tensor logits, uint32_t used, bz_tensor *ids, bz_tensor *weights,
              const char *name)
{
    *ids = bz_new_tensor(p, used, true);
    *weights = bz_new_tensor(p, used, true);
    bz_push_step(p, (bz_step){.op = BZ_OP_ROUTE,
                              .name = name,
                              .in = {logits},
                              .out = {*ids, *weights},
                              .experts_used = used});
}

bz_tensor bz_expert_linear(bz_plan *p, bz_tensor x, bz_tensor ids, bz_weight w, uint32_t used,
                           const char *name)
{
    bz_tensor out = bz_new_tensor(p, used * bz_weight_size(p, w, 1, name), true);
    bz_push_step(p, (bz_step){.op = BZ_OP_EXPERT_LINEAR,
                              .name = name,
                              .in = {x, ids},
                              .w = {w},
                              .out = {out},
                              .experts_used = used});
    return out;
}

bz_tensor bz_expert_sum(bz_plan *p, bz_tensor x, bz_tensor ids, bz_tensor weights, bz_weight scales,
                        uint32_t used, const char *name)
{
    bz_tensor out = bz_new_tensor(p, bz_cols_of(p, x) / used, true);
    bz_push_step(p, (bz_step){.op = BZ_OP_EXPERT_SUM,
                              .name = name,
                              .in = {x, ids, weights},
                              .w = {scales},
                              .out = {out},
                              .experts_used = used});
    return out;
}

bz_tensor bz_add_low_rank(bz_plan *p, bz_tensor x, bz_tensor y, bz_tensor ids, bz_weight w,
                          uint32_t used, float scale, const char *name)
{
    bz_tensor out = bz_output_like(p, x, bz_cols_of(p, x));
    bz_push_step(p, (bz_step){.op = BZ_OP_ADD_LOW_RANK,
                              .name = name,
                              .in = {x, y, ids},
                              .w = {w},
                              .out = {out},
                              .experts_used = ids.id ? used : 0,
                              .scale = scale});
    return out;
}

bz_tensor bz_take_rows(bz_plan *p, bz_tensor x, const char *name)
{
    return bz_take_rows_from(p, x, 0, name);
}

bz_tensor bz_take_rows_from(bz_plan *p, bz_tensor x, uint32_t first_row, const char *name)
{
    bz_tensor out = bz_new_tensor(p, bz_cols_of(p, x), false);
    bz_push_step(
        p,
        (bz_step){
            .op = BZ_OP_TAKE_ROWS, .name = name, .in = {x}, .out = {out}, .first_row = first_row});
    return out;
}

bz_tensor bz_mean_rows(bz_plan *p, bz_tensor x, const char *name)
{
    bz_tensor out = bz_new_tensor(p, bz_cols_of(p, x), false);
    bz_push_step(p, (bz_step){.op = BZ_OP_MEAN_ROWS, .name = name, .in = {x}, .out = {out}});
    return out;
}

bz_tensor bz_softcap(bz_plan *p, bz_tensor x, float cap, const char *name)
{
    bz_tensor out = bz_output_like(p, x, bz_cols_of(p, x));
    bz_push_step(
        p, (bz_step){.op = BZ_OP_SOFTCAP, .name = name, .in = {x}, .out = {out}, .scale = cap});
    return out;
}

void bz_last_image_attention(bz_plan *p, bz_image_attention kind)
{
    if (!p->failed) {
        p->steps[p->n_steps - 1].image_attention = kind;
    }
}

void bz_last_accepts_soft(bz_plan *p)
{
    if (!p->failed) {
        p->steps[p->n_steps - 1].accepts_soft = true;
    }
}

bz_tensor bz_concat(bz_plan *p, bz_tensor x, bz_tensor y, const char *name)
{
    bz_tensor out = bz_output_like(p, x, bz_cols_of(p, x) + bz_cols_of(p, y));
    bz_push_step(p, (bz_step){.op = BZ_OP_CONCAT,
                              .name = name,
                              .in = {x, y},
                              .out = {out},
                              .width = bz_cols_of(p, x)});
    return out;
}

bz_tensor bz_shared_tensor(bz_plan *p, uint32_t cols, bool whole_pass)
{
    bz_tensor shared = bz_new_tensor(p, cols, whole_pass);
    p->tensors[shared.id].shared = shared.id != 0;
    return shared;
}

void bz_share(bz_plan *p, bz_tensor x, bz_tensor shared, const char *name)
{
    bz_push_step(
        p,
        (bz_step){.op = BZ_OP_MUL_VECTOR, .name = name, .in = {x}, .out = {shared}, .scale = 1.0f});
}

void bz_best(bz_plan *p, bz_tensor logits, uint32_t columns, uint32_t column, bz_tensor *ids,
             const char *name)
{
    bz_best_listed(p, logits, BZ_NO_TENSOR, columns, column, ids, name);
}

void bz_best_listed(bz_plan *p, bz_tensor logits, bz_tensor listed, uint32_t columns,
                    uint32_t column, bz_tensor *ids, const char *name)
{
    *ids = ids->id ? *ids : bz_output_like(p, logits, columns);
    bz_push_step(p, (bz_step){.op = BZ_OP_BEST,
                              .name = name,
                              .in = {logits, listed},
                              .out = {*ids},
                              .width = column});
}

bz_tensor bz_top(bz_plan *p, bz_tensor x, uint32_t count, const char *name)
{
    bz_tensor out = bz_output_like(p, x, count);
    bz_push_step(p, (bz_step){.op = BZ_OP_TOP, .name = name, .in = {x}, .out = {out}});
    return out;
}

bz_tensor bz_list_rows(bz_plan *p, bz_tensor x, bz_weight table, const char *name)
{
    bz_tensor out = bz_output_like(p, x, bz_cols_of(p, x) * bz_weight_size(p, table, 0, name));
    bz_push_step(
        p, (bz_step){.op = BZ_OP_LIST_ROWS, .name = name, .in = {x}, .w = {table}, .out = {out}});
    return out;
}

bz_tensor bz_linear_listed(bz_plan *p, bz_tensor x, bz_tensor listed, bz_weight w, const char *name)
{
    bz_tensor out = bz_output_like(p, x, bz_cols_of(p, listed));
    bz_push_step(
        p, (bz_step){
               .op = BZ_OP_LINEAR_LISTED, .name = name, .in = {x, listed}, .w = {w}, .out = {out}});
    return out;
}

bz_tensor bz_embed_best(bz_plan *p, bz_tensor ids, uint32_t column, bz_weight table, float scale,
                        const char *name)
{
    bz_tensor out = bz_new_tensor(p, bz_weight_size(p, table, 0, name), true);
    bz_push_step(p, (bz_step){.op = BZ_OP_EMBED,
                              .name = name,
                              .in = {ids},
                              .w = {table},
                              .out = {out},
                              .scale = scale,
                              .width = column});
    return out;
}

bz_tensor bz_kept_tensor(bz_plan *p, uint32_t cols)
{
    bz_tensor kept = bz_new_tensor(p, cols, true);
    p->tensors[kept.id].kept = kept.id != 0;
    return kept;
}

bz_tensor bz_read_kept(bz_plan *p, bz_tensor kept, const char *name)
{
    bz_tensor out = bz_output_like(p, kept, bz_cols_of(p, kept));
    bz_push_step(p, (bz_step){.op = BZ_OP_READ_KEPT, .name = name, .in = {kept}, .out = {out}});
    return out;
}

void bz_logit_stats(bz_plan *p, bz_tensor logits, uint32_t first_row, bz_tensor *stats,
                    const char *name)
{
    *stats = stats->id ? *stats : bz_new_tensor(p, BZ_STAT_COLUMNS, true);
    bz_push_step(p, (bz_step){.op = BZ_OP_LOGIT_STATS,
                              .name = name,
                              .in = {logits},
                              .out = {*stats},
                              .first_row = first_row});
}

void bz_soft_embed(bz_plan *p, bz_tensor logits, bz_tensor stats, bz_weight table, float scale,
                   uint32_t first_row, bz_tensor out, const char *name)
{
    bz_push_step(p, (bz_step){.op = BZ_OP_SOFT_EMBED,
                              .name = name,
                              .in = {logits, stats},
                              .w = {table},
                              .out = {out},
                              .scale = scale,
                              .first_row = first_row});
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

/* ---- arena offsets -------------------------------------------------------- */

static void compute_lifetimes(bz_plan *p)
{
    for (size_t s = 0; s < p->n_steps; s++) {
        const bz_step *step = &p->steps[s];
        for (size_t i = 0; i < 3; i++) {
            p->tensors[p->tensors[step->in[i].id].root].last = (int32_t)s;
        }
        for (size_t i = 0; i < 2; i++) {
            bz_tensor_info *t = &p->tensors[step->out[i].id];
            t->first = t->first < 0 ? (int32_t)s : t->first; /* some are written by several steps */
            if (t->last < (int32_t)s) {
                t->last = (int32_t)s; /* written, never read: live during its own step */
            }
        }
    }
    p->tensors[p->tensors[p->output.id].root].last = (int32_t)p->n_steps;
}

/* Steps in the order in which their groups run: an insertion sort, since nearly all of them are
 * in the plan's order. */
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

bz_status bz_plan_too_large(const bz_plan *p, bz_error *err)
{
    return bz_fail(err, BZ_OUT_OF_MEMORY,
                   "A pass of %u rows needs more memory than this machine can address.", p->rows);
}

/* The tensor that plans share lies before all others. */
size_t bz_plan_shared_bytes(const bz_plan *p)
{
    for (size_t i = 1; i < p->n_tensors; i++) {
        if (p->tensors[i].shared) {
            return p->tensors[i].bytes;
        }
    }
    return 0;
}

/* Each tensor, in the order of first writes, gets the lowest offset that no other live tensor
 * occupies. Plans have about a thousand tensors, a dozen of them live at once. */
bz_status bz_plan_place(const bz_plan *p, const uint32_t *group, size_t *offset,
                        size_t *arena_bytes, bz_error *err)
{
    if (p->tower) {
        return bz_plan_place_tower(p, group, offset, arena_bytes, err);
    }
    uint32_t *live = malloc(p->n_tensors * sizeof *live); /* sorted by offset */
    size_t *last = malloc(p->n_tensors * sizeof *last);   /* group that reads it last */
    size_t *order = malloc((p->n_steps + 1) * sizeof *order);
    if (!live || !last || !order) {
        free(live);
        free(last);
        free(order);
        return bz_fail(err, BZ_OUT_OF_MEMORY,
                       "There is not enough memory to place a plan's tensors.");
    }
    last_readers(p, group, last);
    sort_steps(p, group, order);
    memset(offset, 0, p->n_tensors * sizeof *offset);
    size_t n_live = 0;
    bz_status status = BZ_OK;
    const size_t shared = bz_plan_shared_bytes(p);
    *arena_bytes = shared;
    for (size_t k = 0; k < p->n_steps; k++) {
        if (*arena_bytes > BZ_MAX_ARENA_BYTES) {
            status = bz_plan_too_large(p, err);
            break;
        }
        const size_t s = order[k];
        const size_t now = group ? group[s] : s;
        size_t kept = 0;
        for (size_t i = 0; i < n_live; i++) {
            if (last[live[i]] >= now) {
                live[kept++] = live[i];
            }
        }
        n_live = kept;
        for (size_t o = 0; o < 2; o++) {
            uint32_t id = p->steps[s].out[o].id, in = p->steps[s].in[0].id;
            if (id == 0 || p->tensors[id].kept || p->tensors[id].shared ||
                p->tensors[id].first < (int32_t)s) {
                continue; /* kept tensors follow all others; others have their offset already */
            }
            if (p->steps[s].op == BZ_OP_SOFTCAP) { /* in place: logits are the widest tensor */
                offset[id] = offset[in];
                last[in] = last[id];
                continue;
            }
            size_t at = shared, slot = 0, bytes = p->tensors[id].bytes;
            for (; slot < n_live; slot++) {
                if (at + bytes <= offset[live[slot]]) {
                    break;
                }
                at = offset[live[slot]] + p->tensors[live[slot]].bytes;
            }
            offset[id] = at;
            memmove(live + slot + 1, live + slot, (n_live - slot) * sizeof *live);
            live[slot] = id;
            n_live++;
            if (at + bytes > *arena_bytes) {
                *arena_bytes = at + bytes;
            }
        }
    }
    for (size_t i = 1; i < p->n_tensors && status == BZ_OK; i++) {
        if (p->tensors[i].kept) {
            offset[i] = *arena_bytes;
            *arena_bytes += p->tensors[i].bytes;
        }
        status = *arena_bytes > BZ_MAX_ARENA_BYTES ? bz_plan_too_large(p, err) : BZ_OK;
    }
    for (size_t i = 1; i < p->n_tensors; i++) {
        offset[i] = offset[p->tensors[i].root]; /* a view has its root's offset */
    }
    free(live);
    free(last);
    free(order);
    return status;
}

static bz_status compute_sizes(bz_plan *p, bz_error *err)
{
    for (size_t i = 1; i < p->n_tensors; i++) {
        bz_tensor_info *t = &p->tensors[i];
        const uint64_t rows = t->shared ? BZ_SHARED_ROWS : t->whole_pass ? p->rows : p->out_rows;
        if (rows * t->cols > BZ_MAX_TENSOR_BYTES / 4 - 16) {
            return bz_plan_too_large(p, err);
        }
        t->bytes = (size_t)((rows * t->cols * 4 + 63) / 64 * 64); /* whole cache lines */
    }
    return BZ_OK;
}

bz_status bz_plan_finish(bz_plan *p, bz_tensor output, bz_error *err)
{
    if (p->missing) {
        return bz_fail(err, BZ_BAD_FILE,
                       "The file has no weight for the step %s of layer %d; it is damaged.",
                       p->missing, (int)p->missing_layer);
    }
    if (p->failed) {
        return bz_fail(err, BZ_OUT_OF_MEMORY,
                       "There is not enough memory to record a plan of %u rows.", p->rows);
    }
    p->output = output;
    compute_lifetimes(p);
    bz_status status = bz_plan_check(p, err);
    if (status == BZ_OK) {
        status = compute_sizes(p, err);
    }
    if (status != BZ_OK) {
        return status;
    }
    size_t *offset = malloc(p->n_tensors * sizeof *offset);
    status = offset ? bz_plan_place(p, NULL, offset, &p->arena_bytes, err)
                    : bz_fail(err, BZ_OUT_OF_MEMORY,
                              "There is not enough memory to place a plan's tensors.");
    for (size_t i = 1; status == BZ_OK && i < p->n_tensors; i++) {
        p->tensors[i].offset = offset[i];
    }
    free(offset);
    return status;
}
