/* Internals of the GPU back end. */
#ifndef BZ_GPU_INTERNAL_H
#define BZ_GPU_INTERNAL_H

#include "gpu/lower/lower.h"
#include "gpu/run/load.h"
#include "plan/backend.h"

enum { GPU_MAX_ROWS = 2048 }; /* of a pass: a text of EmbeddingGemma */

/* ---- schedules -------------------------------------------------------------------------- */

/* Dispatches that need the same streamed layer, or none. */
typedef struct gpu_segment {
    uint32_t layer; /* number of the streamed layer, from 1; 0: none */
    uint32_t first, count;
} gpu_segment;

struct bz_schedule {
    const bz_plan *plan;
    gpu_lowered lowered;
    gpu_dispatch *dispatches; /* [n] the lowered list, for caches of the current size */
    uint32_t n;
    gpu_buffer params; /* uniform, GPU_PARAMS_SLOT bytes per dispatch */
    uint32_t params_capacity;
    gpu_segment *segments; /* [n_segments] of the list, if layers are streamed; else NULL */
    uint32_t n_segments;
    gpu_list list;         /* followed by two dispatches of choose.c; 0: not recorded yet */
    uint64_t recorded_for; /* generations of the buffers that the list binds */
};

/* ---- caches ----------------------------------------------------------------------------- */

/* Keys and values of one layer, of all sequences of a pool. */
typedef struct kv_cache {
    uint32_t row_bytes; /* of all heads: lower/lower.h */
    uint32_t kv_heads, window;
    uint32_t rows;       /* of all sequences */
    uint32_t ring;       /* rows of each sequence's ring; 0: not a ring */
    uint32_t piece_rows; /* as many as one binding holds; whole rings */
    uint32_t n_pieces;
    gpu_buffer *k, *v; /* [n_pieces], each [rows, at most piece_rows][row_bytes] */
} kv_cache;

/* The caches of sequences whose rows may be in one pass. The pool is freed with its last
 * sequence. */
typedef struct kv_pool {
    gpu *g;
    uint32_t n;
    uint32_t generation; /* changes when a list must be recorded again; unique among the pools of a
                            back end */
    kv_cache *cache;     /* [n] */
    uint32_t rows;       /* of every cache that is not a ring */
    uint32_t positions;  /* capacity of the longest sequence there */
    uint32_t capacity;   /* sequences that rings have rows for */
    bz_kv **sequence;    /* [capacity] NULL: none */
    gpu_buffer spare;    /* rows on their way from one place of a buffer to another */
} kv_pool;

/* One sequence: ring number `index` of every ring, and rows first .. first + rows of the other
 * caches. */
struct bz_kv {
    kv_pool *pool;
    uint32_t index, first, rows;
};

/* That of all sequences of the pass; NULL for towers, which have no caches. Sequences without rows
 * may have none. */
static inline kv_pool *gpu_pool_of(const bz_rows *rows)
{
    return rows->kv ? ((const bz_kv *)rows->kv[rows->seq[0]])->pool : NULL;
}

/* ---- the parameter block of a pass ------------------------------------------------------ */

/* As kernels/common/pass.wgsl reads it, in words. */
enum {
    ROWS_N,
    ROWS_N_OUT,
    ROWS_DRAW, /* f32: uniform number for drawing the token */
    ROWS_FEED, /* bz_feed: where ids come from */
    ROWS_LIST, /* three words per row: id, position, row wanted as output */
    ROWS_CHOSEN = ROWS_LIST + 3 * GPU_MAX_ROWS, /* written by choose/pick.wgsl */
    ROWS_FRESH,                                 /* canvas: 1: kept tensors hold nothing yet */
    ROWS_TEMPERATURE,                           /* f32 */
    ROWS_DRAWS,                                 /* f32 [GPU_MAX_ROWS] */
    ROWS_BLOCKS = ROWS_DRAWS + GPU_MAX_ROWS,    /* two words per row: first and last position of the
                                                   image, or text, that the row belongs to */
    ROWS_SEQUENCES = ROWS_BLOCKS + 2 * GPU_MAX_ROWS, /* two words per row: index of its sequence,
                                                        first cache row of the sequence; zeros with
                                                        one sequence */
    ROWS_DRAFTS = ROWS_SEQUENCES + 2 * GPU_MAX_ROWS, /* ids of rows 1 .. with BZ_FEED_DRAFTS,
                                                        written by choose/best.wgsl */
    ROWS_WORDS = ROWS_DRAFTS + BZ_SHARED_ROWS
};
#define ROWS_IS_SOFT  0x80000000u /* bits of an id: the row is an embedding, not a token; */
#define ROWS_OF_IMAGE 0x40000000u /* it belongs to an image */

