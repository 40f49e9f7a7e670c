/* Steps that only diffusion models have: logit_stats and soft_embed, over the rows of a canvas
 * (kernels/canvas). Called by steps.c. */
#include "gpu/lower/builder.h"

enum {
    LOGITS_PER_GROUP = 2048, /* of a workgroup of logit_stats_scan and soft_weigh */
    HISTOGRAM_WORDS = 80,    /* per workgroup: PAIRS of kernels/canvas/soft.wgsl */
    LISTED_FRACTION = 8,     /* capacity of the list: 1/8 of the vocabulary per row on average. With
                                more tokens the whole table is multiplied, which takes about as long as
                                gathering them (docs/SPEED.md) */
    MAX_LIST_SPLITS = 24,    /* of a row's listed tokens */
    GATHER_COLUMNS = 32,     /* of a thread of soft_gather */
    MAX_GATHER_THREADS = 128,
    TILE_ROWS = 64, /* of soft_embed */
    TILE_COLUMNS = 128,
    TILE_TOKENS = 16,   /* in workgroup memory at once */
    GROUP_TARGET = 512, /* workgroups that the vocabulary is split into */
    MIN_TOKENS = 512    /* of a split */
};

/* Fraction of a row's sum of exponentials that may be omitted: the mean embedding moves by that
 * fraction of the mean of the omitted rows, which mostly is what all rows of the table have in
 * common. Relative errors with 2^-16, for normal, long-tailed and sharp distributions over 262,144
 * tokens: up to 1.2e-6 if rows have nothing in common, 1.2e-5 if a third of their size is common,
 * and half of that after the norm that follows, which removes a common factor. (Dividing by the sum
 * of the kept ones: 1.4e-5, 1.3e-5, and the same after the norm.) */
static const float OMITTED_EXACT = 0x1p-16f, OMITTED_ROUNDED = 0x1p-12f;

/* Parameters of both steps: the rows of logits. */
static gpu_dispatch begin(builder *x)
{
    gpu_dispatch d = {.params = gpu_params_of(x, x->step)};
    const bz_tensor_info *logits = bz_plan_tensor(x->plan, x->step->in[0]);
    gpu_flush_partial_sums(x);
    x->rows = bz_plan_rows_of(x->plan, x->step->in[0]);
    d.params.logit_rows = !logits->whole_pass;
    d.params.canvas.vocab = logits->cols;
    d.params.canvas.first_wanted = x->step->first_row;
    d.params.canvas.scale = x->step->scale;
    d.params.out1 = (uint32_t)(x->out->arena_bytes / 4); /* after the arena */
    return d;
}

void gpu_lower_logit_stats(builder *x)
{
    gpu_dispatch d = begin(x);
    const uint32_t ranges = divide_up(d.params.canvas.vocab, LOGITS_PER_GROUP);
    d.params.canvas.ranges = ranges;
    gpu_reserve_scratch(x, 16ull * x->rows * ranges);
    d.x = ranges;
    d.y = x->rows;
    gpu_emit(x, GPU_LOGIT_STATS_SCAN, BZ_F32, (gpu_overrides){{0}}, d);
    d.x = 1;
    gpu_emit(x, GPU_LOGIT_STATS_PICK, BZ_F32, (gpu_overrides){{0}}, d);
}

/* ---- soft_embed -------------------------------------------------------------------------------
 */

static uint64_t round_up4(uint64_t n)
{
    return (n + 3) / 4 * 4;
}

/* Memory after the arena, in values: counts, then the list of tokens, then partial sums. */
typedef struct soft_memory {
    uint64_t counts, list, sums_left; /* sums_left: for partial sums, at most */
} soft_memory;

/* The list gets LISTED_FRACTION of the vocabulary, or less if that does not fit. */
static soft_memory divide_memory(const builder *x, const gpu_canvas_params *p)
{
    const uint64_t left = gpu_scratch_left(x) / 4, groups = divide_up(p->vocab, LOGITS_PER_GROUP);
    soft_memory m = {.counts = round_up4(1 + x->rows * (3 + groups * (2 + HISTOGRAM_WORDS))),
                     .list = round_up4((uint64_t)x->rows * divide_up(p->vocab, LISTED_FRACTION))};
    if (m.counts + m.list > left / 2) {
        m.list = left / 2 > m.counts ? (left / 2 - m.counts) / 8 * 4 : 0;
    }
    m.sums_left = left > m.counts + m.list ? left - m.counts - m.list : 0;
    return m;
}

/* One dispatch per piece of the table. tokens: of a split; 0: d.z splits. *splits counts them. */
static void emit_splits(builder *x, gpu_kernel kernel, gpu_overrides overrides, gpu_dispatch d,
                        uint32_t tokens, uint32_t *splits)
{
    const bz_weight w = x->step->w[0];
    const gpu_pieces pieces = gpu_pieces_of(x->in->weights, w);
    for (uint32_t i = 0; i < pieces.n; i++) {
        gpu_dispatch piece = d;
        piece.weights = gpu_bind_piece(&pieces.piece[i]);
        piece.params.canvas.first_row = pieces.piece[i].first_row;
        piece.params.canvas.row_count = pieces.piece[i].rows;
        piece.params.canvas.first_part = *splits;
        piece.z = tokens ? divide_up(pieces.piece[i].rows, tokens) : d.z;
        *splits += piece.z;
        gpu_emit(x, kernel, bz_weight_of(x->in->weights->table, w)->type, overrides, piece);
    }
}

