/* The job that computes vectors of texts: tokens of all texts, so that what is refused is refused
 * before anything is computed; then passes over as many texts as fit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "session/embed.h"
#include "session/job.h"

/* One text, and where its tokens are. */
typedef struct embed_text {
    size_t first;
    uint32_t n;
} embed_text;

typedef struct embed_job {
    bz_job job;
    bz_embedder *e;
    const bz_embed_input *inputs; /* [n_texts] the caller's */
    size_t n_texts;
    bz_piece prefix[3]; /* what the task puts before every text */
    size_t n_prefix;
    char *title; /* the memory of one of them */
    bool truncate;
    uint32_t dimensions;

    embed_text *texts; /* [n_texts] */
    bz_ids ids;        /* of all texts */
    size_t n_read;     /* texts that have tokens */
    uint32_t *tokens;  /* [n_texts] */
    float *vectors;    /* [n_texts][dimensions] */
    size_t done;       /* texts */
    bool event_due;

    /* the current pass: texts from `done` on */
    bool in_pass;
    uint32_t in_it;
    session_plan *running;
    bz_rows rows;
    uint32_t capacity; /* of the arrays below: rows */
    int32_t *pos, *angle, *first, *last;
    uint32_t *seq;
    uint32_t out[BZ_EMBED_TEXTS];

    bool lost; /* the device was lost, when `lost_at` texts were done */
    size_t lost_at;
} embed_job;

/* ---- tokens ----------------------------------------------------------------------------- */

static bz_status too_long(const embed_job *j, size_t i, size_t n, bz_error *err)
{
    if (j->n_texts == 1) {
        return bz_fail(err, BZ_CONTEXT_FULL,
                       "The text has %zu tokens; the model reads at most %u. Shorten it, or set "
                       "truncate to use its beginning.",
                       n, j->e->longest);
    }
    return bz_fail(
        err, BZ_CONTEXT_FULL,
        "Text %zu has %zu tokens; the model reads at most %u. Shorten it, or set truncate "
        "to use its beginning.",
        i + 1, n, j->e->longest);
}

static bz_status given_ids(embed_job *j, size_t i, bz_error *err)
{
    const bz_embed_input *in = &j->inputs[i];
    const uint32_t longest = j->e->longest, vocab = j->e->model->text.config.vocab;
    if (in->n_ids == 0) {
        return bz_fail(err, BZ_BAD_REQUEST, "Text %zu has no tokens.", i + 1);
    }
    if (in->n_ids > longest && !j->truncate) {
        return too_long(j, i, in->n_ids, err);
    }
    const size_t n = in->n_ids < longest ? in->n_ids : longest;
    for (size_t k = 0; k < n; k++) {
        if (in->ids[k] < 0 || (uint32_t)in->ids[k] >= vocab) {
            return bz_fail(err, BZ_BAD_REQUEST, "Text %zu has a token %d; the vocabulary has %u.",
                           i + 1, (int)in->ids[k], vocab);
        }
        if (!bz_ids_push(&j->ids, in->ids[k])) {
            return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the texts' tokens.");
        }
    }
    return BZ_OK;
}

