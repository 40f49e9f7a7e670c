/* Fusion on a device: for plans with exactly one pattern, the fused list computes what the unfused
 * list and the CPU compute, with fewer dispatches; plans that only resemble a pattern are not
 * fused. tests/test_lower.c checks the rules without a device.
 *
 *   sh tools/gpu-env.sh build/tests/gpu/test_fuse [part of a case's name]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/devices.h"
#include "support/parity.h"
#include "support/random.h"

enum { HEADS = 3, HEAD = 32, WIDTH = HEADS * HEAD, IDS = 80, EXPERTS = 5, SLOTS = 2 };

static memory_weights weights;
static bz_weight table, other_table, wide_norm, head_norm, factor, square;

static bz_tensor input(bz_plan *p)
{
    return bz_embed(p, table, 1, "x");
}

static bz_tensor residual(bz_plan *p)
{
    return bz_embed(p, other_table, 1, "residual");
}

static bz_tensor norm(bz_plan *p, bz_tensor x)
{
    return bz_rms_norm(p, x, wide_norm, WIDTH, 1e-6f, "norm");
}

static bz_tensor head_norms(bz_plan *p, bz_tensor x)
{
    return bz_rms_norm(p, x, head_norm, HEAD, 1e-6f, "norm");
}

static bz_tensor angles(bz_plan *p, uint32_t width)
{
    return bz_rope_table(p, BZ_NO_WEIGHT, width, width / 2, 10000, "angles");
}

/* ---- patterns ------------------------------------------------------------------------------- */

static bz_tensor norm_add(bz_plan *p)
{
    bz_tensor r = residual(p), x = input(p);
    return bz_add(p, r, norm(p, x), 1, "y");
}

static bz_tensor norm_add_no_weight(bz_plan *p)
{
    bz_tensor r = residual(p), x = input(p);
    return bz_add(p, r, bz_rms_norm(p, x, BZ_NO_WEIGHT, WIDTH, 1e-6f, "norm"), 1, "y");
}

static bz_tensor norm_add_scale(bz_plan *p)
{
    bz_tensor r = residual(p), x = input(p);
    return bz_scale(p, bz_add(p, r, norm(p, x), 1, "sum"), factor, "y");
}

/* The residual is the input of the norm: it must live until the sum is written. */
static bz_tensor norm_add_itself(bz_plan *p)
{
    bz_tensor x = input(p);
    return bz_scale(p, bz_add(p, x, norm(p, x), 1, "sum"), factor, "y");
}

/* The input of the norm is read again after the fused steps. */
static bz_tensor norm_add_then_input(bz_plan *p)
{
    bz_tensor r = residual(p), x = input(p);
    bz_tensor y = bz_add(p, r, norm(p, x), 1, "sum");
    return bz_add(p, bz_linear(p, y, square, "product"), x, 0.5f, "y");
}

/* The input of a router. */
static bz_tensor norm_mul(bz_plan *p)
{
    return bz_mul_vector(p, bz_rms_norm(p, input(p), BZ_NO_WEIGHT, WIDTH, 1e-6f, "norm"), wide_norm,
                         0.3f, "y");
}

static bz_tensor weighed_norm_mul(bz_plan *p)
{
    return bz_mul_vector(p, norm(p, input(p)), wide_norm, 0.3f, "y");
}

static bz_tensor norm_mul_read_twice(bz_plan *p)
{
    bz_tensor n = bz_rms_norm(p, input(p), BZ_NO_WEIGHT, WIDTH, 1e-6f, "norm");
    return bz_add(p, bz_mul_vector(p, n, wide_norm, 0.3f, "product"), n, 0.5f, "y");
}

static bz_tensor norm_rope(bz_plan *p)
{
    bz_tensor t = angles(p, HEAD), x = input(p);
    return bz_rope(p, head_norms(p, x), t, HEAD, "y");
}

/* Columns of a wider row, as q, k and v of one product are. */
static bz_tensor norm_rope_view(bz_plan *p)
{
    bz_tensor t = angles(p, HEAD), x = bz_columns(p, input(p), HEAD, 2 * HEAD);
    return bz_rope(p, head_norms(p, x), t, HEAD, "y");
}

/* ---- plans that only resemble a pattern -------------------------------------------------- */

static bz_tensor sum_of_norms(bz_plan *p)
{
    bz_tensor n = norm(p, input(p));
    return bz_add(p, n, n, 1, "y");
}

static bz_tensor sum_with_part_of_norm(bz_plan *p)
{
    bz_tensor n = head_norms(p, input(p));
    return bz_add(p, bz_columns(p, n, 0, HEAD), bz_columns(p, n, HEAD, HEAD), 1, "y");
}

static bz_tensor norm_read_twice(bz_plan *p)
{
    bz_tensor r = residual(p), n = norm(p, input(p));
    bz_tensor sum = bz_add(p, r, n, 1, "sum");
    return bz_add(p, bz_linear(p, n, square, "product"), sum, 0.5f, "y");
}

static bz_tensor scaled_sum(bz_plan *p)
{
    bz_tensor r = residual(p), x = input(p);
    return bz_add(p, r, norm(p, x), 0.5f, "y");
}

static bz_tensor norm_of_groups(bz_plan *p)
{
    bz_tensor r = residual(p), x = input(p);
    return bz_add(p, r, head_norms(p, x), 1, "y");
}

static bz_tensor rope_of_other_width(bz_plan *p)
{
    bz_tensor t = angles(p, WIDTH), x = input(p);
    return bz_rope(p, head_norms(p, x), t, WIDTH, "y");
}

static bz_tensor rope_and_norm_read(bz_plan *p)
{
    bz_tensor t = angles(p, HEAD), n = head_norms(p, input(p));
    bz_tensor rotated = bz_rope(p, n, t, HEAD, "rotated");
    return bz_add(p, n, rotated, 0.5f, "y");
}

static bz_tensor rope_of_another(bz_plan *p)
{
    bz_tensor t = angles(p, HEAD), r = residual(p), n = head_norms(p, input(p));
    bz_tensor rotated = bz_rope(p, r, t, HEAD, "rotated");
    return bz_add(p, n, rotated, 0.5f, "y");
}

