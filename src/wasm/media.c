/* bezel_media.h with numbers as arguments. Pixels and samples are in memory of `alloc`, which must
 * stay until their job is freed. */
#include "bezel_media.h"

#if defined(__wasm__)

#include <stdlib.h>
#include <string.h>

#include "encoder/encoder.h"
#include "session/media.h"
#include "media/image.h"
#include "bezel_media.h"
#include "session/model.h"
#include "wasm/handles.h"
#include "wasm/host.h"
#include "wasm/options.h"

EXPORT(model_takes) uint32_t wasm_model_takes(const bz_model *m, uint32_t kind)
{
    if (!handle_is(HANDLE_MODEL, m)) {
        return 0;
    }
    return bz_model_takes(m, (bz_media_kind)kind);
}

/* Most tokens of an image for OpenAI's `detail`: 0 the model's default, 1 "low", 2 "high". */
EXPORT(model_budget) uint32_t wasm_model_budget(const bz_model *m, uint32_t detail)
{
    if (!handle_is(HANDLE_MODEL, m)) {
        return 0;
    }
    const uint32_t usual = m->towers.vision.budget, low = 70;
    if (detail == 0) {
        return usual;
    }
    return detail == 1                 ? (usual < low ? usual : low)
           : 4 * usual < BZ_MAX_BUDGET ? 4 * usual
                                       : BZ_MAX_BUDGET;
}

/* ---- encoding -------------------------------------------------------------------------------- */

EXPORT(encoder_new)
bz_encoder *wasm_encoder_new(host *h, const bz_model *m, const char *json, uint32_t len)
{
    if (!(handle_check(h, HANDLE_MODEL, m) && handle_memory(h, json, len))) {
        return NULL;
    }
    bz_arena arena = {0};
    bz_encoder_options options;
    bz_encoder *encoder = NULL;
    if (bz_wasm_encoder_options(&options, (bz_str){json, len}, &arena, &h->error) == BZ_OK) {
        bz_encoder_new(&encoder, m, &options, &h->error);
    }
    bz_arena_free(&arena);
    return handle_add(HANDLE_ENCODER, encoder, m);
}

EXPORT(encoder_free) void wasm_encoder_free(bz_encoder *e)
{
    handle_free(HANDLE_ENCODER, e);
}

/* report: encoded, cached. */
EXPORT(encoder_stats) void wasm_encoder_stats(host *h, const bz_encoder *e)
{
    if (!handle_check(h, HANDLE_ENCODER, e)) {
        return;
    }
    const bz_encoder_stats stats = bz_encoder_get_stats(e);
    h->report.numbers[0] = (double)stats.encoded;
    h->report.numbers[1] = (double)stats.cached;
}

/* Why an encoder runs on the CPU; report: where the sentence is (0: it does not), and its length.
 */
EXPORT(encoder_notice) void wasm_encoder_notice(host *h, const bz_encoder *e)
{
    if (!handle_check(h, HANDLE_ENCODER, e)) {
        return;
    }
    const char *text = bz_encoder_notice(e);
    h->report.numbers[0] = address(text);
    h->report.numbers[1] = text ? (double)strlen(text) : 0;
}

/* A number of JavaScript, which may be negative or no number. */
static uint32_t pixels(double n)
{
    return n >= 0 ? n < UINT32_MAX ? (uint32_t)n : UINT32_MAX : 0;
}

/* Whether an image of this size is supported, before it is decoded. */
EXPORT(image_check) uint32_t wasm_image_check(host *h, double width, double height, uint32_t budget)
{
    if (!handle_is(HANDLE_HOST, h)) {
        return 0;
    }
    bz_size to;
    const bz_size from = {pixels(height), pixels(width)};
    return bz_image_fit(from, budget, &to, &h->error) == BZ_OK;
}

/* Pixels: [height][width][3]. budget 0: the encoder's. */
EXPORT(encode_image)
bz_job *wasm_encode_image(host *h, bz_encoder *e, const uint8_t *rgb, uint32_t width,
                          uint32_t height, uint32_t budget)
{
    if (!(handle_check(h, HANDLE_ENCODER, e) &&
          handle_memory(h, rgb, 3 * (uint64_t)width * height))) {
        return NULL;
    }
    bz_job *job = NULL;
    const uint32_t before = bz_encoder_set_budget(e, budget);
    bz_encode_image(e, rgb, width, height, &job, &h->error);
    bz_encoder_set_budget(e, before);
    return handle_add(HANDLE_JOB, job, e);
}

/* With the encoder's budget for frames of videos. */
EXPORT(encode_frame)
bz_job *wasm_encode_frame(host *h, bz_encoder *e, const uint8_t *rgb, uint32_t width,
                          uint32_t height)
{
    if (!(handle_check(h, HANDLE_ENCODER, e) &&
          handle_memory(h, rgb, 3 * (uint64_t)width * height))) {
        return NULL;
    }
    bz_job *job = NULL;
    bz_encode_frame(e, rgb, width, height, &job, &h->error);
    return handle_add(HANDLE_JOB, job, e);
}

EXPORT(encode_audio)
bz_job *wasm_encode_audio(host *h, bz_encoder *e, const float *pcm, uint32_t samples, double rate)
{
    if (!(handle_check(h, HANDLE_ENCODER, e) &&
          handle_memory(h, pcm, (uint64_t)samples * sizeof *pcm))) {
        return NULL;
    }
    bz_job *job = NULL;
    bz_encode_audio(e, pcm, samples, rate >= 0 && rate < UINT32_MAX ? (uint32_t)rate : 0, &job,
                    &h->error);
    return handle_add(HANDLE_JOB, job, e);
}

