/* Products of many rows: tiles of rows by outputs. Where activations may be rounded: in f16 on
 * subgroup matrices (kernels/product/linear_tile16.wgsl), or in int8 if the weights are integers
 * (linear_tile8.wgsl). Else in f32 (linear_tile.wgsl, linear_short.wgsl). Rows of experts are
 * grouped by expert first. */
#include "gpu/lower/builder.h"

enum {
    FLOAT_STEP = 16, /* values of k in workgroup memory at once */
    SHORT_STEP = 64,
    INT8_STEP = 64,
    F16_STEP = 64,
    SHORT_ROWS = 64, /* up to this many rows linear_short is faster than linear_tile */
    /* split-K */
    MIN_SPLIT = 256, /* values of k */
    MAX_SPLITS = 8,
    FEW_TILES = 16, /* such as a router's product: then these hold instead */
    MIN_SPLIT_FEW = 64,
    MAX_SPLITS_FEW = 32
};

/* How a product is cut into workgroups. */
typedef struct tile_shape {
    gpu_kernel kernel;
    uint32_t rows, outs;   /* of a tile */
    uint32_t step;         /* values of k in workgroup memory at once */
    uint32_t split_below;  /* with fewer tiles k is split, */
    uint32_t split_target; /* target number of workgroups */
} tile_shape;

/* Few tiles leave most of a GPU idle unless k is split; partial sums need memory. */
static uint32_t splits_for(const builder *x, const tile_shape *shape, uint64_t tiles, uint32_t k,
                           uint64_t outputs)
{
    const uint64_t fit = gpu_scratch_left(x) / (4 * x->rows * outputs);
    /* on matrices a tile takes so little time that adding up many partial sums would take longer */
    const bool few = tiles <= FEW_TILES && shape->kernel != GPU_LINEAR_TILE16;
    const uint32_t min_split = few ? MIN_SPLIT_FEW : MIN_SPLIT;
    uint32_t max = few ? MAX_SPLITS_FEW : MAX_SPLITS;
    max = k / min_split < max ? k / min_split : max;
    max = fit < max ? (uint32_t)fit : max;
    const uint32_t wanted = tiles < shape->split_below ? divide_up(shape->split_target, tiles) : 1;
    return wanted < max ? wanted : max ? max : 1;
}

/* Can the f32 kernels read and write vec4s? Pieces must be cut at multiples of four too. */
static bool is_vec4_aligned(const builder *x, uint32_t k_step)
{
    const bz_weight_info *w = bz_weight_of(x->in->weights->table, x->step->w[0]);
    const gpu_pieces pieces = gpu_pieces_of(x->in->weights, x->step->w[0]);
    const gpu_params p = gpu_params_of(x, x->step);
    bool aligned = w->ne[0] % k_step == 0 && w->ne[1] % 4 == 0 &&
                   (p.in0 | p.in0_stride | p.out0 | p.out0_stride) % 4 == 0 &&
                   x->out->arena_bytes % 16 == 0;
    for (uint32_t i = 0; i < pieces.n; i++) {
        aligned = aligned && (pieces.piece[i].first_row | pieces.piece[i].rows) % 4 == 0;
    }
    return aligned;
}

/* As measured on an H200 (docs/SPEED-LOG.md). */
static tile_shape shape_for(const builder *x, bool f16, bool int8, bool experts)
{
    if (f16) {
        return (tile_shape){GPU_LINEAR_TILE16, 128, 128, F16_STEP, 192, 240};
    }
    if (int8 && experts) { /* few rows share a matrix */
        return (tile_shape){GPU_EXPERT_TILE8, 32, 128, INT8_STEP, 256, 512};
    }
    if (int8) {
        return (tile_shape){GPU_LINEAR_TILE8, 64, 64, INT8_STEP, 256, 512};
    }
    const bool short_aligned = is_vec4_aligned(x, SHORT_STEP);
    if (experts) {
        return (tile_shape){
            short_aligned ? GPU_EXPERT_SHORT : GPU_EXPERT_SHORT_ANY, 32, 128, SHORT_STEP, 256, 512};
    }
    if (x->rows <= SHORT_ROWS) {
        return (tile_shape){
            short_aligned ? GPU_LINEAR_SHORT : GPU_LINEAR_SHORT_ANY, 64, 128, SHORT_STEP, 256, 512};
    }
    return (tile_shape){is_vec4_aligned(x, FLOAT_STEP) ? GPU_LINEAR_TILE : GPU_LINEAR_TILE_ANY,
                        128,
                        64,
                        FLOAT_STEP,
                        192,
                        256};
}