/* ---- the back end ------------------------------------------------------------------------ */

/* Passes that end in a short list (choose.c). */
enum { GPU_MAX_IN_FLIGHT = 8, GPU_MAX_CHOICES = 64 };

typedef struct gpu_chooser {
    gpu_pipeline scan, pick;
    gpu_buffer request, work, answer;
    uint64_t work_words;
    uint32_t rows;                    /* of a pass, that the buffers are large enough for */
    uint32_t sequences;               /* whose requests fit */
    uint32_t edit_capacity;           /* of each request */
    uint32_t *block;                  /* host copy of `request` */
    uint32_t *words;                  /* [rows] answers that are being read */
    uint32_t wanted[GPU_MAX_CHOICES]; /* candidates, by sequence, of the passes sent now */
    struct {
        gpu_fence fence;
        uint32_t choices, wanted[GPU_MAX_CHOICES];
    } in_flight[GPU_MAX_IN_FLIGHT]; /* a ring, oldest first */
    uint32_t first, n;
    uint32_t last_choices; /* of the pass received last */
    bz_schedule *last_sent;
} gpu_chooser;

typedef enum pass_stage {
    PASS_SUBMIT,
    PASS_STREAMING, /* layer by layer, as they arrive from the file */
    PASS_TOWER,     /* layer by layer, to stay responsive */
    PASS_TRACING,   /* step by step */
    PASS_READING,
    PASS_WAITING
} pass_stage;

/* The trace hook and the pass that is traced (trace.c). */
typedef struct gpu_tracer {
    bz_trace trace; /* NULL: off */
    void *user;
    bz_schedule *traced;   /* the schedule of the session, */
    bz_schedule *schedule; /* and the unfused one of the same plan */
    size_t step;           /* of the plan: the next to report */
    uint32_t dispatch;     /* of the list: the next to submit */
    int output;            /* of the step: the next to read; -1: the step is not submitted */
    void *values;
    uint64_t capacity; /* bytes of `values` */
} gpu_tracer;

/* Weights of adapters, and where all weights lie with them (add_weights.c). */
typedef struct gpu_added_weights {
    bz_gpu_model *more; /* held; NULL: there are none */
    gpu_piece *pieces;  /* these three are part of `weights` */
    uint32_t *first_piece, *streamed;
} gpu_added_weights;