/* The sum is read too, beside its scaled form: norm and add are still fused. */
static bz_tensor sum_read_twice(bz_plan *p)
{
    bz_tensor r = residual(p), x = input(p);
    bz_tensor sum = bz_add(p, r, norm(p, x), 1, "sum");
    bz_tensor scaled = bz_scale(p, sum, factor, "scaled");
    return bz_add(p, bz_linear(p, scaled, square, "product"), sum, 0.5f, "y");
}

static bz_tensor scale_of_another(bz_plan *p)
{
    bz_tensor r = residual(p), x = input(p);
    bz_tensor sum = bz_add(p, r, norm(p, x), 1, "sum");
    bz_tensor scaled = bz_scale(p, r, factor, "scaled");
    return bz_add(p, sum, scaled, 0.5f, "y");
}

/* ---- products with int8 activations -------------------------------------------------------- */

enum { WIDE = 512 };
static bz_weight wide_table, wide_other, row_norm, row_norm2, gate, up, third, odd, other_type,
    head, narrow;

static bz_tensor wide_input(bz_plan *p)
{
    return bz_embed(p, wide_table, 1, "x");
}

static bz_tensor row(bz_plan *p, bz_tensor x, bz_weight w)
{
    return bz_rms_norm(p, x, w, WIDE, 1e-6f, "norm");
}

static bz_tensor norm_linear(bz_plan *p)
{
    return bz_linear(p, row(p, wide_input(p), row_norm), gate, "y");
}

static bz_tensor three_products(bz_plan *p)
{
    bz_tensor n = row(p, wide_input(p), row_norm);
    bz_tensor a = bz_linear(p, n, gate, "q"), b = bz_linear(p, n, up, "k"),
              c = bz_linear(p, n, third, "v");
    return bz_add(p, bz_add(p, a, b, 1, "ab"), c, 1, "y");
}

static bz_tensor gated_pair(bz_plan *p)
{
    bz_tensor n = row(p, wide_input(p), row_norm);
    bz_tensor a = bz_linear(p, n, gate, "gate"), b = bz_linear(p, n, up, "up");
    return bz_geglu(p, a, b, "y");
}

/* All at once: norm, add, scale, norm, two products, GEGLU; and the sum is read again. */
static bz_tensor whole_front(bz_plan *p)
{
    bz_tensor r = bz_embed(p, wide_other, 1, "residual"), x = wide_input(p);
    bz_tensor sum = bz_scale(p, bz_add(p, r, row(p, x, row_norm), 1, "add"), factor, "sum");
    bz_tensor n = row(p, sum, row_norm2), a = bz_linear(p, n, gate, "gate"),
              b = bz_linear(p, n, up, "up");
    return bz_add(p, bz_geglu(p, a, b, "geglu"), sum, 1, "y");
}

static bz_tensor front_without_scale(bz_plan *p)
{
    bz_tensor r = bz_embed(p, wide_other, 1, "residual"), x = wide_input(p);
    bz_tensor sum = bz_add(p, r, row(p, x, row_norm), 1, "sum");
    return bz_linear(p, row(p, sum, row_norm2), gate, "y");
}

static bz_tensor gated_by_another(bz_plan *p)
{
    bz_tensor other = bz_embed(p, wide_other, 1, "other");
    return bz_geglu(p, bz_linear(p, row(p, wide_input(p), row_norm), gate, "gate"), other, "y");
}

static bz_tensor capped(bz_plan *p)
{
    bz_tensor x = bz_take_rows(p, wide_input(p), "rows");
    return bz_softcap(p, bz_linear(p, row(p, x, row_norm), head, "logits"), 30, "y");
}

/* The normed row is read after the group, too. */
static bz_tensor norm_kept(bz_plan *p)
{
    bz_tensor n = row(p, wide_input(p), row_norm);
    bz_tensor y = bz_linear(p, n, gate, "product");
    return bz_add(p, y, n, 1, "y");
}

static bz_tensor up_and_gate(bz_plan *p) /* wrong order: the first product is the up */
{
    bz_tensor n = row(p, wide_input(p), row_norm);
    bz_tensor b = bz_linear(p, n, up, "up"), a = bz_linear(p, n, gate, "gate");
    return bz_geglu(p, a, b, "y");
}

static bz_tensor gate_read_again(bz_plan *p)
{
    bz_tensor n = row(p, wide_input(p), row_norm);
    bz_tensor a = bz_linear(p, n, gate, "gate"), b = bz_linear(p, n, up, "up");
    return bz_add(p, bz_geglu(p, a, b, "geglu"), a, 1, "y");
}

static bz_tensor gated_by_itself(bz_plan *p)
{
    bz_tensor a = bz_linear(p, row(p, wide_input(p), row_norm), gate, "gate");
    return bz_geglu(p, a, a, "y");
}

static bz_tensor products_of_two_types(bz_plan *p)
{
    bz_tensor n = row(p, wide_input(p), row_norm);
    bz_tensor a = bz_linear(p, n, gate, "a"), b = bz_linear(p, n, other_type, "b");
    return bz_add(p, a, b, 1, "y");
}

static bz_tensor products_of_two_inputs(bz_plan *p)
{
    bz_tensor other = bz_embed(p, wide_other, 1, "other"), n = row(p, wide_input(p), row_norm);
    bz_tensor a = bz_linear(p, n, gate, "a"), b = bz_linear(p, other, up, "b");
    return bz_add(p, a, b, 1, "y");
}

static bz_tensor odd_outputs(bz_plan *p)
{
    return bz_linear(p, row(p, wide_input(p), row_norm), odd, "y");
}

static bz_tensor norm_without_weight(bz_plan *p)
{
    return bz_linear(p, row(p, wide_input(p), BZ_NO_WEIGHT), gate, "y");
}

