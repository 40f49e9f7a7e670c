/* Passes over a canvas. */
#include "session/canvas.h"

#include "model/diffusion.h"
#include "session/job.h"

void bz_canvas_want_block(bz_session *s, uint32_t first)
{
    s->rows =
        (bz_rows){.n_out = bz_diffusion_block(&s->model->text), .out = s->out, .temperature = 1};
    for (uint32_t i = 0; i < s->rows.n_out; i++) {
        s->out[i] = first + i;
    }
}

bz_pass_state bz_canvas_work(bz_session *s, bz_error *err)
{
    return s->backend->step(s->backend, bz_os_now() + BZ_STEP_NS, err);
}

bz_status bz_canvas_check(const bz_session *s, bz_error *err)
{
    if (!s->model->text.config.canvas) {
        return bz_fail(err, BZ_BAD_REQUEST, "The model is no diffusion model: it has no canvas.");
    }
    if (s->busy) {
        return bz_fail(err, BZ_BAD_REQUEST, "The session is busy with another job.");
    }
    return s->n ? BZ_OK : bz_fail(err, BZ_BAD_REQUEST, "Prefill a prompt before generating.");
}

bz_status bz_session_canvas_pass(bz_session *s, canvas_pass kind, const int32_t *ids, bz_error *err)
{
    const bz_text_model *m = bz_adapted_text(s->model, s->adapters);
    session_plan *p = &s->canvas_plans[kind];
    bz_status status = BZ_OK;
    if (!p->plan) {
        status = kind == CANVAS_DENOISE  ? bz_diffusion_record_canvas(m, &p->plan, err)
                 : kind == CANVAS_LOGITS ? bz_diffusion_record_logits(m, &p->plan, err)
                                         : bz_diffusion_record_condition(m, &p->plan, err);
    }
    if (status == BZ_OK && !p->schedule) {
        status = s->backend->prepare(s->backend, p->plan, &p->schedule, err);
    }
    if (status == BZ_OK) {
        status = s->backend->kv_reserve(s->backend, s->kv, s->n + m->config.canvas, err);
    }
    if (status != BZ_OK) {
        return status;
    }
    for (uint32_t i = 0; i < p->plan->rows; i++) {
        s->pos[i] = (int32_t)(s->n + i);
    }
    s->rows.n = p->plan->rows;
    s->rows.id = ids;
    s->rows.pos = s->pos;
    s->rows.seq = s->seq;
    s->rows.kv = s->kv_list;
    s->running = p;
    bz_rings_overwrite(
        &s->rings, s->backend, s->kv,
        s->n + m->config.canvas); /* the canvas lies in the rings, too, until it is settled */
    s->backend->begin(s->backend, p->schedule, &s->rows);
    return BZ_OK;
}
