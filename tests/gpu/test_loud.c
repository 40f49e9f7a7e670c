/* Models whose feed-forward activations are 4096 times larger than usual and leave the range of
 * f16; the norms after them bring everything back. GPU = CPU, and no infinity on the way.
 * tools/gguf_loud.py makes the files.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/check.h"
#include "support/devices.h"
#include "support/forward.h"
#include "support/golden.h"

static float *logits(const bz_model *m, bool exact, uint32_t chunk, const int32_t *ids, size_t n)
{
    bz_session *s = session_or_fail(
        m,
        &(bz_session_options){.size = sizeof(bz_session_options), .exact = exact, .chunk = chunk});
    float *out = calloc(n * bz_model_vocab(m), sizeof *out);
    bz_error err = {0};
    CHECKF(prefill(s, ids, n, 0, out, &err) == BZ_OK, "%s", err.text);
    bz_session_free(s);
    return out;
}

static void test_loud(const char *name)
{
    char path[64];
    golden g;
    size_t n, n_want;
    snprintf(path, sizeof path, "%s/golden.gguf", name);
    golden_open(&g, golden_path(path));
    const int32_t *ids = golden_i32(&g, &n, "text.2.tokens");
    const float *quiet = golden_f32(&g, &n_want, "text.2.logits");
    snprintf(path, sizeof path, "%s-loud.gguf", name);
    bz_model *cpu = open_or_fail(model_path(path)), *gpu = open_on_or_fail(model_path(path), "gpu");
    uint32_t vocab = bz_model_vocab(cpu);
    for (int exact = 1; exact >= 0; exact--) {
        begin("gpu %s with ffn_up times 4096, %s cache", name, exact ? "f32" : "f16");
        float *want = logits(cpu, exact, 512, ids, n);
        for (int decoding = 0; decoding < 2; decoding++) {
            /* rows one by one: a short run takes the first ones, which do not depend on the rest */
            const size_t rows = decoding && quick_run() ? 10 : n;
            float *got = logits(gpu, exact, decoding ? 1 : 512, ids, rows);
            double d = max_difference(got, want, rows * vocab),
                   from_quiet = max_difference(got, quiet, rows * vocab);
            /* near the middle between two f16, the last bit of a key decides which it becomes */
            CHECKF(d <= (exact ? 2e-3 : 0.1), "off by %g", d);
            CHECKF(from_quiet <= (exact ? 0.1 : 1), "%g from the quiet model", from_quiet);
            free(got);
        }
        free(want);
    }
    bz_model_free(cpu);
    bz_model_free(gpu);
    golden_close(&g);
}

int main(void)
{
    devices_keep();
    test_loud("e-like");
    test_loud("moe-like");
    test_loud("dense-like");
    return finish();
}
