#include "support/media.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "media.h"
#include "session/model.h"
#include "session/session.h"
#include "support/check.h"
#include "support/forward.h"

bz_model *open_two_on_or_fail(const char *path, const char *mmproj, const char *device)
{
    bz_model *m = NULL;
    bz_error err = {0};
    if (bz_model_open_file(&m, path, mmproj,
                           &(bz_open_options){.size = sizeof(bz_open_options), .device = device},
                           &err) != BZ_OK) {
        printf("FAIL opening %s: %s\n", path, err.text);
        exit(1);
    }
    return m;
}

bz_model *open_two_or_fail(const char *path, const char *mmproj)
{
    return open_two_on_or_fail(path, mmproj, NULL);
}

bz_model *open_golden_or_fail(const char *name, const char *device)
{
    char text[64], mmproj[64];
    snprintf(text, sizeof text, "%s/text.gguf", name);
    snprintf(mmproj, sizeof mmproj, "%s/mmproj.gguf", name);
    return open_two_on_or_fail(golden_path(text), golden_path(mmproj), device);
}

void open_media_golden(golden *g, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "%s/media.gguf", name);
    golden_open(g, golden_path(path));
}

bz_media *golden_soft_tokens(const bz_model *m, const golden *g, const char *kind, int i)
{
    size_t n;
    const float *soft = golden_f32(g, &n, "%s.%d.soft_tokens", kind, i);
    const uint32_t width = m->text.config.width;
    bz_media *made = bz_media_new(kind[0] == 'i' ? BZ_MEDIA_IMAGE : BZ_MEDIA_AUDIO,
                                  (uint32_t)(n / width), width);
    memcpy(made->values, soft, n * sizeof *soft);
    made->content = bz_content_of(soft, n * sizeof *soft, 0);
    return made;
}

double soft_tokens_error(const golden *g, const bz_media *m, const char *kind, int i)
{
    size_t n;
    uint32_t rows, width;
    const float *want = golden_f32(g, &n, "%s.%d.soft_tokens", kind, i),
                *got = bz_media_rows(m, &rows, &width);
    return want && n == (size_t)rows * width ? max_difference(got, want, n) : 1e9;
}

const prompt_case *golden_prompts(const char *name)
{
    static const prompt_case e_like[3] = {
        {{"image"}, {0}, 1}, {{"audio"}, {0}, 1}, {{"image", "audio"}, {2, 1}, 2}};
    static const prompt_case moe_like[3] = {
        {{"image"}, {0}, 1}, {{"image", "image"}, {2, 1}, 2}, {{"image"}, {2}, 1}};
    static const prompt_case unified[3] = {
        {{"image"}, {0}, 1}, {{"image", "image"}, {2, 1}, 2}, {{"audio"}, {0}, 1}};
    return name[0] == 'e' ? e_like : name[0] == 'm' ? moe_like : unified;
}

double prompt_error(const golden *g, int k, const float *logits, uint32_t vocab)
{
    size_t n_pos, n_logits;
    const int32_t *at = golden_i32(g, &n_pos, "mm.%d.positions", k);
    const float *want = golden_f32(g, &n_logits, "mm.%d.logits", k);
    double worst = n_pos && n_logits == n_pos * vocab ? 0 : 1e9;
    for (size_t i = 0; i < n_pos && worst < 1e9; i++) {
        const double d = max_difference(logits + (size_t)at[i] * vocab, want + i * vocab, vocab);
        worst = d > worst ? d : worst;
    }
    return worst;
}

bz_encoder *encoder_or_fail(const bz_model *m, const bz_encoder_options *o)
{
    bz_encoder *e = NULL;
    bz_error err = {0};
    if (bz_encoder_new(&e, m, o, &err) != BZ_OK) {
        printf("FAIL making an encoder: %s\n", err.text);
        exit(1);
    }
    return e;
}

