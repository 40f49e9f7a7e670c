/* A long context: going back in it and forth again is exact to the last bit, and generating
 * continues from there. The cache of full attention doubles several times on the way. */
#include <stdlib.h>
#include <string.h>

#include "session/session.h"
#include "support/check.h"
#include "support/forward.h"
#include "support/golden.h"

int main(void)
{
    enum { BACK = 300, FIRST_ID = 494, PERIOD = 137, MADE = 8 };
    const uint32_t n = quick_run() ? 2000 : 20000;
    begin("a context of %u tokens", n);
    bz_model *m = open_or_fail(model_path("nano-long.gguf"));
    const uint32_t vocab = bz_model_vocab(m);
    int32_t *ids = malloc(n * sizeof *ids), made[MADE];
    for (uint32_t i = 0; i < n; i++) {
        ids[i] = i ? FIRST_ID + (int32_t)((i * 37 + i / PERIOD) % PERIOD) : 2;
    }
    bz_session *s =
        session_or_fail(m, &(bz_session_options){.size = sizeof(bz_session_options), .threads = 2});
    float *first = malloc(vocab * sizeof *first);
    bz_error err = {0};
    CHECKF(prefill(s, ids, n, 0, NULL, &err) == BZ_OK, "%s", err.text);
    memcpy(first, bz_session_logits(s), vocab * sizeof *first);
    CHECK(prefill(s, ids, n - BACK, 0, NULL, &err) == BZ_OK);
    CHECK(memcmp(bz_session_logits(s), first, vocab * sizeof *first) != 0);
    CHECK(prefill(s, ids, n, 0, NULL, &err) == BZ_OK);
    CHECK(memcmp(bz_session_logits(s), first, vocab * sizeof *first) == 0);
    CHECK(bz_session_get_stats(s).prefilled == n + 1 + BACK);
    CHECK(generate(s, made, MADE) == MADE);
    free(first);
    bz_session_free(s);
    bz_model_free(m);
    free(ids);
    return finish();
}
