/* bezel show --plan --device gpu: what the plan becomes there. */
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "session/session.h"
#include "cli/show/show.h"

static bz_status list_dispatches(const bz_session *s, const bz_plan *plan, show_gpu *out,
                                 bz_error *err)
{
    bz_schedule *schedule = NULL;
    bz_status status = s->backend->prepare(s->backend, plan, &schedule, err);
    if (status != BZ_OK) {
        return status;
    }
    out->n = bz_gpu_dispatches(schedule, NULL, 0);
    out->dispatches = calloc(out->n ? out->n : 1, sizeof *out->dispatches);
    if (out->dispatches) {
        bz_gpu_dispatches(schedule, out->dispatches, out->n);
    } else {
        status = bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the list of dispatches.");
    }
    s->backend->release(s->backend, schedule);
    return status;
}

bool show_gpu_load(show_gpu *out, const cli_options *o, const bz_plan *plan, int *exit_code)
{
    bz_model *model = NULL;
    bz_session *session = NULL;
    bz_error err = {0};
    *out = (show_gpu){0};
    if (!cli_open(o, &model, exit_code)) {
        return false;
    }
    /* the same files give the same weights, so that this plan fits that model */
    bz_status status = bz_session_new(
        &session, model, &(bz_session_options){.context = 1, .no_fuse = o->no_fuse}, &err);
    if (status == BZ_OK) {
        snprintf(out->adapter, sizeof out->adapter, "%s", gpu_adapter_name(bz_model_device(model)));
        status = list_dispatches(session, plan, out, &err);
    }
    bz_session_free(session);
    bz_model_free(model);
    if (status != BZ_OK) {
        *exit_code = cli_error(&err);
    }
    return status == BZ_OK;
}

void show_gpu_free(show_gpu *g)
{
    free(g->dispatches);
}

/* Steps as the plan's own list numbers them, from 1 and without cuts. */
static uint32_t number_of(const bz_plan *plan, uint32_t step)
{
    uint32_t n = 1;
    for (uint32_t i = 0; i < step; i++) {
        n += plan->steps[i].op != BZ_OP_CUT;
    }
    return n;
}

static void print_steps(const bz_plan *plan, const bz_gpu_dispatch *d)
{
    const char *before = "";
    for (uint32_t i = 0; i < d->steps; i++) {
        const bz_step *s = &plan->steps[d->first_step + i];
        if (s->op != BZ_OP_CUT) {
            printf("%s%u %s", before, number_of(plan, d->first_step + i), bz_op_name(s->op));
            before = " + ";
        }
    }
    for (uint32_t i = 0; i < d->n_early; i++) {
        printf(" + %u %s", number_of(plan, d->early[i]), bz_op_name(plan->steps[d->early[i]].op));
    }
    putchar('\n');
}

void show_gpu_as_text(const show_gpu *g, const bz_plan *plan)
{
    printf("\nOn %s these are %zu dispatches:\n\n", g->adapter, g->n);
    printf("dispatch  %-24s  %14s  %5s  steps\n", "kernel", "workgroups", "layer");
    for (size_t i = 0; i < g->n; i++) {
        const bz_gpu_dispatch *d = &g->dispatches[i];
        char groups[32], layer[12] = "-";
        snprintf(groups, sizeof groups, "%u x %u", d->x, d->y);
        if (plan->steps[d->first_step].layer >= 0) {
            snprintf(layer, sizeof layer, "%d", (int)plan->steps[d->first_step].layer);
        }
        printf("%8zu  %-24s  %14s  %5s  ", i + 1, d->name, groups, layer);
        print_steps(plan, d);
    }
}
