/* The uniform of a dispatch, one struct per family of kernels, described once.
 *
 * Each list below becomes a C struct, an assertion of every field's offset, and the WGSL struct
 * that a kernel gets by naming the part params.FAMILY (link.h). Fields are scalars of 4 bytes, so
 * that offsets agree in both languages.
 *
 * Offsets of tensors are f32 indices into the arena, a stride is the number of values from one row
 * to the next. Tensors of the side buffer have offsets in vec4s (16 bytes). */
#ifndef BZ_GPU_PARAMS_H
#define BZ_GPU_PARAMS_H

#include <stddef.h>
#include <stdint.h>

/* clang-format off */

/* All families but repack begin with these. F(S, type, name, comment): S is the struct's name. */
#define GPU_COMMON_PARAMS(F, S)                                                                    \
    F(S, u32, in0, "first input")                                                                  \
    F(S, u32, in0_stride, "values from row to row")                                                \
    F(S, u32, in1, "second input")                                                                 \
    F(S, u32, in1_stride, "values from row to row")                                                \
    F(S, u32, in2, "third input")                                                                  \
    F(S, u32, in2_stride, "values from row to row")                                                \
    F(S, u32, out0, "output")                                                                      \
    F(S, u32, out0_stride, "values from row to row")                                               \
    F(S, u32, out1, "second output, or partial results after the arena")                           \
    F(S, u32, out1_stride, "values from row to row")                                               \
    F(S, u32, cols, "values of an output row; products: outputs")                                  \
    F(S, u32, logit_rows, "1: rows are those that want logits, not all of the pass")

/* linear_wide, linear_row, linear_any, linear_listed, the tile kernels, linear_matrix,
 * expert_linear, split_sum */
#define GPU_PRODUCT_PARAMS(F, S)                                                                   \
    GPU_COMMON_PARAMS(F, S)                                                                        \
    F(S, u32, k, "values of an input row")                                                         \
    F(S, u32, row_bytes, "of the weights")                                                         \
    F(S, u32, first_row, "of the weights in this binding")                                         \
    F(S, u32, row_count, "rows of the weights in this binding")                                    \
    F(S, u32, slots, "experts that a row has chosen")                                              \
    F(S, u32, input_per_slot, "1: every slot has an input row of its own")                         \
    F(S, u32, split_steps, "steps of k of one split")                                              \
    F(S, u32, splits, "split_sum: partial sums to add")                                            \
    F(S, u32, tiles, "side buffer: tiles of rows that chose the same expert")                      \
    F(S, u32, pairs, "side buffer: the rows of those tiles")