/* bos, the pieces of the text, eos. Too many pieces are cut, and the tokens around them stay. */
static bz_status text_ids(embed_job *j, size_t i, bz_error *err)
{
    const bz_model *m = j->e->model;
    const bz_embedding_config *c = &m->text.config.embedding;
    const bz_special_ids *special = bz_tokenizer_special(m->tokenizer);
    const bool bos = c->bos && special->bos >= 0, eos = c->eos && special->eos >= 0;
    const size_t around = (size_t)bos + eos, first = j->ids.n;
    bz_piece pieces[4];
    memcpy(pieces, j->prefix, j->n_prefix * sizeof *pieces);
    pieces[j->n_prefix] = (bz_piece){j->inputs[i].text, j->inputs[i].len, false};
    if (bos && !bz_ids_push(&j->ids, special->bos)) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the texts' tokens.");
    }
    const bz_status status =
        bz_tokenize_pieces(m->tokenizer, pieces, j->n_prefix + 1, &j->ids, err);
    if (status != BZ_OK) {
        return status;
    }
    const size_t n = j->ids.n - first + eos;
    if (n > j->e->longest && !j->truncate) {
        return too_long(j, i, n, err);
    }
    if (n > j->e->longest) {
        j->ids.n = first + (j->e->longest > around ? j->e->longest - eos : (size_t)bos);
    }
    if (eos && !bz_ids_push(&j->ids, special->eos)) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the texts' tokens.");
    }
    return j->ids.n > first
               ? BZ_OK
               : bz_fail(err, BZ_BAD_REQUEST,
                         "Text %zu is empty, and this model puts no tokens around a text.", i + 1);
}

static bz_progress read_texts(embed_job *j, bz_need *need)
{
    const uint64_t deadline = bz_os_now() + BZ_STEP_NS;
    while (j->n_read < j->n_texts) {
        const size_t i = j->n_read, first = j->ids.n;
        const bz_status status =
            j->inputs[i].ids ? given_ids(j, i, &need->error) : text_ids(j, i, &need->error);
        if (status != BZ_OK) {
            return BZ_JOB_ERROR;
        }
        j->texts[i] = (embed_text){first, (uint32_t)(j->ids.n - first)};
        j->tokens[i] = j->texts[i].n;
        j->n_read++;
        if (bz_os_now() >= deadline) {
            break;
        }
    }
    return BZ_JOB_AGAIN;
}

/* ---- a pass ----------------------------------------------------------------------------- */

static uint32_t aligned(const embed_job *j, uint32_t position)
{
    return (position + j->e->align - 1) / j->e->align * j->e->align;
}

static bool reserve_rows(embed_job *j, uint32_t rows)
{
    if (rows <= j->capacity) {
        return true;
    }
    int32_t **const lists[] = {&j->pos, &j->angle, &j->first, &j->last};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        free(*lists[i]);
        *lists[i] = malloc(rows * sizeof **lists[i]);
        if (!*lists[i]) {
            j->capacity = 0;
            return false;
        }
    }
    free(j->seq);
    j->seq = calloc(rows, sizeof *j->seq);
    j->capacity = j->seq ? rows : 0;
    return j->seq != NULL;
}

static bz_status begin_pass(embed_job *j, bz_error *err)
{
    bz_embedder *e = j->e;
    uint32_t n = 0, texts = 0;
    while (texts < BZ_EMBED_TEXTS && j->done + texts < j->n_texts) {
        const uint32_t more = j->texts[j->done + texts].n;
        if (texts && n + more > BZ_EMBED_ROWS) {
            break;
        }
        n += more;
        texts++;
    }
    bz_status status = bz_embedder_plan(e, n, &j->running, err);
    if (status != BZ_OK) {
        return status;
    }
    if (!reserve_rows(j, n)) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a pass of %u tokens.", n);
    }
    uint32_t row = 0, position = 0;
    for (uint32_t t = 0; t < texts; t++) {
        const uint32_t count = j->texts[j->done + t].n;
        j->out[t] = row;
        for (uint32_t i = 0; i < count; i++, row++) {
            j->pos[row] = (int32_t)(position + i);
            j->angle[row] = (int32_t)i;
            j->first[row] = (int32_t)position;
            j->last[row] = (int32_t)(position + count - 1);
        }
        position = aligned(j, position + count);
    }
    status = e->backend->kv_reserve(e->backend, e->kv, position, err);
    if (status != BZ_OK) {
        return status;
    }
    j->in_it = texts;
    j->rows = (bz_rows){.n = n,
                        .n_out = texts,
                        .id = j->ids.id + j->texts[j->done].first,
                        .pos = j->pos,
                        .angle = j->angle,
                        .seq = j->seq,
                        .out = j->out,
                        .kv = e->kv_list,
                        .image_first = j->first,
                        .image_last = j->last};
    e->backend->begin(e->backend, j->running->schedule, &j->rows);
    j->in_pass = true;
    return BZ_OK;
}

