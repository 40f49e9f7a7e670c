/* Encoding pictures and sound: made ready, through the tower, remembered by content. Every stage is many short steps.
 *
 *   LOOK     has this been encoded before?
 *   READ     the tower's weights, where they are not mapped; for a GPU its norms and bounds
 *   LOAD     all of them onto the model's GPU, where it is on one
 *   READY    resize and cut into patches; resample and take features
 *   TOWER    passes: one for a picture, one for every 30 seconds of sound
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cpu/cpu.h"
#include "encoder.h"
#include "gpu/backend.h"
#include "gpu/load.h"
#include "job.h"
#include "media.h"
#include "media/image.h"
#include "media/mel.h"
#include "media/resample.h"
#include "model.h"
#include "model/towers.h"
#include "plan/backend.h"

enum {
    DEFAULT_KEEP = 16,
    MAX_KEEP = 256,
    READ_BYTES = 4 << 20,
    MEL_ROWS = 64,          /* features of one step */
    RESAMPLE_ROWS = 16384,  /* samples of one step */
    MAX_SECONDS = 3600,
    ROW_BUCKET = 64,        /* plans are recorded for multiples of so many rows */
    MOMENTS = 4             /* of 10 ms in a soft token */
};

/* Eyes or ears. */
typedef struct tower {
    bool *wanted;         /* [weights] which are its own */
    bz_weights table;     /* the encoder's, with those wanted */
    bool on_gpu;          /* it is to be there, or is */
    bool ready;           /* weights are where they are needed, and looked at */
    bz_gpu_model *gpu;    /* its weights beside the model's; NULL: not there, or not there yet */
    bz_backend *backend;  /* its own on a GPU; else the encoder's */
    bz_plan *plan;
    bz_schedule *schedule;
} tower;

struct bz_encoder {
    const bz_model *model;
    bz_towers towers;
    const uint8_t **bytes; /* [towers.table.n] */
    uint8_t **owned;       /* the same, where read into memory of our own */
    bz_cpu_options cpu_options;
    bz_backend *cpu; /* NULL: made when first needed */
    tower tower[2];  /* by kind */
    bool no_fuse;
    char *notice;    /* why a GPU is not used, once it is not */
    bz_mel *mel;
    uint32_t budget;
    bz_media **kept; /* [keep], the one used last first */
    uint32_t keep, n_kept;
    bz_encoder_stats stats;
    bool busy;
};

typedef enum stage { LOOK, READ, CHECK, LOAD, READY, TOWER, FINISHED } stage;

typedef struct encode_job {
    bz_job job;
    bz_encoder *e;
    bz_media_kind kind;
    stage stage;
    bz_media *media;
    bz_content content;
    uint64_t told; /* progress told of */
    /* READ */
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
    /* TOWER */
    bool in_pass;
    uint32_t done_rows; /* of the media */
    uint32_t piece;     /* of sound */
    bool lost;          /* the device has been, when so many rows were done */
    uint32_t lost_at;
    bool reloading;     /* the model onto another */
    float *input;       /* of a piece, with silence behind it */
    int32_t *across, *down;
    bz_rows rows;
} encode_job;

/* ---- making and freeing ---------------------------------------------------------- */

/* Lets go of the back end and of what was made for it. */
static void drop_tower(bz_encoder *e, bz_media_kind kind)
{
    tower *t = &e->tower[kind];
    if (t->schedule) {
        t->backend->release(t->backend, t->schedule);
    }
    bz_plan_free(t->plan);
    if (t->backend && t->backend != e->cpu) {
        t->backend->free(t->backend);
    }
    if (t->gpu) {
        bz_gpu_model_drop(t->gpu);
    }
    t->plan = NULL;
    t->schedule = NULL;
    t->backend = NULL;
    t->gpu = NULL;
    t->ready = false;
}

void bz_encoder_free(bz_encoder *e)
{
    if (!e) {
        return;
    }
    bz_lock_take(bz_model_lock(e->model));
    for (int k = 0; k < 2; k++) {
        drop_tower(e, (bz_media_kind)k);
        free(e->tower[k].wanted);
    }
    bz_lock_give(bz_model_lock(e->model));
    if (e->cpu) {
        e->cpu->free(e->cpu);
    }
    for (uint32_t i = 0; e->owned && i < e->towers.table.n; i++) {
        free(e->owned[i]);
    }
    for (uint32_t i = 0; i < e->n_kept; i++) {
        bz_media_free(e->kept[i]);
    }
    free(e->notice);
    free(e->kept);
    free(e->owned);
    free((void *)e->bytes);
    bz_mel_free(e->mel);
    bz_towers_free(&e->towers);
    free(e);
}

