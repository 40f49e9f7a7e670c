/* Images and audio among tokens: logits against Hugging Face's, reuse by content, and what is
 * refused. */
#include <stdlib.h>
#include <string.h>

#include "session/media.h"
#include "session/session.h"
#include "support/check.h"
#include "support/forward.h"
#include "support/golden.h"
#include "support/media.h"

/* Image or clip i: encoded here where its pixels or samples are kept, else its soft tokens as they
 * are. */
static bz_media *media_for(const bz_model *m, const golden *g, const golden *media,
                           const char *kind, int i)
{
    const uint32_t budget = i == 2 ? 6 : 70;
    if (i == 1) {
        return golden_soft_tokens(m, g, kind, i);
    }
    bz_encoder *e = encoder_or_fail(
        m, &(bz_encoder_options){.size = sizeof(bz_encoder_options), .budget = budget});
    bz_media *made = encode_golden(e, media, kind, i);
    bz_encoder_free(e);
    return made;
}

static void run_case(const char *what, const char *text, const char *mmproj, const char *name,
                     uint32_t chunk)
{
    golden g, media;
    open_media_golden(&g, name);
    golden_open(&media, golden_path("media/golden.gguf"));
    bz_model *m = open_two_or_fail(text, mmproj);
    const uint32_t vocab = bz_model_vocab(m);
    for (int k = 0; k < 3; k++) {
        begin("%s: prompt %d in chunks of %u", what, k, chunk);
        const prompt_case *p = &golden_prompts(name)[k];
        size_t n;
        const int32_t *ids = golden_i32(&g, &n, "mm.%d.tokens", k);
        bz_media *list[2] = {0};
        for (size_t i = 0; i < p->n; i++) {
            list[i] = media_for(m, &g, &media, p->kind[i], p->number[i]);
        }
        bz_session *s = session_or_fail(m, &(bz_session_options){.size = sizeof(bz_session_options),
                                                                 .exact = true,
                                                                 .chunk = chunk,
                                                                 .threads = 2});
        float *logits = calloc(n * vocab, sizeof *logits);
        bz_error err = {0};
        CHECKF(prefill_with(s, ids, n, list, p->n, logits, &err) == BZ_OK, "%s", err.text);
        const double worst = prompt_error(&g, k, logits, vocab);
        CHECKF(worst < 1e-3, "logits off by %g", worst);

        /* The same prompt again costs one token; another image in its place costs all from there
         * on. */
        const uint64_t before = bz_session_get_stats(s).prefilled;
        CHECK(prefill_with(s, ids, n, list, p->n, NULL, &err) == BZ_OK);
        CHECKF(bz_session_get_stats(s).prefilled == before + 1, "%u computed",
               (unsigned)(bz_session_get_stats(s).prefilled - before));
        bz_media *other = bz_media_new(list[0]->kind, list[0]->rows, list[0]->width);
        other->content.a = 12345;
        bz_media *changed[2] = {other, list[1]};
        const uint64_t again = bz_session_get_stats(s).prefilled;
        CHECK(prefill_with(s, ids, n, changed, p->n, NULL, &err) == BZ_OK);
        CHECK(bz_session_get_stats(s).prefilled - again > list[0]->rows);
        bz_media_free(other);
        for (size_t i = 0; i < p->n; i++) {
            bz_media_free(list[i]);
        }
        free(logits);
        bz_session_free(s);
    }
    bz_model_free(m);
    golden_close(&g);
    golden_close(&media);
}

/* Models whose rows attend to a whole image: it is one pass, however long, and the session
 * continues after it. */
static void test_long(const char *name, bool exact, double bound)
{
    begin("%s: an image of more tokens than a chunk%s", name, exact ? "" : ", int8");
    bz_model *m = open_golden_or_fail(name, NULL);
    bz_error err = {0};
    const double d = long_image_error(
        m, name,
        &(bz_session_options){.size = sizeof(bz_session_options), .exact = exact, .threads = 2},
        &err);
    CHECKF(d < bound, "logits off by %g %s", d, err.text);
    bz_model_free(m);
}