/* The first d numbers of z, divided by their length. False: a number is not finite. */
static bool finish_vector(const float *z, uint32_t d, float *out)
{
    const double least = 1e-12;
    double sum = 0;
    for (uint32_t i = 0; i < d; i++) {
        sum += (double)z[i] * (double)z[i];
    }
    const double length = sqrt(sum) > least ? sqrt(sum) : least;
    for (uint32_t i = 0; i < d; i++) {
        out[i] = (float)((double)z[i] / length);
    }
    return isfinite(sum);
}

static bz_progress take_vectors(embed_job *j, bz_need *need)
{
    const bz_embedder *e = j->e;
    const float *z = e->backend->output(e->backend, j->running->schedule);
    const uint32_t size = e->model->text.config.embedding.size;
    for (uint32_t t = 0; t < j->in_it; t++) {
        if (!finish_vector(z + (size_t)t * size, j->dimensions,
                           j->vectors + (j->done + t) * j->dimensions)) {
            bz_fail(&need->error, BZ_NUMERIC,
                    "The model computed a number that is not finite for text %zu; the file is "
                    "probably damaged.",
                    j->done + t + 1);
            return BZ_JOB_ERROR;
        }
    }
    j->done += j->in_it;
    j->in_pass = false;
    need->event = (bz_event){.kind = BZ_EVENT_PROGRESS, .done = j->done, .total = j->n_texts};
    return BZ_JOB_EVENT;
}

/* ---- the job ---------------------------------------------------------------------------- */

static bool is_there(const bz_embedder *e)
{
    const bz_model *m = e->model;
    return e->backend && (!m->gpu || (e->device == m->gpu->loaded && bz_model_is_loaded(m)));
}

static bz_progress find_device(embed_job *j, bz_need *need)
{
    bz_embedder_detach(j->e);
    j->in_pass = false;
    bz_progress p = bz_model_load(j->e->model, j, need);
    if (p == BZ_JOB_EVENT) {
        need->event.kind = BZ_EVENT_RELOAD;
    }
    if (p == BZ_JOB_DONE) {
        p = bz_embedder_attach(j->e, &need->error) == BZ_OK ? BZ_JOB_AGAIN : BZ_JOB_ERROR;
    }
    return p;
}

static bz_progress work(embed_job *j, bz_need *need)
{
    bz_embedder *e = j->e;
    if (j->n_read < j->n_texts) {
        return read_texts(j, need);
    }
    if (j->done == j->n_texts) {
        return BZ_JOB_DONE;
    }
    if (!is_there(e)) {
        return find_device(j, need);
    }
    if (!j->in_pass) {
        return begin_pass(j, &need->error) == BZ_OK ? BZ_JOB_AGAIN : BZ_JOB_ERROR;
    }
    switch (e->backend->step(e->backend, bz_os_now() + BZ_STEP_NS, &need->error)) {
    case BZ_PASS_AGAIN: return BZ_JOB_AGAIN;
    case BZ_PASS_WAIT: return BZ_JOB_NEED_GPU;
    case BZ_PASS_BYTES:
        need->n_reads = e->backend->reads(e->backend, need->reads);
        return BZ_JOB_NEED_BYTES;
    case BZ_PASS_DONE: return take_vectors(j, need);
    case BZ_PASS_ERROR: break;
    }
    return BZ_JOB_ERROR;
}

/* A device can be lost at any time: the pass is computed again on another, unless that is lost at
 * the same text. */
