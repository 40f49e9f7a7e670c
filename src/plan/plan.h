/* The interface between what is computed (model/) and how (cpu/, gpu/).
 *
 * model/ records steps over handles: a bz_tensor is an activation of n rows, a bz_weight a tensor
 * of the file, a bz_cache the keys and values of one layer. A plan is recorded once per kind of
 * pass and row bucket and replayed for every pass; only the parameter block bz_rows changes from
 * pass to pass. Back ends may fuse and schedule steps as they like, but must produce what the
 * plain list produces.
 *
 * Shapes in comments: n = rows of the pass, m = output rows (those with logits).
 */
#ifndef BZ_PLAN_PLAN_H
#define BZ_PLAN_PLAN_H

#include "base/error.h"
#include "plan/cache.h"
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

/* Step kinds: the formula of the output, then in brackets the fields of bz_step that are used.
 * x = in[0], y = in[1], z = in[2], w = w[0]; a "?" marks what may be absent. Norms and rope work
 * on groups of `width` values of a row (a head, or the whole row). */
/* clang-format off */
#define BZ_OP_LIST(X)                                                                              \
    X(EMBED, "embed")                   /* scale * w.row(id), or the soft token of the row; with   \
                                           x the id is x[width]  [w scale accepts_soft width] */   \
    X(LINEAR, "linear")                 /* out[o] = sum_i w[o][i] * x[i]  [w] */                   \
    X(RMS_NORM, "rms_norm")             /* x / sqrt(mean(x^2) + eps) * w  [w? width eps] */        \
    X(ADD, "add")                       /* scale * (x + y)  [scale] */                             \
    X(SCALE, "scale")                   /* x * w[0]  [w] */                                        \
    X(MUL_VECTOR, "mul_vector")         /* out[c] = x[c] * scale * w[c % width]                    \
                                           [w? width scale] */                                     \
    X(GEGLU, "geglu")                   /* gelu(x) * y; without y, x holds groups of `width` gates \
                                           and `width` ups  [width] */                             \
    X(ROPE_TABLE, "rope_table")         /* cos(pos * f)[width/2], sin(pos * f)[width/2] with       \
                                           f_i = base^(-2i/width) / w[i], and f_i = 0 for          \
                                           i >= rotated_pairs; 2 axes: then the same of pos_y      \
                                           [w? width base rotated_pairs axes] */                   \
    X(ROPE, "rope")                     /* x rotated by the table y; with 2 axes even groups by    \
                                           the first axis, odd ones by the second  [width] */      \
    X(KV_WRITE, "kv_write")             /* cache rows at pos = x (keys), y (values)  [cache] */    \
    X(ATTEND, "attend")                 /* softmax(x . K) V over the visible positions             \
                                           [cache heads width window image_attention               \
                                           bidirectional] */                                       \
    X(ROUTE, "route")                   /* out0 = ids of the best experts of the logits x, out1 =  \
                                           their softmax weights, sum 1  [experts_used] */         \
    X(EXPERT_LINEAR, "expert_linear")   /* out[slot] = w[y[slot]] * x, or * x[slot]                \
                                           [w experts_used] */                                     \
    X(EXPERT_SUM, "expert_sum")         /* sum over slots, in order, of z[slot] * w[y[slot]] *     \
                                           x[slot]  [w? experts_used] */                           \
    X(ADD_LOW_RANK, "add_low_rank")     /* out[o] = x[o] + scale * sum_j w[j][o] * y[j], w in      \
                                           panels of 16 outputs; with ids z the same for every     \
                                           slot with its expert's w, x and y holding a part per    \
                                           slot; with accepts_soft rows of soft tokens stay x      \
                                           [w scale experts_used accepts_soft] */                  \
    X(TAKE_ROWS, "take_rows")           /* m rows: x.row(first_row + bz_rows.out[r])               \
                                           [first_row] */                                          \
    X(SOFTCAP, "softcap")               /* scale * tanh(x / scale)  [scale] */                     \
    X(READ_KEPT, "read_kept")           /* the kept tensor x, or zeros (bz_rows.reset_kept) */     \
    X(MEAN_ROWS, "mean_rows")           /* m rows: mean of the rows of x from bz_rows.out[r] on,   \
                                           as many as its text has */                              \
    X(CONCAT, "concat")                 /* x, then y */                                            \
    X(BEST, "best")                     /* out[width] = id of the greatest x, the first of equals; \
                                           with ids y that is y[i] of the greatest x[i], the       \
                                           lowest of equals  [width] */                            \
    X(TOP, "top")                       /* out[i] = number of the i-th greatest x; the first of    \
                                           equals comes first */                                   \
    X(LIST_ROWS, "list_rows")           /* out = w.row(x[0]), w.row(x[1]), ..., whole numbers; w   \
                                           holds integers less than the number of its values       \
                                           [w] */                                                  \
    X(LINEAR_LISTED, "linear_listed")   /* out[i] = sum_j w[y[i]][j] * x[j]  [w] */                \
    X(LOGIT_STATS, "logit_stats")       /* out.row(first_row + r) = enum bz_logit_stat of logits   \
                                           x.row(r)  [first_row] */                                \
    X(SOFT_EMBED, "soft_embed")         /* out.row(first_row + r) = scale * sum_v p_v w.row(v),    \
                                           p = softmax(x.row(r) / temperature), y = logit_stats    \
                                           of x; may overwrite x  [w scale first_row] */           \
    X(CUT, "cut")                       /* end of a segment: the host may upload, read back,       \
                                           report progress or cancel here */                       \
    /* only in towers, where a row is a patch of an image or a frame of sound */                   \
    X(INPUT, "input")                   /* bz_rows.input */                                        \
    X(POSITION_EMBED, "position_embed") /* x + w.plane(0).row(pos) + w.plane(1).row(pos_y)  [w] */ \
    X(CLAMP, "clamp")                   /* min(max(x, low), high)  [low high] */                   \
    X(LAYER_NORM, "layer_norm")         /* (x - mean) / sqrt(variance + eps) * w  [w width eps] */ \
    X(ADD_VECTOR, "add_vector")         /* out[c] = x[c] + scale * w[c]  [w scale] */              \
    X(ADD_SCALED, "add_scaled")         /* x + scale * y  [scale] */                               \
    X(RELU, "relu")                     /* max(x, 0) */                                            \
    X(SILU, "silu")                     /* x * sigmoid(x) */                                       \
    X(GLU, "glu")                       /* out[c] = x[c] * sigmoid(x[width + c])  [width] */       \
    X(ATTEND_ALL, "attend_all")         /* softmax(x . y) z over all rows  [heads width] */        \
    X(POOL, "pool")                     /* m rows: scale * mean of width x width patches           \
                                           [width scale] */                                        \
    X(CONV, "conv")                     /* 3 x 3 over time and frequency, stride 2, zero padding;  \
                                           a row is [frames][width][channels] and becomes          \
                                           [frames/2][width/2][output channels of w]               \
                                           [w frames width channels] */                            \
    X(CONV_TIME, "conv_time")           /* out[r][c] = sum_j w[c][j] * x[r - width + 1 + j][c]     \
                                           [w width] */                                            \
    X(SINUSOIDS, "sinusoids")           /* m rows: sin(r f)[width/2], cos(r f)[width/2],           \
                                           f_i = base^(-i / (width/2 - 1))  [width base] */        \
    X(LOCAL_SCORES, "local_scores")     /* out[h][d] = softmax over d < window of cap(x .          \
                                           (y.row(r - d) + z.row(d))), cap(s) = scale *            \
                                           tanh(s / scale)  [heads width window scale] */          \
    X(LOCAL_SUM, "local_sum")           /* out[h] = sum over d of x[h][d] * y.row(r - d)[h]        \
                                           [heads width window] */
