/* Internals of the CPU back end: a step becomes one or two jobs, and a job is a loop of
 * independent tasks that the pool's threads run. */
#ifndef BZ_CPU_INTERNAL_H
#define BZ_CPU_INTERNAL_H

#include "base/pool.h"
#include "cpu/cpu.h"
#include "cpu/kernels.h"

typedef struct cpu cpu;
typedef struct cpu_job cpu_job;

typedef void (*cpu_task)(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);

struct cpu_job {
    cpu_task run;
    uint32_t (*tasks)(const cpu *c, const cpu_job *job); /* depends on the pass's rows */
    const bz_step *step;
    bool ends_step;   /* its outputs are complete after this job */
    uint32_t tile;    /* weight rows or columns per task */
    float *constants; /* rope_table: frequencies [width/2]; convolutions: weights; owned */
};

struct bz_schedule {
    const bz_plan *plan;
    cpu_job *jobs;
    size_t n_jobs;
};

/* The (row, slot) pairs of a pass grouped by expert, so that each expert's weights are read once
 * for all its rows. */
typedef struct expert_groups {
    uint32_t *first;  /* [experts + 1] into pairs */
    uint32_t *pairs;  /* [n * slots]: row * slots + slot, ascending within an expert */
    uint32_t *active; /* [n_active] experts with at least one pair */
    uint32_t n_active;
    uint32_t cap_experts, cap_pairs;
} expert_groups;

/* Memory of one worker for unpacked weights and a tile of results. */
typedef struct cpu_scratch {
    int8_t *q;       /* [tile * K] */
    float *s, *m;    /* [tile * K / 16] each */
    float *values;   /* [tile * K] */
    float *out;      /* [rows] */
    bz_q8 *gathered; /* [rows] activation rows of one expert */
    uint8_t *packed; /* for products.h: a tile of packed weights, or up to BZ_FEW_ROWS rows */
    const cpu_job *arranged; /* the job whose rows are in `packed`; NULL: none */
    uint8_t *block;          /* for products.h: activations of one expert */
} cpu_scratch;

struct cpu {
    bz_backend backend;
    const bz_kernels *k;
    bz_pool *pool;
    bool exact;
    const bz_weights *weights;
    const uint8_t *const *weight_bytes;

    /* memory that may grow when a plan is prepared, never during a pass */
    uint8_t *arena;
    size_t arena_bytes;
    uint8_t *scratch_memory;
    cpu_scratch *scratch; /* [threads] */
    uint32_t scratch_weights, scratch_rows;
    size_t scratch_k;   /* the longest row of a product, for products.h */
    uint8_t *q8_memory; /* int8 or bf16 activations of the current step */
    size_t q8_bytes;
    bz_q8 *q8; /* [q8_rows]; for more than BZ_FEW_ROWS, products.h's blocks are in q8_memory
                  instead */
    uint32_t q8_rows;
    expert_groups groups;
    uint8_t *packed; /* keys and values of the current attend_all step, in panels */
    size_t packed_bytes;

    /* the current pass */
    const bz_schedule *schedule;
    const bz_rows *rows;
    size_t job;
    uint32_t task, n_tasks; /* of the current job; n_tasks 0: not started */

    bz_trace trace;
    void *trace_user;
};

/* ---- helpers ------------------------------------------------------------- */

static inline const bz_tensor_info *cpu_info(const cpu *c, bz_tensor t)
{
    return &c->schedule->plan->tensors[t.id];
}

static inline uint32_t cpu_rows_of(const cpu *c, bz_tensor t)
{
    return cpu_info(c, t)->whole_pass ? c->rows->n : c->rows->n_out;
}

/* First value of a tensor's row. */
static inline float *cpu_row(const cpu *c, bz_tensor t, uint32_t row)
{
    const bz_tensor_info *i = cpu_info(c, t);
    return (float *)(void *)(c->arena + i->offset) + (size_t)row * i->stride + i->column;
}

static inline int32_t *cpu_ids(const cpu *c, bz_tensor t, uint32_t row)
{
    return (int32_t *)(void *)cpu_row(c, t, row);
}

static inline const uint8_t *cpu_weight(const cpu *c, bz_weight w)
{
    return c->weight_bytes[w.id - 1];
}

static inline float cpu_weight_f32(const uint8_t *bytes, size_t index)
{
    float v; /* the file's data may be unaligned */
    __builtin_memcpy(&v, bytes + 4 * index, sizeof v);
    return v;
}

/* ---- jobs by family ------------------------------------------------------ */

uint32_t cpu_tasks_rows(const cpu *c, const cpu_job *job); /* one per output row */