/* Can the product with the whole table read and write vec4s? */
static bool is_vec4_aligned(const builder *x, const gpu_canvas_params *p)
{
    const gpu_pieces pieces = gpu_pieces_of(x->in->weights, x->step->w[0]);
    uint32_t all = p->in0 | p->in0_stride | p->counts | p->out1;
    for (uint32_t i = 0; i < pieces.n; i++) {
        all |= pieces.piece[i].first_row | pieces.piece[i].rows;
    }
    return p->cols % 16 == 0 && all % 4 == 0;
}

/* Exponentials and a list of the tokens that count; then their rows are gathered, or, if they are
 * too many, the whole table is multiplied: both are in the list of dispatches, and the kernels
 * decide which of them returns at once. */
void gpu_lower_soft_embed(builder *x)
{
    const bz_weight_info *w = bz_weight_of(x->in->weights->table, x->step->w[0]);
    const uint32_t pieces = gpu_pieces_of(x->in->weights, x->step->w[0]).n;
    const bz_tensor_info *logits = bz_plan_tensor(x->plan, x->step->in[0]);
    if (logits->last > (int32_t)(x->step - x->plan->steps)) { /* exponentials overwrite them */
        gpu_lower_fail(x, BZ_BAD_REQUEST, "Logits cannot be read after soft_embed (step %s).",
                       x->step->name);
        return;
    }
    gpu_dispatch d = begin(x);
    gpu_canvas_params *p = &d.params.canvas;
    const soft_memory m = divide_memory(x, p);
    p->omitted = x->in->packed ? OMITTED_ROUNDED : OMITTED_EXACT;
    p->counts = p->out1;
    p->list = (uint32_t)(p->counts + m.counts);
    p->list_capacity = (uint32_t)m.list;
    p->out1 = (uint32_t)(p->list + m.list);
    p->cols = (uint32_t)w->ne[0];
    p->row_bytes = (uint32_t)gpu_row_bytes(w->type, w->ne[0]);
    p->out1_stride = x->rows * p->cols;
    /* as many splits as keep a GPU busy, as far as their partial sums fit */
    const uint64_t fit = m.sums_left / p->out1_stride;
    const uint32_t max_splits = fit > UINT32_MAX ? UINT32_MAX : (uint32_t)fit,
                   per_piece = max_splits / pieces ? max_splits / pieces : 1;
    p->list_parts = per_piece < MAX_LIST_SPLITS ? per_piece : MAX_LIST_SPLITS;

    d.y = x->rows;
    d.x = divide_up(p->vocab, LOGITS_PER_GROUP);
    gpu_emit(x, GPU_SOFT_WEIGH, BZ_F32, (gpu_overrides){{0}}, d);
    d.x = 1;
    gpu_emit(x, GPU_SOFT_CUT, BZ_F32, (gpu_overrides){{0}}, d);
    d.y = 1;
    gpu_emit(x, GPU_SOFT_OFFSETS, BZ_F32, (gpu_overrides){{0}}, d);
    d.y = x->rows;
    d.x = divide_up(p->vocab, LOGITS_PER_GROUP);
    gpu_emit(x, GPU_SOFT_LIST, BZ_F32, (gpu_overrides){{0}}, d);
    const uint32_t threads = 2 * divide_up(p->cols, 2 * GATHER_COLUMNS);
    d.x = divide_up(threads, MAX_GATHER_THREADS);
    d.z = p->list_parts;
    emit_splits(x, p->cols % (2 * GATHER_COLUMNS) ? GPU_SOFT_GATHER_ANY : GPU_SOFT_GATHER,
                (gpu_overrides){{divide_up(divide_up(threads, d.x), 32) * 32}}, d, 0,
                &p->all_list_parts);

    d.x = divide_up(p->cols, TILE_COLUMNS);
    d.y = divide_up(x->rows, TILE_ROWS);
    uint32_t splits = divide_up(GROUP_TARGET, d.x * d.y);
    splits =
        splits + pieces > max_splits ? (max_splits > pieces ? max_splits - pieces : 1) : splits;
    p->part_tokens = divide_up(divide_up(w->ne[1], splits), TILE_TOKENS) * TILE_TOKENS;
    p->part_tokens = p->part_tokens < MIN_TOKENS ? MIN_TOKENS : p->part_tokens;
    emit_splits(x, is_vec4_aligned(x, p) ? GPU_SOFT_EMBED : GPU_SOFT_EMBED_ANY,
                (gpu_overrides){{0}}, d, p->part_tokens, &p->table_parts);

    const uint64_t sums = p->table_parts > p->all_list_parts ? p->table_parts : p->all_list_parts;
    gpu_reserve_scratch(x, 4 * (m.counts + m.list + sums * p->out1_stride));
    gpu_dispatch sum = {.params = d.params, .x = divide_up(p->cols, 64), .y = x->rows};
    gpu_emit(x, GPU_SOFT_SUM, BZ_F32, (gpu_overrides){{0}}, sum);
}