static bz_progress step(bz_job *job, bz_need *need)
{
    embed_job *j = (embed_job *)(void *)job;
    need->n_reads = 0;
    const bz_progress p = work(j, need);
    if (p != BZ_JOB_ERROR || need->error.code != BZ_DEVICE_LOST || !j->e->model->gpu ||
        (j->lost && j->lost_at == j->done)) {
        return p;
    }
    j->lost = true;
    j->lost_at = j->done;
    bz_embedder_detach(j->e);
    return BZ_JOB_AGAIN;
}

static void free_job(bz_job *job)
{
    embed_job *j = (embed_job *)(void *)job;
    bz_embedder *e = j->e;
    if (j->in_pass && e->backend && e->backend->stop) {
        e->backend->stop(e->backend);
    }
    bz_model_load_end(e->model, j);
    e->busy = false;
    bz_ids_free(&j->ids);
    free(j->title);
    free(j->texts);
    free(j->tokens);
    free(j->vectors);
    free(j->pos);
    free(j->angle);
    free(j->first);
    free(j->last);
    free(j->seq);
    free(j);
}

static bz_status fill(embed_job *j, const bz_embed_options *o, bz_error *err)
{
    const uint32_t size = j->e->model->text.config.embedding.size;
    bz_embed_options own = *o;
    if (o->dimensions > size) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "Vectors of %u numbers were requested; this model's have %u.", o->dimensions,
                       size);
    }
    j->dimensions = o->dimensions ? o->dimensions : size;
    j->truncate = o->truncate;
    if (o->title) {
        own.title = j->title = strdup(o->title);
    }
    const bool fits = j->n_texts < SIZE_MAX / sizeof *j->vectors / j->dimensions;
    j->texts = calloc(j->n_texts, sizeof *j->texts);
    j->tokens = calloc(j->n_texts, sizeof *j->tokens);
    j->vectors = fits ? calloc(j->n_texts * j->dimensions, sizeof *j->vectors) : NULL;
    if ((o->title && !j->title) || !j->texts || !j->tokens || !j->vectors) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the vectors of %zu texts.",
                       j->n_texts);
    }
    return bz_embed_prefix(&own, j->prefix, &j->n_prefix, err);
}

bz_status bz_embed_texts(bz_embedder *e, const bz_embed_input *inputs, size_t n,
                         const bz_embed_options *given, bz_job **out, bz_error *err)
{
    bz_embed_options o;
    bz_status status = BZ_READ_EMBED(&o, given, err);
    if (status != BZ_OK) {
        return status;
    }
    if (e->busy) {
        return bz_fail(err, BZ_BAD_REQUEST, "The embedder is busy with another job.");
    }
    if (n == 0) {
        return bz_fail(err, BZ_BAD_REQUEST, "No text was given.");
    }
    embed_job *j = calloc(1, sizeof *j);
    if (!j) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to compute vectors.");
    }
    *j = (embed_job){
        .job = {.step = step, .free = free_job, .lock = bz_model_lock(e->model), .uses = e->model},
        .e = e,
        .inputs = inputs,
        .n_texts = n};
    status = fill(j, &o, err);
    if (status != BZ_OK) {
        free_job(&j->job);
        return status;
    }
    e->busy = true;
    *out = &j->job;
    return BZ_OK;
}

/* The job as one whose vectors are all there; else NULL. */
static const embed_job *finished(const bz_job *job)
{
    const embed_job *j = (const embed_job *)(const void *)job;
    return job->step == step && j->done == j->n_texts ? j : NULL;
}

const float *bz_job_vectors(const bz_job *job, size_t *n, uint32_t *dimensions)
{
    const embed_job *j = finished(job);
    *n = j ? j->n_texts : 0;
    *dimensions = j ? j->dimensions : 0;
    return j ? j->vectors : NULL;
}

const uint32_t *bz_job_vector_tokens(const bz_job *job, size_t *n)
{
    const embed_job *j = finished(job);
    *n = j ? j->n_texts : 0;
    return j ? j->tokens : NULL;
}