EXPORT(job_media) bz_media *wasm_job_media(bz_job *job)
{
    if (!handle_is(HANDLE_JOB, job)) {
        return NULL;
    }
    return handle_add(HANDLE_MEDIA, bz_job_media(job), NULL);
}

/* report: where the tower's input is (0: it was cached), its rows and columns. */
EXPORT(job_features) void wasm_job_features(host *h, const bz_job *job)
{
    if (!handle_check(h, HANDLE_JOB, job)) {
        return;
    }
    uint32_t rows, cols;
    h->report.numbers[0] = address(bz_job_features(job, &rows, &cols));
    h->report.numbers[1] = rows;
    h->report.numbers[2] = cols;
}

/* ---- encoded media --------------------------------------------------------------------------- */

/* Adds a reference, to be freed too. */
EXPORT(media_hold) bz_media *wasm_media_hold(const bz_media *m)
{
    if (!handle_is(HANDLE_MEDIA, m)) {
        return NULL;
    }
    return handle_add(HANDLE_MEDIA, bz_media_hold(m), NULL);
}

EXPORT(media_free) void wasm_media_free(bz_media *m)
{
    handle_free(HANDLE_MEDIA, m);
}

/* report: where its rows are, how many, their width, its pieces. */
EXPORT(media_rows) void wasm_media_rows(host *h, const bz_media *m)
{
    if (!handle_check(h, HANDLE_MEDIA, m)) {
        return;
    }
    uint32_t rows, width;
    h->report.numbers[0] = address(bz_media_rows(m, &rows, &width));
    h->report.numbers[1] = rows;
    h->report.numbers[2] = width;
    h->report.numbers[3] = bz_media_pieces(m);
}

static bool all_media(host *h, bz_media *const *media, uint32_t n)
{
    bool all = handle_memory(h, media, (uint64_t)n * sizeof *media);
    for (uint32_t i = 0; all && i < n; i++) {
        all = handle_check(h, HANDLE_MEDIA, media[i]);
    }
    return all;
}

/* Joins frames: their addresses, and the times at which they are shown. */
EXPORT(video_new)
bz_media *wasm_video_new(host *h, bz_media *const *frames, uint32_t n, const double *seconds)
{
    if (!(all_media(h, frames, n) && handle_memory(h, seconds, (uint64_t)n * sizeof *seconds))) {
        return NULL;
    }
    bz_media *video = NULL;
    bz_video_new(&video, frames, seconds, n, &h->error);
    return handle_add(HANDLE_MEDIA, video, NULL);
}

/* ---- in a turn ------------------------------------------------------------------------------- */

EXPORT(turn_media) uint32_t wasm_turn_media(const bz_turn *t)
{
    if (!handle_is(HANDLE_TURN, t)) {
        return 0;
    }
    return (uint32_t)bz_turn_media(t);
}

/* Its kind; report: where its source in the request is, and its length. */
EXPORT(turn_media_source) uint32_t wasm_turn_media_source(host *h, const bz_turn *t, uint32_t i)
{
    if (!(handle_check(h, HANDLE_TURN, t) && i < bz_turn_media(t))) {
        return 0;
    }
    const char *source;
    size_t len;
    const bz_media_kind kind = bz_turn_media_source(t, i, &source, &len);
    h->report.numbers[0] = address(source);
    h->report.numbers[1] = (double)len;
    return kind;
}

EXPORT(turn_attach) uint32_t wasm_turn_attach(host *h, bz_turn *t, uint32_t i, const bz_media *m)
{
    if (!(handle_check(h, HANDLE_TURN, t) && handle_check(h, HANDLE_MEDIA, m))) {
        return 0;
    }
    return bz_turn_attach(t, i, m, &h->error) == BZ_OK;
}

EXPORT(turn_prefill) bz_job *wasm_turn_prefill(host *h, bz_session *s, bz_turn *t)
{
    if (!(handle_check(h, HANDLE_SESSION, s) && handle_check(h, HANDLE_TURN, t))) {
        return NULL;
    }
    bz_job *job = NULL;
    bz_turn_prefill(s, t, &job, &h->error);
    return handle_add(HANDLE_JOB, job, s);
}

/* The ids have placeholder tokens for the media, in order; `media` are addresses. */
EXPORT(prefill_media)
bz_job *wasm_prefill_media(host *h, bz_session *s, const int32_t *ids, uint32_t n,
                           bz_media *const *media, uint32_t n_media, bool all_logits)
{
    if (!(handle_check(h, HANDLE_SESSION, s) && all_media(h, media, n_media) &&
          handle_memory(h, ids, (uint64_t)n * sizeof *ids))) {
        return NULL;
    }
    const bz_prefill_options options = {.size = sizeof options,
                                        .logits = all_logits ? BZ_LOGITS_ALL : BZ_LOGITS_LAST};
    bz_job *job = NULL;
    bz_session_prefill_media(s, ids, n, media, n_media, &options, &job, &h->error);
    return handle_add(HANDLE_JOB, job, s);
}

/* ---- WAV files ------------------------------------------------------------------------------- */

/* report: where its samples are, which the caller frees; how many; in a second; whether the file is
 * cut off. */
EXPORT(wav_read) uint32_t wasm_wav_read(host *h, const uint8_t *bytes, uint32_t n)
{
    if (!handle_memory(h, bytes, n)) {
        return 0;
    }
    bz_sound sound;
    if (bz_wav_read(&sound, bytes, n, &h->error) != BZ_OK) {
        return 0;
    }
    h->report.numbers[0] = address(handle_add(HANDLE_BLOCK, sound.pcm, NULL));
    h->report.numbers[1] = (double)sound.frames;
    h->report.numbers[2] = sound.rate;
    h->report.numbers[3] = sound.cut;
    return 1;
}

#endif
