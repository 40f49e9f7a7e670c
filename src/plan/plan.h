/* The seam between what is computed (model/) and how (cpu/, gpu/).
 *
 * model/ records plain steps over handles: a bz_tensor is an activation of n rows,
 * a bz_weight a tensor of the file, a bz_cache one layer's keys and values. A plan is
 * recorded once per pass kind and row bucket and replayed for every pass; what
 * changes from pass to pass is the parameter block bz_rows and nothing else. Back
 * ends read the steps, fuse and schedule them as they like, and must give what the
 * plain list gives.
 *
 * Shapes in comments: n = rows of the pass, m = rows whose logits are wanted.
 */
#ifndef BZ_PLAN_PLAN_H
#define BZ_PLAN_PLAN_H

#include "base/error.h"
#include "plan/weights.h"

/* ---- handles ------------------------------------------------------------ */

typedef struct bz_tensor {
    uint32_t id; /* 0: none */
} bz_tensor;

typedef struct bz_cache {
    uint32_t id; /* 0: none; else 1 + index into bz_plan.caches */
} bz_cache;

#define BZ_NO_TENSOR ((bz_tensor){0})

/* ---- steps -------------------------------------------------------------- */

/* name, inputs -> output. Fields of bz_step that a kind uses are in brackets. */
/* clang-format off */
#define BZ_OP_LIST(X)                                                                                        \
    X(EMBED, "embed")                 /* out = scale * w[0].row(id), or the soft row      [w0 scale takes_soft] */ \
    X(LINEAR, "linear")               /* out[o] = sum_i w[0][o][i] * in0[i]               [w0] */            \
    X(RMS_NORM, "rms_norm")           /* groups of `width`: x / sqrt(mean(x^2)+eps) * w0  [w0? width eps] */ \
    X(ADD, "add")                     /* out = scale * (in0 + in1)                        [scale] */         \
    X(SCALE, "scale")                 /* out = in0 * w[0][0]                              [w0] */            \
    X(MUL_VECTOR, "mul_vector")       /* out[c] = in0[c] * scale * w[0][c % width]        [w0? width scale] */ \
    X(GEGLU, "geglu")                 /* out = gelu(in0) * in1; without in1, in0 holds                       \
                                         groups of `width` gates and `width` ups          [width] */         \
    X(ROPE_TABLE, "rope_table")       /* out = cos(pos*f)[width/2], sin(pos*f)[width/2],                     \
                                         f = base^(-2i/width) / w[0][i], 0 from pair                     \
                                         `pairs` on; with 2 axes the same for `down`                         \
                                         behind it                                        [w0? width base pairs axes] */ \
    X(ROPE, "rope")                   /* groups of `width` turned by the table in1, its                      \
                                         axes taking turns                                [width] */         \
    X(KV_WRITE, "kv_write")           /* cache rows at pos = in0 (keys), in1 (values)     [cache] */         \
    X(ATTEND, "attend")               /* out = softmax(in0 . K) V over visible rows       [cache heads       \
                                                                                           width window      \
                                                                                           blocks] */        \
    X(ROUTE, "route")                 /* out0 = ids of the `experts` best of in0, out1 =                     \
                                         their softmax weights, summing to 1              [experts] */       \
    X(EXPERT_LINEAR, "expert_linear") /* out[slot] = w[0][in1[slot]] * in0 (or in0[slot]) [w0 experts] */    \
    X(EXPERT_SUM, "expert_sum")       /* out = sum over slots in order of                                    \
                                         in2[slot] * w[0][in1[slot]] * in0[slot]          [w0? experts] */   \
    X(TAKE_ROWS, "take_rows")         /* the m rows named by bz_rows.out, `row` further on [row] */          \
    X(SOFTCAP, "softcap")             /* out = scale * tanh(in0 / scale)                  [scale] */         \
    X(RECALL, "recall")               /* out = what was left in in0, or zeros in a fresh pass */             \
    X(JUDGE, "judge")                 /* out = per row of logits in0, from row `row` on,                     \
                                         what bz_judged says                              [row] */           \
    X(SOFT_EMBED, "soft_embed")       /* out, from row `row` on, = scale * sum_v p_v w[0].row(v),            \
                                         p = softmax(in0 / temperature), judged in in1;                      \
                                         may use up in0                                   [w0 scale row] */  \
    X(CUT, "cut")                     /* a named point where the host may step in */                         \
    /* of towers, whose rows are patches of a picture or moments of a sound */                               \
    X(INPUT, "input")                 /* out = bz_rows.input */                                              \
    X(PLACE, "place")                 /* out = in0 + w[0].plane 0.row(pos) + plane 1.row(down)  [w0] */      \
    X(CLAMP, "clamp")                 /* out = in0, not below `low`, not above `high`     [low high] */      \
    X(LAYER_NORM, "layer_norm")       /* groups of `width`: (x - mean) / sqrt(var+eps) * w0  [w0 width eps] */ \
    X(ADD_VECTOR, "add_vector")       /* out[c] = in0[c] + scale * w[0][c]                [w0 scale] */      \
    X(ADD_SCALED, "add_scaled")       /* out = in0 + scale * in1                          [scale] */         \
    X(RELU, "relu")                   /* out = max(in0, 0) */                                                \
    X(SILU, "silu")                   /* out = in0 * sigmoid(in0) */                                         \
    X(GLU, "glu")                     /* out[c] = in0[c] * sigmoid(in0[width + c])        [width] */         \
    X(ATTEND_ALL, "attend_all")       /* out = softmax(in0 . in1) in2, every row sees all [heads width] */   \
    X(POOL, "pool")                   /* m rows: scale * mean of width x width patches    [width scale] */   \
    X(CONV, "conv")                   /* 3 x 3 over time and pitch, every second place, zeros around;        \
                                         a row holds `steps` moments of `width` pitches of `heads`           \
                                         channels, and half as much of either comes out   [w0 steps width heads] */ \
    X(CONV_TIME, "conv_time")         /* out[r][c] = sum_j w[0][c][j] * in0[r-width+1+j][c]  [w0 width] */   \
    X(WAVES, "waves")                 /* m rows: sin(r f)[width/2], cos(r f)[width/2],                       \
                                         f = base^(-i/(width/2-1))                        [width base] */    \
    X(LOCAL_SCORES, "local_scores")   /* out[h][d] = softmax over d < window of the capped                   \
                                         in0 . (in1 of d rows before + in2 row d)         [heads width window scale] */ \
    X(LOCAL_SUM, "local_sum")         /* out = sum over d of in0[h][d] * in1 of d rows before  [heads width window] */
