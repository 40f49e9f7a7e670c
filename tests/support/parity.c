#include "parity.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "check.h"
#include "gpu_wait.h"
#include "cpu/cpu.h"
#include "gpu/run/backend.h"
#include "gpu/device/test_hooks.h"
#include "random.h"

enum { MAX_ROWS = 512 };

/* ---- weights ------------------------------------------------------------------------------ */

static bz_weight add_weight(memory_weights *w, bz_type type, uint64_t k, uint64_t outputs,
                            uint64_t experts)
{
    uint32_t n = w->table.n++;
    uint64_t size = bz_row_bytes(type, k) * outputs * experts;
    w->table.info = realloc(w->table.info, w->table.n * sizeof *w->table.info);
    w->bytes = realloc(w->bytes, w->table.n * sizeof *w->bytes);
    w->bytes[n] = malloc(size);
    w->table.info[n] =
        (bz_weight_info){.name = "random", .type = type, .ne = {k, outputs, experts}, .size = size};
    return (bz_weight){n + 1};
}

static uint8_t *bytes_of(memory_weights *w, bz_weight weight)
{
    return w->bytes[weight.id - 1];
}

bz_weight weights_random(memory_weights *w, bz_type type, uint64_t k, uint64_t outputs,
                         uint64_t experts)
{
    bz_weight weight = add_weight(w, type, k, outputs, experts);
    random_blocks(type, bytes_of(w, weight), k * outputs * experts, SCALES_TAME);
    return weight;
}

bz_weight weights_wild(memory_weights *w, bz_type type, uint64_t k, uint64_t outputs)
{
    bz_weight weight = add_weight(w, type, k, outputs, 1);
    random_blocks(type, bytes_of(w, weight), k * outputs, SCALES_FINITE);
    return weight;
}

bz_weight weights_exact8(memory_weights *w, uint64_t k, uint64_t rows)
{
    bz_weight weight = add_weight(w, BZ_F32, k, rows, 1);
    float *x = (float *)(void *)bytes_of(w, weight);
    for (uint64_t i = 0; i < k * rows; i += 32) {
        float one = ldexpf(1, -(int)random_below(4) - 7);
        for (uint64_t j = 0; j < 32; j++) {
            x[i + j] = one * (float)((int)random_below(255) - 127);
        }
        x[i + random_below(16)] = one * 127;
        x[i + 16 + random_below(16)] = one * -127;
    }
    return weight;
}

bz_weight weights_values(memory_weights *w, const float *values, uint64_t k, uint64_t outputs)
{
    bz_weight weight = add_weight(w, BZ_F32, k, outputs, 1);
    memcpy(bytes_of(w, weight), values, k * outputs * sizeof *values);
    return weight;
}

bz_weight weights_ids(memory_weights *w, bz_type type, uint64_t each, uint64_t groups)
{
    bz_weight weight = add_weight(w, type, each, groups, 1);
    uint8_t *bytes = bytes_of(w, weight);
    const uint64_t n = each * groups, size = bz_row_bytes(type, 1);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t id = (i * 7919 + 5) % n; /* a prime that does not divide n */
        memcpy(bytes + i * size, &id, size);
    }
    return weight;
}

void weights_free(memory_weights *w)
{
    for (uint32_t i = 0; i < w->table.n; i++) {
        free(w->bytes[i]);
    }
    free(w->bytes);
    free(w->table.info);
    *w = (memory_weights){0};
}

/* ---- back ends ------------------------------------------------------------------------------ */

static gpu *open_device(void)
{
    bz_error err = {0};
    gpu *g = NULL;
    uint64_t end = bz_os_now() + GPU_PATIENCE_NS;
    bz_status status = gpu_open(&g, &(gpu_options){.threads = GPU_THREADS_PARALLEL}, &err);
    while (status == BZ_OK && gpu_state_of(g, &err) == GPU_STARTING && bz_os_now() < end) {
        bz_os_sleep(GPU_POLL_NS);
    }
    if (status != BZ_OK || gpu_state_of(g, &err) != GPU_READY) {
        printf("FAIL no device: %s\n", err.text);
        exit(1);
    }
    return g;
}

gpu_limits parity_limits(void)
{
    gpu *g = open_device();
    gpu_limits l = *gpu_limits_of(g);
    gpu_close(g);
    return l;
}

static bz_cache_type cache_of(const parity *p)
{
    return p->options.cache ? p->options.cache : p->options.f32_cache ? BZ_CACHE_F32 : BZ_CACHE_F16;
}