/* Is it a weight of that tower? */
static bool is_of(bz_media_kind kind, const bz_weight_info *w)
{
    const bool audio = strncmp(w->name, "a.", 2) == 0 || strncmp(w->name, "mm.a.", 5) == 0;
    return audio == (kind == BZ_MEDIA_AUDIO);
}

static bz_status make_towers(bz_encoder *e, bz_error *err)
{
    for (int k = 0; k < 2; k++) {
        tower *t = &e->tower[k];
        t->on_gpu = e->model->gpu != NULL;
        t->table = e->towers.table;
        t->table.wanted = t->wanted = calloc(t->table.n + (size_t)1, sizeof *t->wanted);
        if (!t->wanted) {
            return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for an encoder.");
        }
        for (uint32_t i = 0; i < t->table.n; i++) {
            t->wanted[i] = is_of((bz_media_kind)k, &t->table.info[i]);
        }
    }
    return BZ_OK;
}

bz_status bz_encoder_new(bz_encoder **out, const bz_model *model, const bz_encoder_options *given, bz_error *err)
{
    const bz_encoder_options o = given ? *given : (bz_encoder_options){0};
    if (model->headers_only) {
        return bz_fail(err, BZ_BAD_REQUEST, "The model was opened for its header alone; open it with its weights.");
    }
    bz_encoder *e = calloc(1, sizeof *e);
    if (!e) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for an encoder.");
    }
    e->model = model;
    e->keep = o.keep == 0 ? DEFAULT_KEEP : o.keep < MAX_KEEP ? o.keep : MAX_KEEP;
    bz_status status = bz_towers_bind(&e->towers, &model->set, model->text.config.width, err);
    e->budget = o.budget ? o.budget : e->towers.vision.budget;
    const uint32_t n = e->towers.table.n;
    if (status == BZ_OK) {
        e->kept = calloc(e->keep, sizeof *e->kept);
        e->bytes = calloc(n + 1, sizeof *e->bytes);
        e->owned = calloc(n + 1, sizeof *e->owned);
        status = e->kept && e->bytes && e->owned ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for an encoder.");
    }
    for (uint32_t i = 0; status == BZ_OK && i < n; i++) {
        const bz_weight_info *w = &e->towers.table.info[i];
        const uint8_t *data = model->files[w->file].data;
        e->bytes[i] = data ? data + w->offset : NULL;
    }
    if (status == BZ_OK) {
        status = make_towers(e, err);
    }
    e->cpu_options = (bz_cpu_options){.threads = o.threads, .kernels = o.kernels, .exact = true};
    if (status == BZ_OK && !model->gpu) {
        status = bz_cpu_new(&e->cpu, &e->towers.table, (const uint8_t *const *)e->bytes, &e->cpu_options, err);
    }
    e->cpu_options.kernels = NULL; /* the caller's memory */
    if (status != BZ_OK) {
        bz_encoder_free(e);
        return status;
    }
    *out = e;
    return BZ_OK;
}

bz_encoder_stats bz_encoder_get_stats(const bz_encoder *e)
{
    return e->stats;
}

const char *bz_encoder_notice(const bz_encoder *e)
{
    return e->notice;
}

bz_backend *bz_encoder_backend(bz_encoder *e, bz_media_kind kind)
{
    return e->tower[kind].backend ? e->tower[kind].backend : e->cpu;
}

uint32_t bz_encoder_set_budget(bz_encoder *e, uint32_t budget)
{
    const uint32_t before = e->budget;
    e->budget = budget ? budget : before;
    return before;
}

const bz_schedule *bz_encoder_schedule(const bz_encoder *e, bz_media_kind kind)
{
    return e->tower[kind].schedule;
}

void bz_encoder_no_fuse(bz_encoder *e)
{
    e->no_fuse = true;
}

bool bz_model_takes(const bz_model *m, bz_media_kind kind)
{
    return (kind == BZ_MEDIA_IMAGE ? m->towers.vision.kind : m->towers.audio.kind) != BZ_TOWER_NONE;
}

/* ---- remembering ------------------------------------------------------------------ */

