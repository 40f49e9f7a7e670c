/* Recording the step kinds that only towers use. */
#include <math.h>

#include "plan/recording.h"

bz_tensor bz_input_rows(bz_plan *p, uint32_t cols, const char *name)
{
    bz_tensor out = bz_new_tensor(p, cols, true);
    bz_push_step(p, (bz_step){.op = BZ_OP_INPUT, .name = name, .out = {out}});
    return out;
}

bz_tensor bz_position_embed(bz_plan *p, bz_tensor x, bz_weight table, const char *name)
{
    bz_tensor out = bz_output_like(p, x, bz_cols_of(p, x));
    bz_push_step(
        p,
        (bz_step){.op = BZ_OP_POSITION_EMBED, .name = name, .in = {x}, .w = {table}, .out = {out}});
    return out;
}

bz_tensor bz_clamp(bz_plan *p, bz_tensor x, float low, float high, const char *name)
{
    if (isinf(low) && isinf(high)) {
        return x;
    }
    /* Keys and values often have the same bounds: one clamp serves both. */
    for (size_t i = p->n_steps; i > 0 && p->steps[i - 1].op == BZ_OP_CLAMP; i--) {
        const bz_step *s = &p->steps[i - 1];
        if (s->in[0].id == x.id && s->low == low && s->high == high) {
            return s->out[0];
        }
    }
    bz_tensor out = bz_output_like(p, x, bz_cols_of(p, x));
    bz_push_step(
        p, (bz_step){
               .op = BZ_OP_CLAMP, .name = name, .in = {x}, .out = {out}, .low = low, .high = high});
    return out;
}

bz_tensor bz_layer_norm(bz_plan *p, bz_tensor x, bz_weight w, uint32_t width, float eps,
                        const char *name)
{
    bz_tensor out = bz_output_like(p, x, bz_cols_of(p, x));
    bz_push_step(p, (bz_step){.op = BZ_OP_LAYER_NORM,
                              .name = name,
                              .in = {x},
                              .w = {w},
                              .out = {out},
                              .width = width,
                              .eps = eps});
    return out;
}

bz_tensor bz_add_vector(bz_plan *p, bz_tensor x, bz_weight w, float scale, const char *name)
{
    bz_tensor out = bz_output_like(p, x, bz_cols_of(p, x));
    bz_push_step(p, (bz_step){.op = BZ_OP_ADD_VECTOR,
                              .name = name,
                              .in = {x},
                              .w = {w},
                              .out = {out},
                              .scale = scale});
    return out;
}

bz_tensor bz_add_scaled(bz_plan *p, bz_tensor a, bz_tensor b, float scale, const char *name)
{
    bz_tensor out = bz_output_like(p, a, bz_cols_of(p, a));
    bz_push_step(
        p, (bz_step){
               .op = BZ_OP_ADD_SCALED, .name = name, .in = {a, b}, .out = {out}, .scale = scale});
    return out;
}

static bz_tensor elementwise(bz_plan *p, bz_op op, bz_tensor x, uint32_t cols, const char *name)
{
    bz_tensor out = bz_output_like(p, x, cols);
    bz_push_step(p, (bz_step){.op = op, .name = name, .in = {x}, .out = {out}, .width = cols});
    return out;
}

bz_tensor bz_relu(bz_plan *p, bz_tensor x, const char *name)
{
    return elementwise(p, BZ_OP_RELU, x, bz_cols_of(p, x), name);
}

bz_tensor bz_silu(bz_plan *p, bz_tensor x, const char *name)
{
    return elementwise(p, BZ_OP_SILU, x, bz_cols_of(p, x), name);
}

bz_tensor bz_glu(bz_plan *p, bz_tensor x, const char *name)
{
    return elementwise(p, BZ_OP_GLU, x, bz_cols_of(p, x) / 2, name);
}

bz_tensor bz_rope_table_2d(bz_plan *p, uint32_t width, double base, const char *name)
{
    bz_tensor out = bz_new_tensor(p, 2 * width, true);
    bz_push_step(p, (bz_step){.op = BZ_OP_ROPE_TABLE,
                              .name = name,
                              .out = {out},
                              .width = width,
                              .rotated_pairs = width / 2,
                              .axes = 2,
                              .base = base});
    return out;
}

bz_tensor bz_attend_all(bz_plan *p, bz_tensor q, bz_tensor k, bz_tensor v, uint32_t heads,
                        uint32_t width, const char *name)
{
    bz_tensor out = bz_output_like(p, q, bz_cols_of(p, q));
    bz_push_step(p, (bz_step){.op = BZ_OP_ATTEND_ALL,
                              .name = name,
                              .in = {q, k, v},
                              .out = {out},
                              .heads = heads,
                              .width = width});
    return out;
}

bz_tensor bz_pool_patches(bz_plan *p, bz_tensor x, uint32_t side, float scale, const char *name)
{
    bz_tensor out = bz_new_tensor(p, bz_cols_of(p, x), false);
    bz_push_step(p, (bz_step){.op = BZ_OP_POOL,
                              .name = name,
                              .in = {x},
                              .out = {out},
                              .width = side,
                              .scale = scale});
    return out;
}

bz_tensor bz_conv(bz_plan *p, bz_tensor x, bz_weight w, uint32_t frames, uint32_t bins,
                  uint32_t channels, const char *name)
{
    const uint32_t out_channels = bz_weight_size(p, w, 1, name);
    bz_tensor out = bz_output_like(p, x, frames / 2 * (bins / 2) * out_channels);
    bz_push_step(p, (bz_step){.op = BZ_OP_CONV,
                              .name = name,
                              .in = {x},
                              .w = {w},
                              .out = {out},
                              .frames = frames,
                              .width = bins,
                              .channels = channels});
    return out;
}

bz_tensor bz_conv_time(bz_plan *p, bz_tensor x, bz_weight w, const char *name)
{
    bz_tensor out = bz_output_like(p, x, bz_cols_of(p, x));
    bz_push_step(p, (bz_step){.op = BZ_OP_CONV_TIME,
                              .name = name,
                              .in = {x},
                              .w = {w},
                              .out = {out},
                              .width = bz_weight_size(p, w, 0, name)});
    return out;
}

bz_tensor bz_sinusoids(bz_plan *p, uint32_t width, double base, const char *name)
{
    bz_tensor out = bz_new_tensor(p, width, false);
    bz_push_step(
        p,
        (bz_step){.op = BZ_OP_SINUSOIDS, .name = name, .out = {out}, .width = width, .base = base});
    return out;
}

bz_tensor bz_local_scores(bz_plan *p, bz_tensor q, bz_tensor k, bz_tensor relative_k,
                          uint32_t heads, uint32_t window, float cap, const char *name)
{
    bz_tensor out = bz_output_like(p, q, heads * window);
    bz_push_step(p, (bz_step){.op = BZ_OP_LOCAL_SCORES,
                              .name = name,
                              .in = {q, k, relative_k},
                              .out = {out},
                              .heads = heads,
                              .width = bz_cols_of(p, q) / heads,
                              .window = window,
                              .scale = cap});
    return out;
}

bz_tensor bz_local_sum(bz_plan *p, bz_tensor weights, bz_tensor v, uint32_t heads, uint32_t window,
                       const char *name)
{
    bz_tensor out = bz_output_like(p, v, bz_cols_of(p, v));
    bz_push_step(p, (bz_step){.op = BZ_OP_LOCAL_SUM,
                              .name = name,
                              .in = {weights, v},
                              .out = {out},
                              .heads = heads,
                              .width = bz_cols_of(p, v) / heads,
                              .window = window});
    return out;
}