static bz_tensor outputs_of_different_width(bz_plan *p)
{
    bz_tensor n = row(p, wide_input(p), row_norm);
    bz_tensor a = bz_linear(p, n, gate, "a"), b = bz_linear(p, n, narrow, "b");
    return bz_add(p, bz_columns(p, a, 8, 100), b, 1, "y");
}

/* ---- experts -------------------------------------------------------------------------------- */

static bz_weight choice, expert_both, expert_gate, expert_up, expert_wide, expert_down;

static bz_tensor chosen(bz_plan *p)
{
    bz_tensor ids, shares;
    bz_route(p, bz_embed(p, choice, 1, "logits"), SLOTS, &ids, &shares, "route");
    return ids;
}

static bz_tensor expert_gates_and_ups(bz_plan *p)
{
    bz_tensor ids = chosen(p), n = row(p, wide_input(p), row_norm);
    return bz_geglu_fused(p, bz_expert_linear(p, n, ids, expert_both, SLOTS, "both"), 100, "y");
}

static bz_tensor expert_pair(bz_plan *p)
{
    bz_tensor ids = chosen(p), n = row(p, wide_input(p), row_norm);
    bz_tensor a = bz_expert_linear(p, n, ids, expert_gate, SLOTS, "gate"),
              b = bz_expert_linear(p, n, ids, expert_up, SLOTS, "up");
    return bz_geglu(p, a, b, "y");
}

static bz_tensor gated_then_product(bz_plan *p)
{
    return bz_linear(p, gated_pair(p), third, "y");
}

/* Another step reads the rows between: they must be written. */
static bz_tensor gated_then_product_and_read(bz_plan *p)
{
    bz_tensor x = gated_pair(p);
    return bz_add(p, bz_linear(p, x, third, "product"), x, 1, "y");
}

static bz_tensor expert_whole(bz_plan *p)
{
    bz_tensor ids = chosen(p), n = row(p, wide_input(p), row_norm);
    bz_tensor x =
        bz_geglu_fused(p, bz_expert_linear(p, n, ids, expert_wide, SLOTS, "both"), 96, "geglu");
    return bz_expert_linear(p, x, ids, expert_down, SLOTS, "y");
}

/* Two matrices with separate results: the norm is read twice, so with few rows nothing is fused. */
static bz_tensor expert_sum_of_two(bz_plan *p)
{
    bz_tensor ids = chosen(p), n = row(p, wide_input(p), row_norm);
    bz_tensor a = bz_expert_linear(p, n, ids, expert_gate, SLOTS, "a"),
              b = bz_expert_linear(p, n, ids, expert_up, SLOTS, "b");
    return bz_add(p, a, b, 1, "y");
}

static bz_tensor expert_gates_read_again(bz_plan *p)
{
    bz_tensor ids = chosen(p), n = row(p, wide_input(p), row_norm);
    bz_tensor both = bz_expert_linear(p, n, ids, expert_both, SLOTS, "both");
    return bz_add(p, bz_geglu_fused(p, both, 100, "geglu"), bz_columns(p, both, 0, SLOTS * 100), 1,
                  "y");
}

/* ---- attention ------------------------------------------------------------------------------ */

static const bz_cache_info attention_cache = {.kv_heads = 1, .head_dim = HEAD, .window = 16};

static bz_tensor attention(bz_plan *p, bool weight_of_v, bool keep_k)
{
    bz_tensor t = angles(p, HEAD), x = input(p);
    bz_tensor k = bz_rope(p, bz_rms_norm(p, bz_columns(p, x, 0, HEAD), head_norm, HEAD, 1e-6f, "k"),
                          t, HEAD, "k");
    bz_tensor v = bz_rms_norm(p, bz_columns(p, x, HEAD, HEAD),
                              weight_of_v ? head_norm : BZ_NO_WEIGHT, HEAD, 1e-6f, "v");
    bz_kv_write(p, k, v, (bz_cache){1}, "write");
    bz_tensor q = bz_rope(p, head_norms(p, residual(p)), t, HEAD, "q");
    bz_tensor y = bz_attend(p, q, (bz_cache){1}, HEADS, HEAD, 16, "attend");
    return keep_k ? bz_add(p, bz_columns(p, y, 0, HEAD), k, 1, "y") : y;
}

static bz_tensor attention_whole(bz_plan *p)
{
    return attention(p, false, false);
}

static bz_tensor attention_v_weight(bz_plan *p)
{
    return attention(p, true, false);
}

static bz_tensor attention_k_read(bz_plan *p)
{
    return attention(p, false, true);
}

/* ---- partial sums of split-K products, added up by their reader ------------------------------ */

enum { MANY_HEADS = 12, WIDEST = 3840 };
static bz_weight widest[5],
    too_wide[5]; /* rows, two norms, a product of them and one that makes them */
static bz_weight query_norm, to_many_heads, values, to_heads, to_head, to_head2, to_choice;

static bz_tensor product(bz_plan *p, bz_weight w)
{
    return bz_linear(p, wide_input(p), w, "product");
}

static bz_tensor sum_norm(bz_plan *p)
{
    return row(p, product(p, gate), row_norm);
}

static bz_tensor sum_norm_add_scale(bz_plan *p)
{
    bz_tensor r = bz_embed(p, wide_other, 1, "residual"), x = product(p, gate);
    return bz_scale(p, bz_add(p, r, row(p, x, row_norm), 1, "sum"), factor, "y");
}

static bz_tensor sum_norm_mul(bz_plan *p)
{
    return bz_mul_vector(p, row(p, product(p, gate), BZ_NO_WEIGHT), row_norm2, 0.3f, "y");
}