static bz_media *recall(bz_encoder *e, bz_content content)
{
    for (uint32_t i = 0; i < e->n_kept; i++) {
        bz_media *m = e->kept[i];
        if (bz_content_equal(m->content, content)) {
            memmove(e->kept + 1, e->kept, i * sizeof *e->kept);
            e->kept[0] = m;
            return bz_media_hold(m);
        }
    }
    return NULL;
}

static void remember(bz_encoder *e, const bz_media *m)
{
    if (e->n_kept == e->keep) {
        bz_media_free(e->kept[--e->n_kept]);
    }
    memmove(e->kept + 1, e->kept, e->n_kept * sizeof *e->kept);
    e->kept[0] = bz_media_hold(m);
    e->n_kept++;
}

static bz_content content_of(const encode_job *j)
{
    if (j->kind == BZ_MEDIA_IMAGE) {
        const uint64_t seed = (uint64_t)j->to.height << 40 ^ (uint64_t)j->to.width << 20 ^ j->from.width;
        return bz_content_of(j->rgb, (size_t)j->from.height * j->from.width * 3, seed);
    }
    return bz_content_of(j->pcm, j->samples * sizeof *j->pcm, 1ull << 63 ^ j->rate);
}

/* On a GPU: and is that still the model's? */
static bool is_ready(const bz_encoder *e, bz_media_kind kind)
{
    const tower *t = &e->tower[kind];
    return t->ready && (!t->on_gpu || (t->gpu->beside == e->model->gpu->loaded && bz_model_is_loaded(e->model)));
}

static bz_progress step_look(encode_job *j)
{
    bz_encoder *e = j->e;
    j->content = content_of(j);
    j->media = recall(e, j->content);
    if (j->media) {
        e->stats.remembered++;
        j->stage = FINISHED;
        return BZ_JOB_AGAIN;
    }
    j->stage = is_ready(e, j->kind) ? READY : READ;
    return BZ_JOB_AGAIN;
}

/* ---- weights -------------------------------------------------------------------------- */

static bz_progress step_read(encode_job *j, bz_need *need)
{
    bz_encoder *e = j->e;
    need->n_reads = 0;
    while (j->weight < e->towers.table.n && need->n_reads < BZ_MAX_READS) {
        const bz_weight_info *w = &e->towers.table.info[j->weight];
        const bool ours = e->owned[j->weight] != NULL;
        if (!is_of(j->kind, w) || (e->tower[j->kind].on_gpu && !bz_tower_needs_at_once(w)) || (ours ? j->read == w->size : e->bytes[j->weight] != NULL)) {
            j->weight++;
            j->read = 0;
            continue;
        }
        if (!ours) {
            e->owned[j->weight] = bz_alloc(w->size);
            e->bytes[j->weight] = e->owned[j->weight];
            if (!e->owned[j->weight]) {
                bz_fail(&need->error, BZ_OUT_OF_MEMORY, "No memory for the tensor %s (%.1f MB).", w->name, (double)w->size / 1e6);
                return BZ_JOB_ERROR;
            }
        }
        const uint64_t n = w->size - j->read < READ_BYTES ? w->size - j->read : READ_BYTES;
        need->reads[need->n_reads++] =
            (bz_read){.file = w->file, .offset = w->offset + j->read, .length = n, .to = e->owned[j->weight] + j->read};
        j->read += n;
    }
    if (need->n_reads) {
        return BZ_JOB_NEED_BYTES;
    }
    j->stage = CHECK;
    return BZ_JOB_AGAIN;
}

/* A job that was given up while its bytes were being read leaves none behind that might be wrong. */
static void forget_reads(encode_job *j)
{
    bz_encoder *e = j->e;
    for (uint32_t i = 0; j->stage == READ && i < e->towers.table.n; i++) {
        if (is_of(j->kind, &e->towers.table.info[i]) && e->owned[i]) {
            free(e->owned[i]);
            e->owned[i] = NULL;
            e->bytes[i] = NULL;
        }
    }
}

static bz_progress step_check(encode_job *j, bz_need *need)
{
    bz_encoder *e = j->e;
    for (uint32_t i = 0; i < e->towers.table.n; i++) {
        const bz_weight_info *w = &e->towers.table.info[i];
        for (uint64_t k = 0; is_of(j->kind, w) && bz_tower_needs_at_once(w) && w->ne[0] > 1 && k < w->ne[0]; k++) {
            float v;
            memcpy(&v, e->bytes[i] + k * sizeof v, sizeof v);
            if (isnan(v)) {
                bz_fail(&need->error, BZ_BAD_FILE, "The tensor %s holds a value that is not a number (element %llu).", w->name,
                        (unsigned long long)k);
                return BZ_JOB_ERROR;
            }
        }
    }
    if (bz_towers_bounds(&e->towers, (const uint8_t *const *)e->bytes, &need->error) != BZ_OK) {
        return BZ_JOB_ERROR;
    }
    j->stage = LOAD;
    return BZ_JOB_AGAIN;
}