/* The only place where tests create a GPU back end. */
static bool open_gpu(parity *p)
{
    bz_need need = {0};
    bz_progress state = BZ_JOB_AGAIN;
    const memory_weights *w = p->weights;
    bz_status status = bz_gpu_model_new(&p->model, &p->options.device, &w->table,
                                        (const uint8_t *const *)w->bytes, &need.error);
    if (status == BZ_OK) {
        p->device = p->model->g;
        while (gpu_state_of(p->device, &need.error) == GPU_STARTING) {
            bz_os_sleep(GPU_POLL_NS);
        }
        if (p->options.limits) {
            gpu_limits limits = *p->options.limits;
            limits.sequential = gpu_limits_of(p->device)->sequential;
            gpu_test_limits(p->device, &limits);
        }
        while (state == BZ_JOB_AGAIN || state == BZ_JOB_EVENT || state == BZ_JOB_NEED_GPU) {
            if (state == BZ_JOB_NEED_GPU) {
                bz_os_sleep(GPU_POLL_NS);
            }
            state = bz_gpu_model_load(p->model, &need);
        }
        status = state == BZ_JOB_DONE ? bz_gpu_new(&p->backend[1], p->model, p->options.f32_cache,
                                                   cache_of(p), !p->options.no_fuse, &need.error)
                                      : need.error.code;
    }
    return CHECKF(status == BZ_OK, "no back end: %s", need.error.text);
}

bool parity_forget(parity *p)
{
    bz_error err = {0};
    for (int i = 0; i < 2; i++) {
        bz_backend *b = p->backend[i];
        b->kv_free(b, p->kv[i]);
        p->kv[i] = NULL;
        bz_status status = b->kv_new(b, p->options.caches, p->options.n_caches, cache_of(p),
                                     p->options.slack, NULL, &p->kv[i], &err);
        if (!CHECKF(status == BZ_OK, "%s: no cache: %s", b->name, err.text)) {
            p->failed = true;
        }
    }
    return !p->failed;
}

bool parity_open(parity *p, const memory_weights *w, const parity_options *options)
{
    *p = (parity){.weights = w, .options = *options};
    bz_error err = {0};
    bz_status status = bz_cpu_new(&p->backend[0], &w->table, (const uint8_t *const *)w->bytes,
                                  &(bz_cpu_options){.exact = true}, &err);
    CHECKF(status == BZ_OK, "no CPU back end: %s", err.text);
    p->failed = !p->backend[0] || !open_gpu(p);
    return !p->failed && parity_forget(p);
}

void parity_close(parity *p)
{
    for (int i = 0; i < 2; i++) {
        bz_backend *b = p->backend[i];
        if (b) {
            b->kv_free(b, p->kv[i]);
            b->free(b);
        }
    }
    if (p->model) {
        uint64_t left = gpu_counts_of(p->device).buffer_bytes, ours = p->model->weights.bytes;
        CHECKF(left <= ours + 4ull * p->model->weights.n_buffers, "%d bytes were leaked",
               (int)(left - ours));
        CHECK(p->failed || gpu_counts_of(p->device).dispatches > 0); /* it did run there */
        bz_gpu_model_drop(p->model);
    }
    *p = (parity){0};
}

/* ---- plans ------------------------------------------------------------------------------------
 */

bz_plan *parity_plan(parity *p, uint32_t rows)
{
    bz_plan *plan = NULL;
    bz_error err = {0};
    bz_status status = bz_plan_new(&plan, &p->weights->table, p->options.caches,
                                   p->options.n_caches, rows, rows, &err);
    if (status != BZ_OK) {
        printf("FAIL no plan: %s\n", err.text);
        exit(1);
    }
    return plan;
}

parity_run parity_prepare(parity *p, bz_plan *plan, bz_tensor output)
{
    parity_run r = {.plan = plan};
    bz_error err = {0};
    if (bz_plan_tensor(plan, output)->whole_pass) {
        output = bz_take_rows(plan, output, "rows");
    }
    r.cols = bz_plan_tensor(plan, output)->cols;
    bz_status status = bz_plan_finish(plan, output, &err);
    for (int i = 0; status == BZ_OK && i < 2 && !p->failed; i++) {
        status = p->backend[i]->prepare(p->backend[i], plan, &r.schedule[i], &err);
    }
    CHECKF(status == BZ_OK, "no schedule: %s", err.text);
    return r;
}