void gpu_lower_tiles(builder *x)
{
    if (gpu_lower_matrix_product(x)) {
        return;
    }
    const gpu_pieces pieces = gpu_pieces_of(x->in->weights, x->step->w[0]);
    const bz_weight_info *w = bz_weight_of(x->in->weights->table, x->step->w[0]);
    const bool experts = x->step->op == BZ_OP_EXPERT_LINEAR;
    const bool f16 = gpu_is_tile16(x, x->step);
    const bool int8 = !f16 && x->in->packed && gpu_kernels_tile8(w->type);
    const uint32_t k = (uint32_t)w->ne[0],
                   inputs = bz_plan_tensor(x->plan, x->step->in[0])->cols / k;
    const tile_shape shape = shape_for(x, f16, int8, experts);
    const uint32_t steps = divide_up(k, shape.step);
    const uint32_t y =
        experts ? gpu_max_expert_tiles(x, x->step, shape.rows) : divide_up(x->rows, shape.rows);
    const bool partial = shape.kernel == GPU_LINEAR_TILE8 && x->rows <= shape.rows / 2;
    uint32_t splits =
        experts ? 1
                : splits_for(x, &shape, (uint64_t)divide_up(w->ne[1], shape.outs) * y, k, w->ne[1]);
    const uint32_t split_steps = divide_up(steps, splits);
    splits = divide_up(steps, split_steps);
    if (experts) {
        gpu_group_by_expert(x, shape.rows);
    }
    if (f16 || int8) {
        gpu_convert_input(x, k, inputs);
    }
    if (x->geglu) { /* its partial sums have been read now */
        gpu_release_partial_sums(x);
    }
    gpu_dispatch whole = {.params = gpu_params_of(x, x->step), .side = true, .y = y, .z = splits};
    gpu_product_params *p = &whole.params.product;
    p->k = k;
    p->slots = x->step->experts_used;
    p->row_bytes = (uint32_t)gpu_row_bytes(w->type, k);
    p->cols = (uint32_t)w->ne[1];
    p->input_per_slot = inputs > 1;
    p->split_steps = split_steps;
    p->tiles = 1; /* the expert table: its tiles, then its list of rows */
    p->pairs = experts ? 1 + gpu_max_expert_tiles(x, x->step, shape.rows) : 0;
    if (f16 || int8) {
        gpu_converted_input(x, k, inputs, &p->in0, &p->in1);
    }
    if (splits > 1) {
        p->out1_stride = x->rows * p->cols;
        p->out1 = gpu_place_partial_sums(x, 4ull * splits * p->out1_stride);
    }
    for (uint32_t i = 0; i < pieces.n; i++) {
        gpu_dispatch d = whole;
        d.weights = gpu_bind_piece(&pieces.piece[i]);
        d.params.product.first_row = pieces.piece[i].first_row;
        d.params.product.row_count = pieces.piece[i].rows;
        d.x = divide_up(experts ? w->ne[1] : pieces.piece[i].rows, shape.outs);
        gpu_emit(x, shape.kernel, w->type, (gpu_overrides){{partial}}, d);
    }
    if (splits > 1) {
        gpu_dispatch d = {.params = whole.params, .x = divide_up(w->ne[1], 64), .y = x->rows};
        d.params.product.splits = splits;
        gpu_add_partial_sums(x, x->step->out[0], &d);
    }
}