/* clang-format on */

typedef enum bz_op {
#define BZ_OP_ENUM(name, text) BZ_OP_##name,
    BZ_OP_LIST(BZ_OP_ENUM)
#undef BZ_OP_ENUM
} bz_op;

const char *bz_op_name(bz_op op);

/* What a row of an image sees of its image; or, where vectors of texts are computed, what it sees.
 */
typedef enum bz_image_attention {
    BZ_IMAGE_CAUSAL,  /* no more than a text row would */
    BZ_IMAGE_TO_END,  /* also what follows in the image */
    BZ_IMAGE_WHOLE,   /* all of the image, the window notwithstanding */
    BZ_TEXT_BOTH_WAYS /* all of the text that the row belongs to, and nothing else; with a window,
                         no more than its positions on either side, own included */
} bz_image_attention;

typedef struct bz_step {
    bz_op op;
    int32_t layer;    /* -1 outside the layers */
    const char *name; /* what the reference implementation calls the result; a literal */
    bz_tensor in[3];
    bz_tensor out[2];
    bz_weight w[1];
    bz_cache cache;
    uint32_t width;         /* group or head size; kernel size of conv_time; bins of conv */
    uint32_t heads;         /* query heads */
    uint32_t window;        /* attend: visible positions, own included; 0 = all */
    uint32_t experts_used;  /* slots per row */
    uint32_t rotated_pairs; /* rope_table: the others have angle 0 */
    uint32_t axes;          /* rope_table: 1, or 2 for patches of an image */
    uint32_t frames;        /* conv: in one row of the input */
    uint32_t channels;      /* conv: of the input */
    bz_image_attention image_attention; /* attend */
    bool accepts_soft;                  /* embed: rows with a soft token take it instead */
    uint32_t first_row; /* of the m rows that the step is about, in its n-row tensor */
    bool bidirectional; /* attend: rows of the pass see each other, and the earlier positions that
                           the first row of the pass sees */
    float scale;
    float eps;
    float low, high; /* clamp */
    double base;     /* rope_table, sinusoids */
} bz_step;

