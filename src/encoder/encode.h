/* An encoder from the inside, and its job's stages; every stage is many short steps.
 *
 *   LOOK     has this been encoded before?
 *   READ     the tower's weights, where they are not mapped; for a GPU its norms and bounds
 *   CHECK    what was read
 *   LOAD     all of them onto the model's GPU, where it is on one
 *   READY    resize and cut into patches; resample and take features
 *   TOWER    passes: one for a picture, one for every 30 seconds of sound
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

enum { BZ_MOMENTS = 4 }; /* of 10 ms in a soft token */

/* Eyes or ears. */
typedef struct bz_tower_state {
    bool *wanted;        /* [weights] which are its own */
    bz_weights table;    /* the encoder's, with those wanted */
    bool on_gpu;         /* it is to be there, or is */
    bool ready;          /* weights are where they are needed, and looked at */
    bz_gpu_model *gpu;   /* its weights beside the model's; NULL: not there, or not there yet */
    bz_backend *backend; /* its own on a GPU; else the encoder's */
    bz_plan *plan;
    bz_schedule *schedule;
} bz_tower_state;

struct bz_encoder {
    const bz_model *model;
    bz_towers towers;
    const uint8_t **bytes; /* [towers.table.n] */
    uint8_t **owned;       /* the same, where read into memory of our own */
    bz_cpu_options cpu_options;
    bz_backend *cpu;         /* NULL: made when first needed */
    bz_tower_state tower[2]; /* by kind */
    bool no_fuse, exact;
    char *notice; /* why a GPU is not used, once it is not */
    bz_mel *mel;
    uint32_t budget;
    bz_media **kept; /* [keep], the one used last first */
    uint32_t keep, n_kept;
    bz_encoder_stats stats;
    bool busy;
};

typedef enum bz_encode_stage {
    STAGE_LOOK,
    STAGE_READ,
    STAGE_CHECK,
    STAGE_LOAD,
    STAGE_READY,
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
    uint64_t told; /* progress told of */
    /* reading */
    uint32_t weight;
    uint64_t read;
    /* pictures */
    const uint8_t *rgb;
    bz_size from, to;
    bz_resize *resize;
    /* sound */
    const float *pcm;
    size_t samples; /* given, then at 16 kHz */
    uint32_t rate;
    bz_resampler *resampler;
    float *resampled;
    uint64_t resampled_to;
    /* what the tower gets: [feature_rows][feature_cols] */
    float *features;
    uint32_t feature_rows, feature_cols, featured;
    /* passes */
    bool in_pass;
    uint32_t done_rows; /* of the media */
    uint32_t piece;     /* of sound */
    bool lost;          /* the device has been, when so many rows were done */
    uint32_t lost_at;
    bool reloading; /* the model onto another */
    float *input;   /* of a piece, with silence behind it */
    int32_t *across, *down;
    bz_rows rows;
} bz_encode_job;

/* ---- encoder.c ---------------------------------------------------------------------- */

/* Lets go of a tower's back end and of what was made for it. */
void bz_encoder_drop(bz_encoder *e, bz_media_kind kind);
bool bz_encoder_is_of(bz_media_kind kind,
                      const bz_weight_info *w); /* is it a weight of that tower? */
bz_media *bz_encoder_recall(bz_encoder *e,
                            bz_content content); /* held for the caller; NULL: not known */
void bz_encoder_remember(bz_encoder *e, const bz_media *m);

/* ---- encode_weights.c --------------------------------------------------------------- */

bz_progress bz_encode_read(bz_encode_job *j, bz_need *need);
bz_progress bz_encode_check(bz_encode_job *j, bz_need *need);
bz_progress bz_encode_load(bz_encode_job *j, bz_need *need);
/* What the GPU cannot do, for want of memory or of a kernel, the CPU does; other errors stay
 * errors. */
bz_progress bz_encode_fall_back(bz_encode_job *j, bz_need *need);
/* A job that was given up while its bytes were being read leaves none behind that might be wrong.
 */
void bz_encode_forget_reads(bz_encode_job *j);

/* ---- encode_ready.c ----------------------------------------------------------------- */

bz_progress bz_encode_ready_image(bz_encode_job *j, bz_need *need);
bz_progress bz_encode_ready_sound(bz_encode_job *j, bz_need *need);
/* Sound is cut into pieces of 30 seconds: how many, and of each the rows of features and of tokens.
 */
uint32_t bz_encode_pieces(const bz_encode_job *j);
uint32_t bz_encode_piece_features(const bz_encode_job *j, uint32_t piece);
uint32_t bz_encode_piece_tokens(const bz_encode_job *j, uint32_t piece);

/* ---- encode_tower.c ----------------------------------------------------------------- */

bz_progress bz_encode_pass(bz_encode_job *j, bz_need *need);

#endif
