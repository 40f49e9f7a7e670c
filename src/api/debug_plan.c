/* bezel_debug.h: a recorded plan, and the dispatches it becomes on a GPU, as text and as JSON. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "bezel_debug.h"
#include "gpu/run/backend.h"
#include "model/diffusion.h"
#include "plan/print.h"
#include "session/session.h"

/* A plan on its way out. */
typedef struct listing {
    bz_plan *plan;
    const char *adapter;         /* NULL: not on a GPU */
    bz_gpu_dispatch *dispatches; /* [n] */
    size_t n;
    bz_debug_write write;
    void *user;
    bool failed;
} listing;

/* ---- as text --------------------------------------------------------------- */

static void put(listing *l, const char *format, ...) BZ_PRINTF(2, 3);

static void put(listing *l, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    l->failed = l->failed || !l->write(l->user, text, len);
}

static void put_line(void *user, const char *line)
{
    put(user, "%s\n", line);
}

/* Numbers a step as the listing of the plan does: from 1, without cuts. */
static uint32_t number_of(const bz_plan *plan, uint32_t step)
{
    uint32_t n = 1;
    for (uint32_t i = 0; i < step; i++) {
        n += plan->steps[i].op != BZ_OP_CUT;
    }
    return n;
}

static void put_steps(listing *l, const bz_gpu_dispatch *d)
{
    const bz_plan *plan = l->plan;
    const char *separator = "";
    for (uint32_t i = 0; i < d->steps; i++) {
        const bz_step *s = &plan->steps[d->first_step + i];
        if (s->op != BZ_OP_CUT) {
            put(l, "%s%u %s", separator, number_of(plan, d->first_step + i), bz_op_name(s->op));
            separator = " + ";
        }
    }
    for (uint32_t i = 0; i < d->n_later; i++) {
        put(l, " + %u %s", number_of(plan, d->later[i]), bz_op_name(plan->steps[d->later[i]].op));
    }
    put(l, "\n");
}

static void put_text(listing *l)
{
    bz_plan_print(l->plan, put_line, l);
    if (!l->adapter) {
        return;
    }
    put(l, "\nOn %s these are %zu dispatches:\n\n", l->adapter, l->n);
    put(l, "dispatch  %-24s  %14s  %5s  %-14s  steps\n", "kernel", "workgroups", "layer",
        "fused by");
    for (size_t i = 0; i < l->n; i++) {
        const bz_gpu_dispatch *d = &l->dispatches[i];
        char groups[32], layer[12] = "-";
        snprintf(groups, sizeof groups, "%u x %u", d->x, d->y);
        if (l->plan->steps[d->first_step].layer >= 0) {
            snprintf(layer, sizeof layer, "%d", (int)l->plan->steps[d->first_step].layer);
        }
        put(l, "%8zu  %-24s  %14s  %5s  %-14s  ", i + 1, d->name, groups, layer,
            d->rule ? d->rule : "-");
        put_steps(l, d);
    }
}

/* ---- as JSON --------------------------------------------------------------- */

static void json_shapes(bz_json *j, const char *key, const bz_plan *p, const bz_tensor *tensors,
                        size_t n)
{
    bz_json_key(j, key);
    bz_json_array(j);
    for (size_t i = 0; i < n; i++) {
        if (tensors[i].id) {
            bz_json_array(j);
            bz_json_uint(j, bz_plan_rows_of(p, tensors[i]));
            bz_json_uint(j, bz_plan_tensor(p, tensors[i])->cols);
            bz_json_end(j);
        }
    }
    bz_json_end(j);
}

static void json_step(bz_json *j, const bz_plan *p, const bz_step *s)
{
    bz_json_object(j);
    bz_json_put_text(j, "name", s->name);
    bz_json_put_text(j, "op", bz_op_name(s->op));
    bz_json_key(j, "layer");
    if (s->layer < 0) {
        bz_json_null(j);
    } else {
        bz_json_int(j, s->layer);
    }
    if (s->op != BZ_OP_CUT) {
        json_shapes(j, "in", p, s->in, sizeof s->in / sizeof *s->in);
        json_shapes(j, "out", p, s->out, sizeof s->out / sizeof *s->out);
    }
    if (s->cache.id) {
        bz_json_put_int(j, "cache_layer", p->caches[s->cache.id - 1].layer);
    }
    if (s->op == BZ_OP_ATTEND) {
        bz_json_put_uint(j, "heads", s->heads);
        bz_json_put_uint(j, "window", s->window);
    }
    if (s->w[0].id) {
        const bz_weight_info *w = bz_weight_of(p->weights, s->w[0]);
        bz_json_put_text(j, "weight", w->name);
        bz_json_put_text(j, "type", bz_type_of((uint32_t)w->type)->name);
        bz_json_put_uint(j, "weight_bytes", bz_step_weight_bytes(p, s));
    }
    if (s->op != BZ_OP_CUT) {
        bz_json_put_uint(j, "output_bytes", bz_step_output_bytes(p, s));
    }
    bz_json_end(j);
}