typedef struct bz_tensor_info {
    uint32_t cols;   /* values per row */
    uint32_t stride; /* values from row to row (a view keeps its root's) */
    uint32_t column; /* first column inside the root */
    uint32_t root;   /* id of the tensor that owns the memory; own id unless a view */
    bool whole_pass; /* n rows; false: m rows (after take_rows) */
    bool kept;       /* keeps its values until the next pass, unless another plan runs first */
    bool shared;     /* lies at the start of every arena, with BZ_SHARED_ROWS rows: plans that have
                        it pass it on to each other */
    int32_t first, last; /* steps that write it first and read it last */
    size_t offset;       /* bytes into the arena */
    size_t bytes;        /* for the bucket's rows */
} bz_tensor_info;

/* ---- caches ------------------------------------------------------------- */

/* Keys and values of a layer that owns them. Position p is in row p % ring size, or row p. */
typedef struct bz_cache_info {
    int32_t layer;
    uint32_t kv_heads;
    uint32_t head_dim;
    uint32_t window; /* 0: every position stays visible and the cache grows */
} bz_cache_info;

/* ---- the plan ----------------------------------------------------------- */

typedef struct bz_plan {
    uint32_t rows;     /* bucket: the maximum of n */
    uint32_t out_rows; /* the maximum of m; 0: no logits, the plan ends at the last layer */
    const bz_weights *weights;
    const bz_cache_info *caches;
    uint32_t n_caches;

    bz_step *steps;
    size_t n_steps, cap_steps;
    bz_tensor_info *tensors; /* [0] is unused */
    size_t n_tensors, cap_tensors;
    bz_tensor output; /* logits [m][vocabulary] */
    size_t arena_bytes;
    bool tower;  /* all rows of an image or clip are in one pass, so the order of a sum may depend
                    on n */
    bool drafts; /* its output are ids of drafts, not logits */
    bool many_sequences; /* rows of a pass may belong to different sequences; else all to one. Set
                            before the plan is prepared; the CPU needs no difference */

    int32_t layer;       /* recording: written into every step */
    bool failed;         /* recording: out of memory, or `missing` */
    const char *missing; /* recording: the first step whose weight does not exist */
    int32_t missing_layer;
} bz_plan;