/* Partial sums of three products are pending, and those of the middle one are read last. */
static bz_tensor attention_of(bz_plan *p, bz_weight matrix, uint32_t heads, float eps, double base)
{
    bz_tensor t = angles(p, HEAD), x = wide_input(p);
    bz_tensor turn =
        base == 10000 ? t : bz_rope_table(p, BZ_NO_WEIGHT, HEAD, HEAD / 2, base, "others");
    bz_tensor k = bz_linear(p, x, to_head, "k"), q = bz_linear(p, x, matrix, "q"),
              v = bz_linear(p, x, to_head2, "v");
    k = bz_rope(p, bz_rms_norm(p, k, head_norm, HEAD, 1e-6f, "k"), t, HEAD, "k");
    v = bz_rms_norm(p, v, BZ_NO_WEIGHT, HEAD, 1e-6f, "v");
    bz_kv_write(p, k, v, (bz_cache){1}, "write");
    q = bz_rope(p, bz_rms_norm(p, q, query_norm, HEAD, eps, "q"), turn, HEAD, "q");
    return bz_attend(p, q, (bz_cache){1}, heads, HEAD, 16, "attend");
}

static bz_tensor sums_attention(bz_plan *p)
{
    return attention_of(p, to_heads, HEADS, 1e-6f, 10000);
}

/* So many outputs that their product has fewer splits than that of the keys. */
static bz_tensor sums_many_heads(bz_plan *p)
{
    return attention_of(p, to_many_heads, MANY_HEADS, 1e-6f, 10000);
}

static bz_tensor queries_of_another_eps(bz_plan *p)
{
    return attention_of(p, to_heads, HEADS, 1e-3f, 10000);
}

static bz_tensor queries_of_other_angles(bz_plan *p)
{
    return attention_of(p, to_heads, HEADS, 1e-6f, 500);
}

/* Keys and values of one product. */
static bz_tensor sums_one_for_both(bz_plan *p)
{
    bz_tensor t = angles(p, HEAD), x = wide_input(p);
    bz_tensor both = bz_linear(p, x, to_head, "kv"), q = bz_linear(p, x, to_heads, "q");
    bz_tensor k = bz_rope(p, bz_rms_norm(p, both, head_norm, HEAD, 1e-6f, "k"), t, HEAD, "k");
    bz_tensor v = bz_rms_norm(p, both, BZ_NO_WEIGHT, HEAD, 1e-6f, "v");
    bz_kv_write(p, k, v, (bz_cache){1}, "write");
    q = bz_rope(p, head_norms(p, q), t, HEAD, "q");
    return bz_attend(p, q, (bz_cache){1}, HEADS, HEAD, 16, "attend");
}

/* Partial results of attention would overwrite the partial sums of the product. */
static bz_tensor sum_across_attention(bz_plan *p)
{
    bz_tensor x = product(p, gate), y = attention_whole(p);
    return bz_add(p, bz_columns(p, row(p, x, row_norm), 0, WIDTH), y, 1, "y");
}

static bz_tensor sums_gated(bz_plan *p)
{
    bz_tensor x = wide_input(p), a = bz_linear(p, x, gate, "gate"), b = bz_linear(p, x, up, "up");
    return row(p, bz_linear(p, bz_geglu(p, a, b, "geglu"), third, "product"), row_norm);
}

static bz_tensor sum_route(bz_plan *p)
{
    bz_tensor ids, shares;
    bz_route(p, product(p, to_choice), 5, &ids, &shares, "route");
    return shares;
}

static bz_tensor sum_read_by_two(bz_plan *p)
{
    bz_tensor x = product(p, gate);
    return bz_add(p, bz_linear(p, row(p, x, row_norm), up, "again"), row(p, x, row_norm2), 0.5f,
                  "y");
}

static bz_tensor sum_added_to_its_norm(bz_plan *p)
{
    bz_tensor x = product(p, gate);
    return bz_add(p, x, row(p, x, row_norm), 1, "y");
}

static bz_tensor sum_of_some_columns(bz_plan *p)
{
    return head_norms(p, bz_columns(p, product(p, gate), HEAD, 2 * HEAD));
}

static bz_tensor sum_unused(bz_plan *p)
{
    return product(p, gate);
}

/* ---- norms of many rows, between products --------------------------------------------------- */

static bz_tensor wide_residual(bz_plan *p)
{
    return bz_embed(p, wide_other, 1, "residual");
}

static bz_tensor sum_of(bz_plan *p, bz_tensor r, bz_tensor x, bz_weight w)
{
    return bz_add(p, r, row(p, x, w), 1, "sum");
}

/* A product of v's norm. */
static bz_tensor normed_product(bz_plan *p, bz_tensor v, bz_weight w, bz_weight matrix)
{
    return bz_linear(p, row(p, v, w), matrix, "product");
}

/* Norms that are computed early must live until they are read, and so must the sum, which an add
 * between them reads after the memory of its inputs was reused. */
static bz_tensor norms_early(bz_plan *p)
{
    bz_tensor v = sum_of(p, wide_residual(p), wide_input(p), row_norm);
    bz_tensor a = normed_product(p, v, row_norm2, gate), b = bz_linear(p, a, up, "b"),
              c = bz_linear(p, a, third, "c");
    bz_tensor d = bz_add(p, bz_add(p, c, v, 1, "cv"), bz_add(p, a, b, 1, "ab"), 1, "d");
    bz_tensor e = normed_product(p, v, row_norm, up), f = normed_product(p, v, row_norm2, third);
    return bz_add(p, bz_add(p, d, e, 0.5f, "de"), f, 1, "y");
}

/* As in a layer of experts: the input of the router is multiplied by a vector. */
static bz_tensor norms_of_experts(bz_plan *p)
{
    bz_tensor v = sum_of(p, wide_residual(p), wide_input(p), row_norm);
    bz_tensor a = row(p, normed_product(p, v, row_norm2, gate), row_norm);
    bz_tensor r = bz_mul_vector(p, row(p, v, BZ_NO_WEIGHT), row_norm2, 0.3f, "r"),
              b = bz_linear(p, r, up, "b");
    bz_tensor c = normed_product(p, v, row_norm, third);
    return bz_add(p, sum_of(p, a, bz_add(p, b, c, 1, "bc"), row_norm), v, 1, "y");
}

static bz_tensor norms_two_sums(bz_plan *p)
{
    bz_tensor r = wide_residual(p),
              v = sum_of(p, r, sum_of(p, r, wide_input(p), row_norm2), row_norm);
    v = bz_scale(p, v, factor, "scaled");
    bz_cut(p, "layer");
    return bz_add(p, normed_product(p, v, row_norm2, gate), v, 1, "y");
}

