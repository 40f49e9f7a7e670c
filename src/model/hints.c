/* Sampling settings and suppressed tokens from a file's keys. */
#include "model/hints.h"

void bz_hints_sampling(const bz_gguf *gguf, bz_sampling *s)
{
    /* Zero in the file means off; in bz_sampling a negative number does. */
    double x;
    int64_t k;
    if (s->temperature == 0 &&
        bz_gguf_get_f64(bz_gguf_find(gguf, "general.sampling.temp"), 0, &x) && x < 1e6) {
        s->temperature = (float)x > 0 ? (float)x : -1;
    }
    if (s->top_k == 0 && bz_gguf_get_i64(bz_gguf_find(gguf, "general.sampling.top_k"), 0, &k)) {
        s->top_k = k <= 0 || k > INT32_MAX ? -1 : (int32_t)k;
    }
    if (s->top_p == 0 && bz_gguf_get_f64(bz_gguf_find(gguf, "general.sampling.top_p"), 0, &x) &&
        (float)x > 0) {
        s->top_p = x < 1 ? (float)x : -1;
    }
}

uint32_t bz_hints_suppressed(const bz_gguf *gguf, uint32_t vocab, int32_t *ids)
{
    const bz_gguf_kv *kv = bz_gguf_find(gguf, "tokenizer.ggml.suppress_tokens");
    uint32_t n = 0;
    for (uint64_t i = 0; kv && i < kv->count && n < vocab; i++) {
        int64_t id;
        if (bz_gguf_get_i64(kv, i, &id) && id >= 0 && id < (int64_t)vocab) {
            if (ids) {
                ids[n] = (int32_t)id;
            }
            n++;
        }
    }
    return n;
}