/* The parameter block of one pass. */
typedef struct bz_rows {
    uint32_t n;          /* rows, <= bz_plan.rows */
    uint32_t n_out;      /* output rows, <= bz_plan.out_rows */
    const int32_t *id;   /* [n] token ids */
    const int32_t *pos;  /* [n] positions in their sequence; vision: column of the patch */
    const uint32_t *seq; /* [n] which sequence: index into kv */
    const uint32_t *out; /* [n_out] row numbers */
    void *const *kv;     /* [sequences] the back end's cache objects */
    bool more_follows;   /* n_out is 0 and another pass follows, which may start before this one has
                            finished on a device */

    /* [n] soft tokens, NULL where the row is a token; NULL: all rows are tokens. The id of a row
     * with a soft token is the padding token. */
    const float *const *soft;
    /* [n] first and last position of the image a row belongs to, or the row's own position where
     * it belongs to none; NULL: no images. With mean_rows: of the text it belongs to. */
    const int32_t *image_first, *image_last;
    const int32_t *angle; /* [n] positions for rope_table, if they are not `pos`; else NULL */
    /* towers */
    const float *input;   /* [n][columns of the input step] */
    const int32_t *pos_y; /* [n] vision: row of the patch */
    uint32_t patch_cols;  /* vision: patches side by side */
    uint32_t frames;      /* audio: frames of the clip before subsampling */
    /* plans with read_kept, logit_stats, soft_embed: rows of one sequence */
    bool reset_kept;         /* no pass ran before: read_kept returns zeros */
    const float *kept_input; /* [n][columns] copied into the first kept tensor before the pass;
                              * NULL: nothing is */
    float temperature;       /* logits are divided by it */
    const float *uniform;    /* [n] random numbers of [0, 1); a token is drawn with each */
} bz_rows;

/* Columns that logit_stats writes for a row of logits z divided by the temperature; ids are exact
 * in f32. */
enum bz_logit_stat {
    BZ_STAT_BEST,    /* id of the greatest z, the first of equals */
    BZ_STAT_DRAWN,   /* first id at which the cumulative probability reaches the random number */
    BZ_STAT_ENTROPY, /* in nats; below 0: no logit is finite */
    BZ_STAT_MAX,     /* greatest z */
    BZ_STAT_SUM,     /* sum of exp(z - max) */
    BZ_STAT_COLUMNS
};

enum { BZ_SHARED_ROWS = 8 };

bz_status bz_plan_new(bz_plan **out, const bz_weights *weights, const bz_cache_info *caches,
                      uint32_t n_caches, uint32_t rows, uint32_t out_rows, bz_error *err);
/* Ends recording: computes lifetimes, checks every step (check.c), and computes the offset of every
 * tensor in one arena. Fails with bad_file if a weight is missing or a shape does not fit. */
bz_status bz_plan_finish(bz_plan *plan, bz_tensor output, bz_error *err);
void bz_plan_free(bz_plan *plan);
/* The same offsets for a back end that runs several steps at once. group[s]: number of the group
 * that step s belongs to; groups run in this order, which is the plan's except where a step runs
 * early (never in towers). Tensors that are live in the same group never share memory. NULL: every
 * step is its own group. offset: [n_tensors] bytes into an arena of *arena_bytes. */
bz_status bz_plan_place(const bz_plan *plan, const uint32_t *group, size_t *offset,
                        size_t *arena_bytes, bz_error *err);

const bz_tensor_info *bz_plan_tensor(const bz_plan *plan, bz_tensor t);
uint32_t bz_plan_rows_of(const bz_plan *plan, bz_tensor t); /* bucket rows of a tensor */

/* Dimension i of a weight; if it does not exist, 0, and the plan fails. name: of the step. */
uint32_t bz_weight_size(bz_plan *plan, bz_weight w, int i, const char *name);

/* ---- recording: one function per step kind ------------------------------- */

/* Formulas are in BZ_OP_LIST. x and the result are [n][columns] unless noted; [m][columns] after
 * take_rows. */
bz_tensor bz_embed(bz_plan *p, bz_weight table, float scale, const char *name);
bz_tensor bz_linear(bz_plan *p, bz_tensor x, bz_weight w, const char *name);
bz_tensor bz_rms_norm(bz_plan *p, bz_tensor x, bz_weight w, uint32_t width, float eps,
                      const char *name);
bz_tensor bz_add(bz_plan *p, bz_tensor a, bz_tensor b, float scale, const char *name);
bz_tensor bz_scale(bz_plan *p, bz_tensor x, bz_weight w, const char *name);
bz_tensor bz_mul_vector(bz_plan *p, bz_tensor x, bz_weight w, float scale, const char *name);
bz_tensor bz_multiply(bz_plan *p, bz_tensor x, float scale, const char *name);
bz_tensor bz_geglu(bz_plan *p, bz_tensor gate, bz_tensor up, const char *name);
/* gate_up: groups of `width` gates and `width` ups. */
bz_tensor bz_geglu_fused(bz_plan *p, bz_tensor gate_up, uint32_t width, const char *name);
bz_tensor bz_rope_table(bz_plan *p, bz_weight factors, uint32_t width, uint32_t rotated_pairs,
                        double base, const char *name);
