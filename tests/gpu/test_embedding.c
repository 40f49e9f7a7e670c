/* EmbeddingGemma on the GPU: Hugging Face's vectors, texts one by one and together, fused and not,
 * in passes of every size. */
#include <stdlib.h>
#include <string.h>

#include "session/embed.h"
#include "support/check.h"
#include "support/devices.h"
#include "support/forward.h"
#include "support/vectors.h"

static void test_golden(const char *what, const char *model, const char *data)
{
    golden g;
    golden_open(&g, golden_path(data));
    bz_model *m = open_on_or_fail(golden_path(model), "gpu");
    for (int no_fuse = 0; no_fuse < (quick_run() ? 1 : 2); no_fuse++) {
        const bz_embedder_options o = {.size = sizeof o, .no_fuse = no_fuse, .exact = true};
        begin("%s%s", what, no_fuse ? ", unfused" : "");
        check_vectors(&g, m, &o, 1e-4);
    }
    bz_model_free(m);
    golden_close(&g);
}

/* A pass of many texts, whose vectors differ from exact ones of the CPU in the last bits; where
 * products are rounded to f16, by a little more. */
static void test_many(const char *model, bool exact, double bound)
{
    const bz_embedder_options o = {.size = sizeof o, .exact = exact},
                              on_cpu = {.size = sizeof on_cpu, .exact = true};
    enum { N = 40 };
    static const char text[] = "water near the house, water near the ground";
    bz_model *there = open_on_or_fail(golden_path(model), "gpu"),
             *cpu = open_or_fail(golden_path(model));
    bz_embedder *a = embedder_or_fail(there, &o), *b = embedder_or_fail(cpu, &on_cpu);
    bz_embed_input in[N];
    bz_error err = {0};
    uint32_t d;
    begin("%d texts of %s in passes%s", N, model, exact ? ", exact" : "");
    for (size_t i = 0; i < N; i++) {
        in[i] = (bz_embed_input){.text = text, .len = i % sizeof text};
    }
    float *x = vectors_of(a, in, N, NULL, &d, &err), *y = vectors_of(b, in, N, NULL, &d, &err);
    if (CHECKF(x && y, "%s", err.text)) {
        const double off = max_difference(x, y, N * d);
        CHECKF(off <= bound, "off by %g", off);
    }
    free(x);
    free(y);
    bz_embedder_free(a);
    bz_embedder_free(b);
    bz_model_free(there);
    bz_model_free(cpu);
}

int main(void)
{
    devices_keep();
    test_golden("EmbeddingGemma", "embedding/text.gguf", "embedding/golden.gguf");
    test_golden("EmbeddingGemma 2", "embedding2/text.gguf", "embedding2/golden.gguf");
    test_many("embedding/model.gguf", true, 1e-4);
    test_many("embedding/model.gguf", false, 2e-3);
    return finish();
}
