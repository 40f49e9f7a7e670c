/* Inside the GPU back end. */
#ifndef BZ_GPU_INTERNAL_H
#define BZ_GPU_INTERNAL_H

#include "gpu/run/load.h"
#include "plan/backend.h"

enum { GPU_MAX_ROWS = 1120, GPU_SLOT = 256 /* bytes of uniform memory per dispatch */ };

/* The uniform of one dispatch: struct Step of kernels/common/step.wgsl. */
typedef struct step_facts {
    uint32_t in0, in0_stride, in1, in1_stride, in2, in2_stride, out0, out0_stride, out1,
        out1_stride;
    uint32_t cols, k, width, heads, kv_heads, window, experts, slotted, ring, logits;
    uint32_t first_row, row_count, row_bytes, has_weight;
    float scale, eps, eps2, cap;
    uint32_t part0_at;
    struct {
        uint32_t first, at, out, stride;
    } part[2];
    uint32_t stretch, expert0, expert_count;
    uint32_t parts, first_part, row0, both_ways, blocks, sum_rows, in3, in3_stride;
    struct {
        float low, high;
    } bound[4];
} step_facts;

_Static_assert(sizeof(step_facts) == 224, "struct Step of common/step.wgsl");

/* A dispatch before its pipeline is compiled. */
typedef struct dispatch {
    step_facts facts;
    gpu_kernel kernel;
    bz_type type; /* of its weights, for products and embed */
    gpu_pipeline pipeline;
    gpu_binding weights;  /* binding 3, when the kernel has weights */
    gpu_binding extra[3]; /* bindings 4 to 6, of norms and of products with norms */
    uint32_t cache;       /* 1 + cache number: bindings 3 and 4 are its keys and values */
    uint32_t piece;       /* ... of them */
    uint32_t gathers;     /* 1 + cache number: puts together what attend left of its pieces */
    uint32_t splits;      /* parts that attend makes of one piece, */
    uint32_t split_rows;  /* of so many rows, if they may become fewer where there are many pieces;
                             else 0 */
    uint32_t first_step, steps; /* of the plan, that it does or has a part in */
    uint32_t n_early,
        early[4];     /* steps further on that it does too: three norms, one of them in two steps */
    bool side;        /* the side buffer is the last binding */
    uint32_t x, y, z; /* z 0 counts as 1 */
} dispatch;

/* Dispatches between the places where another streamed layer must be there. */
typedef struct gpu_stretch {
    uint32_t layer; /* its number, from 1; 0: none is needed */
    uint32_t first, count;
} gpu_stretch;

/* A table of angles the host computes and writes before a pass. */
typedef struct rope_fill {
    const bz_step *step;
    float *frequency; /* [width / 2] */
} rope_fill;

struct bz_schedule {
    const bz_plan *plan;
    size_t *offset; /* [plan's tensors] bytes into the arena: steps run together need other places
                       than the plan's */
    size_t arena_bytes;
    uint64_t scratch,
        side_bytes;  /* behind the activations, for the splits of products; of the side buffer */
    dispatch *plain; /* [n_plain] as built: with every cache in one piece */
    uint32_t n_plain, cap;
    dispatch
        *dispatches; /* [n] as recorded: what reads or writes a cache once for each of its pieces */
    uint32_t n;
    rope_fill ropes[4];
    uint32_t n_ropes;
    gpu_buffer facts; /* uniform, GPU_SLOT bytes each */
    uint32_t facts_room;
    gpu_stretch *stretches; /* [n_stretches] of the list, where layers are streamed; else NULL */
    uint32_t n_stretches;
    gpu_list list; /* and two more of choose.c where it applies; 0: not recorded yet, or the caches
                      have moved */
    uint32_t kv_generation;
};

typedef struct kv_cache {
    uint32_t row_values; /* kv_heads * head_dim */
    uint32_t kv_heads, window, rows;
    uint32_t piece_rows; /* most that one binding holds; a ring is always one piece */
    uint32_t n_pieces;
    gpu_buffer *k, *v; /* [n_pieces], each [rows, at most piece_rows][row_values] */
} kv_cache;

struct bz_kv {
    gpu *g;
    uint32_t n, value_bytes;
    uint32_t generation; /* changes when a buffer is replaced; no two caches of a back end have the
                            same */
    kv_cache *cache;
};