/* clang-format on */

typedef enum bz_op {
#define BZ_OP_ENUM(name, text) BZ_OP_##name,
    BZ_OP_LIST(BZ_OP_ENUM)
#undef BZ_OP_ENUM
} bz_op;

const char *bz_op_name(bz_op op);

/* What a row of a picture sees of the picture, besides what every row sees. */
typedef enum bz_blocks {
    BZ_BLOCKS_NONE,  /* nothing more */
    BZ_BLOCKS_AHEAD, /* what follows */
    BZ_BLOCKS_WHOLE  /* all of it */
} bz_blocks;

typedef struct bz_step {
    bz_op op;
    int32_t layer;    /* -1 outside the layers */
    const char *name; /* what the reference implementation calls the result; a literal */
    bz_tensor in[3];
    bz_tensor out[2];
    bz_weight w[1];
    bz_cache cache;
    uint32_t width;   /* group or head size */
    uint32_t heads;   /* query heads */
    uint32_t window;  /* attend: rows visible, own included; 0 = all */
    uint32_t experts; /* slots per row */
    uint32_t pairs;   /* rope table: leading pairs that turn */
    uint32_t axes;    /* rope table: 1, or 2 for places in a picture */
    uint32_t steps;   /* conv: moments in a row of the input */
    bz_blocks blocks; /* attend */
    bool takes_soft;  /* embed: rows that are no tokens enter here */
    uint32_t row;     /* first of the rows that a step of m rows is about */
    bool both_ways;   /* attend: the pass's rows see each other, and before them what the first one
                         sees */
    float scale;
    float eps;
    float low, high; /* clamp */
    double base;
} bz_step;

typedef struct bz_tensor_info {
    uint32_t cols;   /* values per row */
    uint32_t stride; /* values from row to row (a view keeps its root's) */
    uint32_t column; /* first column inside the root */
    uint32_t root;   /* id of the tensor that owns the memory; own id unless a view */
    bool whole_pass; /* n rows; false: m rows (after take_rows) */
    bool kept; /* its values stay for the next pass, as long as no other plan has run between */
    int32_t first, last; /* steps that write and last read it */
    size_t offset;       /* bytes into the arena */
    size_t bytes;        /* for the bucket's rows */
} bz_tensor_info;

/* ---- caches ------------------------------------------------------------- */

/* Keys and values of one layer that owns them. Row of position p: p % ring, or p. */
typedef struct bz_cache_info {
    int32_t layer;
    uint32_t kv_heads;
    uint32_t head_dim;
    uint32_t window; /* 0: every position stays visible and the cache grows */
} bz_cache_info;

/* ---- the plan ----------------------------------------------------------- */

