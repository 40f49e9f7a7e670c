#include "support/video.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/model.h"

const video_case video_cases[4] = {
    {"<bos><|turn>user\n<|video|>\nwhat is it?<turn|>\n", 100, 0, 48, 96, 0, 1, 30},
    {"<bos>a <|video|> b", 61, 7, 90, 40, 0, 1, 0.02},
    {"<|video|>", 3, 0, 48, 48, 0, 1, 0},
    {"<bos><|video|><|video|>", 50, 5, 100, 60, 140, 2, 12.5},
};

uint8_t *video_frame_rgb(const video_case *c, uint64_t t)
{
    uint8_t *rgb = malloc((size_t)c->height * c->width * 3), *p = rgb;
    for (uint32_t y = 0; y < c->height; y++) {
        for (uint32_t x = 0; x < c->width; x++) {
            *p++ = (uint8_t)(3 * x + 5 * t);
            *p++ = (uint8_t)(2 * y + t);
            *p++ = (uint8_t)(x + y + 7 * t);
        }
    }
    return rgb;
}

static void fail(const char *what, const bz_error *err)
{
    printf("FAIL %s: %s\n", what, err->text);
    exit(1);
}

bz_media *encode_video_case(bz_encoder *e, const video_case *c, float *first)
{
    uint64_t index[BZ_VIDEO_MAX_FRAMES];
    bz_media *frames[BZ_VIDEO_MAX_FRAMES], *video = NULL;
    double seconds[BZ_VIDEO_MAX_FRAMES];
    bz_error err = {0};
    const uint32_t n = bz_video_choose(index, c->most, c->frames);
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *rgb = video_frame_rgb(c, index[i]);
        bz_job *job = NULL;
        if (bz_encode_frame(e, rgb, c->width, c->height, &job, &err) != BZ_OK ||
            bz_job_run(job, NULL, &err) != BZ_OK) {
            fail("encoding a frame", &err);
        }
        frames[i] = bz_job_media(job);
        seconds[i] = (double)index[i] / (c->rate > 0 ? c->rate : BZ_VIDEO_RATE);
        uint32_t rows, cols;
        const float *features = bz_job_features(job, &rows, &cols);
        if (i == 0 && first && features && cols == 768) {
            memcpy(first, features, 768 * sizeof *first);
        }
        bz_job_free(job);
        free(rgb);
    }
    if (bz_video_new(&video, frames, seconds, n, &err) != BZ_OK) {
        fail("joining frames", &err);
    }
    for (uint32_t i = 0; i < n; i++) {
        bz_media_free(frames[i]);
    }
    return video;
}

void video_prompt(const bz_model *m, const char *text, bz_media *const videos[2], bz_ids *ids)
{
    static const char mark[] = "<|video|>";
    const bz_special_ids *special = bz_tokenizer_special(m->tokenizer);
    bz_arena arena = {0};
    bz_piece pieces[16];
    size_t n = 0;
    bz_ids brief = {0};
    const uint32_t rows = videos[0]->rows / videos[0]->pieces;
    size_t video = 0;
    for (const char *next; (next = strstr(text, mark)) != NULL; text = next + sizeof mark - 1) {
        pieces[n++] = (bz_piece){text, (size_t)(next - text), true};
        const char *times = bz_video_text(videos[video], &arena);
        pieces[n++] = (bz_piece){times, strlen(times), true};
        video = 1;
    }
    pieces[n++] = (bz_piece){text, strlen(text), true};
    bz_error err = {0};
    if (bz_tokenize_pieces(m->tokenizer, pieces, n, &brief, &err) != BZ_OK) {
        fail("tokenizing", &err);
    }
    for (size_t i = 0; i < brief.n; i++) {
        const int32_t id = brief.id[i];
        const bool image = id == special->image;
        if (image) {
            bz_ids_push(ids, special->image_begin);
        }
        for (uint32_t row = 0; row < (image || id == special->video ? rows : 1); row++) {
            bz_ids_push(ids, id);
        }
        if (image) {
            bz_ids_push(ids, special->image_end);
        }
    }
    bz_ids_free(&brief);
    bz_arena_free(&arena);
}
