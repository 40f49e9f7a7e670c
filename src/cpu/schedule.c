/* Lowers a plan to jobs. Most steps are one job. The input of a product with int8 activations is
 * quantized by a job before it (once per input, however many products read it), rounded to bf16
 * likewise, and route is followed by a job that groups rows by expert. All memory of a pass is
 * reserved here. */
#include "cpu/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "cpu/products.h"

enum { COLUMN_TILE = 2048, LISTED_TILE = 128 };

typedef struct needs {
    size_t arena, shared; /* bytes; `shared` of them hold what other plans left */
    size_t q8_bytes;
    uint32_t q8_rows;
    size_t tile_weights; /* largest tile * K */
    uint32_t rows;       /* largest number of rows of a product */
    size_t k;            /* longest row of a product of products.h */
    uint32_t experts, pairs;
    size_t packed;
} needs;

static void push(bz_schedule *s, cpu_job job)
{
    s->jobs[s->n_jobs++] = job;
}

static uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static void need_scratch(needs *need, size_t floats)
{
    need->tile_weights = floats > need->tile_weights ? floats : need->tile_weights;
}

/* Activations rounded for products. */
typedef struct rounded {
    uint32_t tensor; /* whose rows are in memory; 0: none */
    bool bf16;
} rounded;

/* Appends the jobs of one step. *have: what is in memory before it, and after it. */
static bool add_step(cpu *c, bz_schedule *s, const bz_step *step, rounded *have, needs *need)
{
    const bz_plan *plan = s->plan;
    cpu_job job = {.step = step, .ends_step = true, .tasks = cpu_tasks_rows};
    switch (step->op) {
    case BZ_OP_EMBED: job.run = cpu_embed; break;
    case BZ_OP_RMS_NORM: job.run = cpu_rms_norm; break;
    case BZ_OP_ADD: job.run = cpu_add; break;
    case BZ_OP_SCALE: job.run = cpu_scale; break;
    case BZ_OP_MUL_VECTOR: job.run = cpu_mul_vector; break;
    case BZ_OP_TAKE_ROWS: job.run = cpu_take_rows; break;
    case BZ_OP_MEAN_ROWS: job.run = cpu_mean_rows; break;
    case BZ_OP_CONCAT: job.run = cpu_concat; break;
    case BZ_OP_BEST: job.run = cpu_best; break;
    case BZ_OP_TOP: job.run = cpu_top; break;
    case BZ_OP_LIST_ROWS: job.run = cpu_list_rows; break;
    case BZ_OP_LINEAR_LISTED:
        job.run = cpu_linear_listed;
        job.tasks = cpu_tasks_listed;
        job.tile = LISTED_TILE;
        need_scratch(need, (size_t)bz_weight_of(plan->weights, step->w[0])->ne[0]);
        break;
    case BZ_OP_KV_WRITE: job.run = cpu_kv_write; break;
    case BZ_OP_ROPE: job.run = cpu_rope; break;
    case BZ_OP_EXPERT_SUM: job.run = cpu_expert_sum; break;
    case BZ_OP_ADD_LOW_RANK:
        job.run = cpu_add_low_rank;
        job.tasks = cpu_tasks_low_rank;
        job.tile = cpu_low_rank_tile((uint32_t)bz_weight_of(plan->weights, step->w[0])->ne[1],
                                     bz_plan_rows_of(plan, step->out[0]));
        need_scratch(need, CPU_LOW_RANK_ROWS * BZ_PANEL);
        break;
    case BZ_OP_READ_KEPT: job.run = cpu_read_kept; break;
    case BZ_OP_LOGIT_STATS:
        job.run = cpu_logit_stats;
        job.tasks = cpu_tasks_input_rows;
        break;
    case BZ_OP_SOFT_EMBED:
        push(s, (cpu_job){.step = step, .run = cpu_probabilities, .tasks = cpu_tasks_input_rows});
        job.run = cpu_soft_embed;
        job.tasks = cpu_tasks_soft_embed;
        need_scratch(need, CPU_SOFT_TILE);
        break;
    case BZ_OP_ROPE_TABLE:
        job.run = cpu_rope_table;
        if (!cpu_rope_frequencies(c, &job)) {
            return false;
        }
        break;
    case BZ_OP_GEGLU:
    case BZ_OP_SOFTCAP:
        job.run = step->op == BZ_OP_GEGLU ? cpu_geglu : cpu_softcap;
        job.tasks = cpu_tasks_column_tiles;
        job.tile = COLUMN_TILE;
        break;
    case BZ_OP_ATTEND:
        job.run = cpu_attend;
        job.tasks = cpu_tasks_attend;
        need_scratch(need, cpu_attend_scratch(step->width));
        break;
    case BZ_OP_ROUTE:
        job.run = cpu_route;
        job.ends_step = false;
        push(s, job);
        need->experts = max_u32(need->experts, bz_plan_tensor(plan, step->in[0])->cols);
        need->pairs = max_u32(need->pairs, plan->rows * step->experts_used);
        job.run = cpu_group_rows;
        job.tasks = cpu_tasks_one;
        job.ends_step = true;
        break;
    case BZ_OP_INPUT: job.run = cpu_input; break;
    case BZ_OP_CLAMP: job.run = cpu_clamp; break;
    case BZ_OP_LAYER_NORM: job.run = cpu_layer_norm; break;
    case BZ_OP_ADD_VECTOR: job.run = cpu_add_vector; break;
    case BZ_OP_ADD_SCALED: job.run = cpu_add_scaled; break;
    case BZ_OP_RELU: job.run = cpu_relu; break;
    case BZ_OP_SILU: job.run = cpu_silu; break;
    case BZ_OP_GLU: job.run = cpu_glu; break;
    case BZ_OP_POOL: job.run = cpu_pool_patches; break;
    case BZ_OP_SINUSOIDS: job.run = cpu_sinusoids; break;
    case BZ_OP_LOCAL_SCORES: job.run = cpu_local_scores; break;
    case BZ_OP_LOCAL_SUM: job.run = cpu_local_sum; break;
    case BZ_OP_POSITION_EMBED:
        job.run = cpu_position_embed;
        need_scratch(need, 2 * (size_t)bz_weight_of(plan->weights, step->w[0])->ne[0]);
        break;
    case BZ_OP_CONV:
        job.run = cpu_conv;
        need_scratch(need, cpu_conv_scratch(step));
        if (!cpu_conv_weights(c, &job)) {
            return false;
        }
        break;
    case BZ_OP_CONV_TIME:
        job.run = cpu_conv_time;
        if (!cpu_time_weights(c, &job)) {
            return false;
        }
        break;
    case BZ_OP_ATTEND_ALL: {
        const size_t bytes = cpu_attend_all_bytes(plan->rows, step);
        need->packed = bytes > need->packed ? bytes : need->packed;
        need_scratch(need, cpu_attend_all_scratch(plan->rows));
        push(s, (cpu_job){.step = step, .run = cpu_pack_head, .tasks = cpu_tasks_heads});
        job.run = cpu_attend_all;
        job.tasks = cpu_tasks_attend_all;
        break;
    }
    case BZ_OP_LINEAR:
    case BZ_OP_EXPERT_LINEAR: {
        const bz_weight_info *w = bz_weight_of(plan->weights, step->w[0]);
        size_t k = (size_t)w->ne[0];
        if (plan->tower && step->op == BZ_OP_LINEAR) {
            job.run = cpu_linear_panels;
            job.tasks = cpu_tasks_linear;
            job.tile = cpu_panel_tile(k);
            need_scratch(need, cpu_panel_scratch(k));
            break;
        }
        uint32_t slots = step->op == BZ_OP_EXPERT_LINEAR ? step->experts_used : 1;
        uint32_t rows = bz_plan_rows_of(plan, step->in[0]) * slots;
        const bool bf16 = cpu_uses_bf16(c, step);
        if (bf16 || cpu_uses_q8(c, step)) {
            if (have->tensor != step->in[0].id || have->bf16 != bf16) {
                push(s, (cpu_job){.step = step, .run = cpu_quantize, .tasks = cpu_tasks_quantize});
                *have = (rounded){step->in[0].id, bf16};
            }
            const size_t bytes = cpu_q8_bytes(c, step, rows);
            need->q8_bytes = bytes > need->q8_bytes ? bytes : need->q8_bytes;
            need->q8_rows = max_u32(need->q8_rows, rows);
        }
        job.tile = cpu_weight_tile(c, step, rows);
        if (cpu_uses_products(c, step)) {
            need->k = k > need->k ? k : need->k;
            need_scratch(need, BZ_PRODUCT_TILE * k);
        } else if (bf16) {
            need_scratch(need, BZ_BF16_SUMS);
        } else {
            need_scratch(need, job.tile * k);
        }
        job.run = step->op == BZ_OP_LINEAR ? cpu_linear : cpu_expert_linear;
        job.tasks = step->op == BZ_OP_LINEAR ? cpu_tasks_linear : cpu_tasks_expert_linear;
        need->rows = max_u32(need->rows, rows);
        break;
    }
    case BZ_OP_CUT: return true; /* nothing to do between segments: weights are in memory */
    }
    push(s, job);
    return true;
}

