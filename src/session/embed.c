/* Creating and freeing embedders. The job is in embed_job.c. */
#include "session/embed.h"

#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "cpu/cpu.h"
#include "gpu/run/backend.h"
#include "model/embedding.h"

static const uint32_t buckets[BZ_EMBED_BUCKETS] = {64, 256, BZ_EMBED_ROWS, BZ_EMBED_LONGEST_GPU,
                                                   BZ_EMBED_LONGEST_CPU};
enum { CPU_ALIGN = 64 };

uint32_t bz_model_embedding(const bz_model *m)
{
    return m->text.config.embedding.embeds ? m->text.config.embedding.size : 0;
}

bz_status bz_model_check_writes(const bz_model *m, bz_error *err)
{
    return m->text.config.embedding.embeds
               ? bz_fail(
                     err, BZ_UNSUPPORTED_MODEL,
                     "This model computes vectors of texts and writes none; use it with 'embed', "
                     "or open a chat model.")
               : BZ_OK;
}

void bz_embedder_detach(bz_embedder *e)
{
    bz_backend *b = e->backend;
    if (!b) {
        return;
    }
    for (int i = 0; i < BZ_EMBED_BUCKETS; i++) {
        if (e->plans[i].schedule) {
            b->release(b, e->plans[i].schedule);
            e->plans[i].schedule = NULL;
        }
    }
    b->kv_free(b, e->kv);
    b->free(b);
    e->kv = e->kv_list[0] = NULL;
    e->backend = NULL;
    e->device = NULL;
}

void bz_embedder_free(bz_embedder *e)
{
    if (!e) {
        return;
    }
    bz_lock_take(bz_model_lock(e->model));
    bz_embedder_detach(e);
    bz_lock_give(bz_model_lock(e->model));
    for (int i = 0; i < BZ_EMBED_BUCKETS; i++) {
        bz_plan_free(e->plans[i].plan);
    }
    free(e);
}

bz_status bz_embedder_attach(bz_embedder *e, bz_error *err)
{
    const bz_model *m = e->model;
    const bz_embedder_options *o = &e->options;
    const bz_cpu_options cpu = {.threads = o->threads, .kernels = o->kernels, .exact = o->exact};
    bz_status status;
    e->device = m->gpu ? m->gpu->loaded : NULL;
    status = m->gpu
                 ? bz_gpu_new(&e->backend, m->gpu->loaded, o->exact, BZ_CACHE_F32, !o->no_fuse, err)
                 : bz_cpu_new(&e->backend, &m->text.weights.table,
                              (const uint8_t *const *)m->weight_bytes, &cpu, err);
    if (status == BZ_OK) {
        /* Values of Gemma 3 have no norm and may exceed f16, so caches are f32; they are small. */
        status = e->backend->kv_new(e->backend, m->text.caches, m->text.n_caches, BZ_CACHE_F32, 0,
                                    NULL, &e->kv, err);
        e->kv_list[0] = e->kv;
    }
    if (status != BZ_OK) {
        bz_embedder_detach(e);
    }
    return status;
}

bz_status bz_embedder_plan(bz_embedder *e, uint32_t rows, session_plan **out, bz_error *err)
{
    int b = 0;
    while (buckets[b] < rows) {
        b++;
    }
    session_plan *p = &e->plans[b];
    bz_status status = BZ_OK;
    if (!p->plan) {
        status = bz_embedding_record(&e->model->text, buckets[b], BZ_EMBED_TEXTS, &p->plan, err);
    }
    if (status == BZ_OK && !p->schedule) {
        status = e->backend->prepare(e->backend, p->plan, &p->schedule, err);
    }
    *out = p;
    return status;
}

bz_status bz_embedder_new(bz_embedder **out, const bz_model *model,
                          const bz_embedder_options *given, bz_error *err)
{
    const bz_config *c = &model->text.config;
    bz_embedder_options o;
    bz_status status = BZ_READ_EMBEDDER(&o, given, err);
    if (status != BZ_OK) {
        return status;
    }
    if (!c->embedding.embeds) {
        return bz_fail(err, BZ_UNSUPPORTED_MODEL,
                       "This model writes text and computes no vectors; open an EmbeddingGemma "
                       "model for that.");
    }
    if (model->headers_only) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "The model was opened for its header alone; open it with its weights.");
    }
    bz_embedder *e = calloc(1, sizeof *e);
    if (!e) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for an embedder.");
    }
    const uint32_t most = model->gpu ? BZ_EMBED_LONGEST_GPU : BZ_EMBED_LONGEST_CPU;
    e->model = model;
    e->options = o;
    e->longest = c->context < most ? c->context : most;
    e->align = model->gpu ? 1 : CPU_ALIGN;
    bz_lock_take(bz_model_lock(model));
    if (!model->gpu || bz_model_is_loaded(model)) { /* else its first job attaches it */
        status = bz_embedder_attach(e, err);
        status = status == BZ_DEVICE_LOST ? BZ_OK : status;
    }
    bz_lock_give(bz_model_lock(model));
    if (status != BZ_OK) {
        bz_embedder_free(e);
        return status;
    }
    e->options.kernels = NULL; /* the caller's memory */
    *out = e;
    return BZ_OK;
}

uint32_t bz_embedder_longest(const bz_embedder *e)
{
    return e->longest;
}

const char *bz_embedder_notice(const bz_embedder *e)
{
    const bz_text_weights *w = &e->model->text.weights;
    const bool second = e->model->text.config.ple_width != 0;
    return w->dense_2.id && (second || w->dense_3.id)
               ? NULL
               : "The file lacks the model's dense layers, so its vectors cannot be compared with "
                 "those of complete files.";
}

/* ---- tasks ------------------------------------------------------------------------------ */

/* The words that the models were trained with. */
static const struct {
    const char *name, *before, *after;
} tasks[] = {
    {"query", "task: search result | query: ", NULL},
    {"document", "title: ", " | text: "},
    {"question-answering", "task: question answering | query: ", NULL},
    {"fact-checking", "task: fact checking | query: ", NULL},
    {"classification", "task: classification | query: ", NULL},
    {"clustering", "task: clustering | query: ", NULL},
    {"similarity", "task: sentence similarity | query: ", NULL},
    {"code-retrieval", "task: code retrieval | query: ", NULL},
    {"summarization", "task: summarization | query: ", NULL},
};
enum { N_TASKS = sizeof tasks / sizeof *tasks };

const char *bz_embed_task(uint32_t i)
{
    return i < N_TASKS ? tasks[i].name : NULL;
}

bz_status bz_embed_prefix(const bz_embed_options *o, bz_piece pieces[3], size_t *n, bz_error *err)
{
    uint32_t i = 0;
    *n = 0;
    while (o->task && i < N_TASKS && strcmp(o->task, tasks[i].name) != 0) {
        i++;
    }
    const bool is_document = o->task && i < N_TASKS && tasks[i].after;
    if (o->task && i == N_TASKS) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "There is no task '%.40s'; tasks are query, document, question-answering, "
                       "fact-checking, classification, clustering, similarity, code-retrieval and "
                       "summarization.",
                       o->task);
    }
    if (o->title && !is_document) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "Only documents have a title; set the task to document.");
    }
    if (o->task) {
        pieces[(*n)++] = (bz_piece){tasks[i].before, strlen(tasks[i].before), false};
    }
    if (is_document) {
        const char *title = o->title && *o->title ? o->title : "none";
        pieces[(*n)++] = (bz_piece){title, strlen(title), false};
        pieces[(*n)++] = (bz_piece){tasks[i].after, strlen(tasks[i].after), false};
    }
    return BZ_OK;
}