static bz_tensor norms_two_sums_alone(bz_plan *p)
{
    bz_tensor r = wide_residual(p);
    return bz_scale(p, sum_of(p, r, sum_of(p, r, wide_input(p), row_norm2), row_norm), factor, "y");
}

static bz_tensor norms_of_same_rows(bz_plan *p)
{
    bz_tensor x = wide_input(p), a = normed_product(p, x, row_norm, gate),
              b = normed_product(p, x, row_norm2, up);
    return bz_add(p, a, b, 1, "y");
}

/* Only the norm reads the sum, so it is never written. */
static bz_tensor norms_sum_not_kept(bz_plan *p)
{
    return normed_product(p, sum_of(p, wide_residual(p), wide_input(p), row_norm), row_norm2, gate);
}

static bz_tensor norms_of_splits(bz_plan *p)
{
    bz_tensor x = product(p, gate), v = sum_of(p, wide_residual(p), x, row_norm);
    return bz_add(p, normed_product(p, v, row_norm2, up), v, 1, "y");
}

/* The product is read twice: as input of the norm, and as what the second norm is added to. */
static bz_tensor norms_of_splits_read_again(bz_plan *p)
{
    bz_tensor x = product(p, gate);
    return sum_of(p, x, sum_of(p, wide_residual(p), x, row_norm), row_norm2);
}

static bz_tensor norms_of_another_eps(bz_plan *p)
{
    bz_tensor v = sum_of(p, wide_residual(p), wide_input(p), row_norm);
    return bz_linear(p, bz_rms_norm(p, v, row_norm2, WIDE, 1e-3f, "norm"), gate, "y");
}

/* The norm is read by an add, not by a product. */
static bz_tensor norms_for_a_sum(bz_plan *p)
{
    bz_tensor v = sum_of(p, wide_residual(p), wide_input(p), row_norm), n = row(p, v, row_norm2);
    return bz_add(p, bz_linear(p, n, gate, "product"), n, 0.5f, "y");
}

/* The first sum is read by another step: only what follows the second one is fused with it. */
static bz_tensor norms_first_sum_kept(bz_plan *p)
{
    bz_tensor r = wide_residual(p), v = sum_of(p, r, wide_input(p), row_norm);
    return bz_add(p, normed_product(p, sum_of(p, r, v, row_norm2), row_norm, gate), v, 1, "y");
}

/* The kernel binds four weight vectors: the last norm is not fused. */
static bz_tensor norms_too_many(bz_plan *p)
{
    bz_tensor v = sum_of(p, wide_residual(p), wide_input(p), row_norm);
    bz_tensor a = bz_add(p, normed_product(p, v, row_norm, gate),
                         normed_product(p, v, row_norm2, up), 1, "a");
    bz_tensor b = bz_add(p, normed_product(p, v, row_norm, third),
                         normed_product(p, v, row_norm2, gate), 1, "b");
    return bz_add(p, a, b, 1, "y");
}

/* Six norms are pending at once: the side buffer holds four int8 tensors. */
static bz_tensor norms_waiting(bz_plan *p)
{
    bz_tensor r = wide_residual(p), v = sum_of(p, r, wide_input(p), row_norm),
              w = sum_of(p, v, r, row_norm2);
    bz_tensor a = bz_add(p, normed_product(p, v, row_norm, gate),
                         normed_product(p, w, row_norm2, up), 1, "a");
    bz_tensor b = bz_add(p, normed_product(p, v, row_norm2, third),
                         normed_product(p, w, row_norm, gate), 1, "b");
    bz_tensor c = bz_add(p, normed_product(p, v, row_norm, up),
                         normed_product(p, w, row_norm2, third), 1, "c");
    return bz_add(p, bz_add(p, a, b, 0.5f, "ab"), c, 1, "y");
}

/* As wide as the workgroup memory of the baseline device allows, and one step wider. */
static bz_tensor norms_of_width(bz_plan *p, const bz_weight w[5], uint32_t width)
{
    bz_tensor x = bz_linear(p, wide_input(p), w[4], "x"), r = bz_embed(p, w[0], 1, "residual");
    bz_tensor v = bz_add(p, r, bz_rms_norm(p, x, w[1], width, 1e-6f, "norm"), 1, "v");
    bz_tensor y = bz_linear(p, bz_rms_norm(p, v, w[2], width, 1e-6f, "norm"), w[3], "y");
    return bz_add(p, bz_columns(p, v, width - HEAD, HEAD), y, 1, "y");
}

static bz_tensor norms_widest(bz_plan *p)
{
    return norms_of_width(p, widest, WIDEST);
}

static bz_tensor norms_too_wide(bz_plan *p)
{
    return norms_of_width(p, too_wide, WIDEST + 32);
}

/* One product reads int8, the other f32: both must be written. */
static bz_tensor norms_for_two_kinds(bz_plan *p)
{
    bz_tensor v = sum_of(p, wide_residual(p), wide_input(p), row_norm), n = row(p, v, row_norm2);
    return bz_add(p, bz_linear(p, n, gate, "a"), bz_linear(p, n, values, "b"), 1, "y");
}

/* ---- cases ---------------------------------------------------------------------------------- */

typedef struct fuse_case {
    const char *name;
    bz_tensor (*record)(bz_plan *p);
    int saved;      /* dispatches fewer than the unfused list */
    int saved_many; /* the same with more than 8 rows */
    int saved8;     /* more than that, if norms for products are int8 */
} fuse_case;

/* Up to 8 rows. After a GEGLU or a norm, int8 may round a value differently than in the unfused
 * list. */