/* linear8 */
#define GPU_FUSED_PRODUCT_PARAMS(F, S)                                                             \
    GPU_COMMON_PARAMS(F, S)                                                                        \
    F(S, u32, parts, "partial results of attention that are combined; 0: the input is in0")        \
    F(S, u32, head, "values of one head of them")                                                  \
    F(S, u32, row_bytes, "of the weights")                                                         \
    F(S, u32, row_count, "outputs, of all matrices together")                                      \
    F(S, u32, slots, "experts that a row has chosen")                                              \
    F(S, u32, input_per_slot, "1: every slot has an input row of its own")                         \
    F(S, u32, expert0, "first expert in this binding")                                             \
    F(S, u32, expert_count, "experts in this binding")                                             \
    F(S, u32, up_rows, "weight rows from a gate to its up, in one matrix")                         \
    F(S, f32, add_eps, "of the norm before the residual")                                          \
    F(S, f32, norm_eps, "of the norm before the product")                                          \
    F(S, f32, cap, "of the softcap after the product")                                             \
    F(S, u32, norm_out, "where the normed input is stored")                                        \
    F(S, u32, norm_out_stride, "values from row to row")                                           \
    F(S, u32, up, "multiplied by gelu of the product")                                             \
    F(S, u32, up_stride, "values from row to row")                                                 \
    F(S, u32, matrix0, "first matrix, in vec4s of the binding")                                    \
    F(S, u32, matrix1, "second matrix")                                                            \
    F(S, u32, matrix1_first, "first output of the second matrix")                                  \
    F(S, u32, matrix1_out, "where its outputs go")                                                 \
    F(S, u32, matrix1_stride, "values from row to row")                                            \
    F(S, u32, matrix2, "third matrix")                                                             \
    F(S, u32, matrix2_first, "first output of the third matrix")                                   \
    F(S, u32, matrix2_out, "where its outputs go")                                                 \
    F(S, u32, matrix2_stride, "values from row to row")                                            \
    F(S, u32, low_stride, "adapters: values from row to row of what is multiplied by B")           \
    F(S, u32, low1_stride, "of the second product of experts")                                     \
    F(S, u32, low_values, "values of that, if this kernel computes them")                          \
    F(S, u32, panels, "adapters of experts: panels of 16 outputs, of one matrix")                  \
    F(S, u32, low0, "first product: where a row of that begins")                                   \
    F(S, u32, rank0, "values of it; 0: not adapted")                                               \
    F(S, u32, high0, "B, in values of its binding")                                                \
    F(S, f32, low_scale0, "of the product")                                                        \
    F(S, u32, low1, "second product")                                                              \
    F(S, u32, rank1, "values; 0: not adapted")                                                     \
    F(S, u32, high1, "B")                                                                          \
    F(S, f32, low_scale1, "of the product")                                                        \
    F(S, u32, low2, "third product")                                                               \
    F(S, u32, rank2, "values; 0: not adapted")                                                     \
    F(S, u32, high2, "B")                                                                          \
    F(S, f32, low_scale2, "of the product")

/* embed, embed_slots */
#define GPU_EMBED_PARAMS(F, S)                                                                     \
    GPU_COMMON_PARAMS(F, S)                                                                        \
    F(S, u32, row_bytes, "of the table")                                                           \
    F(S, u32, first_row, "of the table in this binding")                                           \
    F(S, u32, row_count, "rows of the table in this binding")                                      \
    F(S, u32, skip_soft, "1: rows that are not tokens are written by the host")                    \
    F(S, f32, scale, "constant factor")

/* quantize, to_f16: the output is in the side buffer */
#define GPU_CONVERT_PARAMS(F, S)                                                                   \
    GPU_COMMON_PARAMS(F, S)                                                                        \
    F(S, u32, k, "values of an input")                                                             \
    F(S, u32, inputs, "per row")                                                                   \
    F(S, u32, split_rows, "split-K inputs: rows of each partial sum")                              \
    F(S, u32, kept, "where the input is stored as f32")                                            \
    F(S, u32, kept_stride, "values from row to row; 0: it is not stored")

/* route, group_pairs, expert_sum */
#define GPU_EXPERT_PARAMS(F, S)                                                                    \
    GPU_COMMON_PARAMS(F, S)                                                                        \
    F(S, u32, experts, "of the layer")                                                             \
    F(S, u32, slots, "experts that a row chooses")                                                 \
    F(S, u32, split_rows, "split-K inputs: rows of each partial sum")                              \
    F(S, u32, has_weight, "1: experts have a scale of their own")

