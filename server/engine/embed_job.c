/* Vectors of texts: one job of the model's embedder, stepped in turn with everything else. */
#include <stdlib.h>

#include "server/engine/internal.h"

static bz_embed_input *inputs_of(const engine_request *r)
{
    bz_embed_input *inputs = calloc(r->n_prompts, sizeof *inputs);
    for (size_t i = 0; inputs && i < r->n_prompts; i++) {
        const engine_prompt *p = &r->prompts[i];
        inputs[i] = p->ids ? (bz_embed_input){.ids = p->ids, .n_ids = p->len}
                           : (bz_embed_input){.text = p->text, .len = p->len};
    }
    return inputs;
}

bz_status embed_job_start(sequence *s, bz_error *err)
{
    engine_model *m = s->w->m;
    const engine_request *r = &s->w->r;
    const uint32_t size = bz_model_embedding(m->model);
    if (!m->embedder) {
        return bz_fail(
            err, BZ_BAD_REQUEST,
            "This model writes text and computes no vectors; use an EmbeddingGemma model.");
    }
    if (m->embedding) { /* waits for the request before it */
        return BZ_OK;
    }
    const bool whole = r->any_dimensions && r->dimensions > size;
    const bz_embed_options o = {
        .size = sizeof o, .dimensions = whole ? 0 : r->dimensions, .truncate = r->truncate};
    s->inputs = inputs_of(r);
    const bz_status status =
        s->inputs ? bz_embed_texts(m->embedder, s->inputs, r->n_prompts, &o, &s->job, err)
                  : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the texts.");
    if (status == BZ_OK) {
        s->phase = SEQUENCE_EMBEDDING;
        s->began = bz_os_now();
        m->embedding = true;
        m->running++;
    }
    return status;
}

static bz_status on_done(sequence *s, bz_error *err)
{
    size_t n;
    uint32_t d;
    const float *v = bz_job_vectors(s->job, &n, &d);
    const uint32_t *tokens = bz_job_vector_tokens(s->job, &n);
    for (size_t i = 0; i < n; i++) {
        s->n_ids += tokens[i];
    }
    return work_event(s->w, ENGINE_VECTORS, 0, BZ_FINISH_NONE, (const char *)v, n * d * sizeof *v)
               ? BZ_OK
               : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the vectors.");
}

bz_status embed_job_step(sequence *s, bool *ended, bool *idle, bz_error *err)
{
    bz_need need = {0};
    switch (bz_job_step(s->job, &need)) {
    case BZ_JOB_AGAIN:
    case BZ_JOB_EVENT: return BZ_OK;
    case BZ_JOB_NEED_GPU: *idle = true; return BZ_OK;
    case BZ_JOB_NEED_BYTES: return bz_fail(err, BZ_BAD_FILE, "The model's file is not in memory.");
    case BZ_JOB_DONE: *ended = true; return on_done(s, err);
    case BZ_JOB_ERROR: *err = need.error; return need.error.code;
    }
    return BZ_OK;
}

void embed_job_stop(sequence *s)
{
    bz_job_free(s->job);
    s->job = NULL;
    s->w->m->embedding = false;
}
