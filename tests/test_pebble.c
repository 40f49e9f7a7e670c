/* Pebble, the model that ships with the engine, against the official classes: the file's own weights closely, the
 * weights it was quantised from within what quantisation costs, and the greedy text. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bezel.h"
#include "support/check.h"
#include "support/forward.h"
#include "support/golden.h"

#define PEBBLE "../../models/pebble.gguf" /* from tests/golden */

/* Root of the mean squared difference. */
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
    if (!CHECK(ids && own && exact && greedy && n_own == n_exact && n_own % vocab == 0 && n_own / vocab <= n)) {
        return;
    }
    const bz_session_options o = {.exact = true, .threads = 2};
    bz_session *s = session_or_fail(m, &o);
    float *logits = calloc(n * vocab, sizeof *logits);
    bz_error err = {0};
    CHECKF(prefill(s, ids, n, 0, logits, &err) == BZ_OK, "%s", err.text);
    const float *last = logits + n * vocab - n_own;
    double d = max_difference(last, own, n_own);
    CHECKF(d <= 2e-3, "off by %g", d);

    begin("the weights before quantisation");
    d = rms_difference(last, exact, n_own);
    CHECKF(d <= 0.75 && d > 1e-3, "rms %g", d); /* logits deviate by 5 to 8 */

    begin("the greedy answer");
    int32_t *got = calloc(n_greedy, sizeof *got);
    size_t made = generate(s, got, n_greedy);
    size_t same = 0;
    while (same < made && got[same] == greedy[same]) {
        same++;
    }
    CHECKF(made == n_greedy && same == n_greedy, "the first %zu of %zu tokens are the same", same, n_greedy);
    free(got);
    free(logits);
    bz_session_free(s);
}

int main(void)
{
    golden g;
    golden_open(&g, golden_path("pebble/golden.gguf"));
    bz_model *m = open_or_fail(golden_path(PEBBLE));
    text_case(&g, m);
    bz_model_free(m);
    golden_close(&g);
    return finish();
}
