/* Any bytes as a grammar: refused with a reason, or one whose masks are the tokens that can be
 * taken, along a walk that the input directs. The first byte says which kind, the second how the
 * walk goes. */
#include <stdlib.h>
#include <string.h>

#include "../support/walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static int32_t allowed_from(const bz_token_mask *mask, uint32_t n_tokens, uint32_t first)
{
    for (uint32_t i = 0; i < n_tokens; i++) {
        const uint32_t id = (first + i) % n_tokens;
        if (bz_mask_has(mask, (int32_t)id)) {
            return (int32_t)id;
        }
    }
    return -1;
}

static void go(bz_matcher *m, bz_vocabulary *v, uint32_t random)
{
    const uint32_t n_tokens = bz_vocabulary_trie(v)->n_tokens;
    for (int i = 0; i < 24; i++) {
        bz_token_mask mask;
        bz_error err = {0};
        char forced[8];
        if (bz_matcher_mask(m, &mask, &err) != BZ_OK) {
            must(err.text[0] != 0); /* too ambiguous */
            return;
        }
        const size_t n = bz_matcher_forced(m, forced, sizeof forced);
        must(n == 0 || !mask.can_end);
        if (mask.n == 0) {
            must(mask.can_end); /* the vocabulary has all bytes */
            return;
        }
        random = random * 1664525 + 1013904223;
        const int32_t id = allowed_from(&mask, n_tokens, (random >> 8) % n_tokens);
        const uint32_t other = (random >> 16) % n_tokens;
        must(n == 0 || walk_token(v, id).data[0] == forced[0]);
        if (!bz_mask_has(&mask, (int32_t)other)) {
            must(!bz_matcher_take_token(m, (int32_t)other));
        }
        if (!bz_matcher_take_token(m, id)) {
            must(bz_matcher_check(m, &err) != BZ_OK); /* too ambiguous from here on */
            return;
        }
        if (i % 7 == 3) {
            bz_matcher_compact(m);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bz_vocabulary *v;
    v = v ? v : walk_vocabulary();
    if (size < 2 || size > 4096 || !v) {
        return 0;
    }
    bz_error err = {0};
    bz_grammar *g = NULL;
    bz_matcher *m;
    const bz_grammar_kind kind = (bz_grammar_kind)(data[0] % 5);
    if (bz_grammar_new(&g, kind, (const char *)data + 2, size - 2, &err) != BZ_OK) {
        must(!g && err.text[0] != 0);
        return 0;
    }
    if (bz_matcher_new(&m, g, v, &err) == BZ_OK) {
        go(m, v, data[1]);
        bz_matcher_free(m);
    }
    bz_grammar_free(g);
    return 0;
}