static void keep_notice(bz_encoder *e, bz_media_kind kind, const bz_error *why)
{
    const char *format = "%s encoded on the CPU, not on the GPU: %s", *what = kind == BZ_MEDIA_IMAGE ? "Pictures are" : "Sounds are";
    const size_t n = strlen(format) + strlen(what) + strlen(why->text);
    free(e->notice);
    e->notice = malloc(n);
    if (e->notice) {
        snprintf(e->notice, n, format, what, why->text);
    }
}

/* What the GPU cannot do, for want of memory or of a kernel, the CPU does. */
static bz_progress fall_back(encode_job *j, bz_need *need)
{
    bz_encoder *e = j->e;
    tower *t = &e->tower[j->kind];
    if (!t->on_gpu || (need->error.code != BZ_OUT_OF_MEMORY && need->error.code != BZ_UNSUPPORTED_MODEL)) {
        return BZ_JOB_ERROR;
    }
    keep_notice(e, j->kind, &need->error);
    drop_tower(e, j->kind);
    t->on_gpu = false;
    if (!e->cpu && bz_cpu_new(&e->cpu, &e->towers.table, (const uint8_t *const *)e->bytes, &e->cpu_options, &need->error) != BZ_OK) {
        return BZ_JOB_ERROR;
    }
    j->stage = READ;
    j->in_pass = false;
    j->weight = 0;
    j->read = 0;
    return BZ_JOB_AGAIN;
}

/* The model's device, another one if that was lost, and the tower's weights on it. */
static bz_progress load_on_gpu(encode_job *j, bz_need *need)
{
    bz_encoder *e = j->e;
    tower *t = &e->tower[j->kind];
    if (!bz_model_is_loaded(e->model)) {
        if (!j->reloading && j->lost && j->lost_at == j->done_rows) {
            bz_fail(&need->error, BZ_DEVICE_LOST, "The GPU was lost, and again while the same was encoded; use --device cpu.");
            return BZ_JOB_ERROR;
        }
        j->reloading = j->lost = true;
        j->lost_at = j->done_rows;
        const bz_progress p = bz_model_load(e->model, j, need);
        need->event.kind = p == BZ_JOB_EVENT ? BZ_EVENT_RELOAD : need->event.kind;
        return p == BZ_JOB_DONE ? BZ_JOB_AGAIN : p;
    }
    j->reloading = false;
    if (t->gpu && t->gpu->beside != e->model->gpu->loaded) {
        drop_tower(e, j->kind);
    }
    if (!t->gpu) {
        const bz_status status =
            bz_gpu_model_beside(&t->gpu, e->model->gpu->loaded, &t->table, (const uint8_t *const *)e->bytes, &need->error);
        return status == BZ_OK ? BZ_JOB_AGAIN : fall_back(j, need);
    }
    if (!t->gpu->ready) {
        const bz_progress p = bz_gpu_model_load(t->gpu, need);
        return p == BZ_JOB_DONE ? BZ_JOB_AGAIN : p == BZ_JOB_ERROR ? fall_back(j, need) : p;
    }
    if (!t->backend && bz_gpu_new(&t->backend, t->gpu, true, !e->no_fuse, &need->error) != BZ_OK) {
        return fall_back(j, need);
    }
    return BZ_JOB_DONE;
}

static bz_progress step_load(encode_job *j, bz_need *need)
{
    tower *t = &j->e->tower[j->kind];
    const bz_progress p = t->on_gpu ? load_on_gpu(j, need) : BZ_JOB_DONE;
    if (p != BZ_JOB_DONE) {
        return p;
    }
    t->backend = t->on_gpu ? t->backend : j->e->cpu;
    t->ready = true;
    j->stage = j->features ? TOWER : READY;
    return BZ_JOB_AGAIN;
}

/* ---- making ready ----------------------------------------------------------------------- */

static bz_progress no_memory(bz_need *need, const char *what)
{
    bz_fail(&need->error, BZ_OUT_OF_MEMORY, "No memory to encode %s.", what);
    return BZ_JOB_ERROR;
}

