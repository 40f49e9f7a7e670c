/* Mixture of experts beside the dense FFN (26B-A4B).
 *
 *   r      = RMS(h) / sqrt(d) * router_scale          the router sees the raw residual
 *   S, w   = the best experts of softmax(router r), weights renormalized to sum to 1
 *   u      = RMS(h, pre_ffw_norm_2)
 *   MoE(h) = sum over e in S of w_e * scale_e * down_e (gelu(gate_e u) * (up_e u))
 *
 * The layer's output is then RMS(FFN, post_ffw_norm_1) + RMS(MoE, post_ffw_norm_2). */
#include <math.h>

#include "model/record.h"

/* h [n][d] -> MoE(h) [n][d] */
bz_tensor bz_record_moe(bz_plan *p, const bz_text_model *m, const bz_layer_weights *w, bz_tensor h)
{
    const bz_config *c = &m->config;
    const uint32_t d = c->width, k = c->experts_used;
    bz_tensor ids, weights, act;

    bz_tensor r = bz_rms_norm(p, h, BZ_NO_WEIGHT, d, c->eps, "router_norm");
    r = bz_mul_vector(p, r, w->router_scale, (float)(1.0 / sqrt(d)), "router_input");
    bz_tensor logits = bz_adapted_linear(p, m, r, w->router, "router_logits");
    bz_route(p, logits, k, &ids, &weights, "router");

    bz_tensor u = bz_rms_norm(p, h, w->pre_ffw_norm_2, d, c->eps, "pre_ffw_norm_2");
    if (w->gate_up_exps.id) {
        bz_tensor gate_up = bz_expert_linear(p, u, ids, w->gate_up_exps, k, "experts_gate_up");
        gate_up = bz_adapt_experts(p, m, gate_up, u, ids, w->gate_up_exps, k);
        act = bz_geglu_fused(p, gate_up, c->expert_ffn, "experts_act");
    } else {
        bz_tensor gate = bz_expert_linear(p, u, ids, w->gate_exps, k, "experts_gate");
        bz_tensor up = bz_expert_linear(p, u, ids, w->up_exps, k, "experts_up");
        gate = bz_adapt_experts(p, m, gate, u, ids, w->gate_exps, k);
        up = bz_adapt_experts(p, m, up, u, ids, w->up_exps, k);
        act = bz_geglu(p, gate, up, "experts_act");
    }
    bz_tensor down = bz_expert_linear(p, act, ids, w->down_exps, k, "experts_down");
    down = bz_adapt_experts(p, m, down, act, ids, w->down_exps, k);
    return bz_expert_sum(p, down, ids, weights, w->expert_scale, k, "moe_out");
}
