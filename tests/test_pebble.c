/* Pebble, the model that ships with the engine, against the official classes: the file's own
 * weights closely, the weights it was quantized from within what quantization costs, and the greedy
 * text. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bezel.h"
#include "support/check.h"
#include "support/forward.h"
#include "support/golden.h"

#define PEBBLE "../../models/pebble.gguf" /* from build/golden */

/* Root mean square of the differences. */
static double rms_difference(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)a[i] - (double)b[i];
        sum += d * d;
    }
    return sqrt(sum / (double)n);
}

static void text_case(const golden *g, const bz_model *m)
{
    const uint32_t vocab = bz_model_vocab(m);
    size_t n, n_own, n_exact, n_greedy;
    const int32_t *ids = golden_i32(g, &n, "text.tokens");
    const float *own = golden_f32(g, &n_own, "text.logits");
    const float *exact = golden_f32(g, &n_exact, "text.logits_f32");
    const int32_t *greedy = golden_i32(g, &n_greedy, "text.greedy");
    begin("the official logits");
    if (!CHECK(ids && own && exact && greedy && n_own == n_exact && n_own % vocab == 0 &&
               n_own / vocab <= n)) {
        return;
    }
    const bz_session_options o = {.size = sizeof o, .exact = true, .threads = 2};
    bz_session *s = session_or_fail(m, &o);
    float *logits = calloc(n * vocab, sizeof *logits);
    bz_error err = {0};
    CHECKF(prefill(s, ids, n, 0, logits, &err) == BZ_OK, "%s", err.text);
    const float *last = logits + n * vocab - n_own;
    double d = max_difference(last, own, n_own);
    CHECKF(d <= 2e-3, "off by %g", d);

    begin("the weights before quantization");
    d = rms_difference(last, exact, n_own);
    CHECKF(d <= 0.75 && d > 1e-3, "rms %g", d); /* logits deviate by 5 to 8 */

    begin("the greedy answer");
    int32_t *got = calloc(n_greedy, sizeof *got);
    size_t made = generate(s, got, n_greedy);
    size_t same = 0;
    while (same < made && got[same] == greedy[same]) {
        same++;
    }
    CHECKF(made == n_greedy && same == n_greedy, "the first %zu of %zu tokens are the same", same,
           n_greedy);
    free(got);
    free(logits);
    bz_session_free(s);
}

/* Logits of the last positions, with an image or audio among the tokens. */
static void media_case(const golden *g, const bz_model *m, const char *kind, bz_job *job)
{
    const uint32_t vocab = bz_model_vocab(m);
    size_t n, n_soft, n_logits;
    uint32_t rows = 0, width = 0;
    bz_error err = {0};
    const int32_t *ids = golden_i32(g, &n, "%s.tokens", kind);
    const float *soft = golden_f32(g, &n_soft, "%s.soft", kind),
                *want = golden_f32(g, &n_logits, "%s.logits", kind);
    begin("%s: the tower's output", kind);
    CHECKF(bz_job_run(job, NULL, &err) == BZ_OK, "%s", err.text);
    bz_media *media = bz_job_media(job);
    if (!CHECK(ids && soft && want && media) ||
        !CHECKF(bz_media_rows(media, &rows, &width) && (size_t)rows * width == n_soft, "%u x %u",
                rows, width)) {
        return;
    }
    double d = max_difference(bz_media_rows(media, &rows, &width), soft, n_soft);
    CHECKF(d <= 2e-3, "soft tokens off by %g", d);

    begin("%s: the official logits", kind);
    bz_session *s = session_or_fail(
        m, &(bz_session_options){.size = sizeof(bz_session_options), .exact = true, .threads = 2});
    float *logits = calloc(n * vocab, sizeof *logits);
    CHECKF(prefill_with(s, ids, n, &media, 1, logits, &err) == BZ_OK, "%s", err.text);
    d = max_difference(logits + n * vocab - n_logits, want, n_logits);
    CHECKF(d <= 5e-3, "off by %g", d);
    bz_session_free(s);
    free(logits);
    bz_media_free(media);
    bz_job_free(job);
}

static void encode_cases(const golden *g, const bz_model *m)
{
    const bz_gguf_tensor *rgb = bz_gguf_find_tensor(&g->gguf, "image.rgb"),
                         *sound = bz_gguf_find_tensor(&g->gguf, "audio.samples");
    bz_encoder *e = NULL;
    bz_job *job = NULL;
    bz_error err = {0};
    begin("vision and audio");
    if (!CHECKF(bz_encoder_new(&e, m, NULL, &err) == BZ_OK, "%s", err.text) ||
        !CHECK(rgb && sound)) {
        return;
    }
    CHECK(bz_encode_image(e, g->map.data + rgb->offset, (uint32_t)rgb->ne[1], (uint32_t)rgb->ne[2],
                          &job, &err) == BZ_OK);
    media_case(g, m, "image", job);
    const size_t n = (size_t)sound->ne[0];
    float *pcm = calloc(n, sizeof *pcm);
    for (size_t i = 0; i < n; i++) {
        int16_t v;
        memcpy(&v, g->map.data + sound->offset + 2 * i, sizeof v);
        pcm[i] = (float)v / 32768.0f;
    }
    CHECK(bz_encode_audio(e, pcm, n, 16000, &job, &err) == BZ_OK);
    media_case(g, m, "audio", job);
    free(pcm);
    bz_encoder_free(e);
}

int main(void)
{
    golden g;
    golden_open(&g, golden_path("pebble/golden.gguf"));
    bz_model *m = open_or_fail(golden_path(PEBBLE));
    text_case(&g, m);
    encode_cases(&g, m);
    bz_model_free(m);
    golden_close(&g);
    return finish();
}
