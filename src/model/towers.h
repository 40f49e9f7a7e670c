/* The vision and audio towers, which turn images and sound into soft tokens for the text model.
 *
 * They are in the text model's file (Ollama) or in an mmproj file (llama.cpp). Vision is a
 * transformer over patches of 16 x 16 pixels (E2B, E4B, 26B, 31B) or one projection of patches of
 * 48 x 48 (12B). Audio is a conformer over mel features (E2B, E4B) or one projection of 640
 * samples (12B).
 */
#ifndef BZ_MODEL_TOWERS_H
#define BZ_MODEL_TOWERS_H

#include "model/bind.h"
#include "plan/plan.h"

/* A product whose input and output are clamped. */
typedef struct bz_clipped {
    bz_weight w;
    bz_weight low_in, high_in, low_out, high_out; /* [1] each; 0: in the packed table, or none */
    uint32_t packed;                          /* 1 + index into the packed table; 0: not there */
    float in_low, in_high, out_low, out_high; /* set by bz_towers_bounds */
} bz_clipped;

typedef struct bz_vision_layer {
    bz_weight ln1, q_norm, k_norm, attn_post_norm, ln2, ffn_post_norm, out_scale;
    bz_clipped q, k, v, out, gate, up, down;
} bz_vision_layer;

typedef enum bz_tower_kind { BZ_TOWER_NONE, BZ_TOWER_LAYERS, BZ_TOWER_DIRECT } bz_tower_kind;

typedef struct bz_vision {
    bz_tower_kind kind;
    uint32_t layers, width, ffn, heads, head_dim;
    uint32_t side;      /* pixels of a patch: 16, or 48 without layers */
    uint32_t positions; /* rows of the position table, per direction */
    uint32_t budget;    /* default maximum of soft tokens per image */
    bz_weight patch;    /* [3*side*side, width] */
    bz_weight bias;     /* [width]; without layers */
    bz_weight position; /* [width, positions, 2] */
    bz_weight norm1, norm1_bias, norm2, norm2_bias, norm3, norm3_bias; /* without layers */
    bz_weight std_bias, std_scale;                                     /* [width]; optional */
    bz_clipped project;                                                /* [width, text] */
    bz_vision_layer *layer;                                            /* [layers], owned */
} bz_vision;

typedef struct bz_audio_layer {
    bz_weight ffn_norm, ffn_post_norm, attn_norm, attn_post_norm, conv_norm, norm_conv, ffn_norm_1,
        ffn_post_norm_1, norm_out;
    bz_weight relative_k, per_dim_scale, conv_dw;
    bz_clipped up, down, q, k, v, out, pw1, pw2, up_1, down_1;
} bz_audio_layer;

typedef struct bz_audio {
    bz_tower_kind kind;
    uint32_t layers, width, ffn, heads, head_dim, bins;
    bz_weight conv0, conv0_norm, conv1, conv1_norm;
    bz_weight in, out, out_bias;
    bz_weight project;     /* [out or 640, text] */
    bz_audio_layer *layer; /* [layers], owned */
} bz_audio;

typedef struct bz_towers {
    bz_vision vision;
    bz_audio audio;
    bz_weights table;
    bz_weight clamps; /* packed table: all bounds of the vision tower in one vector; optional */
} bz_towers;

/* Binds the towers that the files have; none is not an error. text_width: size of a soft token. */
bz_status bz_towers_bind(bz_towers *t, const bz_files *files, uint32_t text_width, bz_error *err);
void bz_towers_free(bz_towers *t);
/* Reads the bounds of clipped products. bytes: [table.n], at least the vectors in memory. A lower
 * bound above its upper bound is an error. */
bz_status bz_towers_bounds(bz_towers *t, const uint8_t *const *bytes, bz_error *err);
bool bz_tower_is_vector(const bz_weight_info *w); /* norms, scales and bounds: read by the host */

enum { BZ_AUDIO_WINDOW = 12 }; /* rows that audio attention sees, own included */

/* Rows are patches, with their positions in bz_rows.pos, pos_y and patch_cols. Output: soft tokens
 * [m][text width]; without layers there is no pooling and the output is [n][text width]. */
bz_status bz_vision_record(const bz_towers *t, uint32_t rows, uint32_t out_rows, bz_plan **out,
                           bz_error *err);
/* A row is the features of four frames (bz_rows.frames in all) or 640 samples and becomes one soft
 * token. With layers n_out must be BZ_AUDIO_WINDOW. Output: [n][text width]. */
bz_status bz_audio_record(const bz_towers *t, uint32_t rows, bz_plan **out, bz_error *err);

#endif
