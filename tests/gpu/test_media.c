/* Images and audio among tokens on the GPU, encoded on the CPU: logits against Hugging Face's. */
#include <stdlib.h>
#include <string.h>

#include "gpu/device/test_hooks.h"
#include "session/media.h"
#include "session/session.h"
#include "support/check.h"
#include "support/devices.h"
#include "support/forward.h"
#include "support/golden.h"
#include "support/media.h"

static void run_case(const char *name, const char *device, const bz_session_options *o)
{
    golden g;
    bz_error err = {0};
    open_media_golden(&g, name);
    bz_model *m = open_golden_or_fail(name, device);
    const uint32_t vocab = bz_model_vocab(m);
    for (int k = 0; k < 3; k++) {
        begin("%s on %s: prompt %d in chunks of %u%s", name, device, k, o->chunk,
              o->no_fuse ? ", nothing fused" : "");
        const prompt_case *p = &golden_prompts(name)[k];
        size_t n;
        const int32_t *ids = golden_i32(&g, &n, "mm.%d.tokens", k);
        bz_media *list[2] = {0};
        for (size_t i = 0; i < p->n; i++) {
            list[i] = golden_soft_tokens(m, &g, p->kind[i], p->number[i]);
        }
        bz_session *s = session_or_fail(m, o);
        const uint64_t before = gpu_counts_of(bz_model_device(m)).dispatches;
        float *logits = calloc(n * vocab, sizeof *logits);
        CHECKF(prefill_with(s, ids, n, list, p->n, logits, &err) == BZ_OK, "%s", err.text);
        const double worst = prompt_error(&g, k, logits, vocab);
        CHECKF(worst < 2e-3, "logits off by %g", worst);
        CHECK(gpu_counts_of(bz_model_device(m)).dispatches > before);
        for (size_t i = 0; i < p->n; i++) {
            bz_media_free(list[i]);
        }
        free(logits);
        bz_session_free(s);
    }
    bz_model_free(m);
    golden_close(&g);
}

/* The towers: as close to the reference as the CPU, and nothing computed on the CPU. */
static void run_towers(const char *name, const char *device, bool sound)
{
    golden g, media;
    open_media_golden(&g, name);
    golden_open(&media, golden_path("media/golden.gguf"));
    bz_model *m = open_golden_or_fail(name, device);
    const struct {
        const char *kind;
        int i;
        uint32_t budget;
    } cases[] = {{"image", 2, 6}, {"image", 0, 70}, {"audio", 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases - !sound; i++) {
        begin("towers of %s on %s: %s %d", name, device, cases[i].kind, cases[i].i);
        bz_encoder *e = encoder_or_fail(m, &(bz_encoder_options){.size = sizeof(bz_encoder_options),
                                                                 .budget = cases[i].budget});
        bz_media *made = encode_golden(e, &media, cases[i].kind, cases[i].i);
        const bz_backend *b =
            bz_encoder_backend(e, cases[i].kind[0] == 'i' ? BZ_MEDIA_IMAGE : BZ_MEDIA_AUDIO);
        CHECK(b && strcmp(b->name, "gpu") == 0);
        const double d = soft_tokens_error(&g, made, cases[i].kind, cases[i].i);
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
    begin("%s on %s: an image of more tokens than a chunk", name, device);
    bz_error err = {0};
    bz_model *m = open_golden_or_fail(name, device);
    const double d = long_image_error(
        m, name, &(bz_session_options){.size = sizeof(bz_session_options), .exact = true}, &err);
    CHECKF(d < 2e-3, "logits off by %g %s", d, err.text);
    bz_model_free(m);
}

/* No memory for an image that must be in one pass: the session goes on with what there was room
 * for before. */
static void test_no_room(void)
{
    begin("no memory for a long image, and text after it");
    bz_error err = {0};
    bz_model *m = open_golden_or_fail("moe-like", "gpu");
    bz_session *s = session_or_fail(
        m, &(bz_session_options){.size = sizeof(bz_session_options), .exact = true});
    gpu *g = bz_model_device(m);
    const int32_t text[] = {2, 5, 6, 7};
    CHECKF(prefill_with(s, text, 4, NULL, 0, NULL, &err) == BZ_OK, "%s", err.text);
    CHECK(gpu_test_limit_memory(g, gpu_counts_of(g).buffer_bytes));
    bz_media *image = bz_media_new(BZ_MEDIA_IMAGE, 700, m->text.config.width);
    int32_t ids[702] = {2};
    for (int i = 1; i <= 700; i++) {
        ids[i] = bz_tokenizer_special(m->tokenizer)->image;
    }
    ids[701] = 5;
    CHECKF(prefill_with(s, ids, 702, &image, 1, NULL, &err) == BZ_OUT_OF_MEMORY, "%s", err.text);
    err = (bz_error){0};
    CHECKF(prefill_with(s, text, 4, NULL, 0, NULL, &err) == BZ_OK, "%s", err.text);
    bz_media_free(image);
    bz_session_free(s);
    bz_model_free(m);
}

int main(void)
{
    devices_keep();
    run_long("moe-like", "gpu");
    run_long("unified", "gpu");
    test_no_room();
    run_towers("e-like", "gpu", true);
    run_towers("moe-like", "gpu", false);
    run_towers("unified", "gpu", true);
    if (!quick_run()) {
        run_towers("e-like", "gpu-baseline", true);
    }
    const bz_session_options whole = {.size = sizeof whole, .exact = true, .chunk = 512},
                             few = {.size = sizeof few, .exact = true, .chunk = 7},
                             plain = {.size = sizeof plain,
                                      .exact = true,
                                      .chunk = 512,
                                      .no_fuse = true};
    run_case("e-like", "gpu", &whole);
    run_case("moe-like", "gpu", &whole);
    run_case("unified", "gpu", &whole);
    if (!quick_run()) {
        run_case("e-like", "gpu", &few);
        run_case("moe-like", "gpu", &few);
        run_case("unified", "gpu", &few);
        run_case("moe-like", "gpu", &plain);
        run_case("moe-like", "gpu-baseline", &whole);
        run_case("unified", "gpu-baseline", &whole);
    }
    return finish();
}