/* ---- memory ---------------------------------------------------------------- */

/* The first `keep` bytes stay. */
static bool grow_bytes(uint8_t **memory, size_t *have, size_t want, size_t keep)
{
    if (want <= *have) {
        return true;
    }
    uint8_t *larger = bz_os_aligned_alloc(64, (want + 63) / 64 * 64);
    if (!larger) {
        return false;
    }
    if (keep && keep <= *have) {
        memcpy(larger, *memory, keep);
    }
    bz_os_aligned_free(*memory);
    *memory = larger;
    *have = want;
    return true;
}

static size_t round_up(size_t n)
{
    return (n + 63) / 64 * 64;
}

static bool reserve_scratch(cpu *c, const needs *need)
{
    unsigned threads = bz_pool_threads(c->pool);
    if (need->tile_weights > c->scratch_weights || need->rows > c->scratch_rows ||
        need->k > c->scratch_k) {
        size_t weights = round_up(need->tile_weights > c->scratch_weights ? need->tile_weights
                                                                          : c->scratch_weights);
        uint32_t rows = max_u32(need->rows, c->scratch_rows);
        const size_t k = need->k > c->scratch_k ? need->k : c->scratch_k;
        size_t rows64 = round_up(rows), packed = 0, block = 0;
        if (k) {
            const bz_products *p = c->k->products;
            const size_t few = BZ_FEW_ROWS * p->row_bytes(k);
            packed = round_up(p->panel_bytes(k) > few ? p->panel_bytes(k) : few);
            block = round_up(p->block_bytes(k));
        }
        size_t each = weights * 4 + weights + 2 * (weights / 16) * 4 + rows64 * 4 +
                      rows64 * sizeof(bz_q8) + packed + block;
        size_t have = 0;
        each = round_up(each);
        if (!grow_bytes(&c->scratch_memory, &have, each * threads, 0)) {
            return false;
        }
        c->scratch_weights = (uint32_t)weights;
        c->scratch_rows = rows;
        c->scratch_k = k;
        for (unsigned t = 0; t < threads; t++) {
            cpu_scratch *scratch = &c->scratch[t];
            uint8_t *at = c->scratch_memory + each * t;
            scratch->packed = at;
            scratch->block = at + packed;
            scratch->values = (float *)(void *)(at + packed + block);
            scratch->s = scratch->values + weights;
            scratch->m = scratch->s + weights / 16;
            scratch->out = scratch->m + weights / 16;
            scratch->gathered = (bz_q8 *)(void *)(scratch->out + rows64);
            scratch->q = (int8_t *)(scratch->gathered + rows64);
        }
    }
    return true;
}

