/* Runs a schedule: job after job, each job's tasks on the pool, until the pass is done or the
 * deadline has passed. A pass can stop between any two tasks and resume later, so that calls are
 * short. */
#include "cpu/cpu.h"

#include <stdlib.h>

#include "base/os.h"
#include "cpu/schedule.h"

typedef struct task_context {
    cpu *c;
    const cpu_job *job;
} task_context;

static void run_task(void *context, uint32_t task, unsigned worker)
{
    task_context *t = context;
    t->job->run(t->c, t->job, task, worker);
}

static void begin(bz_backend *b, bz_schedule *schedule, const bz_rows *rows)
{
    cpu *c = (cpu *)(void *)b;
    c->schedule = schedule;
    c->rows = rows;
    c->job = 0;
    c->task = c->n_tasks = 0;
    for (unsigned t = 0; t < bz_pool_threads(c->pool); t++) {
        c->scratch[t].arranged = NULL;
    }
    if (rows->kept_input) {
        cpu_copy_kept_input(c);
    }
}

static void call_trace(cpu *c, const cpu_job *job)
{
    for (int o = 0; c->trace && job->ends_step && o < 2; o++) {
        bz_tensor t = job->step->out[o];
        if (t.id) {
            c->trace(c->trace_user, job->step, o, cpu_row(c, t, 0), cpu_rows_of(c, t),
                     cpu_info(c, t)->cols, cpu_info(c, t)->stride);
        }
    }
}

static bz_pass_state step(bz_backend *b, uint64_t deadline, bz_error *err)
{
    (void)err; /* memory was reserved by prepare: a CPU pass cannot fail */
    cpu *c = (cpu *)(void *)b;
    while (c->job < c->schedule->n_jobs) {
        const cpu_job *job = &c->schedule->jobs[c->job];
        if (c->n_tasks == 0) {
            c->n_tasks = job->tasks(c, job);
        }
        task_context context = {c, job};
        c->task = bz_pool_run(c->pool, run_task, &context, c->task, c->n_tasks, deadline);
        if (c->task < c->n_tasks) {
            return BZ_PASS_AGAIN;
        }
        call_trace(c, job);
        c->job++;
        c->task = c->n_tasks = 0;
        if (deadline && bz_os_now() >= deadline && c->job < c->schedule->n_jobs) {
            return BZ_PASS_AGAIN;
        }
    }
    return BZ_PASS_DONE;
}

static const float *output(bz_backend *b, const bz_schedule *schedule)
{
    cpu *c = (cpu *)(void *)b;
    (void)schedule;
    return cpu_row(c, c->schedule->plan->output, 0);
}

static void progress(const bz_backend *b, uint64_t *done, uint64_t *total)
{
    const cpu *c = (const cpu *)(const void *)b;
    *done = c->job;
    *total = c->schedule->n_jobs;
}

static void set_trace(bz_backend *b, bz_trace trace, void *user)
{
    cpu *c = (cpu *)(void *)b;
    c->trace = trace;
    c->trace_user = user;
}

static void free_cpu(bz_backend *b)
{
    cpu *c = (cpu *)(void *)b;
    if (c) {
        bz_pool_free(c->pool);
        bz_os_aligned_free(c->arena);
        bz_os_aligned_free(c->scratch_memory);
        free(c->scratch);
        bz_os_aligned_free(c->q8_memory);
        free(c->q8);
        free(c->groups.first);
        free(c->groups.pairs);
        free(c->groups.active);
        bz_os_aligned_free(c->packed);
        free(c);
    }
}

bz_status bz_cpu_new(bz_backend **out, const bz_weights *weights,
                     const uint8_t *const *weight_bytes, const bz_cpu_options *options,
                     bz_error *err)
{
    const bz_kernels *kernels = bz_kernels_best(options->kernels);
    if (!kernels) {
        return bz_fail(
            err, BZ_BAD_REQUEST,
            "This processor cannot run the kernels '%s'; omit the option to use the best ones.",
            options->kernels);
    }
    cpu *c = calloc(1, sizeof *c);
    if (!c) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "There is not enough memory for the CPU back end.");
    }
    c->backend = (bz_backend){.name = "cpu",
                              .free = free_cpu,
                              .prepare = cpu_prepare,
                              .release = cpu_release,
                              .begin = begin,
                              .step = step,
                              .output = output,
                              .progress = progress,
                              .set_trace = set_trace};
    cpu_kv_interface(&c->backend);
    c->k = kernels;
    c->exact = options->exact;
    c->weights = weights;
    c->weight_bytes = weight_bytes;
    const unsigned processors = bz_os_cpu_count(), max = BZ_THREADS_PER_PROCESSOR * processors;
    c->pool = bz_pool_new(!options->threads        ? processors
                          : options->threads < max ? options->threads
                                                   : max);
    c->scratch = c->pool ? calloc(bz_pool_threads(c->pool), sizeof *c->scratch) : NULL;
    if (!c->scratch) {
        free_cpu(&c->backend);
        return bz_fail(err, BZ_OUT_OF_MEMORY,
                       "There is not enough memory for the CPU back end's threads.");
    }
    *out = &c->backend;
    return BZ_OK;
}