/* norm, norms, elementwise */
#define GPU_NORM_PARAMS(F, S)                                                                      \
    GPU_COMMON_PARAMS(F, S)                                                                        \
    F(S, u32, width, "values of a group")                                                          \
    F(S, u32, has_weight, "1: the norm has a weight")                                              \
    F(S, f32, scale, "constant factor, or the cap of a softcap")                                   \
    F(S, f32, eps, "of all norms")                                                                 \
    F(S, u32, split_rows, "split-K inputs: rows of each partial sum")                              \
    F(S, u32, first_wanted, "take_rows: first of the wanted rows")                                 \
    F(S, u32, norm0_out, "norms: first norm; int8: its integers in the side buffer")               \
    F(S, u32, norm0_stride, "int8: its scales in the side buffer")                                 \
    F(S, u32, norm1_out, "second norm")                                                            \
    F(S, u32, norm1_stride, "values from row to row")                                              \
    F(S, u32, norm2_out, "third norm")                                                             \
    F(S, u32, norm2_stride, "values from row to row")                                              \
    F(S, u32, copy0_out, "first norm as f32, where it is int8 or f16 and adapters read it")        \
    F(S, u32, copy0_stride, "values from row to row")                                              \
    F(S, u32, copy1_out, "second norm")                                                            \
    F(S, u32, copy1_stride, "values from row to row")                                              \
    F(S, u32, copy2_out, "third norm")                                                             \
    F(S, u32, copy2_stride, "values from row to row")

/* rope, kv_write, kv_norm, attend, attend_tile, attend_split, combine */
#define GPU_ATTENTION_PARAMS(F, S)                                                                 \
    GPU_COMMON_PARAMS(F, S)                                                                        \
    F(S, u32, width, "values of a head")                                                           \
    F(S, u32, axes, "rope: tables that heads cycle through")                                       \
    F(S, u32, heads, "of the queries")                                                             \
    F(S, u32, kv_heads, "of the cache")                                                            \
    F(S, u32, window, "positions that a row sees; 0: all")                                         \
    F(S, u32, ring, "rows of a sequence's ring, where position p is in row p % ring; or 0")        \
    F(S, u32, first_row, "of the cache in this binding")                                           \
    F(S, u32, row_count, "rows of the cache in this binding")                                      \
    F(S, u32, parts, "partial results of all splits and bindings; 1: the result itself")           \
    F(S, u32, first_part, "of this dispatch")                                                      \
    F(S, u32, splits, "attend_split: of the positions in this binding")                            \
    F(S, u32, bidirectional, "1: rows see all rows of the pass and what the first one sees")       \
    F(S, u32, image_attention, "1: rows of an image see its later rows, 2: all of it; 3: texts")    \
    F(S, f32, eps, "of the norms")                                                                 \
    F(S, u32, split_rows, "split-K inputs: rows of each partial sum")                              \
    F(S, u32, query, "kv_norm: queries")                                                           \
    F(S, u32, query_stride, "values from row to row")

/* add_low_rank */
#define GPU_LOW_RANK_PARAMS(F, S)                                                                  \
    GPU_COMMON_PARAMS(F, S)                                                                        \
    F(S, u32, panels, "experts: panels of 16 outputs, of one matrix")                              \
    F(S, u32, skip_soft, "1: rows that are soft tokens stay as they are")                          \
    F(S, u32, low_split_rows, "split-K input: rows of each partial sum of what B multiplies")      \
    F(S, u32, split_rows, "split-K inputs: rows of each partial sum of the others")                \
    F(S, u32, rank0, "first sum: values that B multiplies")                                        \
    F(S, u32, high0, "B, in values of its binding")                                                \
    F(S, f32, scale0, "of the product")                                                            \
    F(S, u32, first1, "second sum: its first workgroup")                                           \
    F(S, u32, x1, "what is added to")                                                              \
    F(S, u32, x1_stride, "values from row to row")                                                 \
    F(S, u32, low1, "what B multiplies")                                                           \
    F(S, u32, to1, "its output")                                                                   \
    F(S, u32, to1_stride, "values from row to row")                                                \
    F(S, u32, cols1, "values of an output row")                                                    \
    F(S, u32, rank1, "values that B multiplies")                                                   \
    F(S, u32, high1, "B")                                                                          \
    F(S, f32, scale1, "of the product")                                                            \
    F(S, u32, first2, "third sum")                                                                 \
    F(S, u32, x2, "what is added to")                                                              \
    F(S, u32, x2_stride, "values from row to row")                                                 \
    F(S, u32, low2, "what B multiplies")                                                           \
    F(S, u32, to2, "its output")                                                                   \
    F(S, u32, to2_stride, "values from row to row")                                                \
    F(S, u32, cols2, "values of an output row")                                                    \
    F(S, u32, rank2, "values that B multiplies")                                                   \
    F(S, u32, high2, "B")                                                                          \
    F(S, f32, scale2, "of the product")