static bool reserve_groups(expert_groups *g, const needs *need)
{
    if (need->experts > g->cap_experts) {
        free(g->first);
        free(g->active);
        g->first = malloc((need->experts + 1) * sizeof *g->first);
        g->active = malloc(need->experts * sizeof *g->active);
        g->cap_experts = g->first && g->active ? need->experts : 0;
        if (!g->cap_experts) {
            return false;
        }
    }
    if (need->pairs > g->cap_pairs) {
        free(g->pairs);
        g->pairs = malloc(need->pairs * sizeof *g->pairs);
        g->cap_pairs = g->pairs ? need->pairs : 0;
    }
    return need->pairs <= g->cap_pairs;
}

static bool reserve(cpu *c, const needs *need)
{
    if (need->q8_rows > c->q8_rows) {
        free(c->q8);
        c->q8 = malloc(need->q8_rows * sizeof *c->q8);
        c->q8_rows = c->q8 ? need->q8_rows : 0;
        if (!c->q8) {
            return false;
        }
    }
    return grow_bytes(&c->arena, &c->arena_bytes, need->arena, need->shared) &&
           grow_bytes(&c->q8_memory, &c->q8_bytes, need->q8_bytes, 0) &&
           grow_bytes(&c->packed, &c->packed_bytes, need->packed, 0) && reserve_scratch(c, need) &&
           reserve_groups(&c->groups, need);
}

/* ---- interface -------------------------------------------------------------- */

void cpu_release(bz_backend *b, bz_schedule *s)
{
    (void)b;
    if (s) {
        for (size_t i = 0; i < s->n_jobs; i++) {
            free(s->jobs[i].constants);
        }
        free(s->jobs);
        free(s);
    }
}

bz_status cpu_prepare(bz_backend *b, const bz_plan *plan, bz_schedule **out, bz_error *err)
{
    cpu *c = (cpu *)(void *)b;
    bz_schedule *s = calloc(1, sizeof *s);
    needs need = {.arena = plan->arena_bytes, .shared = bz_plan_shared_bytes(plan)};
    rounded have = {0};
    bool ok = s && (s->jobs = calloc(2 * plan->n_steps, sizeof *s->jobs)) != NULL;
    for (size_t i = 0; ok && i < plan->n_steps; i++) {
        s->plan = plan;
        ok = add_step(c, s, &plan->steps[i], &have, &need);
    }
    if (!ok || !reserve(c, &need)) {
        cpu_release(b, s);
        return bz_fail(err, BZ_OUT_OF_MEMORY,
                       "There is not enough memory for a pass of %u rows (%.1f MB of activations).",
                       plan->rows, (double)plan->arena_bytes / 1e6);
    }
    *out = s;
    return BZ_OK;
}