static bz_progress ready_image(encode_job *j, bz_need *need)
{
    const bz_vision *v = &j->e->towers.vision;
    if (!j->resize) {
        return bz_resize_new(&j->resize, j->rgb, j->from, j->to, &need->error) == BZ_OK ? BZ_JOB_AGAIN : BZ_JOB_ERROR;
    }
    if (!bz_resize_step(j->resize)) {
        return BZ_JOB_AGAIN;
    }
    const bool layers = v->kind == BZ_TOWER_LAYERS;
    const uint32_t tokens = j->to.height / BZ_TOKEN_SIDE * (j->to.width / BZ_TOKEN_SIDE);
    j->feature_rows = j->to.height / v->side * (j->to.width / v->side);
    j->feature_cols = 3 * v->side * v->side;
    j->features = malloc((size_t)j->feature_rows * j->feature_cols * sizeof *j->features);
    j->media = bz_media_new(BZ_MEDIA_IMAGE, tokens, j->e->model->text.config.width);
    if (!j->features || !j->media) {
        return no_memory(need, "a picture");
    }
    /* towers look at pixels from -1 to 1, projections at pixels from 0 to 1 */
    bz_image_patches(bz_resize_pixels(j->resize), j->to, v->side, layers ? 2.0f / 255.0f : 1.0f / 255.0f, layers ? -1.0f : 0.0f,
                     j->features);
    bz_resize_free(j->resize);
    j->resize = NULL;
    j->stage = TOWER;
    return BZ_JOB_AGAIN;
}

/* Pieces follow each other; one too short for a single moment is left out. */
static uint32_t piece_samples(const encode_job *j, uint32_t piece)
{
    const size_t first = (size_t)piece * BZ_CLIP_SAMPLES, left = j->samples - first;
    return (uint32_t)(left < BZ_CLIP_SAMPLES ? left : BZ_CLIP_SAMPLES);
}

static uint32_t piece_features(const encode_job *j, uint32_t piece)
{
    const uint32_t n = piece_samples(j, piece);
    return j->e->towers.audio.kind == BZ_TOWER_LAYERS ? bz_mel_frames(n) : (n + BZ_RAW_FRAME - 1) / BZ_RAW_FRAME;
}

static uint32_t pieces_of(const encode_job *j)
{
    return (uint32_t)((j->samples + BZ_CLIP_SAMPLES - 1) / BZ_CLIP_SAMPLES);
}

static uint32_t piece_tokens(const encode_job *j, uint32_t piece)
{
    const uint32_t n = piece_features(j, piece);
    return j->e->towers.audio.kind == BZ_TOWER_LAYERS ? (n + MOMENTS - 1) / MOMENTS : n;
}

static bz_progress make_room_for_sound(encode_job *j, bz_need *need)
{
    const bool layers = j->e->towers.audio.kind == BZ_TOWER_LAYERS;
    uint32_t tokens = 0, pieces = 0;
    for (uint32_t p = 0; p < pieces_of(j); p++) {
        j->feature_rows += piece_features(j, p);
        tokens += piece_tokens(j, p);
        pieces += piece_tokens(j, p) > 0;
    }
    if (tokens == 0) {
        bz_fail(&need->error, BZ_BAD_REQUEST, "The sound lasts %.1f ms; from 10.1 ms on there is something to hear.",
                (double)j->samples / 16.0);
        return BZ_JOB_ERROR;
    }
    j->feature_cols = layers ? BZ_MEL_BINS : BZ_RAW_FRAME;
    j->features = calloc((size_t)j->feature_rows * j->feature_cols, sizeof *j->features);
    j->media = bz_media_new(BZ_MEDIA_AUDIO, tokens, j->e->model->text.config.width);
    j->e->mel = j->e->mel ? j->e->mel : bz_mel_new();
    if (!j->features || !j->media || !j->e->mel) {
        return no_memory(need, "a sound");
    }
    j->media->pieces = pieces;
    return BZ_JOB_AGAIN;
}

static bz_progress resample(encode_job *j, bz_need *need)
{
    if (!j->resampler) {
        if (bz_resampler_new(&j->resampler, j->rate, BZ_SAMPLE_RATE, &need->error) != BZ_OK) {
            return BZ_JOB_ERROR;
        }
        j->resampled = malloc((size_t)(bz_resampler_count(j->resampler, j->samples) + 1) * sizeof *j->resampled);
        return j->resampled ? BZ_JOB_AGAIN : no_memory(need, "a sound");
    }
    const uint64_t total = bz_resampler_count(j->resampler, j->samples), left = total - j->resampled_to;
    const size_t n = left < RESAMPLE_ROWS ? (size_t)left : RESAMPLE_ROWS;
    bz_resampler_run(j->resampler, j->pcm, j->samples, j->resampled_to, n, j->resampled + j->resampled_to);
    j->resampled_to += n;
    if (j->resampled_to == total) {
        j->pcm = j->resampled;
        j->samples = (size_t)total;
        j->rate = BZ_SAMPLE_RATE;
    }
    return BZ_JOB_AGAIN;
}