bz_tensor bz_rope(bz_plan *p, bz_tensor x, bz_tensor table, uint32_t width, const char *name);
/* k, v: [n][kv heads * head size]. */
void bz_kv_write(bz_plan *p, bz_tensor k, bz_tensor v, bz_cache cache, const char *name);
/* q: [n][heads * width]. */
bz_tensor bz_attend(bz_plan *p, bz_tensor q, bz_cache cache, uint32_t heads, uint32_t width,
                    uint32_t window, const char *name);
bz_tensor bz_attend_bidirectional(bz_plan *p, bz_tensor q, bz_cache cache, uint32_t heads,
                                  uint32_t width, uint32_t window, const char *name);
/* logits: [n][experts]; *ids, *weights: [n][used]. */
void bz_route(bz_plan *p, bz_tensor logits, uint32_t used, bz_tensor *ids, bz_tensor *weights,
              const char *name);
/* x: [n][K] (every slot reads the same input) or [n][used * K]; w: [experts][O][K]. */
bz_tensor bz_expert_linear(bz_plan *p, bz_tensor x, bz_tensor ids, bz_weight w, uint32_t used,
                           const char *name);
/* x: [n][used * columns]; ids, weights: [n][used]; scales: [experts] or none. */
bz_tensor bz_expert_sum(bz_plan *p, bz_tensor x, bz_tensor ids, bz_tensor weights, bz_weight scales,
                        uint32_t used, const char *name);
/* x: [n][used * O]; y: [n][used * r]; w: [16, r, panels], F32: outputs 16 i .. 16 i + 15 of row j
 * lie in row j of panel i. Without ids `used` is 1; with them w has the panels of every expert. */
enum { BZ_LOW_RANK_PANEL = 16 };
bz_tensor bz_add_low_rank(bz_plan *p, bz_tensor x, bz_tensor y, bz_tensor ids, bz_weight w,
                          uint32_t used, float scale, const char *name);
bz_tensor bz_take_rows(bz_plan *p, bz_tensor x, const char *name);
bz_tensor bz_take_rows_from(bz_plan *p, bz_tensor x, uint32_t first_row, const char *name);
bz_tensor bz_mean_rows(bz_plan *p, bz_tensor x, const char *name);
bz_tensor bz_softcap(bz_plan *p, bz_tensor x, float cap, const char *name);
/* x, then y: [n][columns of both]. */
bz_tensor bz_concat(bz_plan *p, bz_tensor x, bz_tensor y, const char *name);
/* The tensor [n] or [m][cols] that plans share: one per plan, of the same width in all of them. */
bz_tensor bz_shared_tensor(bz_plan *p, uint32_t cols, bool whole_pass);
size_t bz_plan_shared_bytes(const bz_plan *p); /* 0: the plan has none */
/* x [m] to the first rows of the shared tensor. */
void bz_share(bz_plan *p, bz_tensor x, bz_tensor shared, const char *name);
/* Ids are whole numbers in f32. best: of logits [n][vocabulary], to column `column` of ids
 * [n][columns], made by the first call if BZ_NO_TENSOR. embed_best: the rows of a table with these
 * ids. */
void bz_best(bz_plan *p, bz_tensor logits, uint32_t columns, uint32_t column, bz_tensor *ids,
             const char *name);
bz_tensor bz_embed_best(bz_plan *p, bz_tensor ids, uint32_t column, bz_weight table, float scale,
                        const char *name);
/* The best of a part of the vocabulary: top of n groups x [n][groups] -> [n][count], list_rows of
 * table [ids of a group, groups] -> listed [n][ids], linear_listed with their rows of w ->
 * logits [n][ids], best_listed. */
