/* bezel_diffusion.h: models that generate a canvas of many tokens at once (DiffusionGemma).
 *
 * bz_session_prefill and bz_session_generate work as with any other model; tokens come when their
 * canvas is settled. Until then every step over the canvas is an event of kind BZ_EVENT_CANVAS:
 * `text` is its current text up to an end token, `done` of at most `total` steps are done.
 *
 * This header has the details of a canvas, and the settings of denoising. */
#ifndef BEZEL_DIFFUSION_H
#define BEZEL_DIFFUSION_H

#include "bezel.h"

#ifdef __cplusplus
extern "C" {
#endif

BZ_API uint32_t
bz_model_canvas(const bz_model *model); /* tokens of a canvas; 0: not a diffusion model */

/* A model larger than the GPU's memory (bz_open_options.gpu_memory, or what the device refused)
 * keeps as many layers there as fit; the matrices of the others are read from the file for every
 * pass. */
typedef struct bz_streaming {
    uint32_t layers, resident; /* equal: nothing is streamed */
    uint64_t bytes;            /* read for one pass */
    uint64_t gpu_bytes;        /* that the weights take on the GPU */
} bz_streaming;
BZ_API bz_streaming bz_model_streaming(const bz_model *model);

/* A canvas after a step, valid until the next step of its job. Arrays have n elements. */
typedef struct bz_canvas {
    uint32_t n;
    uint32_t number;   /* canvases settled before it in this job */
    uint32_t position; /* of its first token in the sequence */
    uint32_t left;     /* steps left, this one included */
    float temperature;
    const int32_t *input; /* of the step */
    const int32_t *best;  /* likeliest tokens: when settled, the answer */
    const int32_t *drawn; /* at random, by the probabilities */
    const float *entropy; /* of each token, in nats */
    const bool
        *accepted; /* drawn tokens that are input of the next step; the others become noise again */
    const int32_t *next; /* input of the next step */
    bool settled;        /* the last step over this canvas */
    bool certain;        /* settled because it was stable and certain, not because steps ran out */
} bz_canvas;

BZ_API const bz_canvas *bz_job_canvas(const bz_job *job); /* NULL before the first event */

/* Zero: what the file says, else the number given here. */
typedef struct bz_denoise_options {
    size_t size;
    uint32_t steps;      /* passes over a canvas, at most: 48 */
    float t_min, t_max;  /* temperature falls from t_max to nearly t_min: 0.4, 0.8 */
    float entropy_bound; /* total nats of the tokens accepted in one step: 0.1; below 0: 0 */
    int32_t
        stability;    /* steps for which the best tokens must have stayed the same: 1; below 0: 0 */
    float confidence; /* mean entropy below which they count as certain: 0.005; below 0: 0 */
    /* Random numbers to use instead of those derived from the seed: n ids of the vocabulary and,
     * unless `units` is NULL (a new canvas), n numbers in [0, 1). False: there are no more, and the
     * job fails. */
    bool (*draw)(void *user, uint32_t n, float *units, int32_t *ids);
    void *user;
} bz_denoise_options;

/* bz_session_generate with settings for denoising. Of sampling only the seed is used. */
BZ_API bz_status bz_session_diffuse(bz_session *session, const bz_generate_options *options,
                                    const bz_denoise_options *denoise, bz_job **job, bz_error *err);

/* For checking: logits of one canvas [n] after the prefilled tokens, as LOGITS events. `previous`,
 * if not NULL, are [n][vocabulary] logits of a step before, at that temperature; the canvas is
 * conditioned on them. Copied. */
BZ_API bz_status bz_session_canvas(bz_session *session, const int32_t *ids, const float *previous,
                                   float temperature, bz_job **job, bz_error *err);

#ifdef __cplusplus
}
#endif
#endif