/* logit_stats_scan, logit_stats_pick, soft_weigh ... soft_sum, soft_embed */
#define GPU_CANVAS_PARAMS(F, S)                                                                    \
    GPU_COMMON_PARAMS(F, S)                                                                        \
    F(S, u32, vocab, "logits of a row")                                                            \
    F(S, u32, ranges, "logit_stats: ranges of a row of logits")                                    \
    F(S, u32, first_wanted, "row of the canvas that the first row of logits belongs to")           \
    F(S, f32, scale, "constant factor")                                                            \
    F(S, f32, omitted, "fraction of a row's sum of exponentials that may be left out")             \
    F(S, u32, counts, "how many tokens are listed (canvas/soft)")                                  \
    F(S, u32, list, "the listed tokens")                                                           \
    F(S, u32, list_capacity, "tokens; with more, the whole table is multiplied")                   \
    F(S, u32, list_parts, "maximal number of partial sums of a row's list, per binding")           \
    F(S, u32, all_list_parts, "of all bindings")                                                   \
    F(S, u32, table_parts, "partial sums of the whole table")                                      \
    F(S, u32, first_part, "of this dispatch")                                                      \
    F(S, u32, part_tokens, "tokens of one partial sum of the whole table")                         \
    F(S, u32, row_bytes, "of the table")                                                           \
    F(S, u32, first_row, "of the table in this binding")                                           \
    F(S, u32, row_count, "rows of the table in this binding")

/* best, top, list_rows */
#define GPU_DRAFT_PARAMS(F, S)                                                                     \
    GPU_COMMON_PARAMS(F, S)                                                                        \
    F(S, u32, vocab, "logits; list_rows: values of the table")                                     \
    F(S, u32, draft, "its number in the parameter block")                                          \
    F(S, u32, row_values, "list_rows: values of a row of the table")                               \
    F(S, u32, value_words, "list_rows: words of a value")

/* tower_*: vision and audio encoders */
#define GPU_TOWER_PARAMS(F, S)                                                                     \
    GPU_COMMON_PARAMS(F, S)                                                                        \
    F(S, u32, width, "values of a group or head; pool: patches across; conv: frequencies")         \
    F(S, u32, heads, "of queries, keys and values")                                                \
    F(S, u32, window, "rows that a row sees")                                                      \
    F(S, u32, frames, "conv: times of an input row")                                               \
    F(S, u32, channels, "conv: of the input")                                                      \
    F(S, u32, outputs, "conv: channels of the output")                                             \
    F(S, u32, positions, "rows of a table of positions")                                           \
    F(S, u32, has_weight, "1: the step has a weight")                                              \
    F(S, f32, scale, "constant factor")                                                            \
    F(S, f32, key_scale, "attend_local: of the keys")                                                \
    F(S, f32, cap, "of scores")                                                                    \
    F(S, f32, eps, "of the norm")                                                                  \
    F(S, f32, out_eps, "tower_rows: of the second norm")                                           \
    F(S, u32, far, "attend_local: keys by distance")                                                 \
    F(S, u32, far_stride, "values from row to row")                                                \
    F(S, u32, copy1_out, "tower_rows: second copy of the output")                                  \
    F(S, u32, copy1_stride, "values from row to row")                                              \
    F(S, u32, copy2_out, "third copy")                                                             \
    F(S, u32, copy2_stride, "values from row to row")                                              \
    F(S, f32, low0, "first clamp")                                                                 \
    F(S, f32, high0, "first clamp")                                                                \
    F(S, f32, low1, "second clamp")                                                                \
    F(S, f32, high1, "second clamp")                                                               \
    F(S, f32, low2, "third clamp")                                                                 \
    F(S, f32, high2, "third clamp")                                                                \
    F(S, f32, low3, "fourth clamp")                                                                \
    F(S, f32, high3, "fourth clamp")