void parity_release(parity *p, parity_run *r)
{
    for (int i = 0; i < 2; i++) {
        if (r->schedule[i]) {
            p->backend[i]->release(p->backend[i], r->schedule[i]);
        }
    }
    bz_plan_free(r->plan);
    *r = (parity_run){0};
}

float *parity_output(bz_backend *b, bz_schedule *schedule, bz_kv *kv, const parity_pass *pass,
                     uint32_t cols)
{
    static const uint32_t seq[MAX_ROWS];
    int32_t ids[MAX_ROWS], pos[MAX_ROWS];
    uint32_t out[MAX_ROWS], n_out = pass->n_out ? pass->n_out : pass->n;
    void *const kvs[1] = {kv};
    for (uint32_t i = 0; i < pass->n; i++) {
        ids[i] = pass->ids ? pass->ids[i] : (int32_t)i;
        pos[i] = (int32_t)(pass->position + i);
        out[i] = pass->out ? pass->out[i < n_out ? i : 0] : pass->n - 1 - i;
    }
    const bz_rows rows = {.n = pass->n,
                          .n_out = n_out,
                          .id = ids,
                          .pos = pos,
                          .seq = seq,
                          .out = out,
                          .kv = kvs,
                          .reset_kept = pass->reset_kept,
                          .kept_input = pass->kept_input,
                          .uniform = pass->uniform,
                          .temperature = pass->temperature};
    bz_error err = {0};
    bz_pass_state state = BZ_PASS_ERROR;
    if (!schedule || !CHECKF(b->kv_reserve(b, kv, pass->position + pass->n, &err) == BZ_OK,
                             "%s: %s", b->name, err.text)) {
        return NULL;
    }
    uint64_t end = bz_os_now() + GPU_PATIENCE_NS;
    b->begin(b, schedule, &rows);
    do {
        state = b->step(b, bz_os_now() + 1000000000, &err);
        if (state == BZ_PASS_WAIT) {
            bz_os_sleep(GPU_POLL_NS);
        }
    } while ((state == BZ_PASS_AGAIN || state == BZ_PASS_WAIT) && bz_os_now() < end);
    if (!CHECKF(state == BZ_PASS_DONE, "%s: the pass failed: %s", b->name, err.text)) {
        return NULL;
    }
    float *copy = malloc((size_t)n_out * cols * sizeof *copy);
    memcpy(copy, b->output(b, schedule), (size_t)n_out * cols * sizeof *copy);
    return copy;
}

/* ---- comparing ----------------------------------------------------------------------------------
 */

static double worst;

double parity_worst(void)
{
    double w = worst;
    worst = 0;
    return w;
}

bool within(const float *got, const float *want, size_t rows, size_t cols, bound limit,
            const char *what)
{
    double sum = 0, most = 0;
    size_t at = 0, n = rows * cols;
    for (size_t i = 0; i < n; i++) {
        sum += (double)want[i] * (double)want[i];
    }
    double rms = sqrt(sum / (double)n);
    for (size_t i = 0; i < n; i++) {
        double allowed =
            limit.of_rms * rms + limit.of_value * fabs((double)want[i]) + limit.absolute;
        double used =
            got[i] == want[i] ? 0 : fabs((double)got[i] - (double)want[i]) / (allowed + 1e-300);
        if (!(used <= most)) {
            most = isnan(used) ? INFINITY : used;
            at = i;
        }
    }
    worst = most > worst ? most : worst;
    return CHECKF(isfinite(rms) && most <= 1,
                  "%s: row %zu column %zu is %.9g, not %.9g: %.3g times the bound (rms %.3g)", what,
                  at / cols, at % cols, (double)got[at], (double)want[at], most, rms);
}

bool parity_check(parity *p, parity_run *r, const parity_pass *pass, bound limit, const char *what,
                  ...)
{
    char text[200];
    va_list args;
    va_start(args, what);
    vsnprintf(text, sizeof text, what, args);
    va_end(args);
    float *out[2] = {0};
    bool good = true;
    for (int i = 0; i < 2; i++) {
        out[i] =
            good ? parity_output(p->backend[i], r->schedule[i], p->kv[i], pass, r->cols) : NULL;
        good = good && out[i];
    }
    good = CHECKF(good, "%s: no output", text) &&
           within(out[1], out[0], pass->n_out ? pass->n_out : pass->n, r->cols, limit, text);
    free(out[0]);
    free(out[1]);
    return good;
}