typedef struct gpu_backend {
    bz_backend base;
    bz_gpu_model *model; /* shared; the next four are its own */
    gpu *g;
    gpu_pipelines *pipelines;
    gpu_weights weights;
    gpu_added_weights added;
    const uint8_t *const *weight_bytes; /* in host memory: rope frequencies are read from it */
    bz_cache_type cache;
    bool fuse;
    bool packed;   /* products with int8 activations */
    bool matrices; /* f16 activations on subgroup matrices */

    gpu_buffer arena;
    uint64_t arena_bytes;
    uint32_t arena_generation; /* lists bind the arena: they are recorded again when it grows */
    uint32_t kv_generations;   /* given to pools of caches so far */
    gpu_buffer side;           /* lower/side.c */
    uint64_t side_bytes;
    gpu_buffer rows;         /* parameter block of the pass */
    gpu_buffer slots;        /* GPU_BOUND_SLOTS: [GPU_MAX_ROWS]; 0: no table stays in the file */
    gpu_table_use table_use; /* hits and misses of that table */
    gpu_buffer empty;        /* GPU_BOUND_EMPTY */

    bz_schedule *schedule;
    const bz_rows *pass;
    bz_rows logits_pass; /* of begin_logits */
    pass_stage stage;
    uint32_t segment;  /* next one of a streamed pass */
    uint32_t replayed; /* dispatches of a tower's pass */
    gpu_fence fence;
    gpu_fence previous;   /* tower: of the layer before the last one submitted */
    gpu_fence unfinished; /* of a prompt's pass that is done for the session only */
    float *out;           /* read-back of the output tensor */
    uint64_t out_bytes, read;
    float *angles; /* all rope tables */
    size_t angles_bytes;
    gpu_chooser chooser;
    gpu_tracer tracer;
} gpu_backend;

void gpu_free_added_weights(gpu_added_weights *a);

/* backend.c: drops what begin started, finished or not. */
void gpu_drop_pass(gpu_backend *b);
/* Reads bytes of the arena, as many per call as one read allows: WAIT until all have arrived. One
 * such read at a time. */
bz_pass_state gpu_read_arena(gpu_backend *b, uint64_t offset, uint64_t bytes, void *to,
                             bz_error *err);
/* DONE: pipelines, list and table rows are ready for a pass over these rows. */
bz_pass_state gpu_ready(gpu_backend *b, bz_schedule *s, const bz_rows *rows, bz_error *err);

/* inputs.c: writes what changes per pass: parameter block, angles, rows of embeddings. u: uniform
 * number for drawing. */
void gpu_write_pass(gpu_backend *b, const bz_schedule *s, const bz_rows *rows, bz_feed feed,
                    float u);
/* Host memory that gpu_write_pass and reading the output need. */
bool gpu_reserve_host(gpu_backend *b, const bz_schedule *s, bz_error *err);

/* choose.c: buffers and pipelines for a plan whose rows all have logits, of one row or of many
 * sequences; two dispatches after those of the plan. */
bool gpu_chooses(const bz_schedule *s);
bz_status gpu_choose_prepare(gpu_backend *b, const bz_schedule *s, bz_error *err);
bz_status gpu_choose_record(gpu_backend *b, const bz_schedule *s, bz_error *err);
void gpu_choose_free(gpu_backend *b);
void gpu_choose_interface(bz_backend *b);

/* schedule.c: lowers the plan and requests its pipelines. */
bz_status gpu_prepare(bz_backend *b, const bz_plan *plan, bz_schedule **out, bz_error *err);
bz_status gpu_prepare_list(gpu_backend *b, const bz_plan *plan, bool fuse, bz_schedule **out,
                           bz_error *err);
void gpu_release(bz_backend *b, bz_schedule *s);

/* record.c: the dispatches for these caches (NULL: sizes not known yet), and memory for them. */
bz_status gpu_expand(gpu_backend *b, bz_schedule *s, const kv_pool *pool, bz_error *err);
/* Builds the list; pipelines must be ready. */
bz_status gpu_record(gpu_backend *b, bz_schedule *s, const kv_pool *pool, bz_error *err);

/* trace.c: the schedule to run instead of s, from its first step on; NULL on failure. */
bz_schedule *gpu_trace_begin(gpu_backend *b, bz_schedule *s, bz_error *err);
/* Runs and reports steps; DONE after the last. */
bz_pass_state gpu_trace_step(gpu_backend *b, uint64_t deadline, bz_error *err);
void gpu_trace_drop(gpu_backend *b); /* the unfused schedule is not needed any more */
void gpu_set_trace(bz_backend *b, bz_trace trace, void *user);

void gpu_kv_interface(bz_backend *b);

#endif
