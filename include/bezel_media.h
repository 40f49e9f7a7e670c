/* bezel_media.h: images, audio and video for Gemma 4.
 *
 * A bz_encoder turns pixels or samples into a bz_media: rows that take the place of tokens in a
 * prompt. Encoding is a job like any other. One thread at a time.
 *
 * Except for WAV, nothing here knows file formats: the caller decodes (the program with libjpeg,
 * libpng, libwebp, giflib, libsndfile and libav; a web page with what the browser has). A video is
 * a list of frames with times, without sound. */
#ifndef BEZEL_MEDIA_H
#define BEZEL_MEDIA_H

#include "bezel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum bz_media_kind { BZ_MEDIA_IMAGE, BZ_MEDIA_AUDIO, BZ_MEDIA_VIDEO } bz_media_kind;

/* Whether the model has an encoder for this kind. */
BZ_API bool bz_model_takes(const bz_model *model, bz_media_kind kind);

/* ---- encoding ----------------------------------------------------------- */

typedef struct bz_encoder bz_encoder;
typedef struct bz_media bz_media;

typedef struct bz_encoder_options {
    size_t size;
    uint32_t
        budget;    /* maximum tokens of an image, 70 to 1120; 0: the model's default, usually 280 */
    uint32_t keep; /* encoded media cached by their content; 0: 16 */
    unsigned threads;    /* 0: one per processor; at most four per processor */
    const char *kernels; /* "amx", "avx512bf16", "avx512", "avxvnni", "avx2", "i8mm", "dotprod",
                            "neon", "plain"; NULL: the best this machine has */
    bool exact; /* gpu: keep f32; by default products are rounded to f16 where subgroup matrices are
                   available */
    size_t frame_budget; /* maximum tokens of a frame of a video, 70 to 1120; 0: 70 */
} bz_encoder_options;

BZ_API bz_status bz_encoder_new(bz_encoder **encoder, const bz_model *model,
                                const bz_encoder_options *options, bz_error *err);
BZ_API void bz_encoder_free(bz_encoder *encoder); /* before the model; its bz_media stay */

/* rgb: [height][width][3], upright (EXIF applied), no alpha. pcm: [samples], mono, in [-1, 1], at
 * `rate` samples per second. Both must stay valid until the job is freed. Cached media are not
 * encoded again. Audio of more than 30 seconds is encoded in pieces. Progress events count the
 * encoder's blocks. */
BZ_API bz_status bz_encode_image(bz_encoder *encoder, const uint8_t *rgb, uint32_t width,
                                 uint32_t height, bz_job **job, bz_error *err);
BZ_API bz_status bz_encode_audio(bz_encoder *encoder, const float *pcm, size_t samples,
                                 uint32_t rate, bz_job **job, bz_error *err);
/* As bz_encode_image, with the budget of a frame. */
BZ_API bz_status bz_encode_frame(bz_encoder *encoder, const uint8_t *rgb, uint32_t width,
                                 uint32_t height, bz_job **job, bz_error *err);
/* The result of a finished job. Every call returns a new reference, to be freed with
 * bz_media_free. */
BZ_API bz_media *bz_job_media(bz_job *job);
/* The encoder's input, [rows][cols]: mel features, samples, or the image's patches. NULL if the job
 * is not finished or its result came from the cache. Valid until the job is freed. */
BZ_API const float *bz_job_features(const bz_job *job, uint32_t *rows, uint32_t *cols);

typedef struct bz_encoder_stats {
    uint64_t encoded, cached; /* media that were encoded; that came from the cache */
} bz_encoder_stats;
BZ_API bz_encoder_stats bz_encoder_get_stats(const bz_encoder *encoder);
/* With a model on a GPU: a sentence that says why media were encoded on the CPU, or NULL. */
BZ_API const char *bz_encoder_notice(const bz_encoder *encoder);

/* ---- video -------------------------------------------------------------- */

/* Frames of a video, as the models were trained: encode each with bz_encode_frame, then join them.
 * Decoding and encoding them one after the other needs memory for one frame only. */

enum { BZ_VIDEO_FRAMES = 32, BZ_VIDEO_MAX_FRAMES = 1024, BZ_VIDEO_RATE = 24 };

