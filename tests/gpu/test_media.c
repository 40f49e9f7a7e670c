/* Pictures and sound among tokens on the GPU, encoded on the CPU: logits against Hugging Face's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "media.h"
#include "session.h"
#include "support/check.h"
#include "support/forward.h"
#include "support/golden.h"
#include "support/media.h"

typedef struct prompt_case {
    const char *kind[2];
    int number[2];
    size_t n;
} prompt_case;

static bz_media *soft_tokens(const bz_model *m, const golden *g, const char *kind, int i)
{
    size_t n;
    const float *soft = golden_f32(g, &n, "%s.%d.soft_tokens", kind, i);
    const uint32_t width = m->text.config.width;
    bz_media *made = bz_media_new(kind[0] == 'i' ? BZ_MEDIA_IMAGE : BZ_MEDIA_AUDIO, (uint32_t)(n / width), width);
    memcpy(made->values, soft, n * sizeof *soft);
    made->content = bz_content_of(soft, n * sizeof *soft, 0);
    return made;
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

static void run_case(const char *name, const char *device, const prompt_case *prompts, const bz_session_options *o)
{
    golden g;
    char path[3][64];
    const char *const files[3] = {"media.gguf", "text.gguf", "mmproj.gguf"};
    for (int i = 0; i < 3; i++) {
        snprintf(path[i], sizeof path[i], "%s/%s", name, files[i]);
    }
    golden_open(&g, golden_path(path[0]));
    bz_model *m = NULL;
    bz_error err = {0};
    begin("%s on %s", name, device);
    if (!CHECKF(bz_model_open_file(&m, golden_path(path[1]), golden_path(path[2]), &(bz_open_options){.device = device}, &err) == BZ_OK,
                "%s", err.text)) {
        return;
    }
    const uint32_t vocab = bz_model_vocab(m);
    for (int k = 0; k < 3; k++) {
        begin("%s on %s: prompt %d in chunks of %u%s", name, device, k, o->chunk, o->no_fuse ? ", nothing fused" : "");
        const prompt_case *p = &prompts[k];
        size_t n, n_pos, n_logits;
        const int32_t *ids = golden_i32(&g, &n, "mm.%d.tokens", k), *at = golden_i32(&g, &n_pos, "mm.%d.positions", k);
        const float *want = golden_f32(&g, &n_logits, "mm.%d.logits", k);
        bz_media *list[2] = {0};
        for (size_t i = 0; i < p->n; i++) {
            list[i] = soft_tokens(m, &g, p->kind[i], p->number[i]);
        }
        bz_session *s = session_or_fail(m, o);
        const uint64_t before = gpu_counts_of(bz_model_device(m)).dispatches;
        logit_rows r = {calloc(n * vocab, sizeof(float)), vocab};
        bz_job *job = NULL;
        CHECKF(bz_session_prefill_media(s, ids, n, list, p->n, &(bz_prefill_options){.logits = BZ_LOGITS_ALL}, &job, &err) == BZ_OK &&
                   bz_job_run(job, &(bz_host){.event = on_logits, .user = &r}, &err) == BZ_OK,
               "%s", err.text);
        bz_job_free(job);
        double worst = 0;
        for (size_t i = 0; i < n_pos; i++) {
            const double d = max_difference(r.out + (size_t)at[i] * vocab, want + i * vocab, vocab);
            worst = d > worst ? d : worst;
        }
        CHECKF(n_logits == n_pos * vocab && worst < 2e-3, "logits off by %g", worst);
        CHECK(gpu_counts_of(bz_model_device(m)).dispatches > before);
        for (size_t i = 0; i < p->n; i++) {
            bz_media_free(list[i]);
        }
        free(r.out);
        bz_session_free(s);
    }
    bz_model_free(m);
    golden_close(&g);
}

/* The towers themselves: as near to the reference as the CPU, and nothing of it computed there. */
static void run_towers(const char *name, const char *device, bool sound)
{
    golden g, media;
    char path[3][64];
    const char *const files[3] = {"media.gguf", "text.gguf", "mmproj.gguf"};
    for (int i = 0; i < 3; i++) {
        snprintf(path[i], sizeof path[i], "%s/%s", name, files[i]);
    }
    golden_open(&g, golden_path(path[0]));
    golden_open(&media, golden_path("media/golden.gguf"));
    bz_model *m = NULL;
    bz_error err = {0};
    begin("towers of %s on %s", name, device);
    if (!CHECKF(bz_model_open_file(&m, golden_path(path[1]), golden_path(path[2]), &(bz_open_options){.device = device}, &err) == BZ_OK,
                "%s", err.text)) {
        return;
    }
    const struct {
        const char *kind;
        int i;
        uint32_t budget;
    } cases[] = {{"image", 2, 6}, {"image", 0, 70}, {"audio", 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases - !sound; i++) {
        begin("towers of %s on %s: %s %d", name, device, cases[i].kind, cases[i].i);
        bz_encoder *e = encoder_or_fail(m, &(bz_encoder_options){.budget = cases[i].budget});
        bz_media *made = encode_golden(e, &media, cases[i].kind, cases[i].i);
        const bz_backend *b = bz_encoder_backend(e, cases[i].kind[0] == 'i' ? BZ_MEDIA_IMAGE : BZ_MEDIA_AUDIO);
        CHECK(b && strcmp(b->name, "gpu") == 0);
        size_t n;
        uint32_t rows, width;
        const float *want = golden_f32(&g, &n, "%s.%d.soft_tokens", cases[i].kind, cases[i].i), *got = bz_media_rows(made, &rows, &width);
        const double d = n == (size_t)rows * width ? max_difference(got, want, n) : 1e9;
        CHECKF(d < 1e-3, "soft tokens off by %g", d);
        bz_media_free(made);
        bz_encoder_free(e);
    }
    bz_model_free(m);
    golden_close(&g);
    golden_close(&media);
}

static void run_long(const char *name, const char *device)
{
    begin("%s on %s: a picture of more tokens than a chunk", name, device);
    char text[64], mmproj[64];
    snprintf(text, sizeof text, "%s/text.gguf", name);
    snprintf(mmproj, sizeof mmproj, "%s/mmproj.gguf", name);
    bz_model *m = NULL;
    bz_error err = {0};
    if (CHECKF(bz_model_open_file(&m, golden_path(text), golden_path(mmproj), &(bz_open_options){.device = device}, &err) == BZ_OK, "%s",
               err.text)) {
        const double d = long_picture_error(m, name, &(bz_session_options){.exact = true}, &err);
        CHECKF(d < 2e-3, "logits off by %g %s", d, err.text);
    }
    bz_model_free(m);
}

int main(void)
{
    run_long("moe-like", "gpu");
    run_long("unified", "gpu");
    run_towers("e-like", "gpu", true);
    run_towers("moe-like", "gpu", false);
    run_towers("unified", "gpu", true);
    if (!quick_run()) {
        run_towers("e-like", "gpu-baseline", true);
    }
    const prompt_case e_like[3] = {{{"image"}, {0}, 1}, {{"audio"}, {0}, 1}, {{"image", "audio"}, {2, 1}, 2}};
    const prompt_case moe_like[3] = {{{"image"}, {0}, 1}, {{"image", "image"}, {2, 1}, 2}, {{"image"}, {2}, 1}};
    const prompt_case unified[3] = {{{"image"}, {0}, 1}, {{"image", "image"}, {2, 1}, 2}, {{"audio"}, {0}, 1}};
    const bz_session_options whole = {.exact = true, .chunk = 512}, few = {.exact = true, .chunk = 7},
                             plain = {.exact = true, .chunk = 512, .no_fuse = true};
    run_case("e-like", "gpu", e_like, &whole);
    run_case("moe-like", "gpu", moe_like, &whole);
    run_case("unified", "gpu", unified, &whole);
    if (!quick_run()) {
        run_case("e-like", "gpu", e_like, &few);
        run_case("moe-like", "gpu", moe_like, &few);
        run_case("unified", "gpu", unified, &few);
        run_case("moe-like", "gpu", moe_like, &plain);
        run_case("moe-like", "gpu-baseline", moe_like, &whole);
        run_case("unified", "gpu-baseline", unified, &whole);
    }
    return finish();
}