bz_media *encode_golden(bz_encoder *e, const golden *g, const char *kind, int i)
{
    char name[40];
    bz_error err = {0};
    bz_job *job = NULL;
    bz_status status = BZ_NOT_FOUND;
    const bool image = strcmp(kind, "image") == 0;
    snprintf(name, sizeof name, image ? "image.%d.rgb" : "audio.%d.pcm", i);
    const bz_gguf_tensor *t = bz_gguf_find_tensor(&g->gguf, name);
    if (t && image) {
        status = bz_encode_image(e, g->map.data + t->offset, (uint32_t)t->ne[1], (uint32_t)t->ne[2],
                                 &job, &err);
    } else if (t) {
        status = bz_encode_audio(e, (const float *)(const void *)(g->map.data + t->offset),
                                 (size_t)t->ne[0], 16000, &job, &err);
    }
    status = status == BZ_OK ? bz_job_run(job, NULL, &err) : status;
    bz_media *m = status == BZ_OK ? bz_job_media(job) : NULL;
    if (!m) {
        printf("FAIL encoding %s: %s\n", name, err.text);
        exit(1);
    }
    bz_job_free(job);
    return m;
}

/* As tools/make_long_golden.py has it. */
static bz_media *long_image(uint32_t rows, uint32_t width)
{
    bz_media *m = bz_media_new(BZ_MEDIA_IMAGE, rows, width);
    for (size_t i = 0; i < (size_t)rows * width; i++) {
        m->values[i] =
            (float)((double)((uint32_t)(i * 2654435761u + 12345u) >> 8) / 8388608.0 - 1.0);
    }
    m->content = bz_content_of(m->values, (size_t)rows * width * sizeof(float), 0);
    return m;
}

typedef struct logit_rows {
    float *out;
    size_t vocab;
} logit_rows;

static int on_logits(void *user, const bz_event *e)
{
    logit_rows *r = user;
    if (e->kind == BZ_EVENT_LOGITS) {
        memcpy(r->out + e->position * r->vocab, e->logits, e->rows * r->vocab * sizeof *r->out);
    }
    return 0;
}

double long_image_error(const bz_model *m, const char *name, const bz_session_options *o,
                        bz_error *err)
{
    golden g;
    char path[64];
    snprintf(path, sizeof path, "%s/long.gguf", name);
    golden_open(&g, golden_path(path));
    size_t n, n_pos, n_logits;
    const int32_t *tokens = golden_i32(&g, &n, "tokens"), *at = golden_i32(&g, &n_pos, "positions");
    const float *want = golden_f32(&g, &n_logits, "logits");
    const uint32_t vocab = bz_model_vocab(m);
    int32_t *ids = malloc(n * sizeof *ids);
    uint32_t rows = 0;
    for (size_t i = 0; i < n; i++) {
        ids[i] = tokens[i] < 0 ? bz_tokenizer_special(m->tokenizer)->image : tokens[i];
        rows += tokens[i] < 0;
    }
    bz_media *image = long_image(rows, m->text.config.width);
    bz_session *s = NULL;
    bz_job *job = NULL;
    logit_rows r = {calloc(n * vocab, sizeof(float)), vocab};
    double worst = 1e9;
    if (bz_session_new(&s, m, o, err) == BZ_OK &&
        bz_session_prefill_media(
            s, ids, n, &image, 1,
            &(bz_prefill_options){.size = sizeof(bz_prefill_options), .logits = BZ_LOGITS_ALL},
            &job, err) == BZ_OK &&
        bz_job_run(job, &(bz_host){.size = sizeof(bz_host), .event = on_logits, .user = &r}, err) ==
            BZ_OK &&
        n_logits == n_pos * vocab) {
        worst = 0;
        for (size_t i = 0; i < n_pos; i++) {
            const double d = max_difference(r.out + (size_t)at[i] * vocab, want + i * vocab, vocab);
            worst = d > worst ? d : worst;
        }
    }
    bz_job_free(job);
    bz_session_free(s);
    bz_media_free(image);
    free(r.out);
    free(ids);
    golden_close(&g);
    return worst;
}