typedef struct bz_plan {
    uint32_t rows;     /* bucket: most rows of a pass */
    uint32_t out_rows; /* most rows of logits; 0: the plan ends at the last layer */
    const bz_weights *weights;
    const bz_cache_info *caches;
    uint32_t n_caches;

    bz_step *steps;
    size_t n_steps, cap_steps;
    bz_tensor_info *tensors; /* [0] is unused */
    size_t n_tensors, cap_tensors;
    bz_tensor output; /* logits [m][vocabulary] */
    size_t arena_bytes;
    bool tower; /* all rows that belong together are always in one pass, so sums need not be the
                   same in any other */

    int32_t layer; /* recording: given to every step */
    bool failed;   /* recording: out of memory */
} bz_plan;

/* The parameter block of one pass. */
typedef struct bz_rows {
    uint32_t n;          /* rows, <= bz_plan.rows */
    uint32_t n_out;      /* rows of logits, <= bz_plan.out_rows */
    const int32_t *id;   /* [n] token ids */
    const int32_t *pos;  /* [n] positions in their sequence */
    const uint32_t *seq; /* [n] which sequence: index into kv */
    const uint32_t *out; /* [n_out] row numbers */
    void *const *kv;     /* [sequences] the back end's cache objects */

    /* Rows that are no tokens: [n], NULL where the row is one; NULL: all are. Such a row enters as
     * it is, and its id is that of the padding token. */
    const float *const *soft;
    const int32_t *block_first, *block_last; /* [n] positions of the picture that a row is of; both
                                              * its own where it is of none; NULL: none is */
    /* towers */
    const float *input;  /* [n][columns of the input step] */
    const int32_t *down; /* [n] row of the patch in the picture; its column is pos */
    uint32_t across;     /* patches in a row */
    uint32_t moments;    /* of the sound, before its length is divided */
    /* plans with recall, judge, soft_embed: rows of one sequence */
    bool fresh; /* recall gives zeros: nothing was left by a pass before */
    const float
        *given; /* [n][columns] put into the first kept tensor before the pass; NULL: nothing is */
    float temperature; /* logits are divided by it */
    const float *draw; /* [n] uniform numbers of [0, 1), a token is drawn with each */
} bz_rows;

/* What judge says of a row of logits z, divided by the temperature; ids are exact in f32. */
enum bz_judged {
    BZ_JUDGED_BEST,    /* the greatest z, the first of equals */
    BZ_JUDGED_DRAWN,   /* first id at which the sum of probabilities reaches the draw */
    BZ_JUDGED_ENTROPY, /* in nats; below 0: the row has no finite number */
    BZ_JUDGED_PEAK,    /* greatest z */
    BZ_JUDGED_TOTAL,   /* sum of e to the z - peak */
    BZ_JUDGED_COLUMNS
};

bz_status bz_plan_new(bz_plan **out, const bz_weights *weights, const bz_cache_info *caches,
                      uint32_t n_caches, uint32_t rows, uint32_t out_rows, bz_error *err);
/* Ends recording: computes lifetimes and places every tensor in one arena. */
bz_status bz_plan_finish(bz_plan *plan, bz_tensor output, bz_error *err);
void bz_plan_free(bz_plan *plan);
/* The same placing for a back end that runs several steps at once: group[s] is the number of step
 * s's group, which falls where a step is done early (in towers never), and tensors that are alive
 * in one group never share memory. NULL: every step by itself. offset: [n_tensors] bytes into an
 * arena of *arena_bytes. */
bz_status bz_plan_place(const bz_plan *plan, const uint32_t *group, size_t *offset,
                        size_t *arena_bytes, bz_error *err);

const bz_tensor_info *bz_plan_tensor(const bz_plan *plan, bz_tensor t);
uint32_t bz_plan_rows_of(const bz_plan *plan, bz_tensor t); /* bucket rows of a tensor */

/* ---- recording: one function per step kind ------------------------------- */

bz_tensor bz_embed(bz_plan *p, bz_weight table, float scale, const char *name);
bz_tensor bz_linear(bz_plan *p, bz_tensor x, bz_weight w, const char *name);
bz_tensor bz_rms_norm(bz_plan *p, bz_tensor x, bz_weight w, uint32_t width, float eps,
                      const char *name);
bz_tensor bz_add(bz_plan *p, bz_tensor a, bz_tensor b, float scale, const char *name);
bz_tensor bz_scale(bz_plan *p, bz_tensor x, bz_weight w, const char *name);
bz_tensor bz_mul_vector(bz_plan *p, bz_tensor x, bz_weight w, float scale, const char *name);
bz_tensor bz_geglu(bz_plan *p, bz_tensor gate, bz_tensor up, const char *name);
bz_tensor bz_geglu_fused(bz_plan *p, bz_tensor gate_up, uint32_t width, const char *name);
bz_tensor bz_rope_table(bz_plan *p, bz_weight factors, uint32_t width, uint32_t pairs, double base,
                        const char *name);