/* rows.c: steps that work on one row at a time */
void cpu_embed(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
void cpu_rms_norm(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
void cpu_add(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
void cpu_scale(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
void cpu_mul_vector(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
void cpu_geglu(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
void cpu_softcap(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
void cpu_take_rows(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
void cpu_concat(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
void cpu_best(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);

/* listed.c: the best of a part of the vocabulary */
void cpu_top(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
void cpu_list_rows(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
uint32_t cpu_tasks_listed(const cpu *c, const cpu_job *job);
void cpu_linear_listed(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
float cpu_best_listed(const float *z, const float *ids, uint32_t n);

/* mean.c */
void cpu_mean_rows(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
uint32_t cpu_tasks_column_tiles(const cpu *c, const cpu_job *job);
/* rope.c */
bool cpu_rope_frequencies(const cpu *c, cpu_job *job);
void cpu_rope_table(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
void cpu_rope(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
/* linear.c */
bool cpu_uses_q8(const cpu *c, const bz_step *step);
bool cpu_uses_products(const cpu *c, const bz_step *step); /* those of products.h */
bool cpu_uses_bf16(const cpu *c, const bz_step *step);     /* activations rounded to bf16 */
uint32_t cpu_weight_tile(const cpu *c, const bz_step *step, uint32_t rows);
size_t cpu_q8_bytes(const cpu *c, const bz_step *s, uint32_t rows); /* rounded rows */
uint32_t cpu_tasks_quantize(const cpu *c, const cpu_job *job);
void cpu_quantize(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
uint32_t cpu_tasks_linear(const cpu *c, const cpu_job *job);
void cpu_linear(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
/* experts.c */
void cpu_route(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
uint32_t cpu_tasks_one(const cpu *c, const cpu_job *job);
void cpu_group_rows(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
uint32_t cpu_tasks_expert_linear(const cpu *c, const cpu_job *job);
void cpu_expert_linear(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
void cpu_expert_sum(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
/* low_rank.c: what adapters add */
enum { CPU_LOW_RANK_ROWS = 32 };                          /* rows of a task at once, in scratch */
uint32_t cpu_low_rank_tile(uint32_t rank, uint32_t rows); /* panels of a task */
uint32_t cpu_tasks_low_rank(const cpu *c, const cpu_job *job);
void cpu_add_low_rank(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
/* canvas.c: steps of diffusion models */
enum { CPU_SOFT_TILE = 256 };     /* columns per task of soft_embed: whole blocks of every type */
void cpu_copy_kept_input(cpu *c); /* before the pass */
void cpu_read_kept(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
uint32_t cpu_tasks_input_rows(const cpu *c, const cpu_job *job);
void cpu_logit_stats(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
void cpu_probabilities(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
uint32_t cpu_tasks_soft_embed(const cpu *c, const cpu_job *job);
void cpu_soft_embed(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
/* attend.c */
uint32_t cpu_tasks_attend(const cpu *c, const cpu_job *job);
size_t cpu_attend_scratch(size_t d); /* floats */
void cpu_attend(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
void cpu_kv_write(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);

/* panels.c: products and attention of towers */
uint32_t cpu_panel_tile(uint64_t k);
size_t cpu_panel_scratch(uint64_t k); /* floats */
void cpu_linear_panels(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
size_t cpu_attend_all_bytes(uint32_t rows, const bz_step *step);
size_t cpu_attend_all_scratch(uint32_t rows); /* floats */
uint32_t cpu_tasks_heads(const cpu *c, const cpu_job *job);
void cpu_pack_head(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
uint32_t cpu_tasks_attend_all(const cpu *c, const cpu_job *job);
void cpu_attend_all(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
/* tower.c, audio.c: one task per row */
void cpu_input(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
void cpu_position_embed(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
void cpu_clamp(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
void cpu_layer_norm(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
void cpu_add_vector(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
void cpu_add_scaled(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
void cpu_relu(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
void cpu_silu(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
void cpu_glu(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
void cpu_pool_patches(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
bool cpu_conv_weights(const cpu *c, cpu_job *job);
size_t cpu_conv_scratch(const bz_step *step); /* floats */
void cpu_conv(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
bool cpu_time_weights(const cpu *c, cpu_job *job);
void cpu_conv_time(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
void cpu_sinusoids(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
void cpu_local_scores(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);
void cpu_local_sum(cpu *c, const cpu_job *job, uint32_t task, unsigned worker);

/* ---- caches (kv.c) ------------------------------------------------------- */

typedef struct kv_layer {
    uint32_t kv_heads, head_dim;
    uint32_t window; /* 0: grows */
    uint32_t rows;   /* ring size, or row capacity */
    uint8_t **k;     /* [kv_heads] each [rows][head_dim] as the type stores them: kv_row.c */
    uint8_t **v;
} kv_layer;

struct bz_kv {
    uint32_t n;
    bz_cache_type type;
    kv_layer *layer; /* [n], by cache number */
};

static inline size_t kv_row_bytes(const bz_kv *kv, const kv_layer *l)
{
    return bz_cache_bytes(kv->type, l->head_dim);
}

static inline uint32_t kv_row(const kv_layer *l, uint32_t pos)
{
    return l->window ? pos % l->rows : pos;
}

/* kv_row.c: one key or value of n numbers, to the cache's type (rotated if it is Q4) and back to
 * f32 (still rotated). */
void cpu_cache_write(const bz_kernels *k, bz_cache_type type, const float *x, uint8_t *to,
                     size_t n);
void cpu_cache_read(const bz_kernels *k, bz_cache_type type, const uint8_t *from, float *to,
                    size_t n);
void cpu_cache_rotate(float *x, size_t n);

void cpu_kv_interface(bz_backend *b); /* sets the kv_* and snapshot_* functions */

#endif