/* Which of a video's `total` frames to take: `most` of them (0: BZ_VIDEO_FRAMES), evenly spread
 * from the first one on; all if there are no more. Writes their numbers to index [most] and returns
 * how many. */
BZ_API uint32_t bz_video_choose(uint64_t *index, uint32_t most, uint64_t total);
/* `most` for a number of frames per second: of a video of `total` frames at `rate` per second; from
 * 1 to BZ_VIDEO_MAX_FRAMES. A rate of 0 is unknown, and read as BZ_VIDEO_RATE. */
BZ_API uint32_t bz_video_count(uint64_t total, double rate, double frames_per_second);
/* Joins encoded frames [n] with their times in seconds from the beginning; the prompt states them
 * as mm:ss. The frames may be freed afterwards. All need the same number of tokens. */
BZ_API bz_status bz_video_new(bz_media **video, bz_media *const *frames, const double *seconds,
                              uint32_t n, bz_error *err);
/* A frame, which belongs to the video, and its time (seconds may be NULL). NULL: there is none. */
BZ_API const bz_media *bz_video_frame(const bz_media *video, uint32_t i, double *seconds);

/* ---- decoding helpers --------------------------------------------------- */

/* Fails for a size that bz_encode_image refuses: check it before allocating the pixels. */
BZ_API bz_status bz_image_check(uint32_t width, uint32_t height, bz_error *err);

enum { BZ_AUDIO_MIN_RATE = 1000, BZ_AUDIO_MAX_RATE = 768000 }; /* samples per second */

typedef struct bz_sound {
    float *pcm; /* [frames], mono, in [-1, 1]; to be freed with bz_free */
    size_t frames;
    uint32_t rate;
    bool cut; /* the file is truncated: these are the samples that it has */
} bz_sound;

/* Decodes a WAV file in memory: PCM of 8, 16, 24 or 32 bits or floats of 32 or 64, up to 64
 * channels. */
BZ_API bz_status bz_wav_read(bz_sound *sound, const uint8_t *bytes, size_t n, bz_error *err);

/* ---- encoded media -------------------------------------------------------- */

BZ_API void bz_media_free(bz_media *media);
BZ_API bz_media_kind bz_media_get_kind(const bz_media *media);
/* 1; more for audio of more than 30 seconds; the number of frames of a video. */
BZ_API uint32_t bz_media_pieces(const bz_media *media);
/* [rows][width], one row per soft token. NULL for a video, whose frames have them; `rows` is their
 * sum. */
BZ_API const float *bz_media_rows(const bz_media *media, uint32_t *rows, uint32_t *width);

/* ---- in a prompt ------------------------------------------------------------ */

/* As bz_session_prefill, with media: for each of them, in order, `ids` has as many <|image|> or
 * <|audio|> tokens as it has rows, or for each frame of a video as many <|video|> tokens (times,
 * and the begin and end tokens around them, are ordinary tokens). A prefix with the same content as
 * before is reused. The media may be freed once this returns. */
BZ_API bz_status bz_session_prefill_media(bz_session *session, const int32_t *ids, size_t n,
                                          bz_media *const *media, size_t n_media,
                                          const bz_prefill_options *options, bz_job **job,
                                          bz_error *err);

/* A turn whose request may have image_url, input_audio, video_url and the like. Its media are
 * listed in order; source is the text in the request (a URL, base64). Attach an encoded bz_media to
 * each, then prefill with bz_turn_prefill, which is bz_session_prefill_media with the turn's prompt
 * and snapshot. bz_turn_prompt is valid once all are attached. */
BZ_API bz_status bz_turn_new_media(bz_turn **turn, const bz_model *model, const char *request,
                                   size_t len, bz_error *err);
BZ_API size_t bz_turn_media(const bz_turn *turn); /* how many */
BZ_API bz_media_kind bz_turn_media_source(const bz_turn *turn, size_t i, const char **source,
                                          size_t *len);
BZ_API bz_status bz_turn_attach(bz_turn *turn, size_t i, const bz_media *media, bz_error *err);
BZ_API bz_status bz_turn_prefill(bz_session *session, bz_turn *turn, bz_job **job, bz_error *err);

#ifdef __cplusplus
}
#endif
#endif
