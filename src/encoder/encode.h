/* Internals of an encoder and the stages of its job; every stage is many short steps.
 *
 *   LOOK     search what was encoded before
 *   READ     the tower's weights, where they are not mapped; for a GPU its norms and bounds
 *   CHECK    the values that were read
 *   LOAD     all of them onto the model's GPU, where it is on one
 *   PREPARE  resize and cut into patches; resample and compute features
 *   TOWER    passes: one for an image, one for every 30 seconds of audio
 */
#ifndef BZ_ENCODE_H
#define BZ_ENCODE_H

#include "cpu/cpu.h"
#include "encoder/encoder.h"
#include "gpu/run/backend.h"
#include "session/job.h"
#include "session/media.h"
#include "media/image.h"
#include "media/mel.h"
#include "media/resample.h"
#include "session/model.h"

enum { BZ_FRAMES_PER_TOKEN = 4 }; /* of 10 ms in a soft token */

/* The vision or the audio encoder. */
typedef struct bz_tower_state {
    bool *wanted;        /* [weights] which belong to it */
    bz_weights table;    /* the encoder's, with those wanted */
    bool on_gpu;         /* it runs on the model's GPU, or will */
    bool ready;          /* its weights are loaded and checked */
    bz_gpu_model *gpu;   /* its weights, beside the model's; NULL: not loaded */
    bz_backend *backend; /* its own on a GPU; else the encoder's */
    bz_plan *plan;
    bz_schedule *schedule;
} bz_tower_state;

struct bz_encoder {
    const bz_model *model;
    bz_towers towers;
    const uint8_t **bytes; /* [towers.table.n] */
    uint8_t **owned;       /* the same, where the encoder allocated them */
    bz_cpu_options cpu_options;
    bz_backend *cpu;         /* NULL: created when first needed */
    bz_tower_state tower[2]; /* by kind */
    bool no_fuse, exact;
    char *notice; /* why the GPU is not used; NULL: it is */
    bz_mel *mel;
    uint32_t budget, frame_budget; /* maximum tokens of an image, of a frame */
    bz_media **kept;               /* [keep] most recently used first */
    uint32_t keep, n_kept;
    bz_encoder_stats stats;
    bool busy;
};

typedef enum bz_encode_stage {
    STAGE_LOOK,
    STAGE_READ,
    STAGE_CHECK,
    STAGE_LOAD,
    STAGE_PREPARE,
    STAGE_TOWER,
    STAGE_FINISHED
} bz_encode_stage;

typedef struct bz_encode_job {
    bz_job job;
    bz_encoder *e;
    bz_media_kind kind;
    bz_encode_stage stage;
    bz_media *media;
    bz_content content;
    uint64_t reported; /* progress of the last event */
    /* reading */
    uint32_t weight;
    uint64_t read;
    /* images */
    const uint8_t *rgb;
    bz_size from, to;
    bz_resize *resize;
    /* audio */
    const float *pcm;
    size_t samples; /* as given, after resampling at 16 kHz */
    uint32_t rate;
    bz_resampler *resampler;
    float *resampled;
    uint64_t resampled_to;
    /* the tower's input: [feature_rows][feature_cols] */
    float *features;
    uint32_t feature_rows, feature_cols, featured;
    /* passes */
    bool in_pass;
    uint32_t done_rows; /* of the media */
    uint32_t piece;     /* of audio */
    bool lost;          /* the device was lost, when lost_at rows were done */
    uint32_t lost_at;
    bool reloading;         /* the model is being loaded onto another device */
    float *input;           /* of a piece, padded with silence */
    int32_t *pos_x, *pos_y; /* [feature_rows] of the patches */
    bz_rows rows;
} bz_encode_job;

/* ---- encoder.c ---------------------------------------------------------------------- */

/* Frees a tower's back end, plan and schedule. */
void bz_encoder_drop(bz_encoder *e, bz_media_kind kind);
bool bz_encoder_is_of(bz_media_kind kind,
                      const bz_weight_info *w); /* whether w belongs to that tower */
bz_media *
bz_encoder_cache_find(bz_encoder *e,
                      bz_content content); /* a reference for the caller; NULL: not found */
void bz_encoder_cache_add(bz_encoder *e, const bz_media *m);

/* ---- weights.c ---------------------------------------------------------------------- */

bz_progress bz_encode_read(bz_encode_job *j, bz_need *need);
bz_progress bz_encode_check(bz_encode_job *j, bz_need *need);
bz_progress bz_encode_load(bz_encode_job *j, bz_need *need);
/* Falls back to the CPU where the GPU lacks memory or a kernel; other errors stay errors. */
bz_progress bz_encode_fall_back(bz_encode_job *j, bz_need *need);
/* Frees weights whose reads a cancelled job did not complete. */
void bz_encode_forget_reads(bz_encode_job *j);

/* ---- prepare.c ---------------------------------------------------------------------- */

bz_progress bz_encode_prepare_image(bz_encode_job *j, bz_need *need);
bz_progress bz_encode_prepare_audio(bz_encode_job *j, bz_need *need);
/* Audio is cut into pieces of 30 seconds: their number, and the rows of features and of tokens of
 * each. */
uint32_t bz_encode_pieces(const bz_encode_job *j);
uint32_t bz_encode_piece_features(const bz_encode_job *j, uint32_t piece);
uint32_t bz_encode_piece_tokens(const bz_encode_job *j, uint32_t piece);

/* ---- tower_pass.c ------------------------------------------------------------------- */

bz_progress bz_encode_pass(bz_encode_job *j, bz_need *need);

#endif