static bz_progress ready_sound(encode_job *j, bz_need *need)
{
    if (j->rate != BZ_SAMPLE_RATE) {
        return resample(j, need);
    }
    if (!j->features) {
        return make_room_for_sound(j, need);
    }
    if (j->e->towers.audio.kind == BZ_TOWER_DIRECT) { /* pieces are whole numbers of frames: 30 s are 750 */
        memcpy(j->features, j->pcm, j->samples * sizeof *j->pcm);
        j->stage = TOWER;
        return BZ_JOB_AGAIN;
    }
    uint32_t piece = 0, first = j->featured; /* row in its piece */
    while (first >= piece_features(j, piece)) {
        first -= piece_features(j, piece++);
    }
    const uint32_t left = piece_features(j, piece) - first, n = left < MEL_ROWS ? left : MEL_ROWS;
    bz_mel_run(j->e->mel, j->pcm + (size_t)piece * BZ_CLIP_SAMPLES, piece_samples(j, piece), first, n,
               j->features + (size_t)j->featured * BZ_MEL_BINS);
    j->featured += n;
    if (j->featured == j->feature_rows) {
        j->stage = TOWER;
    }
    return BZ_JOB_AGAIN;
}

/* ---- through the tower -------------------------------------------------------------------- */

static bz_status plan_for(encode_job *j, uint32_t rows, uint32_t out_rows, bz_error *err)
{
    bz_encoder *e = j->e;
    tower *t = &e->tower[j->kind];
    if (t->plan && t->plan->rows >= rows && t->plan->out_rows >= out_rows) {
        return BZ_OK;
    }
    if (t->schedule) {
        t->backend->release(t->backend, t->schedule);
    }
    bz_plan_free(t->plan);
    t->plan = NULL;
    t->schedule = NULL;
    const uint32_t bucket = (rows + ROW_BUCKET - 1) / ROW_BUCKET * ROW_BUCKET;
    bz_status status = j->kind == BZ_MEDIA_IMAGE ? bz_vision_record(&e->towers, bucket, (out_rows + 7) / 8 * 8, &t->plan, err)
                                                 : bz_audio_record(&e->towers, bucket, &t->plan, err);
    return status == BZ_OK ? t->backend->prepare(t->backend, t->plan, &t->schedule, err) : status;
}

static bz_status begin_image(encode_job *j, bz_error *err)
{
    const bz_vision *v = &j->e->towers.vision;
    const uint32_t n = j->feature_rows, across = j->to.width / v->side;
    const bool layers = v->kind == BZ_TOWER_LAYERS;
    if (across > v->places || n / across > v->places) {
        return bz_fail(err, BZ_BAD_REQUEST, "The picture is %u patches wide and %u high; the model knows %u places, so crop it.",
                       across, n / across, v->places);
    }
    bz_status status = plan_for(j, n, layers ? j->media->rows : 1, err);
    j->across = j->across ? j->across : malloc(n * sizeof *j->across);
    j->down = j->down ? j->down : malloc(n * sizeof *j->down);
    if (status != BZ_OK || !j->across || !j->down) {
        return status != BZ_OK ? status : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to encode a picture.");
    }
    for (uint32_t i = 0; i < n; i++) {
        j->across[i] = (int32_t)(i % across);
        j->down[i] = (int32_t)(i / across);
    }
    j->rows = (bz_rows){.n = n,
                        .n_out = layers ? j->media->rows : 0,
                        .pos = j->across,
                        .down = j->down,
                        .across = across,
                        .input = j->features};
    return BZ_OK;
}