/* repack: a slice of rows of the file, and where it goes in a piece of the weights */
#define GPU_REPACK_PARAMS(F, S)                                                                    \
    F(S, u32, first_row, "of the slice in the piece")                                              \
    F(S, u32, rows, "of the slice")                                                                \
    F(S, u32, raw_bytes, "of a row in the file")                                                   \
    F(S, u32, row_words, "of a row in the piece")

/* X(family, LIST) */
#define GPU_PARAM_FAMILIES(X)                                                                      \
    X(product, GPU_PRODUCT_PARAMS)                                                                 \
    X(fused_product, GPU_FUSED_PRODUCT_PARAMS)                                                     \
    X(embed, GPU_EMBED_PARAMS)                                                                     \
    X(convert, GPU_CONVERT_PARAMS)                                                                 \
    X(expert, GPU_EXPERT_PARAMS)                                                                   \
    X(low_rank, GPU_LOW_RANK_PARAMS)                                                               \
    X(norm, GPU_NORM_PARAMS)                                                                       \
    X(attention, GPU_ATTENTION_PARAMS)                                                             \
    X(canvas, GPU_CANVAS_PARAMS)                                                                   \
    X(draft, GPU_DRAFT_PARAMS)                                                                     \
    X(tower, GPU_TOWER_PARAMS)                                                                     \
    X(repack, GPU_REPACK_PARAMS)

/* clang-format on */

typedef uint32_t gpu_param_u32;
typedef float gpu_param_f32;

#define GPU_PARAM_FIELD(S, type, name, comment) gpu_param_##type name;
#define GPU_PARAM_INDEX(S, type, name, comment) S##_at_##name,
#define GPU_PARAM_ASSERT(S, type, name, comment)                                                   \
    _Static_assert(offsetof(S, name) == 4 * S##_at_##name, #S "." #name);
#define GPU_PARAM_STRUCT(family, LIST)                                                             \
    typedef struct gpu_##family##_params {                                                         \
        LIST(GPU_PARAM_FIELD, )                                                                    \
    } gpu_##family##_params;                                                                       \
    enum { LIST(GPU_PARAM_INDEX, gpu_##family##_params) gpu_##family##_params_words };             \
    LIST(GPU_PARAM_ASSERT, gpu_##family##_params)                                                  \
    _Static_assert(sizeof(gpu_##family##_params) == 4 * gpu_##family##_params_words, #family);
GPU_PARAM_FAMILIES(GPU_PARAM_STRUCT)

enum { GPU_PARAMS_SLOT = 256 }; /* bytes of uniform memory per dispatch */

/* The uniform of any dispatch. The common fields are also members of the union itself. */
typedef union gpu_params {
    uint32_t words[GPU_PARAMS_SLOT / 4]; /* the first member, so that {0} clears all */
    struct {
        GPU_COMMON_PARAMS(GPU_PARAM_FIELD, )
    };
    gpu_product_params product;
    gpu_fused_product_params fused_product;
    gpu_embed_params embed;
    gpu_convert_params convert;
    gpu_expert_params expert;
    gpu_low_rank_params low_rank;
    gpu_norm_params norm;
    gpu_attention_params attention;
    gpu_canvas_params canvas;
    gpu_draft_params draft;
    gpu_tower_params tower;
} gpu_params;

_Static_assert(sizeof(gpu_params) == GPU_PARAMS_SLOT, "a uniform fits its slot");

/* WGSL of a family: the struct and the binding `params`. NULL: there is no such family. */
const char *gpu_params_wgsl(const char *family);

#endif