static void test_refusals(void)
{
    begin("prompts whose media tokens do not match the media");
    bz_model *m =
        open_two_or_fail(golden_path("e-like/text.gguf"), golden_path("e-like/mmproj.gguf"));
    bz_session *s = session_or_fail(m, NULL);
    bz_media *image = bz_media_new(BZ_MEDIA_IMAGE, 3, 128),
             *sound = bz_media_new(BZ_MEDIA_AUDIO, 2, 128);
    bz_media *both[2] = {image, sound}, *foreign = bz_media_new(BZ_MEDIA_IMAGE, 3, 64);
    bz_error err = {0};
    const int32_t good[] = {2, 763, 763, 763, 100, 764, 764, 101}, few[] = {2, 763, 763, 100};
    CHECKF(prefill_with(s, good, 8, both, 2, NULL, &err) == BZ_OK, "%s", err.text);
    CHECK(prefill_with(s, good, 8, both, 1, NULL, &err) == BZ_BAD_REQUEST &&
          strstr(err.text, "another audio clip"));
    CHECK(prefill_with(s, good, 5, both, 2, NULL, &err) == BZ_BAD_REQUEST &&
          strstr(err.text, "tokens for 1"));
    CHECK(prefill_with(s, few, 4, both, 1, NULL, &err) == BZ_BAD_REQUEST &&
          strstr(err.text, "needs 3"));
    CHECK(prefill_with(s, good + 4, 4, both, 1, NULL, &err) == BZ_BAD_REQUEST &&
          strstr(err.text, "an image was passed"));
    CHECK(prefill_with(s, good, 8, &foreign, 1, NULL, &err) == BZ_BAD_REQUEST &&
          strstr(err.text, "another model"));
    const int32_t outside[] = {2, 763, 763, 763, -5};
    CHECK(prefill_with(s, outside, 5, both, 1, NULL, &err) == BZ_BAD_REQUEST);
    CHECK(bz_session_get_stats(s).position == 8); /* nothing was lost by any of them */
    bz_media_free(image);
    bz_media_free(sound);
    bz_media_free(foreign);
    bz_session_free(s);
    bz_model_free(m);
}

static void test_turn(void)
{
    begin("a request with an image and audio");
    static const char request[] = "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":"
                                  "\"image_url\",\"image_url\":{\"url\":"
                                  "\"cat.jpg\"}},{\"type\":\"text\",\"text\":\"and\"},{\"type\":"
                                  "\"input_audio\",\"input_audio\":"
                                  "{\"data\":\"AAAA\"}}]}]}";
    bz_model *m =
        open_two_or_fail(golden_path("e-like/text.gguf"), golden_path("e-like/mmproj.gguf"));
    bz_session *s = session_or_fail(m, NULL);
    bz_media *image = bz_media_new(BZ_MEDIA_IMAGE, 3, 128),
             *sound = bz_media_new(BZ_MEDIA_AUDIO, 5, 128);
    bz_turn *turn = NULL;
    bz_job *job = NULL;
    bz_error err = {0};
    const char *source;
    size_t len, n;
    uint32_t snapshot_at;
    CHECK(bz_turn_new(&turn, m, request, strlen(request), &err) == BZ_BAD_REQUEST && !turn);
    CHECKF(bz_turn_new_media(&turn, m, request, strlen(request), &err) == BZ_OK &&
               bz_turn_media(turn) == 2,
           "%s", err.text);
    CHECK(bz_turn_media_source(turn, 0, &source, &len) == BZ_MEDIA_IMAGE && len == 7 &&
          memcmp(source, "cat.jpg", 7) == 0);
    CHECK(bz_turn_media_source(turn, 1, &source, &len) == BZ_MEDIA_AUDIO && len == 4 &&
          memcmp(source, "AAAA", 4) == 0);
    CHECK(bz_turn_prefill(s, turn, &job, &err) == BZ_BAD_REQUEST &&
          strstr(err.text, "not attached"));
    CHECK(bz_turn_attach(turn, 0, sound, &err) == BZ_BAD_REQUEST &&
          bz_turn_attach(turn, 2, image, &err) == BZ_BAD_REQUEST);
    CHECK(bz_turn_attach(turn, 0, image, &err) == BZ_OK &&
          bz_turn_attach(turn, 1, sound, &err) == BZ_OK);
    const int32_t *ids = bz_turn_prompt(turn, &n, &snapshot_at);
    size_t at = 0;
    while (at < n && ids[at] != 761) {
        at++;
    }
    CHECK(at + 5 < n && ids[at + 1] == 763 && ids[at + 3] == 763 &&
          ids[at + 4] == 765); /* begin, three rows, end */
    while (at < n && ids[at] != 762) {
        at++;
    }
    CHECK(at + 7 < n && ids[at + 1] == 764 && ids[at + 5] == 764 && ids[at + 6] == 766);
    CHECK(snapshot_at > at + 6 && snapshot_at < n); /* before the model is to speak */
    CHECKF(bz_turn_prefill(s, turn, &job, &err) == BZ_OK && bz_job_run(job, NULL, &err) == BZ_OK,
           "%s", err.text);
    bz_job_free(job);
    CHECK(bz_session_get_stats(s).position == n);
    bz_turn_free(turn);
    bz_media_free(image);
    bz_media_free(sound);
    bz_session_free(s);
    bz_model_free(m);
}

int main(void)
{
    test_turn();
    const uint32_t chunks[] = {512, 7};
    for (int i = 0; i < 2; i++) {
        run_case("e-like", golden_path("e-like/text.gguf"), golden_path("e-like/mmproj.gguf"),
                 "e-like", chunks[i]);
        run_case("e-like, one file", model_path("e-like-whole.gguf"), NULL, "e-like", chunks[i]);
        run_case("moe-like", golden_path("moe-like/text.gguf"), golden_path("moe-like/mmproj.gguf"),
                 "moe-like", chunks[i]);
        run_case("unified", golden_path("unified/text.gguf"), golden_path("unified/mmproj.gguf"),
                 "unified", chunks[i]);
    }
    test_long("moe-like", true, 1e-3);
    test_long("unified", true, 1e-3);
    test_refusals();
    return finish();
}
