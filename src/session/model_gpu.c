/* Loading a model onto a GPU: when it is opened, and again when the device is lost. */
#include "bezel_diffusion.h"
#include "session/model.h"

gpu *bz_model_device(const bz_model *m)
{
    return m->gpu && m->gpu->loaded ? m->gpu->loaded->g : NULL;
}

bz_streaming bz_model_streaming(const bz_model *m)
{
    const uint32_t layers = m->text.config.layers;
    const gpu_weights *w = m->gpu && m->gpu->loaded ? &m->gpu->loaded->weights : NULL;
    return w ? (bz_streaming){layers, layers - w->n_streamed, w->stream_bytes, w->bytes}
             : (bz_streaming){layers, layers, 0, 0};
}

bz_lock *bz_model_lock(const bz_model *m)
{
    return m->gpu ? &m->gpu->lock : NULL;
}

static bool works(const bz_gpu_model *loaded)
{
    gpu_state state = gpu_state_of(loaded->g, NULL);
    return state == GPU_READY || state == GPU_STARTING;
}

bool bz_model_is_loaded(const bz_model *m)
{
    const bz_gpu_model *loaded = m->gpu->loaded;
    return loaded && loaded->ready && works(loaded);
}

/* Sessions may keep a reference until they notice; the weights are unused. */
static void unload(model_gpu *g)
{
    bz_gpu_model_unload(g->loaded);
    bz_gpu_model_drop(g->loaded);
    g->loaded = NULL;
    g->loader = NULL;
}

bz_progress bz_model_load(const bz_model *m, const void *who, bz_need *need)
{
    model_gpu *g = m->gpu;
    if (g->loaded && g->loader != who && !works(g->loaded)) {
        unload(g);
    }
    if (!g->loaded) {
        const uint8_t *const *bytes = (const uint8_t *const *)m->weight_bytes;
        g->loader = who;
        bz_status status =
            bz_gpu_model_new(&g->loaded, &g->options, &m->text.weights.table, bytes, &need->error);
        if (status != BZ_OK) {
            return BZ_JOB_ERROR;
        }
        bz_gpu_model_table(g->loaded, m->text.weights.per_layer_token_embd, g->ple);
        /* A pass over a canvas produces many tokens: only there is it fast enough to read layers
         * again for each pass. */
        bz_gpu_model_limit(g->loaded, g->memory, g->memory || m->text.config.canvas);
        return BZ_JOB_AGAIN;
    }
    if (g->loaded->ready) {
        return BZ_JOB_DONE;
    }
    if (g->loader != who) {
        return BZ_JOB_NEED_GPU;
    }
    bz_progress p = bz_gpu_model_load(g->loaded, need);
    if (p == BZ_JOB_ERROR) {
        unload(g);
    } else if (p == BZ_JOB_DONE) {
        g->loader = NULL;
    }
    return p;
}

void bz_model_load_end(const bz_model *m, const void *who)
{
    if (m->gpu && m->gpu->loader == who) {
        if (m->gpu->loaded) {
            unload(m->gpu);
        }
        m->gpu->loader = NULL;
    }
}