/* The parameter block of a pass, as kernels/common/pass.wgsl reads it, in words. */
enum {
    ROWS_N,
    ROWS_N_OUT,
    ROWS_DRAW,                                  /* f32: the uniform number a token is drawn with */
    ROWS_OWN,                                   /* 1: the first row's id is ROWS_CHOSEN */
    ROWS_LIST,                                  /* id, position, wanted row: three words per row */
    ROWS_CHOSEN = ROWS_LIST + 3 * GPU_MAX_ROWS, /* written by choose/pick.wgsl */
    ROWS_FRESH,                                 /* a canvas: 1: nothing is left of a pass before */
    ROWS_TEMPERATURE,                           /* f32 */
    ROWS_DRAWS,                                 /* f32 [GPU_MAX_ROWS] */
    ROWS_BLOCKS =
        ROWS_DRAWS +
        GPU_MAX_ROWS, /* first and last position of the picture a row is of: two words per row */
    ROWS_WORDS = ROWS_BLOCKS + 2 * GPU_MAX_ROWS
};
#define ROWS_IS_SOFT    0x80000000u /* bits of an id: the row is no token; */
#define ROWS_OF_PICTURE 0x40000000u /* it is of a picture */

/* Passes that end in a short list (choose.c). */
enum { GPU_FLIGHTS = 8 };

typedef struct gpu_chooser {
    gpu_pipeline scan, pick;
    gpu_buffer ask, work, answer;
    uint32_t vocab;  /* that `work` is large enough for */
    uint32_t room;   /* edits that `ask` has room for */
    uint32_t *block; /* what is written to `ask`; same size */
    uint32_t wanted; /* candidates of the passes sent now */
    struct {
        gpu_fence fence;
        uint32_t wanted;
    } flights[GPU_FLIGHTS]; /* a ring, oldest first */
    uint32_t first, n;
    bz_schedule *sent; /* last */
} gpu_chooser;

typedef enum pass_stage {
    PASS_SUBMIT,
    PASS_STREAMING,
    PASS_TOWER,
    PASS_READING,
    PASS_WAITING
} pass_stage;

typedef struct gpu_backend {
    bz_backend base;
    bz_gpu_model *model; /* shared; the next four are its own */
    gpu *g;
    gpu_pipelines *pipelines;
    gpu_weights weights;
    const uint8_t *const *weight_bytes; /* the host's copy: rope frequencies are read from it */
    bool f32_cache, fuse;
    bool packed;   /* products with 8-bit activations */
    bool matrices; /* ... and attention, with activations in f16 on subgroup matrices */

    gpu_buffer arena;
    uint64_t arena_bytes;
    uint32_t arena_generation; /* lists bind the arena, so they are recorded again when it grows */
    uint32_t kv_generations;   /* given to caches so far */
    gpu_buffer side;           /* integers of tiles.c */
    uint64_t side_bytes;
    gpu_buffer rows;
    gpu_buffer
        slots; /* [GPU_MAX_ROWS] where the rows of a table in the file lie, if there is one */
    gpu_table_use use;  /* of it */
    gpu_buffer nothing; /* bound where a kernel can have weights and the step has none */

    bz_schedule *schedule;
    const bz_rows *pass;
    pass_stage stage;
    uint32_t stretch;  /* of the pass, that comes next */
    uint32_t replayed; /* dispatches of a tower's pass, which goes layer by layer */
    gpu_fence fence;
    gpu_fence before; /* a tower's: of the layer before the last one sent */
    float *out;       /* read-back of the output tensor */
    uint64_t out_bytes, read;
    float *angles; /* all rope tables */
    size_t angles_bytes;
    gpu_chooser chooser;
} gpu_backend;

/* backend.c: lets go of what begin started, finished or not. */
void gpu_drop_pass(gpu_backend *b);
/* Pipelines and lists ready (DONE) for a pass over these rows? */
bz_pass_state gpu_ready(gpu_backend *b, bz_schedule *s, const bz_rows *rows, bz_error *err);
/* Writes the parameter block and the angles. */
void gpu_write_pass(gpu_backend *b, const bz_schedule *s, const bz_rows *rows, bool own, float u);

/* choose.c: buffers and pipelines for a plan of one row; its two dispatches behind those of the
 * list. */
bool gpu_chooses(const bz_schedule *s);
bz_status gpu_choose_prepare(gpu_backend *b, const bz_schedule *s, bz_error *err);
bz_status gpu_choose_record(gpu_backend *b, const bz_schedule *s, bz_error *err);
void gpu_choose_free(gpu_backend *b);
void gpu_choose_interface(bz_backend *b);

/* Where a tensor lies in the arena, in bytes. */
uint64_t gpu_place(const bz_schedule *s, bz_tensor t);

bz_status gpu_prepare(bz_backend *b, const bz_plan *plan, bz_schedule **out, bz_error *err);
void gpu_release(bz_backend *b, bz_schedule *s);
/* record.c: lists what `plain` becomes with these caches (NULL: not known yet), and gives it
 * memory. */
bz_status gpu_expand(gpu_backend *b, bz_schedule *s, const bz_kv *kv, bz_error *err);
/* Builds the list once pipelines are compiled and caches known. */
bz_status gpu_record(gpu_backend *b, bz_schedule *s, const bz_kv *kv, bz_error *err);
void gpu_kv_interface(bz_backend *b);

#endif