bz_tensor bz_top(bz_plan *p, bz_tensor x, uint32_t count, const char *name);
bz_tensor bz_list_rows(bz_plan *p, bz_tensor x, bz_weight table, const char *name);
bz_tensor bz_linear_listed(bz_plan *p, bz_tensor x, bz_tensor listed, bz_weight w,
                           const char *name);
void bz_best_listed(bz_plan *p, bz_tensor logits, bz_tensor listed, uint32_t columns,
                    uint32_t column, bz_tensor *ids, const char *name);
/* A tensor [n][cols] that keeps its values from pass to pass. */
bz_tensor bz_kept_tensor(bz_plan *p, uint32_t cols);
bz_tensor bz_read_kept(bz_plan *p, bz_tensor kept, const char *name);
/* logits: [m][vocabulary]. *stats: [n][BZ_STAT_COLUMNS], made by the first call if BZ_NO_TENSOR;
 * each call writes m rows of it. soft_embed writes m rows of `out` [n][d] in the same way. */
void bz_logit_stats(bz_plan *p, bz_tensor logits, uint32_t first_row, bz_tensor *stats,
                    const char *name);
void bz_soft_embed(bz_plan *p, bz_tensor logits, bz_tensor stats, bz_weight table, float scale,
                   uint32_t first_row, bz_tensor out, const char *name);
void bz_cut(bz_plan *p, const char *name);
/* These change the step recorded last. */
void bz_last_image_attention(bz_plan *p, bz_image_attention kind); /* attend */
void bz_last_accepts_soft(bz_plan *p);                             /* embed, add_low_rank */

/* ---- recording: towers ----------------------------------------------------- */

bz_tensor bz_input_rows(bz_plan *p, uint32_t cols, const char *name);
/* table: [columns, positions, 2]. */
bz_tensor bz_position_embed(bz_plan *p, bz_tensor x, bz_weight table, const char *name);
/* Returns x itself if both bounds are infinite. */
bz_tensor bz_clamp(bz_plan *p, bz_tensor x, float low, float high, const char *name);
bz_tensor bz_layer_norm(bz_plan *p, bz_tensor x, bz_weight w, uint32_t width, float eps,
                        const char *name);
bz_tensor bz_add_vector(bz_plan *p, bz_tensor x, bz_weight w, float scale, const char *name);
bz_tensor bz_add_scaled(bz_plan *p, bz_tensor a, bz_tensor b, float scale, const char *name);
bz_tensor bz_relu(bz_plan *p, bz_tensor x, const char *name);
bz_tensor bz_silu(bz_plan *p, bz_tensor x, const char *name);
bz_tensor bz_glu(bz_plan *p, bz_tensor x, const char *name);
bz_tensor bz_rope_table_2d(bz_plan *p, uint32_t width, double base, const char *name);
/* q, k, v: [n][heads * width]. */
bz_tensor bz_attend_all(bz_plan *p, bz_tensor q, bz_tensor k, bz_tensor v, uint32_t heads,
                        uint32_t width, const char *name);
bz_tensor bz_pool_patches(bz_plan *p, bz_tensor x, uint32_t side, float scale, const char *name);
/* x: [n][frames * bins * channels], frames and bins even; w: [9 * channels, output channels]. */
bz_tensor bz_conv(bz_plan *p, bz_tensor x, bz_weight w, uint32_t frames, uint32_t bins,
                  uint32_t channels, const char *name);
/* w: [kernel size, columns]. */
bz_tensor bz_conv_time(bz_plan *p, bz_tensor x, bz_weight w, const char *name);
bz_tensor bz_sinusoids(bz_plan *p, uint32_t width, double base, const char *name);
/* q, k: [n][heads * D]; relative_k: [window][heads * D], keys by distance. Result:
 * [n][heads * window]. */
bz_tensor bz_local_scores(bz_plan *p, bz_tensor q, bz_tensor k, bz_tensor relative_k,
                          uint32_t heads, uint32_t window, float cap, const char *name);
/* weights: [n][heads * window] from local_scores; v: [n][heads * D]. */
bz_tensor bz_local_sum(bz_plan *p, bz_tensor weights, bz_tensor v, uint32_t heads, uint32_t window,
                       const char *name);

/* Columns first .. first + cols of x as a view: no step, no copy. */
bz_tensor bz_columns(bz_plan *p, bz_tensor x, uint32_t first, uint32_t cols);

#endif