static const fuse_case products[] = {
    {"norm and product", norm_linear, 1, 0, 1},
    {"norm and three products", three_products, 3, 0, 1},
    {"norm, gate and up, GEGLU", gated_pair, 3, 2, 1},
    {"norm, add, scale, norm, gate and up, GEGLU", whole_front, 6, 5, 1},
    {"norm, add, norm, product", front_without_scale, 3, 2, 1},
    {"norm, product, GEGLU with something else", gated_by_another, 2, 1, 1},
    {"norm, product, soft cap", capped, 2, 0, 1},
    {"norm and product, and the norm again", norm_kept, 1, 0, 0},
    {"norm and products of different width", outputs_of_different_width, 2, 0, 1},
    {"fused in part: up before gate", up_and_gate, 2, 2, 1},
    {"fused in part: a gate that is read again", gate_read_again, 2, 1, 1},
    {"fused in part: a gate that is its own up", gated_by_itself, 1, 1, 1},
    {"fused in part: products of two types", products_of_two_types, 1, 0, 1},
    {"fused in part: products of two inputs", products_of_two_inputs, 1, 0, 1},
    {"norm, experts' gates and ups, GEGLU", expert_gates_and_ups, 2, 0, 1},
    {"norm, experts' gates, experts' ups, GEGLU", expert_pair, 3, 0, 1},
    {"fused in part: experts' gates that are read again", expert_gates_read_again, 1, 0, 1},
    {"norm, gate and up, GEGLU and the next product", gated_then_product, 3, 3, 1},
    {"the same, and the GEGLU read again", gated_then_product_and_read, 3, 2, 1},
    {"experts from norm to end", expert_whole, 2, 1, 1},
    {"two products of the same experts", expert_sum_of_two, 0, 0, 1},
    {"norm and odd outputs", odd_outputs, 0, 0, 1},
    {"not fused: a norm without weight", norm_without_weight, 0, 0, 0},
};

static const fuse_case attentions[] = {
    {"norms, rope and cache; norm, rope and attend", attention_whole, 5, 4, 0},
    {"fused in part: values with a weight", attention_v_weight, 3, 2, 0},
    {"fused in part: keys that are read again", attention_k_read, 3, 2, 0},
};

/* Saved: the other fusions, and the sums of splits. */
static const fuse_case sums[] = {
    {"a product's splits and norm", sum_norm, 0, 1, 0},
    {"a product's splits, norm, add and scale", sum_norm_add_scale, 2, 3, 0},
    {"splits of three products, norms, rope and cache", sums_attention, 5, 8, 0},
    {"splits of keys, of values, and fewer of queries", sums_many_heads, 5, 8, 0},
    {"splits of keys that are values too", sums_one_for_both, 5, 7, 0},
    {"a product's splits and route", sum_route, 0, 1, 0},
    {"not with keys: splits of queries with another eps", queries_of_another_eps, 5, 7, 0},
    {"not with keys: splits of queries with other angles", queries_of_other_angles, 5, 7, 0},
    {"not fused: splits across attention", sum_across_attention, 5, 4, 0},
    {"not fused: splits that two norms read", sum_read_by_two, 0, 0, 1},
    {"not fused: splits that are normed and added", sum_added_to_its_norm, 1, 1, 0},
    {"not fused: splits of some columns", sum_of_some_columns, 0, 0, 0},
    {"not fused: splits of an unused product", sum_unused, 0, 0, 0},
};

/* Products have splits, but their readers do not add them up, unless the name says so. */
static const fuse_case many_norms[] = {
    {"early: norm, add, three norms", norms_early, 1, 4, 3},
    {"early: norm, add, norm, add, scale, norm", norms_two_sums, 3, 5, 1},
    {"early: norm, add, norm, add, scale", norms_two_sums_alone, 3, 4, 0},
    {"early: two norms of the same rows", norms_of_same_rows, 0, 1, 2},
    {"early: norm, add, norm, of a sum for it alone", norms_sum_not_kept, 1, 2, 1},
    {"early: norms of steps much later", norms_waiting, 2, 8, 4},
    {"early: norm, add, norm, for int8 and for f32", norms_for_two_kinds, 1, 2, 0},
    {"early: splits, norm, add, norm", norms_of_splits, 1, 3, 1},
    {"early in part: splits that are added later too", norms_of_splits_read_again, 2, 3, 0},
    {"not early: a norm with another eps", norms_of_another_eps, 1, 1, 1},
    {"not early: a norm that is added", norms_for_a_sum, 1, 1, 0},
    {"early in part: a first sum that is read", norms_first_sum_kept, 2, 3, 1},
    {"early in part: more norms than vectors", norms_too_many, 1, 4, 4},
};
static const fuse_case experts_norms[] = {
    {"early: norm, add, norms for FFN, router and experts", norms_of_experts, 3, 7, 3}};

/* With 512 rows the wide product has no splits. */
static const fuse_case wide_norms[] = {
    {"early: splits, norm, add, norm, as wide as can be", norms_widest, 1, 3, 0},
    {"not early: a row too wide to be held", norms_too_wide, 1, 1, 0},
};

static const fuse_case gated_sums[] = {
    {"splits of gate and up, GEGLU, and of the next product", sums_gated, 0, 3, 0}};
/* Here the GEGLU is fused with the product, too. */
static const fuse_case gated_sums8[] = {
    {"splits of gate and up, GEGLU, and of the next product", sums_gated, 0, 4, 0}};
/* Factors are multiplied in another order. */
static const fuse_case sums_mul[] = {
    {"a product's splits, norm without weight, times a vector", sum_norm_mul, 1, 2, 0}};