static void json_dispatches(bz_json *j, const listing *l)
{
    bz_json_put_text(j, "adapter", l->adapter);
    bz_json_key(j, "dispatches");
    bz_json_array(j);
    for (size_t i = 0; i < l->n; i++) {
        const bz_gpu_dispatch *d = &l->dispatches[i];
        bz_json_object(j);
        bz_json_put_text(j, "kernel", d->name);
        if (d->rule) {
            bz_json_put_text(j, "rule", d->rule); /* of fusion */
        }
        bz_json_put_uint(j, "first_step", d->first_step); /* index into "plan" */
        bz_json_put_uint(j, "steps", d->steps);
        bz_json_key(j, "later_steps"); /* after that range, computed too */
        bz_json_array(j);
        for (uint32_t k = 0; k < d->n_later; k++) {
            bz_json_uint(j, d->later[k]);
        }
        bz_json_end(j);
        bz_json_key(j, "workgroups");
        bz_json_array(j);
        bz_json_uint(j, d->x);
        bz_json_uint(j, d->y);
        bz_json_end(j);
        bz_json_end(j);
    }
    bz_json_end(j);
}

static void put_json(listing *l)
{
    const bz_plan *p = l->plan;
    const bz_plan_totals t = bz_plan_count(p);
    bz_json j;
    bz_json_init(&j, l->write, l->user);
    bz_json_object(&j);
    bz_json_put_uint(&j, "rows", p->rows);
    bz_json_put_uint(&j, "logit_rows", p->out_rows);
    bz_json_put_uint(&j, "steps", t.steps);
    bz_json_put_uint(&j, "segments", t.segments);
    bz_json_put_uint(&j, "weight_bytes", t.weight_bytes);
    bz_json_put_uint(&j, "table_row_bytes", t.row_bytes);
    bz_json_put_uint(&j, "output_bytes", t.output_bytes);
    bz_json_put_uint(&j, "arena_bytes", t.arena_bytes);
    bz_json_key(&j, "plan");
    bz_json_array(&j);
    for (size_t i = 0; i < p->n_steps; i++) {
        json_step(&j, p, &p->steps[i]);
    }
    bz_json_end(&j);
    if (l->adapter) {
        json_dispatches(&j, l);
    }
    bz_json_end(&j);
    l->failed = !bz_json_finish(&j);
}

/* ---- the plan -------------------------------------------------------------- */

static bz_status record(const bz_text_model *text, uint32_t rows, bz_plan **plan, bz_error *err)
{
    if (rows > BZ_MAX_CHUNK) {
        return bz_fail(err, BZ_BAD_REQUEST, "A pass has at most %d rows, not %u.", BZ_MAX_CHUNK,
                       rows);
    }
    if (!text->config.canvas) {
        return bz_text_record(text, rows ? rows : 1, 1, plan, err);
    }
    return rows ? bz_diffusion_record_encoder(text, rows, plan, err)
                : bz_diffusion_record_canvas(text, plan, err);
}

static bz_status list_dispatches(const bz_session *s, listing *l, bz_error *err)
{
    bz_schedule *schedule = NULL;
    bz_status status = s->backend->prepare(s->backend, l->plan, &schedule, err);
    if (status != BZ_OK) {
        return status;
    }
    l->n = bz_gpu_dispatches(schedule, NULL, 0);
    l->dispatches = calloc(l->n ? l->n : 1, sizeof *l->dispatches);
    if (l->dispatches) {
        bz_gpu_dispatches(schedule, l->dispatches, l->n);
    } else {
        status = bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the list of dispatches.");
    }
    s->backend->release(s->backend, schedule);
    return status;
}

static bz_status lower(const bz_model *model, bool no_fuse, listing *l, bz_error *err)
{
    bz_session *session = NULL;
    bz_status status = bz_session_new(
        &session, model,
        &(bz_session_options){.size = sizeof(bz_session_options), .context = 1, .no_fuse = no_fuse},
        err);
    if (status == BZ_OK) {
        l->adapter = gpu_adapter_name(bz_model_device(model));
        status = list_dispatches(session, l, err);
    }
    bz_session_free(session);
    return status;
}

bz_status bz_debug_plan(const bz_model *model, const bz_debug_plan_options *options,
                        bz_debug_write write, void *user, bz_error *err)
{
    const bz_debug_plan_options o = options ? *options : (bz_debug_plan_options){0};
    listing l = {.write = write, .user = user};
    bz_adapter_set *set = NULL;
    bz_status status = bz_adapter_set_new(&set, NULL, model, o.adapters, o.n_adapters, err);
    if (status == BZ_OK) {
        status = record(bz_adapted_text(model, set), o.rows, &l.plan, err);
    }
    if (status == BZ_OK && bz_model_device(model) && set) {
        status = bz_fail(err, BZ_BAD_REQUEST,
                         "The dispatches of a plan with adapters cannot be listed; open the model "
                         "on the CPU.");
    } else if (status == BZ_OK && bz_model_device(model)) {
        status = lower(model, o.no_fuse, &l, err);
    }
    if (status == BZ_OK) {
        (o.json ? put_json : put_text)(&l);
        if (l.failed) {
            status = bz_fail(err, BZ_ABORTED, "The plan was not written to its end.");
        }
    }
    free(l.dispatches);
    bz_plan_free(l.plan);
    bz_adapter_set_free(set);
    return status;
}