bz_tensor bz_rope(bz_plan *p, bz_tensor x, bz_tensor table, uint32_t width, const char *name);
void bz_kv_write(bz_plan *p, bz_tensor k, bz_tensor v, bz_cache cache, const char *name);
bz_tensor bz_attend(bz_plan *p, bz_tensor q, bz_cache cache, uint32_t heads, uint32_t width,
                    uint32_t window, const char *name);
bz_tensor bz_attend_both_ways(bz_plan *p, bz_tensor q, bz_cache cache, uint32_t heads,
                              uint32_t width, uint32_t window, const char *name);
void bz_route(bz_plan *p, bz_tensor logits, uint32_t experts, bz_tensor *ids, bz_tensor *shares,
              const char *name);
/* x: [n][K] (all slots see the same input) or [n][experts * K]; w: [experts of the file][O][K]. */
bz_tensor bz_expert_linear(bz_plan *p, bz_tensor x, bz_tensor ids, bz_weight w, uint32_t experts,
                           const char *name);
bz_tensor bz_expert_sum(bz_plan *p, bz_tensor x, bz_tensor ids, bz_tensor shares, bz_weight scales,
                        uint32_t experts, const char *name);
bz_tensor bz_take_rows(bz_plan *p, bz_tensor x, const char *name);
bz_tensor bz_take_rows_from(bz_plan *p, bz_tensor x, uint32_t row, const char *name);
bz_tensor bz_softcap(bz_plan *p, bz_tensor x, float cap, const char *name);
/* A tensor [n][cols] that keeps its values from pass to pass. Written by rows: `to` begins as
 * BZ_NO_TENSOR, where judge makes it, and every block of m rows goes to its own. */
bz_tensor bz_keep(bz_plan *p, uint32_t cols);
bz_tensor bz_recall(bz_plan *p, bz_tensor kept, const char *name);
void bz_judge(bz_plan *p, bz_tensor logits, uint32_t row, bz_tensor *to, const char *name);
void bz_soft_embed(bz_plan *p, bz_tensor logits, bz_tensor judged, bz_weight table, float scale,
                   uint32_t row, bz_tensor to, const char *name);
void bz_cut(bz_plan *p, const char *name);
/* About the step recorded last. */
void bz_last_sees_blocks(bz_plan *p, bz_blocks blocks); /* attend */
void bz_last_takes_soft(bz_plan *p);                    /* embed */

/* ---- recording: towers ----------------------------------------------------- */

bz_tensor bz_input_rows(bz_plan *p, uint32_t cols, const char *name);
bz_tensor bz_place(bz_plan *p, bz_tensor x, bz_weight table, const char *name);
bz_tensor bz_clamp(bz_plan *p, bz_tensor x, float low, float high,
                   const char *name); /* x itself if nothing is clamped */
bz_tensor bz_layer_norm(bz_plan *p, bz_tensor x, bz_weight w, uint32_t width, float eps,
                        const char *name);
bz_tensor bz_add_vector(bz_plan *p, bz_tensor x, bz_weight w, float scale, const char *name);
bz_tensor bz_add_scaled(bz_plan *p, bz_tensor a, bz_tensor b, float scale, const char *name);
bz_tensor bz_multiply(bz_plan *p, bz_tensor x, float scale, const char *name);
bz_tensor bz_relu(bz_plan *p, bz_tensor x, const char *name);
bz_tensor bz_silu(bz_plan *p, bz_tensor x, const char *name);
bz_tensor bz_glu(bz_plan *p, bz_tensor x, const char *name);
bz_tensor bz_rope_table_2d(bz_plan *p, uint32_t width, double base, const char *name);
bz_tensor bz_attend_all(bz_plan *p, bz_tensor q, bz_tensor k, bz_tensor v, uint32_t heads,
                        uint32_t width, const char *name);
bz_tensor bz_pool_patches(bz_plan *p, bz_tensor x, uint32_t side, float scale, const char *name);
/* w: [3, 3, channels, out channels]; steps and pitches are even. */
bz_tensor bz_conv(bz_plan *p, bz_tensor x, bz_weight w, uint32_t steps, uint32_t pitches,
                  uint32_t channels, const char *name);
bz_tensor bz_conv_time(bz_plan *p, bz_tensor x, bz_weight w,
                       const char *name); /* w: [taps, columns] */
bz_tensor bz_waves(bz_plan *p, uint32_t width, double base, const char *name);
bz_tensor bz_local_scores(bz_plan *p, bz_tensor q, bz_tensor k, bz_tensor far, uint32_t heads,
                          uint32_t window, float cap, const char *name);
bz_tensor bz_local_sum(bz_plan *p, bz_tensor shares, bz_tensor v, uint32_t heads, uint32_t window,
                       const char *name);

/* Columns first .. first + cols of x, in place: no step, no copy. */
bz_tensor bz_columns(bz_plan *p, bz_tensor x, uint32_t first, uint32_t cols);

#endif