static const fuse_case norms[] = {
    {"norm and add", norm_add, 1, 1, 0},
    {"norm without weight and add", norm_add_no_weight, 1, 1, 0},
    {"norm, add and scale", norm_add_scale, 2, 2, 0},
    {"norm, add to what is normed, scale", norm_add_itself, 2, 2, 0},
    {"norm and add, and the input again later", norm_add_then_input, 1, 1, 0},
    {"norm without weight, times a vector", norm_mul, 1, 1, 0},
    {"norm and rope", norm_rope, 1, 1, 0},
    {"norm and rope of some columns", norm_rope_view, 1, 1, 0},
    {"not fused: a norm added to itself", sum_of_norms, 0, 0, 0},
    {"not fused: parts of a norm added", sum_with_part_of_norm, 0, 0, 0},
    {"not fused: a norm that is read again", norm_read_twice, 0, 0, 0},
    {"not fused: a norm with a weight, times a vector", weighed_norm_mul, 0, 0, 0},
    {"not fused: a norm that is read and times a vector", norm_mul_read_twice, 0, 0, 0},
    {"not fused: a sum with a factor", scaled_sum, 0, 0, 0},
    {"not fused: norms of groups in a sum", norm_of_groups, 0, 0, 0},
    {"not fused: heads of another width", rope_of_other_width, 0, 0, 0},
    {"not fused: a norm that is rotated and read", rope_and_norm_read, 0, 0, 0},
    {"not fused: rope of something else", rope_of_another, 0, 0, 0},
    {"fused in part: a sum that is scaled and read", sum_read_twice, 1, 1, 0},
    {"fused in part: scale of something else", scale_of_another, 1, 1, 0},
};

/* The output of one pass, and the number of its dispatches. */
static float *run(parity *p, parity_run *r, const parity_pass *pass, uint64_t *dispatches)
{
    uint64_t before = gpu_counts_of(p->device).dispatches;
    float *out = parity_output(p->backend[1], r->schedule[1], p->kv[1], pass, r->cols);
    *dispatches = gpu_counts_of(p->device).dispatches - before;
    return out;
}

typedef struct fuse_rules {
    bool exact; /* f32 activations */
    bz_cache_type cache;
    bool only_many;    /* only more than 8 rows */
    bool baseline;     /* device */
    bool sequential;   /* kernels of software adapters, where other rules save dispatches */
    uint64_t binding;  /* limit of a binding; 0: the device's */
    int unsaved512;    /* dispatches that are not saved with 512 rows */
    bound near, limit; /* fused against unfused, both against the CPU */
} fuse_rules;

static void test_case(const fuse_case *t, parity *fused, parity *plain, const fuse_rules *rules)
{
    static const uint32_t rows[][2] = {{1, 1}, {8, 3}, {64, 64}, {512, 70}};
    begin("%s%s%s%s", t->name, rules->only_many ? ", int8 activations" : "",
          rules->binding ? ", small binding" : "", rules->sequential ? ", sequential" : "");
    for (size_t c = rules->only_many ? 2 : 0; c < 4; c++) {
        const parity_pass pass = {.n = rows[c][1], .position = 0};
        bz_plan *first = parity_plan(fused, rows[c][0]), *second = parity_plan(plain, rows[c][0]);
        parity_run f = parity_prepare(fused, first, t->record(first));
        parity_run u = parity_prepare(plain, second, t->record(second));
        uint64_t n_fused = 0, n_plain = 0;
        float *a = run(fused, &f, &pass, &n_fused), *b = run(plain, &u, &pass, &n_plain);
        const int saved =
            (rows[c][0] > 8 ? t->saved_many + (rules->exact ? 0 : t->saved8) : t->saved) -
            (rows[c][0] == 512 ? rules->unsaved512 : 0);
        if (CHECK(a && b)) {
            within(a, b, pass.n, f.cols, rules->near, "fused against unfused");
            CHECKF(rules->sequential ? n_fused <= n_plain : (int)(n_plain - n_fused) == saved,
                   "%d dispatches fused, %d unfused, bucket %u", (int)n_fused, (int)n_plain,
                   rows[c][0]);
        }
        parity_check(fused, &f, &pass, rules->limit, "fused against the CPU, %u rows", pass.n);
        parity_check(plain, &u, &pass, rules->limit, "unfused against the CPU, %u rows", pass.n);
        free(a);
        free(b);
        parity_release(fused, &f);
        parity_release(plain, &u);
    }
}

static void test_cases(const fuse_case *cases, size_t n, const char *wanted, fuse_rules rules)
{
    gpu_limits limits = parity_limits();
    limits.max_binding = rules.binding;
    const parity_options o = {
        .device = {.baseline = rules.baseline,
                   .threads = rules.sequential ? GPU_THREADS_SEQUENTIAL : GPU_THREADS_PARALLEL},
        .caches = &attention_cache,
        .n_caches = 1,
        .slack = 511,
        .f32_cache = rules.exact,
        .cache = rules.cache,
        .limits = rules.binding ? &limits : NULL};
    parity_options plain_options = o;
    plain_options.no_fuse = true;
    parity fused = {0}, plain = {0};
    begin("two back ends, %s, %s", rules.exact ? "exact" : "int8 activations",
          bz_cache_type_name(rules.cache));
    bool open = parity_open(&fused, &weights, &o) && parity_open(&plain, &weights, &plain_options);
    for (size_t i = 0; open && i < n; i++) {
        if (strstr(cases[i].name, wanted)) {
            test_case(&cases[i], &fused, &plain, &rules);
        }
    }
    parity_close(&fused);
    parity_close(&plain);
}