/* A piece of sound as rows of the plan: four moments each, silence behind the last. */
static bz_status begin_sound(encode_job *j, bz_error *err)
{
    const bz_encoder *e = j->e;
    const bool layers = e->towers.audio.kind == BZ_TOWER_LAYERS;
    size_t first = 0;
    for (uint32_t p = 0; p < j->piece; p++) {
        first += piece_features(j, p);
    }
    const uint32_t n = piece_tokens(j, j->piece), moments = piece_features(j, j->piece);
    const size_t cols = (size_t)j->feature_cols * (layers ? MOMENTS : 1);
    bz_status status = plan_for(j, n, 1, err);
    if (status != BZ_OK) {
        return status;
    }
    free(j->input);
    j->input = calloc(n * cols, sizeof *j->input);
    if (!j->input) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to encode a sound.");
    }
    memcpy(j->input, j->features + first * j->feature_cols, (size_t)moments * j->feature_cols * sizeof *j->input);
    j->rows = (bz_rows){.n = n, .n_out = layers ? BZ_FAR : 0, .input = j->input, .moments = moments};
    return BZ_OK;
}

/* Told of once per block. */
static bool tell_progress(encode_job *j, bz_need *need)
{
    const bz_backend *b = j->e->tower[j->kind].backend;
    const uint32_t blocks = (j->kind == BZ_MEDIA_IMAGE ? j->e->towers.vision.layers : j->e->towers.audio.layers) + 1;
    const uint32_t pieces = j->kind == BZ_MEDIA_IMAGE ? 1 : pieces_of(j);
    uint64_t done, total;
    if (!b) {
        return false;
    }
    b->progress(b, &done, &total);
    const uint64_t now = (uint64_t)j->piece * blocks + done * blocks / (total ? total : 1);
    if (now == j->told) {
        return false;
    }
    j->told = now;
    need->event = (bz_event){.kind = BZ_EVENT_PROGRESS, .done = now, .total = (uint64_t)blocks * pieces};
    return true;
}

static bz_progress step_tower(encode_job *j, bz_need *need)
{
    bz_encoder *e = j->e;
    tower *t = &e->tower[j->kind];
    if (!j->in_pass) {
        const bz_status status = j->kind == BZ_MEDIA_IMAGE ? begin_image(j, &need->error) : begin_sound(j, &need->error);
        if (status != BZ_OK) {
            return fall_back(j, need);
        }
        t->backend->begin(t->backend, t->schedule, &j->rows);
        j->in_pass = true;
        return BZ_JOB_AGAIN;
    }
    const bz_pass_state state = t->backend->step(t->backend, bz_os_now() + BZ_STEP_NS, &need->error);
    if (state != BZ_PASS_DONE) {
        return state == BZ_PASS_ERROR       ? fall_back(j, need)
               : tell_progress(j, need)     ? BZ_JOB_EVENT
               : state == BZ_PASS_WAIT      ? BZ_JOB_NEED_GPU
                                            : BZ_JOB_AGAIN;
    }
    j->in_pass = false;
    const uint32_t made = j->kind == BZ_MEDIA_IMAGE ? j->media->rows : j->rows.n;
    const size_t width = j->media->width;
    memcpy(j->media->values + j->done_rows * width, t->backend->output(t->backend, t->schedule), made * width * sizeof(float));
    j->done_rows += made;
    j->piece++;
    if (j->done_rows < j->media->rows) {
        return BZ_JOB_AGAIN;
    }
    for (size_t i = 0; i < j->done_rows * width; i++) {
        if (!isfinite(j->media->values[i])) {
            bz_fail(&need->error, BZ_NUMERIC, "The tower computed a value that is not finite; the file is probably damaged.");
            return BZ_JOB_ERROR;
        }
    }
    j->media->content = j->content;
    remember(e, j->media);
    e->stats.encoded++;
    j->stage = FINISHED;
    return BZ_JOB_AGAIN;
}

/* ---- the job ------------------------------------------------------------------------------- */

static bz_progress step_stage(encode_job *j, bz_need *need)
{
    switch (j->stage) {
    case LOOK: return step_look(j);
    case READ: return step_read(j, need);
    case CHECK: return step_check(j, need);
    case LOAD: return step_load(j, need);
    case READY: return j->kind == BZ_MEDIA_IMAGE ? ready_image(j, need) : ready_sound(j, need);
    case TOWER: return step_tower(j, need);
    case FINISHED: break;
    }
    return BZ_JOB_DONE;
}

/* A device can be lost at any time: the piece at hand is encoded again on another, unless that is lost there too. */
static bz_progress step(bz_job *job, bz_need *need)
{
    encode_job *j = (encode_job *)(void *)job;
    const bz_progress p = step_stage(j, need);
    if (p != BZ_JOB_ERROR || need->error.code != BZ_DEVICE_LOST || !j->e->tower[j->kind].on_gpu) {
        return p;
    }
    drop_tower(j->e, j->kind);
    if (bz_model_is_loaded(j->e->model) || (j->lost && j->lost_at == j->done_rows)) {
        return BZ_JOB_ERROR;
    }
    j->in_pass = j->reloading = false;
    j->stage = LOAD;
    return BZ_JOB_AGAIN;
}