int main(int argc, char **argv)
{
    devices_keep();
    const char *wanted = argc > 1 ? argv[1] : "";
    random_seed_or(20240610);
    table = weights_random(&weights, BZ_F32, WIDTH, IDS, 1);
    other_table = weights_random(&weights, BZ_F32, WIDTH, IDS, 1);
    wide_norm = weights_random(&weights, BZ_F32, WIDTH, 1, 1);
    head_norm = weights_random(&weights, BZ_F32, HEAD, 1, 1);
    factor = weights_values(&weights, (float[]){0.37f}, 1, 1);
    square = weights_random(&weights, BZ_F32, WIDTH, WIDTH, 1);
    wide_table = weights_random(&weights, BZ_F32, WIDE, IDS, 1);
    wide_other = weights_random(&weights, BZ_F32, WIDE, IDS, 1);
    row_norm = weights_random(&weights, BZ_F32, WIDE, 1, 1);
    row_norm2 = weights_random(&weights, BZ_F32, WIDE, 1, 1);
    gate = weights_random(&weights, BZ_Q4_K, WIDE, WIDE, 1);
    up = weights_random(&weights, BZ_Q4_K, WIDE, WIDE, 1);
    third = weights_random(&weights, BZ_Q4_K, WIDE, WIDE, 1);
    narrow = weights_random(&weights, BZ_Q4_K, WIDE, 100, 1);
    odd = weights_random(&weights, BZ_Q4_K, WIDE, 101, 1);
    other_type = weights_random(&weights, BZ_Q6_K, WIDE, WIDE, 1);
    choice = weights_random(&weights, BZ_F32, EXPERTS, IDS, 1);
    expert_both = weights_random(&weights, BZ_Q4_K, WIDE, 200, EXPERTS);
    expert_gate = weights_random(&weights, BZ_Q5_1, WIDE, 100, EXPERTS);
    expert_up = weights_random(&weights, BZ_Q5_1, WIDE, 100, EXPERTS);
    expert_wide = weights_random(&weights, BZ_Q4_K, WIDE, 192, EXPERTS);
    expert_down = weights_random(&weights, BZ_Q5_0, 96, 90, EXPERTS);
    head = weights_random(&weights, BZ_Q6_K, WIDE, 1000, 1);

    values = weights_random(&weights, BZ_F32, WIDE, WIDE, 1);
    query_norm = weights_random(&weights, BZ_F32, HEAD, 1, 1);
    to_many_heads = weights_random(&weights, BZ_Q4_K, WIDE, MANY_HEADS * HEAD, 1);
    to_heads = weights_random(&weights, BZ_Q4_K, WIDE, WIDTH, 1);
    to_head = weights_random(&weights, BZ_Q4_K, WIDE, HEAD, 1);
    to_head2 = weights_random(&weights, BZ_Q4_K, WIDE, HEAD, 1);
    to_choice = weights_random(&weights, BZ_F32, WIDE, 130, 1);

    for (uint32_t i = 0; i < 2; i++) {
        const uint64_t width = WIDEST + 32 * i;
        bz_weight *w = i ? too_wide : widest;
        w[0] = weights_random(&weights, BZ_F32, width, IDS, 1);
        w[1] = weights_random(&weights, BZ_F32, width, 1, 1);
        w[2] = weights_random(&weights, BZ_F32, width, 1, 1);
        w[3] = weights_random(&weights, BZ_Q8_0, width, HEAD, 1);
        w[4] = weights_random(&weights, BZ_Q4_K, WIDE, width, 1);
    }

    const bound exact = {.of_rms = 6e-6, .of_value = 2e-6};
    const fuse_rules exactly = {.exact = true, .near = exact, .limit = exact};
    test_cases(norms, sizeof norms / sizeof *norms, wanted, exactly);
    test_cases(attentions, sizeof attentions / sizeof *attentions, wanted, exactly);
    /* A key near the middle between two integers becomes either of them. */
    for (bz_cache_type type = BZ_CACHE_Q8; type <= BZ_CACHE_Q4; type++) {
        const bound near = {.of_rms = type == BZ_CACHE_Q8 ? 1e-2 : 0.1};
        test_cases(attentions, sizeof attentions / sizeof *attentions, wanted,
                   (fuse_rules){.exact = true, .cache = type, .near = near, .limit = near});
    }
    /* A value that two kernels round differently changes a sum a little; int8 against the CPU
     * differs much more, and products of two such sums have long tails (test_kernels.c has the
     * tight bound). */
    test_cases(products, sizeof products / sizeof *products, wanted,
               (fuse_rules){.near = {.of_rms = 2e-3}, .limit = {.of_rms = 0.2}});
    /* The sums are the same in the same order, but a compiler may contract a product and a sum into
     * an fma in one kernel only; then int8 may round differently. */
    const fuse_rules summed = {
        .exact = true, .near = exact, .limit = {.of_rms = 2e-5, .of_value = 2e-6}};
    const fuse_rules summed_loose = {.exact = true, .near = summed.limit, .limit = summed.limit};
    const fuse_rules summed8 = {
        .only_many = true, .near = {.of_rms = 6e-3}, .limit = {.of_rms = 0.2}};
    test_cases(sums, sizeof sums / sizeof *sums, wanted, summed);
    test_cases(gated_sums, 1, wanted, summed);
    test_cases(sums, sizeof sums / sizeof *sums, wanted, summed8);
    test_cases(gated_sums8, 1, wanted, summed8);
    test_cases(sums_mul, 1, wanted, exactly);
    test_cases(many_norms, sizeof many_norms / sizeof *many_norms, wanted, summed);
    test_cases(many_norms, sizeof many_norms / sizeof *many_norms, wanted, summed8);
    test_cases(experts_norms, 1, wanted, summed_loose);
    test_cases(experts_norms, 1, wanted,
               (fuse_rules){.only_many = true, .near = {.of_rms = 2e-3}, .limit = {.of_rms = 0.2}});
    test_cases(&wide_norms[0], 1, wanted,
               (fuse_rules){.exact = true,
                            .baseline = true,
                            .unsaved512 = 1,
                            .near = exact,
                            .limit = summed.limit});
    test_cases(&wide_norms[1], 1, wanted,
               (fuse_rules){.exact = true, .baseline = true, .near = exact, .limit = summed.limit});
    /* Memory for the splits of one product at a time: each product starts after the splits of the
     * previous one were added up. */
    test_cases(
        &sums[2], 1, wanted,
        (fuse_rules){
            .exact = true, .binding = 3600000, .unsaved512 = 2, .near = exact, .limit = exact});
    const bound sums_apart = {.of_rms = 2e-5, .of_value = 2e-6};
    const fuse_rules sequential = {
        .exact = true, .sequential = true, .near = sums_apart, .limit = sums_apart};
    test_cases(norms, sizeof norms / sizeof *norms, wanted, sequential);
    test_cases(attentions, sizeof attentions / sizeof *attentions, wanted, sequential);
    test_cases(products, sizeof products / sizeof *products, wanted, sequential);
    test_cases(many_norms, sizeof many_norms / sizeof *many_norms, wanted, sequential);
    weights_free(&weights);
    return finish();
}