static void free_job(bz_job *job)
{
    encode_job *j = (encode_job *)(void *)job;
    tower *t = &j->e->tower[j->kind];
    forget_reads(j);
    bz_model_load_end(j->e->model, j);
    if (t->gpu && !t->gpu->ready) { /* nobody knows which of its reads were done */
        drop_tower(j->e, j->kind);
    }
    j->e->busy = false;
    bz_media_free(j->media);
    bz_resize_free(j->resize);
    bz_resampler_free(j->resampler);
    free(j->resampled);
    free(j->features);
    free(j->input);
    free(j->across);
    free(j->down);
    free(j);
}

static bz_status new_job(encode_job **out, bz_encoder *e, bz_media_kind kind, bz_error *err)
{
    static const char *const what[2] = {"pictures", "sound"};
    if (e->busy) {
        return bz_fail(err, BZ_BAD_REQUEST, "The encoder is busy with another job.");
    }
    if (!bz_model_takes(e->model, kind)) {
        const bool two_files = e->model->set.flavour == BZ_FLAVOUR_LLAMACPP && e->model->set.mmproj < 0;
        return bz_fail(err, BZ_UNSUPPORTED_MODEL,
                       two_files ? "This model takes no %s as it is; give its mmproj file as well (--mmproj)."
                                 : "This model takes no %s.",
                       what[kind]);
    }
    encode_job *j = calloc(1, sizeof *j);
    if (!j) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for an encoder.");
    }
    *j = (encode_job){.job = {.step = step, .free = free_job, .lock = bz_model_lock(e->model)}, .e = e, .kind = kind};
    *out = j;
    return BZ_OK;
}

bz_status bz_encode_image(bz_encoder *e, const uint8_t *rgb, uint32_t width, uint32_t height, bz_job **out, bz_error *err)
{
    encode_job *j = NULL;
    bz_size to;
    bz_status status = bz_image_fit((bz_size){height, width}, e->budget, &to, err);
    if (status == BZ_OK) {
        status = new_job(&j, e, BZ_MEDIA_IMAGE, err);
    }
    if (status != BZ_OK) {
        return status;
    }
    j->rgb = rgb;
    j->from = (bz_size){height, width};
    j->to = to;
    e->busy = true;
    *out = &j->job;
    return BZ_OK;
}

bz_status bz_encode_audio(bz_encoder *e, const float *pcm, size_t samples, uint32_t rate, bz_job **out, bz_error *err)
{
    encode_job *j = NULL;
    if (rate < BZ_MIN_RATE || rate > BZ_MAX_RATE) {
        return bz_fail(err, BZ_BAD_REQUEST, "The sound has %u samples a second; between %d and %d are understood.", rate,
                       BZ_MIN_RATE, BZ_MAX_RATE);
    }
    if (samples == 0) {
        return bz_fail(err, BZ_BAD_REQUEST, "The sound has no samples, so there is nothing to hear.");
    }
    if (samples / rate >= MAX_SECONDS) {
        return bz_fail(err, BZ_BAD_REQUEST, "The sound lasts %zu minutes; at most %d are taken, so cut it.", samples / rate / 60,
                       MAX_SECONDS / 60);
    }
    const bz_status status = new_job(&j, e, BZ_MEDIA_AUDIO, err);
    if (status != BZ_OK) {
        return status;
    }
    j->pcm = pcm;
    j->samples = samples;
    j->rate = rate;
    e->busy = true;
    *out = &j->job;
    return BZ_OK;
}

/* Is it a job of this kind, and done? */
static const encode_job *finished(const bz_job *job)
{
    const encode_job *j = (const encode_job *)(const void *)job;
    return job->step == step && j->stage == FINISHED ? j : NULL;
}

bz_media *bz_job_media(bz_job *job)
{
    const encode_job *j = finished(job);
    return j ? bz_media_hold(j->media) : NULL;
}

const float *bz_job_features(const bz_job *job, uint32_t *rows, uint32_t *cols)
{
    const encode_job *j = finished(job);
    *rows = j ? j->feature_rows : 0;
    *cols = j ? j->feature_cols : 0;
    return j ? j->features : NULL;
}
